"""Settings changed from the page, at the desk behind it: what is shown, kept, refused and written."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path

import pytest

from gateway.app.config import Config, set_up
from gateway.app.reload import Reloader
from gateway.cli.desk import Desk
from gateway.domain.views import Chosen, Settings
from tests.emulators.llm import LlmServer

HIDDEN = "hunter2-of-the-owner"


async def nothing(_: Config) -> None:
    """Take nothing up."""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    (tmp_path / ".env").write_text(f"LITELLM_API_KEY=sk-the-right-key\nPASSWORD={HIDDEN}\n")
    held = Config()
    return Desk(
        path=None,
        reloader=Reloader(
            config=held, read=lambda: set_up(None, os.environ).config, reconfigure=nothing, relog=lambda _: None
        ),
    )


def write(folder: Path, address: str, more: str = "") -> str:
    text = f"""model: {{provider: litellm, name: any-model, base_url: "{address}"}}
adapters: {{matrix: {{user: "@${{PASSWORD}}:example.org"}}}}
{more}"""
    (folder / "config.yaml").write_text(text)
    return text


def shown(seen: Settings) -> str:
    return repr(seen)


async def test_what_a_variable_holds_is_neither_shown_nor_fetched(tmp_path: Path, desk: Desk) -> None:
    text = write(tmp_path, "http://me:${PASSWORD}@127.0.0.1:9/v1")
    seen = await desk.seen()
    assert HIDDEN not in shown(seen)
    assert seen.model.address == "http://me:${PASSWORD}@127.0.0.1:9/v1"
    assert (await desk.save_model(seen.model, "")).files == ()  # as it was shown, it stays
    matrix = next(each for each in seen.platforms if each.name == "matrix")
    await desk.save_platform("matrix", False, {}, {each.name: each.value for each in matrix.asked})
    assert 'user: "@${PASSWORD}:example.org"' in (tmp_path / "config.yaml").read_text()
    for name, address in (("${PASSWORD}", seen.model.address), ("any-model", "http://${LITELLM_API_KEY}.example/")):
        saved = await desk.save_model(Chosen(provider="litellm", name=name, address=address), "")
        assert "can name a variable only in config.yaml" in saved.problems[0]
    saved = await desk.save_people({"access.allow": "telegram:${PASSWORD}"})
    assert "can name a variable only" in saved.problems[0]
    assert HIDDEN not in shown(await desk.seen())
    assert (tmp_path / "config.yaml").read_text().startswith(text.partition("\n")[0])


@pytest.mark.parametrize("odd", ["a\nb: c", "a\0b", "\u202ecba", "x" * 300_000])
async def test_what_nobody_can_type_is_refused(tmp_path: Path, desk: Desk, odd: str) -> None:
    text = write(tmp_path, "http://127.0.0.1:9/v1")
    chosen = Chosen(provider="litellm", name=odd, address="http://127.0.0.1:9/v1")
    for problem in ((await desk.save_model(chosen, "")).problems[0], (await desk.try_model(chosen, "")).told):
        assert "signs that cannot be typed" in problem
        assert len(problem) < 200
    assert (tmp_path / "config.yaml").read_text() == text


@pytest.mark.parametrize("broken", [b"model: [unclosed\n", b"model: \xff\xfe\n"])
async def test_a_file_that_somebody_broke_meanwhile_is_told(tmp_path: Path, desk: Desk, broken: bytes) -> None:
    (tmp_path / "config.yaml").write_bytes(broken)
    chosen = Chosen(provider="litellm", name="any", address="http://127.0.0.1:9/v1")
    told = [await desk.save_model(chosen, "sk-new"), await desk.save_people({"access.allow": "telegram:1"})]
    assert all("config.yaml" in each.problems[0] for each in told)
    assert (tmp_path / "config.yaml").read_bytes() == broken
    assert "sk-new" not in (tmp_path / ".env").read_text()


async def test_a_key_that_was_refused_takes_no_others_place(tmp_path: Path, desk: Desk) -> None:
    async with LlmServer(api_key="sk-the-right-key") as server:
        write(tmp_path, server.url)
        chosen = Chosen(provider="litellm", name="any-model", address=server.url)
        assert not (await desk.try_model(chosen, "sk-mistyped")).ok
        assert (await desk.try_model(chosen, "")).ok, "the field is empty: the key that is set is meant"
        await desk.save_model(chosen, "")
        assert "sk-mistyped" not in (tmp_path / ".env").read_text()


async def test_a_password_is_read_as_it_was_typed(tmp_path: Path, desk: Desk) -> None:
    write(tmp_path, "http://127.0.0.1:9/v1")
    for password in ("my dog #1 's", '"quoted"', "back\\slash 'n'", "plain"):
        assert not (await desk.save_platform("matrix", False, {"MATRIX_PASSWORD": password}, {})).problems
        assert set_up(None, os.environ).variables({})["MATRIX_PASSWORD"] == password


async def test_a_server_may_want_the_name_and_password_of_its_address(tmp_path: Path, desk: Desk) -> None:
    async with LlmServer(api_key=f"Basic {b64encode(f'me:{HIDDEN}'.encode()).decode()}") as server:
        write(tmp_path, server.url.replace("://", "://me:${PASSWORD}@"))
        tried = await desk.try_model((await desk.seen()).model, "")
    assert tried.ok
    assert HIDDEN not in tried.told
