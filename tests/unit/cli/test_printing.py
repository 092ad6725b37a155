"""The program's output on terminals of every kind."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import AsyncMock

import apsw
import pytest
import typer

from gateway.agent.models import Models
from gateway.app.config import Config, Setup
from gateway.app.config.models import StoreSettings
from gateway.app.serving import announcement, nothing_to_do
from gateway.cli import check
from gateway.cli import main as cli
from gateway.cli.check import _store, may_talk, of_model
from gateway.cli.printing import complain, show, show_rows
from gateway.cli.program import guarded, words_of
from gateway.cli.reports import sessions_text
from gateway.cli.send import sentence
from gateway.domain.platform import AdapterSettings
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec
from gateway.providers.plugin import ProviderPlugin
from gateway.runtime.errors import TOO_FEW_FILES
from gateway.runtime.logs import configure_logs, sentences
from gateway.store.records import StoreStatus
from gateway.store.sqlite.backend import SqliteStore
from gateway.store.sqlite.connection import APPLICATION_ID
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, config_in


def on_a_narrow_terminal(rows: Any, *, as_json: bool, text: Callable[[Any], str]) -> bytes:
    """Return the output on a terminal of western Europe, as in 1998."""
    shown = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(shown, encoding="latin-1")) as terminal:
        show_rows(rows, as_json, text)
        terminal.flush()
        return shown.getvalue()


ROWS: list[dict[str, Any]] = [{"title": "会议 “notes” \ud800"}]


def test_json_stays_whole_where_the_terminal_cannot_show_it() -> None:
    assert json.loads(on_a_narrow_terminal(ROWS, as_json=True, text=str)) == ROWS
    assert b'"input_tokens": 7' in on_a_narrow_terminal(CanonicalUsage(input_tokens=7), as_json=True, text=str)


def test_text_is_shown_as_far_as_the_terminal_can() -> None:
    shown = on_a_narrow_terminal(ROWS, as_json=False, text=lambda rows: str(rows[0]["title"]))
    assert shown == b"?? ?notes? ?\n"


@pytest.mark.parametrize(("print_", "redirected"), [(show, redirect_stdout), (complain, redirect_stderr)])
def test_a_reader_that_left_ends_a_command_among_its_connections(
    print_: Callable[[str], None], redirected: Callable[[TextIO], AbstractContextManager[object]]
) -> None:
    out, into = os.pipe()
    os.close(out)
    with open(into, "w") as pipe, redirected(pipe), pytest.raises(SystemExit) as ended:
        print_("hello")
    assert ended.value.code == 128 + signal.SIGPIPE


def test_a_command_that_was_broken_off_ends_with_its_code() -> None:
    async def ask() -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        guarded(ask, None)
    assert ended.value.exit_code == 130


def test_a_command_line_that_cannot_be_meant_ends_with_2_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"store: {{url: 'sqlite:///{tmp_path}/legato.db'}}\n")
    for arguments, said in (
        (["run"], "there is nothing to run: enable a platform"),
        (["usage", "--by", "hour"], "--by takes model, purpose, platform, session or day, not 'hour'"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.app([*arguments, "--config", str(config)])
        assert ended.value.code == 2
        assert capsys.readouterr().err.startswith(f"legato: {said}")


def test_without_a_platform_the_way_out_is_told_in_few_words() -> None:
    assert nothing_to_do(Config()).endswith(" in your config.yaml), or talk here with `legato chat`")


async def test_a_check_whose_reader_left_closes_what_it_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def left(text: str) -> None:
        raise SystemExit(128 + signal.SIGPIPE)

    async def closes() -> None:
        closed.append("adapter")

    closed: list[str] = []
    adapter = FakeAdapter()
    monkeypatch.setattr(adapter, "aclose", closes)
    monkeypatch.setattr(check, "adapters", lambda config: [adapter])
    monkeypatch.setattr(check, "show", left)
    with pytest.raises(SystemExit):
        await check.printed(check.probed(Setup(config=config_in(tmp_path), folder=tmp_path, file=None)), str)
    assert closed == ["adapter"]


async def test_a_provider_that_breaks_its_port_is_one_line_of_the_check() -> None:
    class Parrot:
        name = "parrot"

        async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            raise AttributeError("no beak")
            yield

        async def aclose(self) -> None: ...

    class Unlisted:
        def context_window(self, model: str, base_url: str | None = None) -> int | None: ...

        def cost_usd(self, spec: ModelSpec, usage: CanonicalUsage) -> float | None: ...

    spec = ModelSpec(provider="parrot", name="parrot", context_length=16_000)
    models = Models(
        main=spec,
        providers={"parrot": Parrot()},
        plugins={"parrot": ProviderPlugin(name="parrot", create="")},
        windows=Unlisted(),
        prices=Unlisted(),
    )
    found = await of_model("model", models, spec)
    assert found.ok is False
    assert found.detail.endswith("parrot raised AttributeError: no beak; a provider may raise only ProviderError")


def test_a_start_says_what_is_served_by_which_model_and_from_which_store() -> None:
    telegram = Config().replace(adapters={"telegram": AdapterSettings(enabled=True)})
    starts, works = announcement(telegram, 1)
    assert starts.endswith(" starts. It serves Telegram.")
    assert works == "Answers come from the offline model (no key, no network). Legato keeps everything in legato.db."
    several = announcement(Config().replace(store=StoreSettings(url="redis://127.0.0.1/0")), 4)
    assert several[0].endswith(" starts with 4 workers. It serves the conversations of its store.")
    assert several[1].endswith(" Legato keeps everything in redis://127.0.0.1/0.")


@pytest.mark.parametrize("level", ["debug", "error"])
def test_sentences_are_said_whatever_the_level_is(capsys: pytest.CaptureFixture[str], level: Any) -> None:
    configure_logs(level=level, form="json", redact=str)
    sentences("console")("It starts.")
    sentences("json")("It starts.")
    plain, row = capsys.readouterr().err.splitlines()
    assert plain == "It starts."
    said = json.loads(row)
    assert said.pop("timestamp")
    assert said == {"event": "told", "level": "info", "text": "It starts."}


def test_a_check_says_who_may_talk() -> None:
    assert "`legato access confirm CODE`" in may_talk((), (), pairing=True)
    assert may_talk((), (), pairing=False).startswith("nobody may talk, because ")
    for public in ("telegram:*", "telegram:*@*"):
        told = may_talk(("telegram:1", public), (), pairing=True)
        assert told == "EVERYBODY on telegram may talk, at your cost; telegram:*@CHAT lets in everyone in one chat"
    assert "EVERYBODY" not in may_talk(("telegram:*@-100123",), (), pairing=True)
    told = may_talk(("telegram:1", "telegram:2"), ("telegram:1",), pairing=False)
    assert told == "access.allow names 2, access.admins names 1; strangers get no answer"


async def test_a_check_beside_a_gateway_looks_all_the_same_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "legato.db"
    running = SqliteStore(path, clock=ManualClock())
    await running.open()
    try:
        found = await _store(SqliteStore(path, clock=ManualClock(), read_only=True), path)
    finally:
        await running.aclose()
    assert (found.ok, found.detail) == (True, "0 sessions, 0 messages waiting, 0 not yet shown")


async def test_a_check_of_an_older_store_says_what_a_run_would_do(tmp_path: Path) -> None:
    path = tmp_path / "legato.db"
    old = apsw.Connection(str(path))
    old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    old.close()
    found = await _store(SqliteStore(path, clock=ManualClock(), read_only=True), path)
    assert (found.ok, found.detail) == (None, f"{path} is still empty. The first run of Legato sets it up.")
    old = apsw.Connection(str(path))
    old.execute("PRAGMA user_version = 11")
    old.close()
    found = await _store(SqliteStore(path, clock=ManualClock(), read_only=True), path)
    assert found.ok is None
    assert found.detail.endswith(". Make a backup first.")
    assert path.stat().st_size == 4096


def test_a_limit_of_open_files_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with pytest.raises(typer.Exit) as ended:
        guarded(run, None)
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == f"legato: {TOO_FEW_FILES}\n"


async def test_a_check_says_how_much_of_the_search_index_is_left() -> None:
    store = AsyncMock(SqliteStore)
    store.status.return_value = StoreStatus(waiting=0, unsent=0, dead=0, sessions=3, unindexed=1_234)
    assert (await _store(store, None)).detail == (
        "3 sessions, 0 messages waiting, 0 not yet shown;"
        " the search index is rebuilt while the gateway runs: 1,234 messages left"
    )


def test_what_is_shown_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    title = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\u202e\rnew"
    show(title)
    complain(title)
    show_rows([{"title": title}], True, str)
    shown = capsys.readouterr()
    assert shown.err == "␛]0;owned␇red\nnew\n" == shown.out[: len(shown.err)]
    assert json.loads(shown.out[len(shown.err) :]) == [{"title": title}]
    assert not set("\x1b\x07\u202e\r") & set(shown.out + shown.err)


def test_the_columns_of_sessions_fit_the_longest_id() -> None:
    rest = {
        "started_at": "2026-11-29T17:42",
        "end_reason": None,
        "messages": 2,
        "key": "console/chat=main",
        "title": None,
    }
    lines = sessions_text([{"id": "s_" + "1" * 16, **rest}, {"id": "s_" + "1" * 20, **rest}]).split("\n")
    assert {line.index("2026") for line in lines[1:]} == {lines[0].index("started")} == {23}


def test_who_sends_a_text_hears_whether_it_is_stored_now() -> None:
    assert sentence({"id": "a", "state": "left"}).startswith("The text is stored")
    assert "already exists (its state is sent)" in sentence({"id": "a", "state": "sent"})


def test_who_pipes_something_else_than_text_hears_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ab\xff"), encoding="utf-8"))
    with pytest.raises(typer.Exit):
        words_of(["-"], "nothing")
    assert "(byte 3)" in capsys.readouterr().err
