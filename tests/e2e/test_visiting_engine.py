"""An engine written for hermes-agent's contract runs from a folder, as it is."""

from __future__ import annotations

import ast
import asyncio
import importlib
import itertools
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from gateway.app.config import Config
from gateway.app.config.models import Context, Plugins
from gateway.cli.main import app
from gateway.context.feedback import RESCUED
from gateway.context.registry import EngineRegistry
from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelSettings
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeModel, config_in, in_turn, running
from tests.support.model import Say
from tests.support.visiting_engine import SHELF, SOURCE

TURNS = 40


def plugins(folder: Path, *names: str) -> Path:
    """A folder of plug-ins with such an engine under each name."""
    for name in names:
        package = folder / "plugins" / "context_engine" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(SOURCE, encoding="utf-8")
        (package / "shelf.py").write_text(SHELF, encoding="utf-8")
    return folder / "plugins"


def heard(folder: Path) -> list[tuple[Any, ...]]:
    """Return the calls of the engine, in order."""
    (path,) = folder.rglob("keeper.db")
    with sqlite3.connect(path) as connection:
        return [ast.literal_eval(row[0]) for row in connection.execute("SELECT what FROM heard")]


def kept(folder: Path) -> list[str]:
    """The turns that the engine kept."""
    (path,) = folder.rglob("keeper.db")
    with sqlite3.connect(path) as connection:
        return [row[0] for row in connection.execute("SELECT content FROM kept")]


class Helper(FakeModel):
    """Also answers what the engine asks by itself."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.asked = 0

    def answer(self, spec: ModelSpec, request: ModelRequest) -> Say:
        newest = text_of(request.messages[-1])
        if newest.startswith("Sum up:"):
            self.asked += 1
            return Say(text=f"notes number {self.asked}", prompt=50)
        return Say(text=f"answer to {newest[:20]}")


async def test_forty_turns_and_three_compactions(tmp_path: Path) -> None:
    config = config_in(
        tmp_path,
        model=ModelSettings(provider="offline", name="fake", context_length=16_000, max_output_tokens=500),
        context=Context(engine="keeper"),
        plugins=Plugins(dir=str(plugins(tmp_path, "keeper"))),
    )
    model = Helper()
    async with running(tmp_path, config=config, model=model) as live:
        for number in range(TURNS):
            assert await live.ask(f"turn {number}: " + "some words that fill the window " * 130) != ""
        session = await live.tip()
        assert session is not None
        lineage = await live.store.lineage(session.id)
        assert len(lineage) - 1 == model.asked >= 3
        # The metered model was asked, and the prompt of the host came back from the engine unchanged.
        used = {total.label: total.calls for total in await live.store.usage(0.0, "purpose")}
        assert used["compression"] == model.asked
        assert all(text_of(request.messages[0]).count("(compacted)") == 0 for request in model.requests)
        assert [m["role"] for m in model.requests[-1].messages].count("system") == 1
        model.script = in_turn(Say(calls=[("keeper_grep", '{"words": "turn 3:"}')]), Say(text="found"))
        assert await live.ask("look it up") == "found"
        result = text_of(model.requests[-1].messages[-1])
        assert "turn 3:" in result
        await live.ask("/new")
    starts = [each for each in heard(tmp_path) if each[0] == "start"]
    continued = [each for each in starts if each[2] == "compression"]
    ids = [each.id for each in lineage]
    assert [(each[3], each[1]) for each in continued] == list(itertools.pairwise(ids))
    assert len({each[4] for each in starts}) == 1  # one conversation
    assert starts[0][5:] == ("fake", 16_000)
    assert [each[1] for each in heard(tmp_path) if each[0] == "end"] == [ids[-1]]  # the real end alone
    said = [text for text in kept(tmp_path) if text.startswith("turn ")]
    assert len(said) == len(set(said)) == TURNS


def test_nobody_else_sees_its_host(tmp_path: Path) -> None:
    before = set(sys.modules)
    registry = EngineRegistry({}, plugins(tmp_path, "one", "two"), tmp_path / "homes")
    first, second = registry.factory("one")(), registry.factory("two")()
    assert type(first).__module__ != type(second).__module__
    assert not {name for name in set(sys.modules) - before if name.partition(".")[0] == "agent"}
    assert "agent" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("agent.context_engine")
    assert first is not registry.factory("one")()
    with pytest.raises(TypeError, match="sqlite3"):
        __import__("copy").deepcopy(first)


def test_its_model_is_there_only_at_work(tmp_path: Path) -> None:
    engine = EngineRegistry({}, plugins(tmp_path, "one"), tmp_path / "homes").factory("one")()
    (tmp_path / "home").mkdir()
    engine.on_session_start("s", hermes_home=str(tmp_path / "home"))
    messages = [{"role": "system", "content": "x"}, *({"role": "user", "content": str(n)} for n in range(9))]
    with pytest.raises(RuntimeError, match="call_llm works only inside a method that the host has called"):
        engine.compress(messages)


FORGETTING = """
    def forget(self, texts):
        CARRIED.append(("forgot", *texts))
"""

IDLE = """
from agent.context_engine import ContextEngine

CARRIED = []


class Idle(ContextEngine):
    name = "idle"

    def update_from_response(self, usage):
        pass

    def should_compress(self, prompt_tokens=None):
        return False

    def carry_over_new_session_context(self, old_session_id, new_session_id):
        CARRIED.append((old_session_id, new_session_id))

    def compress(self, messages, current_tokens=None, focus_topic=None):
        raise RuntimeError("nothing works here")
"""


async def test_where_a_strangers_engine_makes_no_room_the_built_in_one_does(tmp_path: Path) -> None:
    package = tmp_path / "plugins" / "context_engine" / "idle"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(IDLE, encoding="utf-8")
    config = config_in(
        tmp_path,
        model=ModelSettings(provider="offline", name="fake", context_length=16_000, max_output_tokens=500),
        context=Context(engine="idle"),
        plugins=Plugins(dir=str(tmp_path / "plugins")),
    )
    async with running(tmp_path, config=config, model=Helper()) as live:
        for number in range(TURNS):
            answer = await live.ask(f"turn {number}: " + "some words that fill the window " * 130)
            assert answer.startswith("answer to turn"), answer
        notices = live.adapter.shown("c", "notice")
        session = await live.tip()
        assert session is not None
    assert session.compaction_count > 1
    assert sys.modules["legato_context_engine_idle"].CARRIED == []  # it never compacted: nothing is there
    assert notices.count(RESCUED.format(name="idle")) == 1


LOCKING = """
import sqlite3

from agent.context_engine import ContextEngine


class Locking(ContextEngine):
    # Two connections to one file. A change of no row leaves its transaction open, and the other connection waits.
    name = "locking"

    def __init__(self):
        path = str(self.home / "kept.db")
        self._notes = sqlite3.connect(path, check_same_thread=False, timeout=30)
        self._bound = sqlite3.connect(path, check_same_thread=False, timeout=30)
        self._notes.execute("CREATE TABLE IF NOT EXISTS notes (session TEXT, text TEXT)")
        self._notes.execute("CREATE TABLE IF NOT EXISTS bound (session TEXT)")
        self._notes.commit()
        self._session = ""

    def update_from_response(self, usage):
        pass

    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or 0) > 7000

    def _move(self, old, new):
        if self._notes.execute("UPDATE notes SET session = ? WHERE session = ?", (new, old)).rowcount:
            self._notes.commit()

    def carry_over_new_session_context(self, old_session_id, new_session_id):
        self._move(old_session_id, new_session_id)

    def on_session_start(self, session_id, boundary_reason="", old_session_id="", **info):
        if boundary_reason == "compression":
            self._move(old_session_id, session_id)
        self._bound.execute("INSERT INTO bound VALUES (?)", (session_id,))
        self._bound.commit()
        self._session = session_id

    def compress(self, messages, current_tokens=None, focus_topic=None):
        if WAITS:
            WAITS.append(focus_topic)
            raise sqlite3.OperationalError("database is locked")
        self._notes.execute("INSERT INTO notes VALUES (?, ?)", (self._session, str(len(messages))))
        self._notes.commit()
        kept = max(at for at, each in enumerate(messages) if each["role"] == "user")
        (count,) = self._notes.execute("SELECT count(*) FROM notes WHERE session = ?", (self._session,)).fetchone()
        self.compression_count += 1
        return [*messages[:1], {"role": "user", "content": f"notes: {count}"},
                {"role": "assistant", "content": "Read."}, *messages[kept:]]


WAITS = []


def register(ctx):
    Locking.home = ctx.home
    ctx.register_context_engine(Locking())
"""


def locking(folder: Path) -> Config:
    """A configuration with such an engine, in a window of 16K."""
    package = folder / "plugins" / "context_engine" / "locking"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(LOCKING, encoding="utf-8")
    return config_in(
        folder,
        model=ModelSettings(provider="offline", name="fake", context_length=16_000, max_output_tokens=500),
        context=Context(engine="locking"),
        plugins=Plugins(dir=str(folder / "plugins")),
    )


async def test_a_compaction_carries_over_once_so_no_engine_locks_itself_out(tmp_path: Path) -> None:
    async with running(tmp_path, config=locking(tmp_path), model=Helper()) as live:
        with capture_logs() as logs:
            for number in range(TURNS):
                assert await live.ask(f"turn {number}: " + "some words that fill the window " * 130)
        session = await live.tip()
        assert session is not None
        notes = [text_of(each) for each in await live.store.transcript(session) if "notes: " in text_of(each)]
    assert [each for each in logs if each["event"] == "context_engine_failed"] == []
    assert session.compaction_count > 3
    assert notes == [f"notes: {session.compaction_count}"]  # those of all sessions before it came along


async def test_an_engine_that_fails_is_asked_seldom_and_the_built_in_one_does_it(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running(tmp_path, config=locking(tmp_path), model=Helper(), clock=clock) as live:
        waits = sys.modules["legato_context_engine_locking"].WAITS
        waits.append("from the beginning")

        async def talk() -> int:
            before = await live.tip()
            for number in range(TURNS):
                assert await live.ask(f"turn {number}: " + "some words that fill the window " * 130)
            after = await live.tip()
            assert after is not None
            return after.compaction_count - (before.compaction_count if before else 0)

        assert await talk() > 3
        assert len(waits) == 2, "it was asked at each pass"
        await clock.advance(600.0)
        assert await talk() > 3
        assert len(waits) == 3
        assert live.adapter.shown("c", "notice").count(RESCUED.format(name="locking")) == 1


@pytest.mark.parametrize("way", ["", FORGETTING], ids=["no way to forget", "forgets"])
async def test_a_strangers_engine_forgets_or_is_named(tmp_path: Path, way: str) -> None:
    package = tmp_path / "plugins" / "context_engine" / "idle"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(IDLE + way, encoding="utf-8")
    config = config_in(tmp_path, context=Context(engine="idle"), plugins=Plugins(dir=str(tmp_path / "plugins")))
    async with running(tmp_path, config=config, model=Helper()) as live:
        await live.ask("my code is quizzaciously")
        event = await live.tell("/forget last")
        await live.adapter.until(lambda: bool(live.adapter.shown("c", "question")))
        await live.tell("y")
        told = (await live.answer(event)).text
    carried = sys.modules["legato_context_engine_idle"].CARRIED
    assert ("The context engine idle may keep a copy" in told) is not bool(way)
    assert any("my code is quizzaciously" in each for each in carried) is bool(way)


HOMELY = """
from agent.context_engine import ContextEngine
from hermes_constants import get_hermes_home


class Homely(ContextEngine):
    name = "homely"

    def __init__(self):
        self.kept = self.home / "kept.txt"
        self.kept.write_text("made", encoding="utf-8")
        assert get_hermes_home() == self.home

    def update_from_response(self, usage):
        pass

    def should_compress(self, prompt_tokens=None):
        return False

    def compress(self, messages, current_tokens=None, focus_topic=None):
        return messages
"""


REGISTERING = """

def register(ctx):
    assert ctx.home.is_dir()
    ctx.register_context_engine(Homely)
"""


@pytest.mark.parametrize("register", ["", REGISTERING], ids=["class", "register"])
def test_its_folder_is_there_before_the_engine_is_made(tmp_path: Path, register: str) -> None:
    package = tmp_path / "plugins" / "context_engine" / "homely"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(HOMELY + register, encoding="utf-8")
    made = EngineRegistry({}, tmp_path / "plugins", tmp_path / "homes").factory("homely")()
    assert made.home == tmp_path / "homes" / "homely"
    assert (made.home / "kept.txt").read_text(encoding="utf-8") == "made"


@pytest.mark.parametrize("way", ["", FORGETTING], ids=["no way to forget", "forgets"])
def test_a_purge_reaches_it_or_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    package = tmp_path / "plugins" / "context_engine" / "idle"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(IDLE + way, encoding="utf-8")
    config = config_in(tmp_path, context=Context(engine="idle"), plugins=Plugins(dir=str(tmp_path / "plugins")))
    monkeypatch.chdir(tmp_path)
    written = f"store: {{url: '{config.store.url}'}}\ncontext: {{engine: idle}}\nplugins: {{dir: {tmp_path}/plugins}}\n"
    (tmp_path / "config.yaml").write_text(written, encoding="utf-8")

    async def talk() -> None:
        async with running(tmp_path, config=config, model=Helper()) as live:
            await live.ask("my code is quizzaciously")

    asyncio.run(talk())
    told = CliRunner().invoke(app, ["purge", "--person", "fake:u", "--yes"])
    assert told.exit_code == 0, told.output
    carried = sys.modules["legato_context_engine_idle"].CARRIED
    assert ("The context engine idle may keep a copy" in told.stderr) is not bool(way)
    assert any("my code is quizzaciously" in each for each in carried) is bool(way)
