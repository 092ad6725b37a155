"""`legato models`, as a newcomer and an operator type it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.app.config import set_up
from gateway.cli import main, models
from gateway.providers.vendors import VENDORS
from gateway.runtime.errors import ConfigError
from tests.unit.providers.test_offered import OPENROUTER

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Type a command with an empty folder; returns its status and what it wrote."""
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    for vendor in VENDORS:
        monkeypatch.delenv(vendor.key or "NO_KEY", raising=False)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main.app(["models", *words])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def test_a_newcomer_is_told_who_can_be_asked_and_where_keys_are(typed: Typed) -> None:
    status, out, _ = typed()
    assert status == 0
    assert all(vendor.name in out and vendor.keys_at in out for vendor in VENDORS)


def test_a_missing_key_and_a_wrong_name_are_told(typed: Typed) -> None:
    status, _, err = typed("groq")
    assert status == 2
    assert "set the variable GROQ_API_KEY" in err
    status, _, err = typed("grok")
    assert status == 2
    assert "did you mean groq?" in err


def test_our_own_table_has_sources_and_days(typed: Typed) -> None:
    _, out, _ = typed("--known", "--json")
    rows = json.loads(out)
    assert all(row["source"].startswith("https://") and row["seen"] and row["old"] in (True, False) for row in rows)


def test_another_vendor_is_not_asked_with_the_address_or_the_key_of_the_configured_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    text = 'model: {provider: openai, name: m, base_url: "https://mine.example/v1", api_key: "${MINE}"}\n'
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / ".env").write_text("MINE=mine\nGROQ_API_KEY=theirs\n")
    environ = {"LEGATO_HOME": str(tmp_path), "LEGATO__MODEL__TEMPERATURE": "0.5"}
    setup = set_up(None, environ)
    asked = models.asked_of("groq", setup, environ).model
    assert asked.base_url == "https://api.groq.com/openai/v1"
    assert asked.api_key is not None
    assert asked.api_key.get_secret_value() == "theirs"
    assert models.asked_of("openai", setup, environ).model.base_url == "https://mine.example/v1"
    with pytest.raises(ConfigError, match=r"^model\.api_key is needed by xai"):
        models.asked_of("xai", setup, environ)


async def test_a_server_is_asked_and_its_models_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def listed(_: web.Request) -> web.Response:
        entries = [OPENROUTER, {"id": "plain"}, {"id": "qwen3-max"}, {"id": "x" * 200}]
        return web.json_response({"data": entries})

    app = web.Application()
    app.router.add_get("/v1/models", listed)
    async with TestServer(app) as server:
        text = f'model: {{provider: litellm, name: m, base_url: "{server.make_url("/v1")}"}}\n'
        (tmp_path / "config.yaml").write_text(text)
        rows = await models.model_rows(set_up(None, {"LEGATO_HOME": str(tmp_path)}).config, str)
    by_name = {row["name"]: row for row in rows}
    assert [row["name"] for row in rows] == sorted(by_name)
    assert by_name["plain"] == {
        "name": "plain",
        "window": None,
        "pictures": None,
        "tools": None,
        "read_usd": None,
        "write_usd": None,
    }
    assert by_name["qwen3-max"]["read_usd"] == pytest.approx(3.0)  # a million tokens at once
    shown = models.models_text(rows)
    assert "1,000,000" in shown
    assert "3.00" in shown
    assert models.models_text([]).startswith("The server does not list its models.")


def test_no_traceback_where_nobody_answers(typed: Typed) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LEGATO__MODEL__PROVIDER", "vllm")
        patched.setenv("LEGATO__MODEL__NAME", "m")
        patched.setenv("LEGATO__MODEL__BASE_URL", "http://127.0.0.1:9/v1")
        status, _, err = typed()
    assert status == 1
    assert "cannot be reached" in err
