"""/forget, as a person uses it: what was said is nowhere afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.agent.files.quota import FileSettings
from gateway.agent.memory.snapshot import MemorySettings
from gateway.cli.reports import found_rows
from gateway.domain.adapter import Limits
from gateway.domain.chat import TORN, Attachment
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from gateway.people.access import AccessSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.port import under
from gateway.store.redis import RedisStore
from tests.support.asking import Buttoned
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, Fetching, Gate, Live, Say, config_in, in_turn, running
from tests.support.remains import in_files, in_keys, in_server, left_in_the_end

if TYPE_CHECKING:
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

WORD = "quizzaciously"
QUESTION = "This cannot be undone."


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway's store, which may be opened again, and the files in which a word of it is still found."""

    run: Callable[..., AbstractAsyncContextManager[Live]]
    remains: Callable[[str], list[str]]


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        paths = [tmp_path / "legato.db", tmp_path / "legato.db-wal"]
        return Place(run=lambda **parts: running(tmp_path, **parts), remains=lambda word: in_files(paths, word))
    server: RedisServer = request.getfixturevalue("redis_server")
    server.empty()

    @asynccontextmanager
    async def run(**parts: Any) -> AsyncIterator[Live]:
        store = RedisStore(server.url, clock=SystemClock())
        async with running(tmp_path, store=store, **parts) as live:
            yield live

    return Place(run=run, remains=lambda word: in_server(server, word) or in_keys(server, word))


async def say(live: Live, text: str, answer: str = "fine", **where: Any) -> str:
    """One exchange; its event."""
    live.model.script = in_turn(Say(text=answer))
    event = await live.tell(text, **where)
    await live.answer(event)
    return event


async def forget(live: Live, argument: str = "", reply: str = "y", **where: Any) -> str:
    """/forget, and what it says once its question is answered."""
    before = len(_questions(live))
    event = await live.tell(f"/forget {argument}".strip(), **where)
    await live.adapter.until(lambda: len(_questions(live)) > before)
    await live.tell(reply, **{name: each for name, each in where.items() if name not in ("reply_to", "event")})
    return (await live.answer(event)).text


def _questions(live: Live) -> list[str]:
    return [row.text for row in live.adapter.sent if QUESTION in row.text and not row.edits]


async def said(live: Live, **where: Any) -> list[str]:
    """The texts of the present transcript."""
    tip = await live.tip(**where)
    return [] if tip is None else [text_of(each) for each in await live.store.transcript(tip)]


async def taken_back(live: Live, *events: str, **where: Any) -> None:
    """A person deletes messages on their platform. It may be told twice."""
    event = f"{events[-1]}:deleted by {where.get('user', 'u')}"
    gone = replace(live.adapter.inbound("", kind="withdrawn", event=event, **where), amends=events)
    for _ in range(2):
        await live.adapter.receive(gone)
    await live.quiet()


async def test_what_its_writer_deletes_is_forgotten_with_its_answer(place: Place) -> None:
    async with place.run() as live:
        event = await say(live, f"my code is {WORD}", f"{WORD}, noted")
        await say(live, "how are you?")
        await taken_back(live, "unknown")
        assert len(await said(live)) == 4
        await taken_back(live, "another-wording", event)
        assert await said(live) == ["how are you?", "fine"]
        assert "nothing" in (await live.ask("/recall code")).lower()
        assert await left_in_the_end(lambda: place.remains(WORD)) == []


@pytest.mark.parametrize("deleted", [0, 1, 2])
async def test_a_part_that_is_deleted_takes_the_message_with_it_that_was_joined_from_it(
    place: Place, deleted: int
) -> None:
    async with place.run() as live:
        await say(live, "how are you?")
        marks = {"my code ": TORN, f"is {WORD}, ": TORN, "keep it": None}
        parts = [replace(live.adapter.inbound(text), part_of=mark) for text, mark in marks.items()]
        await live.adapter.receive(*parts)
        assert (await live.answer(parts[0].event_id)).text == f"echo: my code is {WORD}, keep it"
        await taken_back(live, parts[deleted].event_id)
        assert await said(live) == ["how are you?", "fine"]
        assert await left_in_the_end(lambda: place.remains(WORD)) == []


async def test_who_deletes_something_while_the_bot_works_is_not_told_that_it_does(place: Place) -> None:
    async with place.run() as live:
        event, gate = await say(live, f"my code is {WORD}"), Gate()
        live.model.script = in_turn(Say(text="later", gate=gate))
        asked = await live.tell("and now?")
        await live.model.until(lambda: len(live.model.requests) == 2)
        gone = live.adapter.inbound("", kind="withdrawn", event=f"{event}:deleted")
        await live.adapter.receive(replace(gone, amends=(event,)))
        gate.open()
        await live.answer(asked)
        await live.quiet()
        assert live.adapter.shown() == ["fine", "later"]
        assert await said(live) == ["and now?", "later"]


async def test_nobody_takes_back_what_another_said(place: Place, tmp_path: Path) -> None:
    access = AccessSettings(allow=("fake:u", "fake:v"))
    config = config_in(tmp_path, sessions=SessionSettings(groups="shared"), access=access)
    async with place.run(config=config) as live:
        group = {"chat": "g", "chat_type": "group"}
        event = await say(live, f"my code is {WORD}", user="u", **group)
        await taken_back(live, event, user="v", **group)
        await taken_back(live, event, user="stranger", **group)
        assert len(await said(live, user="u", **group)) == 2
        await taken_back(live, event, user="u", **group)
        assert await said(live, user="u", **group) == []


async def test_a_word_is_found_chosen_and_gone_from_everywhere(place: Place) -> None:
    async with place.run() as live:
        await say(live, f"my code is {WORD}", f"{WORD}, noted")
        await say(live, "how are you?")
        await say(live, f"someone else's {WORD}", f"{WORD} as well", chat="other", user="v")
        listed = await live.ask(f"/forget {WORD}")
        assert listed.splitlines()[0].endswith(f"“my code is {WORD}”")
        told = await forget(live, "1")
        assert told.startswith("Forgot 2 messages. I cannot take back what my model's provider has already received.")
        assert await said(live) == ["how are you?", "fine"]
        assert await said(live, chat="other", user="v") == [f"someone else's {WORD}", f"{WORD} as well"]
        assert "nothing" in (await live.ask("/recall code")).lower()
        assert await live.ask("/forget 1") == "I can no longer find that message here. Try /forget <words>."
        assert (await forget(live, "last", chat="other", user="v")).startswith("Forgot 2 messages.")
        await live.quiet()
        assert await left_in_the_end(lambda: place.remains(WORD)) == []
    async with place.run() as live:
        await say(live, "still there?")
        assert await said(live) == ["how are you?", "fine", "still there?", "fine"]


async def test_every_message_with_the_words_is_listed_and_goes(place: Place) -> None:
    async with place.run() as live:
        for number in range(14):
            await say(live, f"{WORD} of day {number}")
        listed = (await live.ask(f"/forget {WORD}")).splitlines()
        assert [line.split("“")[1] for line in listed[:10]] == [f"{WORD} of day {13 - number}”" for number in range(10)]
        assert listed[10:] == [
            "The words are also in 4 older exchanges. /forget all makes me forget every copy.",
            "To choose what I forget, send /forget 1, /forget 1 2 or /forget all. I will ask once more before I "
            "forget anything.",
        ]
        assert (await forget(live, "all")).startswith("Forgot 28 messages.")
        assert await said(live) == []


async def test_the_question_names_each_time_once_and_of_many_the_first_and_the_last(tmp_path: Path) -> None:
    clock = ManualClock()
    async with running(tmp_path, clock=clock) as live:
        for wait in (0, 0, 3_600, 3_600, 3_600):
            clock.jump(wait)
            await say(live, f"again {WORD}")
            await live.ask(f"/forget {WORD}")
            await forget(live, "all", reply="n")
        first, same, *_, last = _questions(live)
        assert re.search(r"what was said \S+ \S+ \S+ \S+, with my answer: 2 messages", first)
        assert re.search(r"what was said \S+ \S+ \S+ \S+, with my answers: 4 messages", same)
        assert re.search(r"what was said from .*, \S+ to .*, \S+, with my answers: 10 messages", last)


async def test_words_inside_others_and_what_is_no_word_are_never_denied(place: Place) -> None:
    async with place.run() as live:
        for text, asked in (
            ("the Großbäckerei is mine", "bäckerei"),
            ("I ride a 🦄 to work", "🦄"),
            ("soft\u00adhyphened", "softhyphened"),
        ):
            await say(live, text)
            await live.ask(f"/forget {asked}")
            assert (await forget(live, "all")).startswith("Forgot 2 messages.")
        await say(live, "the proxy is at 17")
        for asked in ("xy", "prox zzz"):
            assert await live.ask(f"/forget {asked}") == "I did not find a message from you with these words."
        assert await said(live) == ["the proxy is at 17", "fine"]


async def test_the_search_of_a_shell_shows_each_of_four_in_a_row(place: Place) -> None:
    async with place.run() as live:
        for number in range(4):
            await say(live, f"{number}: the code is {WORD}", f"{WORD} {number}, noted")
        found = [row["text"] for row in await found_rows(live.store, WORD, 20)]
        assert sorted(found) == sorted(
            text for number in range(4) for text in (f"{number}: the code is {WORD}", f"{WORD} {number}, noted")
        )


async def test_notes_go_with_the_message_whose_words_they_tell(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await say(live, f"my hamster is called {WORD}")
        tip = await live.tip()
        assert tip is not None
        folder = under(tip.key, "pets")
        await live.store.set_notes(folder, {"hamster": WORD, "cat": "Tom"})
        assert (await forget(live, "last")).startswith("Forgot 2 messages, 1 note.")
        assert await live.store.notes(folder) == {"cat": "Tom"}


async def test_an_export_goes_with_the_shortest_message(tmp_path: Path) -> None:
    async with running(tmp_path, adapter=Fetching(b"")) as live:
        await say(live, "pin 4711")
        await live.ask("/export")
        tip = await live.tip()
        assert tip is not None
        assert len(await live.store.kept_files(tip.key, 9)) == 1
        assert (await forget(live, "last")).startswith("Forgot 2 messages, 1 file.")
        assert await live.store.kept_files(tip.key, 9) == []


async def test_a_forgotten_file_takes_no_room_any_more(place: Place, tmp_path: Path) -> None:
    adapter = Fetching(b"a line\n" * 100)
    config = config_in(tmp_path, files=FileSettings(per_person_mb=0.001, per_chat_mb=0.001))

    async def send(live: Live, number: int) -> list[str]:
        before = len(adapter.shown("c", "notice"))
        await say(live, f"pebble{number}", attachments=(Attachment(kind="document", ref=f"f{number}", name="a.txt"),))
        return adapter.shown("c", "notice")[before:]

    async with place.run(config=config, adapter=adapter) as live:
        assert not any("could not keep" in each for each in await send(live, 1))
        assert any("could not keep" in each for each in await send(live, 2))
        await live.ask("/forget pebble1")
        assert "1 file" in await forget(live, "all")
        assert not any("could not keep" in each for each in await send(live, 3))
        assert any("could not keep" in each for each in await send(live, 4))
        await forget(live, "everything")
        assert not any("could not keep" in each for each in await send(live, 5))


async def test_words_that_stand_apart_are_offered_as_such(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await say(live, "my dentist is in Zürich")
        await say(live, "the cat is asleep")
        listed = await live.ask("/forget zurich cats")
        assert listed.splitlines()[0] == "No message contains all of these words. These messages contain some of them:"
        assert "cat is asleep" in listed
        assert "dentist" in listed
        assert (await forget(live, "1")).startswith("Forgot 2 messages")
        assert await said(live) == ["my dentist is in Zürich", "fine"]
        assert await live.ask("/forget sandwich") == "I did not find a message from you with these words."


@pytest.mark.parametrize("place", ["sqlite", "redis"], indirect=True)
async def test_a_canary_is_nowhere_afterwards(place: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock(1_795_500_000.0)
    adapter, config = Fetching(f"a file about {WORD}".encode()), config_in(tmp_path, memory=MemorySettings(flush=False))
    async with place.run(config=config, adapter=adapter, clock=clock) as live:
        for number in range(4):
            await say(live, f"{number}: the code is {WORD}", f"{WORD}, noted")
        await say(live, "look at this", attachments=(Attachment(kind="document", ref="f1", name="a.txt"),))
        for tool, given in [
            ("memory", {"action": "add", "about": "person", "text": f"The code is {WORD}."}),
            ("todo", {"todos": [{"text": f"try {WORD}", "status": "open"}]}),
            ("reminders", {"action": "create", "when": "in 20 minutes", "text": f"say {WORD}"}),
        ]:
            live.model.script = in_turn(Say(calls=[(tool, json.dumps(given))]), Say(text="Done."))
            await live.ask("go on")
        for command in [
            f"/title {WORD}",
            f"/pin never say {WORD}",
            f"/persona A friend of {WORD}",
            f"/remind in 2 hours {WORD}",
            f"/recall {WORD}",
            f"/{WORD}",
            "/export",
            "/export jsonl",
        ]:
            await live.ask(command)
        for number in range(9):
            await say(live, f"question {number} {'about tea ' * 30}", f"answer {number} {'of tea ' * 60}")
        live.model.summary = lambda spec, request: Say(text=f"## Goal\nTo keep {WORD}.")
        assert "Compressed" in await live.ask(f"/compress {WORD}")
        await clock.advance(1_260)
        await live.gateway.people.firing.fire_due()
        await live.quiet()
        await live.ask("/new")
        await say(live, f"and {WORD} again")
        tip = await live.tip()
        assert tip is not None
        await live.store.set_notes(under(tip.key, "mood"), {"now": f"fond of {WORD}", "then": "calm"})
        listed = await live.ask(f"/forget {WORD}")
        kinds = ("pinned rule", "files", "remembered fact", "reminders", "chosen persona", "1 note")
        assert all(kind in listed for kind in kinds), listed
        told = await forget(live, "all")
        assert all(kind in told for kind in kinds), told
        asked = len(live.model.requests)
        for text in ("who are you?", "and now?", "what do I have to do?"):
            await say(live, text)
        assert WORD not in str(live.model.requests[asked:])
        assert WORD not in "".join(
            [await live.ask(each) for each in ("/pin", "/reminders", "/sessions", "/memory", "/persona")]
        )
        assert await live.store.notes(under(tip.key, "mood")) == {"then": "calm"}
        # Who looks whether the words are gone leaves them nowhere.
        assert (await live.ask(f"/forget {WORD}")).startswith("I did not find a message from you")
        await live.quiet()
        assert await left_in_the_end(lambda: place.remains(WORD)) == []
        assert WORD not in "".join(capfd.readouterr())
    assert await left_in_the_end(lambda: place.remains(WORD)) == []


async def test_without_a_yes_nothing_goes(place: Place) -> None:
    async with place.run() as live:
        await say(live, f"my code is {WORD}")
        assert await forget(live, "last", reply="n") == "Nothing was forgotten."
        assert "Answer y (forget) or n (keep)." in _questions(live)[0]
        assert await forget(live, "last", reply="/stop") == "Nothing was forgotten."
        assert await forget(live, "all", reply="n") == "Nothing was forgotten."
        assert "Forget everything that you said here" in str(live.adapter.sent)
        assert await said(live) == [f"my code is {WORD}", "fine"]


async def test_summaries_rules_and_the_prompt_are_made_anew(place: Place) -> None:
    async with place.run() as live:
        await say(live, f"Never push to {WORD}", f"I will not push to {WORD}")
        assert WORD in await live.ask("/pin")
        for number in range(9):
            await say(live, f"question {number} {'about tea ' * 30}", f"answer {number} {'of tea ' * 60}")
        live.model.summary = lambda spec, request: Say(text=f"## Active Task\nNone\n## Goal\nNever {WORD}.")
        assert "Compressed" in await live.ask(f"/compress {WORD}")
        await say(live, "and now?")
        tip = await live.tip()
        assert tip is not None
        assert WORD in tip.system_prompt
        assert (await forget(live, "last")).startswith("Forgot 2 messages")
        await live.ask(f"/forget {WORD}")
        told = await forget(live, "1")
        assert "1 pinned rule" in told
        await say(live, "who are you?")
        assert WORD not in str(live.model.requests[-1])
        await live.quiet()
        assert await left_in_the_end(lambda: place.remains(WORD)) == []


async def test_what_a_reminder_said_goes_with_it(tmp_path: Path) -> None:
    clock = ManualClock()
    async with running(tmp_path, clock=clock) as live:
        asked = json.dumps({"action": "create", "when": "in 20 minutes", "text": f"say {WORD}"})
        live.model.script = in_turn(Say(calls=[("reminders", asked)]), Say(text="I will."))
        await live.ask(f"remind me to say {WORD}")
        await say(live, "how are you?")
        await clock.advance(1_260)
        await live.gateway.people.firing.fire_due()
        await live.quiet()
        await say(live, "done!", "good")
        assert WORD in " ".join(await said(live))
        await live.ask(f"/forget {WORD}")
        assert "1 reminder" in await forget(live, "1")
        assert WORD not in " ".join(await said(live))
        assert "done!" in await said(live)


async def test_a_reminder_of_its_own_goes_only_if_it_says_the_same(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        for text in ("water the plants", f"look for the {WORD} in the shed", f"thank Ana for the {WORD}"):
            await live.ask(f"/remind in 2 hours {text}")
        await live.ask("/remind in 3 hours 去看牙医")
        await live.ask("/remind in 3 hours: try 99812")
        await say(live, f"the {WORD} is in the shed, 我讨厌牙医, code 99812", "I see")
        told = await forget(live, "last")
        assert "2 messages, 2 reminders (in /reminders: 2, 5)?" in str(live.adapter.sent)
        assert told.startswith("Forgot 2 messages, 2 reminders.")
        listed = await live.ask("/reminders")
        assert all(text in listed for text in ("water the plants", f"thank Ana for the {WORD}", "去看牙医"))
        assert "shed" not in listed
        assert "99812" not in listed


@pytest.mark.parametrize(
    ("secret", "other", "same"),
    [
        ("пароль от почты: лодка и молния", "купить молоко и лодочный мотор", "сменить пароль от почты"),
        ("Mein Müller-Rezept für Überraschungen", "Termin für die Führung überprüfen", "Müller nach dem Rezept fragen"),
    ],
    ids=["Russian", "German"],
)
async def test_two_letters_in_common_take_nothing_along(tmp_path: Path, secret: str, other: str, same: str) -> None:
    async with running(tmp_path) as live:
        for text in (other, same):
            await live.ask(f"/remind in 2 hours {text}")
        await say(live, secret, "ok")
        assert "1 reminder" in await forget(live, "last")
        listed = await live.ask("/reminders")
        assert other in listed
        assert same not in listed


@pytest.mark.parametrize(("press", "other"), [("Forget", "Keep"), ("Keep", "Forget")])
async def test_a_button_answers_with_its_own_word(tmp_path: Path, press: str, other: str) -> None:
    adapter = Buttoned(Limits(trusted=True))
    async with running(tmp_path, adapter=adapter) as live:
        await say(live, f"the code is {WORD}")
        event = await live.tell("/forget last")
        asked = await adapter.question()
        assert (await adapter.press(asked, press)).told == f"{press} was chosen."
        await live.answer(event)
        assert (await adapter.became(asked, QUESTION)).text.endswith(f"\n\n{press} was chosen.")
        again = await adapter.press(asked, other)
        assert again.told == "This question is already closed, so your answer changed nothing."


async def test_in_a_group_everybody_forgets_what_they_said(tmp_path: Path) -> None:
    people = AccessSettings(allow=("fake:anna", "fake:ben"))
    shared = config_in(tmp_path, sessions=SessionSettings(groups="shared"), access=people)
    group = {"chat": "g", "chat_type": "group"}
    async with running(tmp_path, config=shared, adapter=FakeAdapter(limits=Limits())) as live:
        await say(live, f"{WORD} of Anna", user="anna", **group)
        await live.ask(f"/pin {WORD} for all", user="anna", **group)
        assert (await live.ask(f"/forget {WORD}", user="ben", **group)).endswith(
            "Only that person or an admin can make me forget those messages."
        )
        await say(live, f"{WORD} of Ben", user="ben", **group)
        listed = await live.ask(f"/forget {WORD}", user="ben", **group)
        assert "of Ben" in listed
        assert "of Anna" not in listed
        assert "Only that person or an admin can make me forget those messages." in listed
        assert "pinned rule" not in listed
        assert (await forget(live, "1", user="ben", **group)).startswith("Forgot 2 messages")
        assert [text for text in await said(live, user="ben", **group) if WORD in text] == [f"[anna] {WORD} of Anna"]
        assert WORD in await live.ask("/pin", user="ben", **group)


async def test_an_attempt_after_the_deed_tells_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as live:
        done = live.store.forget

        async def cut_short(*given: Any) -> Mapping[str, int]:
            monkeypatch.undo()
            await done(*given)
            raise SessionConflict("cut short")

        monkeypatch.setattr(live.store, "forget", cut_short)
        await say(live, f"my code is {WORD}")
        assert (await forget(live, "last")).startswith("Forgot 2 messages")
        assert len(_questions(live)) == 1
        assert await said(live) == []


async def test_everything_of_a_person_goes_wherever_they_talked(place: Place, tmp_path: Path) -> None:
    shared = config_in(tmp_path, sessions=SessionSettings(groups="shared"))
    group = {"chat": "g", "chat_type": "group"}
    async with place.run(config=shared) as live:
        await say(live, f"never push to {WORD}", f"never {WORD}")
        await live.ask("/new")
        await say(live, f"my code is {WORD}", f"{WORD}, noted")
        await say(live, f"{WORD} among us", f"{WORD}?", user="u", user_name="Uwe", **group)
        await say(live, "I am Ben", "Hello Ben", user="ben", user_name="Ben", **group)
        await say(live, "someone else", chat="other", user="v")
        told = await forget(live, "everything")
        assert told.startswith("Forgot 2 sessions, 4 messages, 1 pinned rule.")
        assert told.endswith("I will also forget what you said in 1 other conversation, as soon as my work there ends.")
        await live.quiet()
        assert await live.tip() is None
        assert await live.ask("/sessions") == "There are no earlier sessions yet."
        assert await said(live, user="ben", **group) == ["[Ben] I am Ben", "Hello Ben"]
        assert await said(live, chat="other", user="v") == ["someone else", "fine"]
        await live.quiet()
        assert await left_in_the_end(lambda: place.remains(WORD)) == []
        await say(live, "hello again")
        assert await said(live) == ["hello again", "fine"]


async def test_what_a_person_set_for_themselves_goes_with_everything_also_where_others_talk(tmp_path: Path) -> None:
    shared = config_in(tmp_path, sessions=SessionSettings(groups="shared"))
    group = {"chat": "g", "chat_type": "group"}
    async with running(tmp_path, config=shared) as live:
        await live.ask("/timezone tokyo", **group)
        await live.ask("/timezone tokyo", user="ben", **group)
        await forget(live, "everything", **group)
        assert "Tokyo" not in await live.ask("/timezone", **group)
        assert "Tokyo" in await live.ask("/timezone", user="ben", **group)


async def test_what_was_remembered_of_it_goes_with_it(place: Place, tmp_path: Path) -> None:
    config = config_in(tmp_path, memory=MemorySettings())
    async with place.run(config=config) as live:
        kept = json.dumps({"action": "add", "about": "person", "text": f"The code is {WORD}."})
        live.model.script = in_turn(Say(calls=[("memory", kept)]), Say(text="Noted."))
        await live.ask(f"my code is {WORD}")
        kept = json.dumps({"action": "add", "about": "person", "text": "They like tea."})
        live.model.script = in_turn(Say(calls=[("memory", kept)]), Say(text="Noted."))
        await live.ask("I like tea")
        await live.ask("/new")
        await say(live, "who am I?")
        assert WORD in text_of(live.model.requests[-1].messages[0])
        await live.ask("/forget code")
        assert "1 remembered fact" in await forget(live, "1")
        await say(live, "and now?")
        shown = text_of(live.model.requests[-1].messages[0])
        assert WORD not in shown
        assert "They like tea." in shown
        await live.quiet()
        assert await left_in_the_end(lambda: place.remains(WORD)) == []


async def test_a_file_goes_with_the_message_that_it_came_with(place: Place) -> None:
    async with place.run(adapter=Fetching(f"a file about {WORD}".encode())) as live:
        await say(live, "look at this", attachments=(Attachment(kind="document", ref="f1", name="a.txt"),))
        tip = await live.tip()
        assert tip is not None
        assert len(await live.store.kept_files(tip.key, 9)) == 1
        assert "1 file" in await forget(live, "last")
        assert await live.store.kept_files(tip.key, 9) == []
        await live.quiet()
        assert await left_in_the_end(lambda: place.remains(WORD)) == []
