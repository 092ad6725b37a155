"""`legato replay`: a stored conversation is answered anew beside what was answered then, and stays as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gateway.app.build import Parts
from gateway.app.config import Setup, set_up
from gateway.cli.replay import Row, Story, replayed, settings_for, story_of
from gateway.cli.replay_shown import ended_text, replay_page, replay_text, write_page
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import ProviderRejected, UserError
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore
from tests.support.gateway import FakeAdapter, FakeModel, Say, config_in, in_turn, running
from tests.support.model import Script, echo
from tests.support.program import legato

pytest_plugins = ["tests.support.redis_server"]

HOSTILE = "<script>alert(1)</script>&\" ' \x1b[31m \u202e مرحبا 你好"


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEGATO_HOME", ".")
    (tmp_path / "config.yaml").write_text(
        "tools: {shell: {enabled: true, sandbox: never}}\nmemory: {flush: true}\n", encoding="utf-8"
    )
    return set_up(None, os.environ)


async def anew(story: Story, found: Setup, script: Script = echo) -> tuple[Row, FakeModel]:
    model = FakeModel(script)
    parts = Parts(providers={"offline": model})
    return await replayed(story, found, "better", "", {}, lambda *_: None, parts), model


async def spoken(tmp_path: Path, store: Store, script: Script, *texts: str) -> str:
    """Have a conversation; the id of its session."""
    adapter = FakeAdapter()
    async with running(
        tmp_path, config=config_in(tmp_path), adapter=adapter, model=FakeModel(script), store=store
    ) as live:  # fmt: skip
        for text in texts:
            await live.ask(text)
        await live.quiet()
        tip = await live.tip()
        assert tip is not None
        return tip.id


async def read(store: Store, session: str, first: int | None = None) -> Story:
    await store.open()
    try:
        return await story_of(store, session, first)
    finally:
        await store.aclose()


async def test_both_answers_with_their_tokens(tmp_path: Path, reopened: Callable[[], Store], found: Setup) -> None:
    then = in_turn(Say(text="first"), Say(calls=[("clock", "{}")]), Say(text="it is late"), Say(text="bye"))
    session = await spoken(tmp_path, reopened(), then, "hello", f"what time? {HOSTILE}", "thanks")
    story = await read(reopened(), session)
    assert [(each.text, each.tools, len(each.calls)) for each in story.answers] == [
        ("first", (), 1), ("it is late", ("clock",), 2), ("bye", (), 1),
    ]  # fmt: skip
    row, model = await anew(story, found)
    assert [pair["now"]["text"] for pair in row["exchanges"]] == [f"echo: {text}".strip() for text in story.asked]
    assert [pair["was"]["calls"] for pair in row["exchanges"]] == [1, 2, 1]
    assert row["total"]["was"]["prompt_tokens"] > 0 < row["total"]["now"]["prompt_tokens"]
    assert row["total"]["now"]["calls"] == 3
    assert not any(request.tools for request in model.requests)
    assert [spec.name for spec in model.specs] == ["better"] * 3
    # The new answers, and not the old ones, are what the model goes on from.
    assert "first" not in json.dumps(model.requests[-1].messages)
    short = await read(reopened(), session, 1)
    assert short.asked == ("hello",)


async def test_the_source_is_only_read(tmp_path: Path, found: Setup) -> None:
    file = tmp_path / "legato.db"
    session = await spoken(tmp_path, SqliteStore(file, clock=SystemClock()), echo, "hello")
    before, names = sha256(file.read_bytes()).hexdigest(), {*os.listdir(tmp_path)}
    story = await read(SqliteStore(file, clock=SystemClock(), read_only=True), session)
    await anew(story, found)
    assert sha256(file.read_bytes()).hexdigest() == before
    assert {*os.listdir(tmp_path)} - names <= {"legato.db-wal", "legato.db-shm"}


async def test_a_compaction_then_and_now_is_told(tmp_path: Path, reopened: Callable[[], Store], found: Setup) -> None:
    texts = [f"question {n} " + "word " * 300 for n in range(12)]
    session = await spoken(tmp_path, reopened(), echo, *texts, "/compress", "after it")
    story = await read(reopened(), session)
    assert len(story.asked) == 13  # all of them, as they were said
    assert [each.trigger for each in story.compactions] == ["manual"]
    small = found.config.model.model_copy(update={"context_length": 6_000, "name": "better"})
    tight = Setup(
        config=found.config.replace(model=small),
        folder=found.folder,
        file=found.file,
        below=None,
        earlier=(),
        secrets=(),
    )
    row, model = await anew(story, tight)
    assert row["total"]["now"]["compactions"], "the small window was never full"
    assert model.summaries > 0
    text = replay_text(row)
    assert "(manual: " in text
    assert row["total"]["was"]["compactions"][0]["trigger"] == "manual"
    assert all(each["tokens_after"] < each["tokens_before"] for each in row["total"]["now"]["compactions"])


async def test_a_model_that_fails_ends_it_with_what_there_is(
    tmp_path: Path, reopened: Callable[[], Store], found: Setup
) -> None:
    session = await spoken(tmp_path, reopened(), echo, "one", "two", "three")
    story = await read(reopened(), session)
    row, _ = await anew(story, found, in_turn(Say(text="fine"), ProviderRejected("no such model", status=404)))
    assert [pair["now"]["text"] for pair in row["exchanges"]] == ["fine"]
    assert ended_text(row).startswith("It ended after 1 message: ")
    assert row["total"]["was"]["calls"] == 1  # of the same messages


async def test_words_that_look_like_commands_are_words(found: Setup) -> None:
    story = Story(session="s", title="", model="", asked=("/etc/hosts is broken", "/new"), answers=(), compactions=())
    row, model = await anew(story, found)
    assert (row["ended"], len(model.requests)) == ("", 2)


TOTAL = {"calls": 2, "prompt_tokens": 2, "output_tokens": 3, "cost_usd": 0.5, "unpriced_calls": 1}


def facts(text: str) -> dict[str, Any]:
    return {"text": text, "tools": ["a"], **TOTAL}


def hostile_row() -> Row:
    passed = {"trigger": "hygiene", "tokens_before": 9, "tokens_after": 3, "fallback": True}
    return {
        "session": "s",
        "title": HOSTILE,
        "model": {"was": HOSTILE, "now": HOSTILE},
        "exchanges": [{"asked": HOSTILE, "was": facts(HOSTILE), "now": facts("[bold]x[/bold] {} " + "y" * 5_000)}],
        "total": {"was": {**TOTAL, "compactions": []}, "now": {**TOTAL, "compactions": [passed]}},
        "ended": HOSTILE,
    }


def test_the_page_runs_and_loads_nothing(tmp_path: Path) -> None:
    page = replay_page(hostile_row())
    tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)
            assert not {name for name, _ in attrs} & {"src", "href", "onclick", "onerror"}

    Reader().feed(page)
    assert "script" not in tags
    assert "&lt;script&gt;alert(1)" in page
    assert "مرحبا 你好" in page
    assert "default-src 'none'" in page
    assert "2 tokens in, 3 out, $0.5000 and 1 call without a price" in page
    file = tmp_path / "a.html"
    write_page(hostile_row(), file)
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(UserError, match="exists already"):
        write_page(hostile_row(), file)
    with pytest.raises(UserError, match="cannot be written"):
        write_page(hostile_row(), tmp_path / "no" / "a.html")


def test_the_table_steers_no_terminal() -> None:
    text = replay_text(hostile_row())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]x[/bold]" in text
    assert "(5,018 characters)" in " ".join(text.replace("│", " ").split())


def test_another_model_does_not_inherit_the_window_of_the_configured_one(found: Setup, tmp_path: Path) -> None:
    own = found.config.model.model_copy(update={"name": "m", "context_length": 5_000})
    given = Setup(
        config=found.config.replace(model=own), folder=found.folder, file=None, below=None, earlier=(), secrets=()
    )  # fmt: skip
    same, other = (settings_for(given, name, "", str(tmp_path), {}).model for name in ("m", "n"))
    assert (same.context_length, other.context_length, other.tools) == (5_000, None, False)
    vendor = settings_for(given, "gpt-5", "openai", str(tmp_path), {"OPENAI_API_KEY": "sk-abc-0123456789"})
    assert (vendor.model.provider, vendor.model.name, vendor.tools.offered) == ("openai", "gpt-5", {"*": ("-*",)})


async def test_as_a_person_types_it(tmp_path: Path) -> None:
    await legato(tmp_path, "ask", "hello there")
    (session,) = json.loads((await legato(tmp_path, "sessions", "list", "--json"))[1])
    status, out, err = await legato(tmp_path, "replay", session["id"], "--model", "other", "--html", "page.html")
    assert (status, err) == (0, ""), err
    assert "hello there" in out
    assert "now: other" in out
    assert (tmp_path / "page.html").exists()
    for arguments, told in (
        (["nobody", "--model", "m"], "There is no session nobody"),
        ([session["id"], "--model", "m", "--html", "page.html"], "page.html exists already"),
        ([session["id"], "--model", "m", "--provider", "nobody"], "nobody"),
        ([session["id"]], "Missing option"),
    ):
        status, out, err = await legato(tmp_path, "replay", *arguments)
        assert (status != 0, out, told in err) == (True, "", True), err
