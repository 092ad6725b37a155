"""/forget: which words are meant, what is asked before they go, and what is told afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.agent.forgetting import Contents
from gateway.agent.holding import Holding
from gateway.context.forgetting import History
from gateway.domain.message import Message, assistant, noted, user
from gateway.domain.rule import Pins
from gateway.words.text import Holds
from tests.support.store_kit import key, outbound

if TYPE_CHECKING:
    from tests.unit.commands.conftest import Calling


def said(number: int, person: str = "anna") -> list[Message]:
    """A request that says so, a minute after the one before, and its answer."""
    at = 1_700_000_000.0 + 60 * number
    request = noted(
        user(f"word {number}"), id=f"m{number}", at=at, person=person, place=f"p{number}", event=f"e{number}"
    )
    return [request, noted(assistant("fine"), id=f"a{number}", at=at)]


class Forgetting:
    """A chat with three exchanges, the second in another session; the words are in `found`, and in a note."""

    def __init__(self, call: Calling, persons: tuple[str, ...] = ("anna", "anna", "anna")) -> None:
        first, second, third = (said(number, person) for number, person in enumerate(persons, 1))
        self.history = History(
            transcripts={"s_1": first, "s_2": second, "s_3": [*first, *third]}, parents={"s_3": "s_1"}
        )
        contents = Contents(sessions=(), history=self.history, pins=Pins(), facts=(), notes={})
        self.forgetter = Mock(contents=AsyncMock(return_value=contents), kept_list=AsyncMock(return_value=None))
        self.forgetter.deed = AsyncMock(
            return_value=SimpleNamespace(forgetting=Mock(counts={"messages": 2}), reminders=())
        )
        self.forgetter.do = AsyncMock(return_value={"messages": 2, "summaries": 1})
        self.forgetter.keep_list, self.forgetter.forget_line = AsyncMock(), AsyncMock()
        self.forgetter.holding = AsyncMock(side_effect=lambda *_, **__: self.found)
        self.forgetter.talks_elsewhere, self.forgetter.ask_elsewhere = AsyncMock(return_value=[]), AsyncMock()
        self.forgetter.forget_person = AsyncMock(return_value={"sessions": 2})
        call.agents.forgetter, call.claim = self.forgetter, Mock(lease="l")
        call.sessions.engines.out_of_reach = ""
        self.call, self.found = call, self.holding()

    def holding(self, *numbers: int, whole: bool = True, rules: int = 0, others: int = 0) -> Holding:
        nothing: Any = {"messages": frozenset(), "files": frozenset(), "reminders": (), "facts": (), "notes": ()}
        exchanges = [each for each in self.history.exchanges if each.ids[0] in {f"m{number}" for number in numbers}]
        facts = {"exchanges": exchanges[::-1], "rules": ("r",) * rules, "others": others, "whole": whole}
        return Holding(words=Holds("word"), **nothing, **facts)

    @property
    def went(self) -> set[str]:
        """The messages that were chosen to go."""
        return set(self.forgetter.deed.await_args.args[3]) if self.forgetter.do.await_count else set()

    def listed(self, *numbers: int, words: str = "word") -> None:
        """A list was shown."""
        self.forgetter.kept_list.return_value = (words, [f"m{number}" for number in numbers])


@pytest.mark.parametrize("yes", [True, False])
async def test_the_last_thing_goes_after_a_yes(call: Calling, yes: bool) -> None:
    it = Forgetting(call)
    call.yes = yes
    told = await call("/forget last")
    (question,) = call.questions
    assert question.startswith("Forget what was said 14 Nov 2023, ")
    assert question.endswith(", with my answer: 2 messages? This cannot be undone.")
    assert it.went == ({"m3", "a3"} if yes else set())
    assert told.startswith("Forgot 2 messages, 1 summary that I rewrote without the words. I cannot take back") is yes
    assert (told == "Nothing was forgotten.") is not yes


async def test_another_attempt_tells_what_the_first_did(call: Calling) -> None:
    it = Forgetting(call)
    call.store.forgotten = AsyncMock(return_value={"messages": 1, "rules": 1})  # type: ignore[method-assign]
    assert (await call("/forget last")).startswith("Forgot 1 message, 1 pinned rule. ")
    it.forgetter.contents.assert_not_awaited()


@pytest.mark.parametrize(
    ("argument", "more", "went"),
    [
        ("", {"reply_to": "p2"}, {"m2", "a2"}),
        ("", {"reply_to": "shown"}, {"m1", "a1"}),
        ("1 2", {}, {"m1", "a1", "m3", "a3"}),
        ("2, 2", {}, {"m1", "a1"}),
        ("all", {}, {"m1", "a1", "m3", "a3"}),
        ("session s_3", {}, {"m1", "a1", "m3", "a3"}),
        ("session s_2", {}, {"m2", "a2"}),
    ],
)
async def test_what_is_meant_goes(call: Calling, argument: str, more: dict[str, Any], went: set[str]) -> None:
    it = Forgetting(call)
    it.found = it.holding(1, 3, whole=False)
    it.listed(3, 1)
    rows = [outbound("o", answers="e1", platform_message_id="shown")]
    call.store.outbox = AsyncMock(return_value=rows)  # type: ignore[method-assign]
    await call(f"/forget {argument}".strip(), **more)
    assert it.went == went
    assert it.forgetter.do.await_args.kwargs["of_list"] is (argument in ("1 2", "2, 2"))


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("", "/forget last forgets the last thing you said"),
        ("4", "The list has no number 4. The last number is 2."),
        ("0 1", "The list has no number 0."),
    ],
)
async def test_what_cannot_be_meant_forgets_nothing(call: Calling, argument: str, told: str) -> None:
    it = Forgetting(call)
    it.listed(3, 1)
    assert (await call(f"/forget {argument}".strip())).startswith(told)
    assert it.went == set()
    assert (await call("/forget", reply_to="gone")).startswith("I can no longer find that message here.")


async def test_a_page_that_asked_already_asks_no_more(call: Calling) -> None:
    it = Forgetting(call)
    await call("/forget session s_2 yes")
    assert (it.went, call.questions) == ({"m2", "a2"}, [])
    it.found = it.holding()
    assert "I did not find a message" in await call("/forget session s_9")


async def test_in_a_group_each_forgets_their_own_and_an_admin_anything(call: Calling) -> None:
    it = Forgetting(call, ("anna", "ben", "ben"))
    await call("/forget last", chat_type="group")
    assert it.went == {"m1", "a1"}
    assert (await call("/forget", chat_type="group", reply_to="p2")).startswith("Someone else wrote this message,")
    await call("/forget", "boss", "group", reply_to="p2")
    assert it.went == {"m2", "a2"}
    assert (await call("/forget last", "eve", "group")) == "There is nothing to forget here yet."


async def test_words_are_listed_with_what_else_holds_them(call: Calling) -> None:
    it = Forgetting(call)
    it.found = it.holding(1, 3, rules=1, others=1)
    lines = (await call("/forget word")).splitlines()
    assert [line.partition(": ")[2] for line in lines[:2]] == ["“word 3”", "“word 1”"]
    assert [line[:2] for line in lines[:2]] == ["1.", "2."]
    assert lines[2:] == [
        "Someone else said these words, too. Only that person or an admin can make me forget those messages.",
        "The words are also in 1 pinned rule. /forget all makes me forget every copy.",
        "To choose what I forget, send /forget 1, /forget 1 2 or /forget all. I will ask once more before I "
        "forget anything.",
    ]
    assert it.forgetter.keep_list.await_args.args == (key(), "word", ["m3", "m1"])
    it.found = it.holding(1, whole=False)
    lines = (await call("/forget word")).splitlines()
    assert lines[0].startswith("No message contains all of these words.")
    assert lines[-1].startswith("To choose what I forget, send /forget 1. I will ask")
    it.found = it.holding(rules=1)
    assert "send /forget all. I will ask" in await call("/forget word")


@pytest.mark.parametrize(("others", "told"), [(0, False), (1, True)])
async def test_who_looks_whether_words_are_gone_leaves_them_nowhere(call: Calling, others: int, told: bool) -> None:
    it = Forgetting(call)
    it.found = it.holding(others=others)
    assert ("Someone else said these words" in await call("/forget word")) is told
    it.forgetter.forget_line.assert_awaited_once()
    it.forgetter.keep_list.assert_not_awaited()


async def test_where_all_of_a_list_is_meant_everything_that_holds_the_words_goes(call: Calling) -> None:
    it = Forgetting(call)
    it.found = it.holding(1, 2, 3)
    it.listed(3, 1)
    call.store.waiting = AsyncMock(  # type: ignore[method-assign]
        return_value=[SimpleNamespace(inbound=SimpleNamespace(text=text)) for text in ("word", "word", "other")]
    )
    told = await call("/forget all")
    assert it.went == {name for number in (1, 2, 3) for name in (f"m{number}", f"a{number}")}
    assert it.forgetter.deed.await_args.kwargs["held"] is it.found
    assert "The words are also in 2 later messages in this chat" in told
    call.sessions.engines.out_of_reach = "memento"
    assert "The context engine memento may keep a copy" in await call("/forget all")


@pytest.mark.parametrize("argument", ["everything", "ALL"])
@pytest.mark.parametrize("elsewhere", [[], ["one"]])
async def test_everything_goes_here_and_in_other_conversations(
    call: Calling, argument: str, elsewhere: list[str]
) -> None:
    it = Forgetting(call)
    it.forgetter.talks_elsewhere.return_value = elsewhere
    told = await call(f"/forget {argument}")
    where = "here and in 1 other conversation" if elsewhere else "here"
    assert call.questions[0].startswith(f"Forget everything that you said {where}, with all my answers")
    assert told.startswith("Forgot 2 sessions. ")
    assert told.endswith("as soon as my work there ends.") is bool(elsewhere)
    assert it.forgetter.ask_elsewhere.await_args.args[1] == elsewhere
    call.yes = False
    assert await call(f"/forget {argument}") == "Nothing was forgotten."
    assert it.forgetter.forget_person.await_count == 1
