"""The settings that an operator is shown: what differs from the defaults, and no credential."""

from __future__ import annotations

from pydantic import SecretStr

from adapters.web.platform import WebPerson, WebSettings
from gateway.app.config import Config
from gateway.app.config.shown import SECRET, shown
from gateway.runtime.redaction import Redactor


def rows(**values: object) -> dict[str, str]:
    return dict(shown(Config.model_validate(values), Redactor(["hunter2-hunter2"])))


def test_defaults_are_not_shown() -> None:
    assert rows() == {}


def test_a_value_that_somebody_set_is_shown_with_its_whole_key() -> None:
    found = rows(compression={"threshold": 0.6}, fallback_models=["a", "b"], chats={"telegram:1": {"daily_usd": 2}})
    assert found["compression.threshold"] == "0.6"
    assert found["chats.telegram:1.daily_usd"] == "2.0"
    assert found["fallback_models"]


def test_no_credential_is_shown_wherever_it_stands() -> None:
    found = rows(
        model={
            "provider": "openai",
            "name": "m",
            "api_key": "hunter2-hunter2",
            "headers": {"X-Team": "hunter2-hunter2"},
        },
        store={"url": "redis://:hunter2-hunter2@127.0.0.1:6379/0"},
        tools={"mcp": {"notes": {"command": ["x", "--key", "hunter2-hunter2"], "env": {"SOME": "hunter2-hunter2"}}}},
        adapters={"web": WebSettings(enabled=True, people={"anna": WebPerson(password=SecretStr("hunter2-hunter2"))})},
    )
    assert "hunter2" not in str(found)
    assert found["model.api_key"] == found["model.headers.X-Team"] == SECRET
    assert found["tools.mcp.notes.env.SOME"] == SECRET
    assert found["adapters.web.people.anna.password"] == SECRET
