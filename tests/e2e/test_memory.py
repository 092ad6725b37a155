"""Memory beyond a conversation: the tool, the flush, the snapshot in the prompt, and /memory."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.memory.rules import Source, saying
from gateway.agent.memory.snapshot import MemorySettings, day
from gateway.app.config import Config
from gateway.commands import memory as command
from gateway.context.policy import CompressionSettings
from gateway.domain.adapter import Limits
from gateway.domain.chat import SessionKey
from gateway.domain.expiry import ExpiryPolicy
from gateway.domain.memory import Fact
from gateway.domain.message import note_of, text_of
from gateway.domain.notes import MEMORY_REQUEST
from gateway.domain.turn import SessionSettings
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import ProviderUnavailable
from gateway.runtime.structs import replace
from tests.support.asking import Buttoned
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeModel, Gate, KillAt, Live, RecordingEngine, Say, config_in, running
from tests.support.model import Script, echo, in_turn, newest, remembering
from tests.support.waiting import eventually

HOME = SessionKey(platform="fake", chat="c")


def settings(folder: Path, **sections: Any) -> Config:
    return config_in(folder, **{"memory": MemorySettings(), **sections})


def calling(**arguments: Any) -> Say:
    return Say(calls=[("memory", json.dumps(arguments))])


def result_of(request: ModelRequest) -> str:
    return text_of(request.messages[-1])


def says_results(spec: ModelSpec, request: ModelRequest) -> Say:
    """Say what the tool answered, else what was said."""
    return Say(text=result_of(request)) if request.messages[-1]["role"] == "tool" else echo(spec, request)


def keeping(text: str, **more: Any) -> Script:
    """A flush that keeps this, as said by the first message that it is shown."""

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        return remembering({"text": text, "message": 1, **more})

    return script


async def facts(live: Live, scope: SessionKey = HOME) -> list[Fact]:
    return (await live.store.memory(scope)).current()


async def texts(live: Live, scope: SessionKey = HOME) -> list[str]:
    return [fact.text for fact in await facts(live, scope)]


def prompt(live: Live, index: int = -1) -> str:
    return text_of(live.model.requests[index].messages[0])


# -- the tool -----------------------------------------------------------------------------------


async def test_what_the_tool_keeps_names_the_message_that_said_it(tmp_path: Path) -> None:
    script = in_turn(calling(action="add", text="Prefers tea"), then=says_results)
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script)) as live:
        assert await live.ask("I prefer tea") == "Remembered: Prefers tea"
        (fact,) = await facts(live)
        session = await live.tip()
        assert session is not None
        said = next(each for each in await live.store.transcript(session) if text_of(each) == "I prefer tea")
        assert (fact.message_id, fact.said_at) == (note_of(said)["id"], note_of(said)["at"])
        assert (fact.session_id, fact.said_by, fact.about) == (session.id, "u", "person")


async def test_a_contradiction_is_dated_and_not_doubled(tmp_path: Path) -> None:
    script = in_turn(
        calling(action="add", text="Lives in Lisbon"),
        Say(text="noted"),
        calling(action="replace", fact="lisbon", text="Lives in Porto"),
        Say(text="noted"),
        calling(action="search", words="where do they live? Lisbon Porto lives"),
        then=says_results,
    )
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script)) as live:
        await live.ask("I live in Lisbon")
        await live.ask("I moved to Porto")
        assert await texts(live) == ["Lives in Porto"]
        held = (await live.store.memory(HOME)).facts
        assert [(each.text, each.superseded_by) for each in held] == [
            ("Lives in Lisbon", held[1].id),
            ("Lives in Porto", None),
        ]
        found = (await live.ask("where do I live?")).splitlines()
        assert found[0].endswith("Lives in Porto")
        assert "Lives in Lisbon (no longer true since" in found[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"action": "add", "text": "x" * 301}, '`text` must fit {"maxLength": 300}'),
        ({"action": "add", "text": " "}, "`text` is empty"),
        ({"action": "add"}, "`text` is missing"),
        ({"action": "add", "text": "the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"}, "credential"),
        ({"action": "replace", "fact": "nowhere", "text": "Lives in Porto"}, "No fact has these words"),
        ({"action": "remove", "fact": ""}, "`fact` is empty"),
        ({"action": "search", "words": "anything"}, "Nothing is remembered of that"),
    ],
)
async def test_the_model_is_told_what_cannot_be_kept(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    script = in_turn(calling(**arguments), then=says_results)
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script)) as live:
        assert said in await live.ask("hello")
        assert await facts(live) == []


async def test_what_was_forwarded_is_no_fact_about_who_forwarded_it(tmp_path: Path) -> None:
    add = calling(action="add", text="Hates opera")
    note = calling(action="add", about="notes", text="Somebody hates opera")
    script = in_turn(add, Say(text="no"), add, Say(text="no"), add, Say(text="yes"), note, Say(text="yes"))
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script)) as live:
        for own, kept in (("", 0), ("look at this", 0), ("me too: I hate opera", 1)):
            inbound = live.adapter.inbound(f"[forwarded]\nI hate opera\n{own}")
            await live.adapter.receive(replace(inbound, own=own))
            await live.answer(inbound.event_id)
            assert len(await facts(live)) == kept
        inbound = live.adapter.inbound("[forwarded]\nI hate opera")
        await live.adapter.receive(replace(inbound, own=""))
        await eventually(lambda: live.adapter.shown("c", "question"))
        await live.tell("y")
        await live.answer(inbound.event_id)
        assert [each.about for each in await facts(live)] == ["person", "notes"]


async def test_a_call_that_a_crash_repeats_keeps_its_fact_once(tmp_path: Path) -> None:
    kill = KillAt("turn.tools_ran")
    script = in_turn(calling(action="add", text="Prefers tea"), then=says_results)
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script), points=kill) as live:
        await live.tell("I prefer tea", event="e1")
        await kill.passed.wait()
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(says_results)) as live:
        assert "Prefers tea" in (await live.answer("e1")).text
        (fact,) = (await live.store.memory(HOME)).facts
        assert (fact.text, fact.uses) == ("Prefers tea", 0)


# -- the snapshot -------------------------------------------------------------------------------


async def test_the_snapshot_stands_in_the_next_session_and_stays_as_it_is(tmp_path: Path) -> None:
    script = in_turn(
        Say(text="hi"),
        calling(action="add", text="Prefers tea"),
        Say(text="noted"),
        Say(text="hello"),
        calling(action="add", text="Owns a boat"),
    )
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script)) as live:
        await live.ask("hello there")
        await live.ask("I prefer tea")
        assert "Prefers tea" not in prompt(live)
        await live.ask("/new")
        await live.ask("hello again")
        before = prompt(live)
        assert "Prefers tea" in before
        await live.ask("I own a boat")
        await live.ask("and?")
        assert prompt(live) == before
    async with running(tmp_path, config=settings(tmp_path)) as live:
        await live.ask("still there?")
        assert prompt(live) == before
        await live.ask("/pin always answer in verse")
        await live.ask("go on")
        assert "verse" in prompt(live)
        assert "Owns a boat" not in prompt(live)
        await live.ask("/new")
        await live.ask("hello once more")
        assert "Owns a boat" in prompt(live)


async def test_a_compaction_takes_the_snapshot_anew(tmp_path: Path) -> None:
    script = in_turn(calling(action="add", text="Prefers tea"), then=echo)
    engine = RecordingEngine([])
    async with running(
        tmp_path, config=settings(tmp_path), model=FakeModel(script), engine=lambda: RecordingEngine(engine.heard)
    ) as live:
        await live.ask("I prefer tea")
        for number in range(4):
            await live.ask(f"message {number}")
        assert "Prefers tea" not in prompt(live)
        assert "Compressed" in await live.ask("/compress")
        await live.ask("go on")
        assert "Prefers tea" in prompt(live)


async def test_no_persons_facts_reach_another_person_or_chat(tmp_path: Path) -> None:
    """The canary: each says a word of their own, and none ever stands in a prompt of someone else."""

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        if request.messages[-1]["role"] == "tool":
            return Say(text=result_of(request))
        words = newest(request)
        if "I own" in words:
            return calling(action="add", text=f"Owns a {words.split()[-1]}")
        return calling(action="search", words="owns a canary") if "search" in words else Say(text="ok")

    people: dict[str, dict[str, Any]] = {
        "finch": {"user": "a", "chat": "a"},
        "robin": {"user": "b", "chat": "b"},
        "heron": {"user": "a", "chat": "g", "chat_type": "group"},
        "stork": {"user": "b", "chat": "g", "chat_type": "group"},
        "raven": {"user": "a", "chat": "g", "chat_type": "thread", "thread": "t", "user_name": "Anna"},
    }
    adapter = Buttoned(Limits(trusted=True))
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script), adapter=adapter) as live:
        for bird, where in people.items():
            await live.ask(f"I own {bird}", **where)
            await live.ask("/new", **where)
        for bird, where in people.items():
            asked = len(live.model.requests)
            answer = await live.ask("search my memory", **where)
            listed = await live.ask("/memory", **where)
            # a button has the number of a fact: who presses it must mean the same memory
            assert bool(live.adapter.sent[-1].buttons) is (bird not in ("heron", "stork"))
            shown = "\n".join(text_of(each) for request in live.model.requests[asked:] for each in request.messages)
            for text in (answer, listed, shown):
                assert bird in text
                assert not [other for other in people if other != bird and other in text]


async def test_a_shared_conversation_has_notes_that_name_who_said_it(tmp_path: Path) -> None:
    script = in_turn(calling(action="add", text="Is allergic to nuts"), then=echo)
    config = settings(tmp_path, sessions=SessionSettings(groups="shared"))
    group = {"chat": "g", "chat_type": "group"}
    async with running(tmp_path, config=config, model=FakeModel(script)) as live:
        await live.ask("I am allergic to nuts", user="a", user_name="Anna", **group)
        await live.ask("/new", user="b", user_name="Ben", **group)
        await live.ask("what shall we cook?", user="b", user_name="Ben", **group)
        assert "Anna: Is allergic to nuts" in prompt(live)
        (fact,) = await facts(live, SessionKey(platform="fake", chat="g"))
        assert (fact.about, fact.said_by, fact.said_by_name) == ("notes", "a", "Anna")
        assert "Is allergic to nuts (Anna, " in await live.ask("/memory", user="b", user_name="Ben", **group)


# -- the flush ----------------------------------------------------------------------------------


async def test_the_end_of_a_session_fills_memory_and_leaves_no_trace_in_it(tmp_path: Path) -> None:
    model = FakeModel(flush=keeping("Prefers tea to coffee"))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        await live.ask("I prefer tea to coffee, by the way")
        session = await live.tip()
        assert session is not None
        before = await live.store.transcript(session)
        await live.ask("/new")
        await live.ask("hello again")
        assert "Prefers tea to coffee" in prompt(live)
        assert await live.store.transcript(session) == before
        ended = await live.store.session(session.id)
        assert ended.flushed_messages == ended.message_count == 2
        (fact,) = await facts(live)
        assert fact.message_id == note_of(before[0])["id"]
        purposes = {total.label: total.calls for total in await live.store.usage(0.0, "purpose")}
        assert purposes == {"turn": 2, "memory": 1}
        (request,) = model.flushes
        assert [tool["function"]["name"] for tool in request.tools] == ["memory"]
        # Somebody read the session before its flush ended, and comes with that only now.
        live.gateway.agents.sessions.flushes.at_end(replace(ended, flushed_messages=0))
        await eventually(lambda: not live.gateway.agents.sessions.flushes._running)
        assert len(model.flushes) == 1


async def test_a_session_is_given_to_memory_once(tmp_path: Path) -> None:
    model = FakeModel(flush=keeping("Prefers tea to coffee"))
    async with running(tmp_path, config=settings(tmp_path), model=model, engine=lambda: RecordingEngine([])) as live:
        for number in range(4):
            await live.ask(f"I prefer tea to coffee, number {number}")
        await live.ask("/compress")
        assert len(model.flushes) == 1
        await live.ask("and now something new about my garden")
        await live.ask("/new")
        await live.ask("hello again my friend")
        assert len(model.flushes) == 2
        shown = text_of(model.flushes[1].messages[-1])
        assert "my garden" in shown
        assert "number" not in shown.partition("<conversation>")[2]
        await live.ask("/resume 1")
        await live.ask("/new")
        await live.ask("hello")
        assert len(model.flushes) == 3  # of "hello again my friend" alone
        assert "number" not in text_of(model.flushes[2].messages[-1]).partition("<conversation>")[2]


async def test_a_quiet_session_is_given_to_memory_when_it_expires(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000.0)
    policy = SessionSettings(expiry=ExpiryPolicy(idle_minutes=1, notify=False))
    model = FakeModel(flush=keeping("Prefers tea to coffee"))
    async with running(tmp_path, config=settings(tmp_path, sessions=policy), model=model, clock=clock) as live:
        await live.ask("I prefer tea to coffee, by the way")
        clock.jump(120.0)
        await live.gateway.upkeep.expiry.sweep()
        await live.quiet()
        await live.gateway.background.ended(f"flush {(await live.store.sessions(HOME, 1))[0].id}")
        assert await texts(live) == ["Prefers tea to coffee"]


@pytest.mark.parametrize(("said", "flush"), [("hi", True), ("I prefer tea to coffee, by the way", False)])
async def test_nothing_is_asked_of_a_trivial_session_or_where_it_is_switched_off(
    tmp_path: Path, said: str, flush: bool
) -> None:
    config = settings(tmp_path, memory=MemorySettings(flush=flush))
    async with running(tmp_path, config=config, model=FakeModel(flush=keeping("x"))) as live:
        await live.ask(said)
        await live.ask("/new")
        await live.ask("hi")
        assert live.model.flushes == []


async def test_a_flush_that_is_slow_or_fails_holds_nobody_up(tmp_path: Path) -> None:
    gate, clock = Gate(), ManualClock(1_700_000_000.0)
    slow = in_turn(Say(gate=gate), ProviderUnavailable("away"), then=keeping("Prefers tea to coffee"))
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(flush=slow), clock=clock) as live:
        await live.ask("I prefer tea to coffee, by the way")
        assert (await live.ask("/new")).startswith("Started a fresh session.")
        await gate.until_waiting()
        asked = await live.tell("hello again my good friend")
        await clock.until_due_in(5.0)
        await clock.advance(5.0)
        assert "echo" in (await live.answer(asked)).text
        await clock.advance(60.0)
        await gate.until(lambda: not gate.waiting)  # given up
        await live.ask("/new")  # its flush fails
        await live.model.until(lambda: live.model.flushes[1:])
        assert (await live.ask("hello at last my dear")).startswith("echo")
        assert len(await facts(live)) == 1  # which the next session made up for


async def test_a_flush_that_a_crash_cut_short_is_made_up_for_without_doubles(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(flush=lambda *_: Say(gate=gate))) as live:
        await live.ask("I prefer tea to coffee, by the way")
        await live.ask("/new")
        await gate.until_waiting()
    model = FakeModel(flush=keeping("Prefers tea to coffee"))
    for _ in range(2):
        async with running(tmp_path, config=settings(tmp_path), model=model) as live:
            await live.ask("hi")
            assert "Prefers tea to coffee" in prompt(live)
            assert await texts(live) == ["Prefers tea to coffee"]
    assert len(model.flushes) == 1


async def test_the_effect_of_a_prepared_flush_comes_with_the_publication(tmp_path: Path) -> None:
    words = "the quick brown fox jumps over the lazy dog " * 80  # about 720 tokens
    config = settings(
        tmp_path,
        model=ModelSettings(provider="offline", name="fake", context_length=20_000),
        compression=CompressionSettings(min_threshold_tokens=0),
    )
    model = FakeModel(lambda *_: Say(text="heard", prompt=None), flush=keeping("Prefers tea to coffee"))
    async with running(tmp_path, config=config, model=model) as live:
        await live.ask("I prefer tea to coffee, by the way")
        session = await live.tip()
        assert session is not None
        while not model.summaries:
            await live.ask(words)
            await live.gateway.background.ended(f"preparation {session.id}")
        assert len(model.flushes) == 1
        assert await facts(live) == []
        purposes = {total.label: total.calls for total in await live.store.usage(0.0, "purpose")}
        assert (purposes["compression"], purposes["memory"]) == (1, 1)
        child = session
        while child.id == session.id:
            await live.ask(words)
            child = await live.tip() or child
        assert await texts(live) == ["Prefers tea to coffee"]
        assert "Prefers tea to coffee" in prompt(live)
        for each in await live.store.lineage(child.id):
            kept = await live.store.transcript(each)
            assert not [said for said in kept if MEMORY_REQUEST in text_of(said) or "tool_calls" in said]
        assert len(model.flushes) == 1
        assert 0 < child.flushed_messages < child.message_count  # what came after the snapshot is left


# -- /memory ------------------------------------------------------------------------------------


async def test_memory_is_listed_with_sources_and_forgotten_for_good(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000.0)
    add = [calling(action="add", text=text) for text in ("Prefers tea", "Owns a boat")]
    script = in_turn(add[0], Say(text="1"), add[1], Say(text="2"), then=echo)

    def again(spec: ModelSpec, request: ModelRequest) -> Say:
        found = [n for n in (1, 2, 3) if f"[{n}] person: I own a boat" in text_of(request.messages[-1])]
        return remembering(*({"text": "Owns a boat", "message": n} for n in found))

    policy = SessionSettings(expiry=ExpiryPolicy(timezone="UTC"))
    config = settings(tmp_path, sessions=policy)
    async with running(tmp_path, config=config, model=FakeModel(script, flush=again), clock=clock) as live:
        assert "I remember nothing here yet" in await live.ask("/memory")
        await live.ask("I prefer tea")
        await live.ask("I own a boat")
        assert (await live.ask("/memory")).splitlines()[:3] == [
            "What I know about you:",
            "1. Prefers tea (you, 2023-11-14)",
            "2. Owns a boat (you, 2023-11-14)",
        ]
        await live.ask("/new")
        await live.ask("hello again")
        assert "Owns a boat" in prompt(live)
        assert await live.ask("/memory search boat") == "2. Owns a boat (you, 2023-11-14)"
        assert (await live.ask("/memory forget 2")).splitlines()[:2] == ["Forgotten:", "- Owns a boat"]
        await live.ask("and now?")
        assert "Owns a boat" not in prompt(live)
        assert "Prefers tea" in prompt(live)
        assert "There is no fact number 2" in await live.ask("/memory forget 2")
        await live.ask("/new")
        await live.ask("hello once more")
        assert await texts(live) == ["Prefers tea"]
        assert "If you are sure, send: /memory forget all yes" in await live.ask("/memory forget all")
        assert await texts(live) == ["Prefers tea"]
        await live.ask("/memory forget all yes")
        assert await texts(live) == []


async def test_a_person_corrects_what_is_remembered(tmp_path: Path) -> None:
    model = FakeModel(in_turn(calling(action="add", text="Lives in Rome"), Say(text="noted"), then=echo))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        await live.ask("remember: Lives in Rome")
        assert "Give the number of the fact and what is true" in await live.ask("/memory correct 1")
        assert "There is no fact number 7" in await live.ask("/memory correct 7 Lives in Graz")
        assert await live.ask("/memory correct 1 Lives in  Graz") == "I corrected the fact. It now says: Lives in Graz"
        assert await texts(live) == ["Lives in Graz"]
        await live.ask("where?")
        assert "Lives in Graz" in prompt(live)
        assert "Lives in Rome" not in prompt(live)
        assert "(no longer true) Lives in Rome" in await live.ask("/memory search Rome")
        assert "at most 300 characters" in await live.ask(f"/memory correct #2 {'long ' * 100}")


async def test_a_number_names_one_fact_for_ever(tmp_path: Path) -> None:
    named = ("Prefers tea", "Owns a boat", "Lives in Rome", "Has a cat")
    adds = [each for text in (*named, "Plays chess") for each in (calling(action="add", text=text), Say(text="noted"))]
    model = FakeModel(in_turn(*adds, then=echo))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        for each in named:
            await live.ask(f"remember: {each}")
        assert await texts(live) == list(named)
        assert "- Prefers tea" in await live.ask("/memory forget 1")
        assert "There is no fact number 1" in await live.ask("/memory forget 1")
        assert "There is no fact number 9" in await live.ask("/memory forget 2 9")
        assert await texts(live) == ["Owns a boat", "Lives in Rome", "Has a cat"]
        await live.ask("/memory forget #4, 3")
        await live.ask("remember: Plays chess")
        assert (await live.ask("/memory")).splitlines()[1:3] == [
            f"{number}. {text} (you, {day((await facts(live))[0].said_at, None)})"
            for number, text in ((2, "Owns a boat"), (5, "Plays chess"))
        ]


async def test_the_tool_takes_the_number_that_a_search_shows(tmp_path: Path) -> None:
    script = in_turn(
        *[calling(action="add", text=each) for each in ("Prefers tea", "Owns 2 boats")],
        calling(action="search", words="boats"),
        calling(action="remove", fact="#2"),
        calling(action="remove", fact="#2"),
        then=says_results,
    )
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script)) as live:
        assert "There is no fact number 2 now" in await live.ask("I own two boats")
        results = [text_of(each) for each in live.model.requests[-1].messages if each["role"] == "tool"]
        assert "#2 " in results[2]
        assert results[3] == "Forgotten: Owns 2 boats"
        assert await texts(live) == ["Prefers tea"]


async def test_what_was_forgotten_is_not_learned_again_from_the_words_that_said_it(tmp_path: Path) -> None:
    script = in_turn(calling(action="add", text="Owns a boat"), then=echo)
    model = FakeModel(script, flush=keeping("Owns a boat"))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        await live.ask("I own a boat, would you believe it")
        await live.ask("really: I own a boat!")
        await live.ask("/memory forget 1")
        await live.ask("/new")
        await live.ask("hello again")
        assert await texts(live) == []


async def test_nobody_waits_while_the_messages_that_said_a_fact_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, readers = threading.get_ident(), list[int]()

    def read(*given: Any) -> list[Source]:
        readers.append(threading.get_ident())
        return saying(*given)

    monkeypatch.setattr(command, "saying", read)
    script = in_turn(calling(action="add", text="Owns a boat"), then=echo)
    async with running(tmp_path, config=settings(tmp_path), model=FakeModel(script)) as live:
        await live.ask("I own a boat, would you believe it")
        await live.ask("/memory forget 1")
    assert readers
    assert here not in readers


async def test_of_two_processes_one_flushes_a_session(tmp_path: Path) -> None:
    model = FakeModel(flush=keeping("Prefers tea to coffee"))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        await live.ask("I prefer tea to coffee, by the way")
        session = await live.tip()
        assert session is not None
        lease = f"flush {session.id}"
        assert await live.store.hold(lease, "another process", 60.0)
        await live.ask("/new")
        asked = await live.tell("hello again")
        await live.store.note_flushed(session, 2)
        assert (await live.answer(asked)).text.startswith("echo")
        assert model.flushes == []
