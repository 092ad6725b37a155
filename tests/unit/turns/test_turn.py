"""What becomes of one item: what it asks for, how it ends, and what its chat is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.agent.running import RunningTurns
from gateway.commands.base import Answer
from gateway.delivery.outbox import Outbox
from gateway.domain.chat import Inbound, Outbound, Returns, Source, Terms
from gateway.domain.command import Proposal
from gateway.domain.turn import SessionSettings, TurnRules, TurnSettings
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.points import ignore_points
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import MOST_ATTEMPTS, Arrival, InboxItem, Lease
from gateway.turns.limits import STOPPED
from gateway.turns.turn import DEAD, PUT_AWAY, UNREADABLE, Beside, Ending, Turns
from tests.support.fakes import ManualClock
from tests.support.store_kit import key, new_session
from tests.support.store_kit import outbound as new_outbound


class One:
    """Turns whose agents, people and commands say what a test wants, in one chat."""

    def __init__(self, store: Store, clock: ManualClock, outbox: Outbox) -> None:
        self.store, self.clock, self.outbox = store, clock, outbox
        self.agents, self.people, self.commands = Mock(), Mock(), Mock(answer=AsyncMock(return_value=Answer(text="ok")))
        self.agents.forgetter = Mock(forget_taken_back=AsyncMock(), forget_person=AsyncMock())
        self.agents.sessions = Mock(expire=AsyncMock(return_value=None), titles=None)
        self.agents.sessions.policy.notify = True
        self.people.pairing.lets_in = AsyncMock(return_value=True)
        self.people.approvals.withdrawn = AsyncMock(return_value=[])
        self.voice, self.reactions = Mock(run=AsyncMock(), ask=AsyncMock()), Mock(signs=True)
        self.turns = Turns(
            store=store,
            agents=self.agents,
            people=self.people,
            commands=self.commands,
            running_turns=RunningTurns(background=cast(Any, None)),
            outbox=outbox,
            adapters={},
            rules=TurnRules(sessions=SessionSettings(), turns=TurnSettings()),
            clock=clock,
            points=ignore_points,
            began=0.0,
            beside=Beside(voice=self.voice, reactions=self.reactions),
        )

    async def run(self, text: str = "/version", attempts: int = 1, **more: Any) -> list[tuple[str, str]]:
        """What the chat is shown by the end of an item."""
        source = Source(platform="test", chat="1", chat_type="direct", user="u1")
        inbound = Inbound(event_id="e1", source=source, text=text, **more)
        await self.store.accept([Arrival(inbound=inbound, key=key(), at=self.clock.now())], cap=9)
        claim = await self.store.claim_next("w")
        await self.turns.run(claim.lease, replace(claim.item, attempts=attempts))
        assert await self.store.waiting(key(), 5) == [], "it has ended"
        return [(row.kind, row.text) for row in await self.store.outbox(key().address, 9)]

    @property
    def sign(self) -> str:
        """The sign that its message gets."""
        put = self.reactions.put
        return str(put.call_args.args[1]) if put.called else ""


@pytest.fixture
def one(store: Store, clock: ManualClock, shelf: Callable[..., Outbox]) -> One:
    """A chat without a conversation."""
    return One(store, clock, shelf())


async def test_a_command_is_answered_without_choices_where_there_are_no_buttons(one: One) -> None:
    one.commands.answer.return_value = Answer(text="Which?", choices=(Proposal(label="a", value="/model a"),))
    assert await one.run("/model") == [("command", "Which?")]
    (row,) = await one.store.outbox(key().address, 9)
    assert (row.buttons, one.sign) == ((), "done")


async def test_where_there_are_buttons_a_command_has_its_choices(one: One) -> None:
    one.commands.answer.return_value = Answer(text="Which?", choices=(Proposal(label="a", value="/model a"),))
    one.outbox._tokens["test"] = 64
    await one.run("/model")
    (row,) = await one.store.outbox(key().address, 9)
    assert [each.label for (each,) in row.buttons] == ["a"]


async def test_what_was_taken_back_is_forgotten_if_it_was_answered_and_has_no_sign(one: One) -> None:
    assert await one.run("e0", kind="withdrawn") == []
    one.agents.forgetter.forget_taken_back.assert_awaited_once()
    assert one.sign == ""


async def test_what_was_taken_back_before_an_answer_leaves_nothing_to_forget(one: One) -> None:
    assert await one.run("", kind="withdrawn") == []
    one.agents.forgetter.forget_taken_back.assert_not_awaited()


async def test_a_wish_to_be_forgotten_is_granted_without_a_word_even_to_strangers(one: One) -> None:
    one.people.pairing.lets_in.return_value = False
    assert await one.run("", kind="forget") == []
    one.agents.forgetter.forget_person.assert_awaited_once()


async def test_somebody_who_was_shown_out_gets_nothing(one: One) -> None:
    one.people.pairing.lets_in.return_value = False
    assert await one.run() == []
    one.commands.answer.assert_not_awaited()
    assert one.sign == "failed"


async def test_who_was_shown_out_in_the_middle_of_an_answer_is_told_that_it_stopped(one: One) -> None:
    one.people.pairing.lets_in.return_value = False
    one.store.journal = AsyncMock(return_value=Mock(begun=True, reply=Mock(id="o9"), approvals=[1]))  # type: ignore[method-assign]
    assert await one.run() == [("notice", STOPPED)]
    one.people.approvals.withdrawn.assert_awaited_once()
    (row,) = await one.store.outbox(key().address, 9)
    assert row.id == "o9", "in the place of what was shown of it"


async def test_an_answer_is_said_aloud_if_somebody_asks(one: One) -> None:
    assert await one.run("o1", kind="speak") == []
    assert one.voice.run.await_args.args[0].inbound.text == "o1"
    one.voice.ask.assert_not_awaited()


async def test_the_end_of_what_was_forgotten_begins_no_turn(one: One) -> None:
    assert await one.run("the build is done", kind="ended") == []
    assert one.sign == "failed"


@pytest.mark.parametrize(
    ("kind", "attempts", "text"),
    [
        ("message", MOST_ATTEMPTS + 1, DEAD.format(attempts=MOST_ATTEMPTS)),
        ("unreadable", 1, UNREADABLE),
        ("expiry", MOST_ATTEMPTS + 1, ""),
        ("speak", MOST_ATTEMPTS + 1, ""),
    ],
)
async def test_what_crashes_again_and_again_is_given_up(one: One, kind: Any, attempts: int, text: str) -> None:
    assert await one.run("hello", attempts=attempts, kind=kind) == ([("error", text)] if text else [])
    assert one.sign == "failed"
    one.voice.run.assert_not_awaited()


async def test_the_last_attempt_is_made(one: One) -> None:
    assert await one.run(attempts=MOST_ATTEMPTS) == [("command", "ok")]


async def test_after_a_bug_its_person_is_told_and_the_item_ends(one: One) -> None:
    one.commands.answer.side_effect = KeyError("x")
    ((kind, text),) = await one.run()
    assert (kind, one.sign) == ("error", "failed")
    assert "x" not in text.split()


async def test_who_waits_for_the_store_is_told_once_in_a_while(one: One) -> None:
    one.commands.answer.side_effect = StoreUnavailable("away")
    one.outbox.announce = Mock()  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await one.run()
    source = Source(platform="test", chat="1", chat_type="direct", user="u1")
    inbound = Inbound(event_id="e1", source=source, text="/version")
    item = InboxItem(id="1", key=key(), inbound=inbound, accepted_at=0.0, attempts=2)
    for pause, told in ((29.9, 1), (0.1, 2)):
        await one.clock.advance(pause)
        with pytest.raises(StoreUnavailable):
            await one.turns.run(Lease(key=key(), worker="w", fence=1), item)
        assert one.outbox.announce.call_count == told


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("due", [True, False])
async def test_a_session_whose_time_is_over_is_put_away_and_its_chat_is_told(one: One, due: bool, own: bool) -> None:
    at = key() if not own else replace(key(), thread="~own")
    session = new_session("s1", key=at, message_count=1, last_active_at=5.0)
    one.store.session = AsyncMock(return_value=session)  # type: ignore[method-assign]
    one.store.update_session = AsyncMock()  # type: ignore[method-assign]
    one.agents.sessions.is_due.return_value, one.agents.sessions.policy.deadline.return_value = due, 99.0
    assert await one.run("s1", kind="expiry") == ([("notice", PUT_AWAY)] if due and not session.key.is_own else [])
    assert one.agents.sessions.expire.await_count == due
    if not due:
        one.agents.sessions.policy.deadline.assert_called_with(5.0, False)
        assert one.store.update_session.await_args.kwargs == {"expires_at": 99.0}


async def test_a_session_that_has_ended_is_left_alone(one: One) -> None:
    session = new_session("s1", ended_at=1.0)
    one.store.session = AsyncMock(return_value=session)  # type: ignore[method-assign]
    assert await one.run("s1", kind="expiry") == []
    one.agents.sessions.expire.assert_not_awaited()


class Finishing:
    """The end of a turn that shows these texts."""

    def __init__(self, one: One, *shown: Any, terms: Terms | None = None, following: Any = None, **more: Any) -> None:
        self.one, self.suggestions, self.titles = one, Mock(), Mock()
        self.titles.due.return_value = True
        one.agents.sessions.titles = self.titles
        one.turns.beside = replace(one.turns.beside, suggestions=self.suggestions)
        self.talk = Mock(stored=Mock(session=new_session("s1")))
        self.ending = Ending(**{"outcome": "answered", "conversation": self.talk, "shown": shown, **more})
        source = Source(platform="test", chat="1", chat_type="direct", user="u1")
        inbound = Inbound(event_id="e1", source=source, text="hello", terms=terms)
        self.item = InboxItem(id="1", key=key(), inbound=inbound, accepted_at=0.0, attempts=1)
        self.recorder = Mock(item=self.item, finish=AsyncMock(return_value=Mock(outbound=[], next=following)))

    async def rows(self) -> list[Outbound]:
        """The rows that are stored with the ending."""
        await self.one.turns._finish(self.recorder, self.ending)
        return list(self.recorder.finish.await_args.args[2])

    @property
    def follows(self) -> list[bool]:
        """What comes after it: an answer aloud, a look ahead, suggestions, a title."""
        aloud, ahead = self.one.voice.ask.await_count, self.one.agents.sessions.preparations.consider.call_count
        return [bool(each) for each in (aloud, ahead, self.suggestions.begin.call_count, self.titles.begin.call_count)]


@pytest.mark.parametrize(
    ("changed", "follows"),
    [
        ({}, [True, True, True, True]),
        ({"following": "a message"}, [True, True, False, True]),
        ({"terms": Terms()}, [True, True, False, True]),
        ({"outcome": "failed"}, [False, False, False, False]),
        ({"outcome": "stopped"}, [False, False, False, False]),
        ({"conversation": None}, [False, False, False, False]),
        ({"returns": Returns(calls=({"id": "c"},))}, [True, False, False, False]),
    ],
)
async def test_what_follows_an_answer(one: One, changed: dict[str, Any], follows: list[bool]) -> None:
    it = Finishing(one, ("reply", "On Tuesday"), **changed)
    rows = await it.rows()
    assert it.follows == follows
    if follows[0]:
        assert one.voice.ask.await_args.args == (it.item, it.talk.stored.session, rows)
    assert rows[0].session_id == ("s1" if it.ending.conversation else None)
    assert (rows[0].returns is not None) is ("returns" in changed)


async def test_a_conversation_that_has_a_title_gets_none(one: One) -> None:
    it = Finishing(one, ("reply", "On Tuesday"))
    it.titles.due.return_value = False
    await it.rows()
    assert it.follows == [True, True, True, False]


@pytest.mark.parametrize(
    ("kinds", "shown"), [(("notice", "reply"), ["", "o9"]), (("error", "notice"), ["o9", ""]), (("reply",), ["o9"])]
)
async def test_the_reply_takes_the_place_of_what_was_shown_of_it_or_else_the_first_sentence(
    one: One, kinds: tuple[Any, ...], shown: list[str]
) -> None:
    it = Finishing(one, *((kind, kind) for kind in kinds), reply_id="o9", outcome="failed")
    assert [row.id if row.id == "o9" else "" for row in await it.rows()] == shown


@pytest.mark.parametrize(("returns", "at"), [(Returns(fault="cap"), "error"), (Returns(), "reply")])
async def test_a_program_reads_its_own_part_with_the_reply_or_with_the_error(
    one: One, returns: Returns, at: str
) -> None:
    it = Finishing(one, ("reply", "On"), ("error", "Too dear"), ("notice", "Hm"), returns=returns)
    assert [row.kind for row in await it.rows() if row.returns is not None] == [at]


async def test_questions_that_nobody_answered_say_that_they_are_over(one: One) -> None:
    over = new_outbound("q", text="withdrawn")
    one.people.approvals.withdrawn.return_value = [over]
    assert over in await Finishing(one, ("notice", "Stopped"), has_asked=True, outcome="stopped").rows()
    assert over not in await Finishing(one, ("notice", "Stopped"), outcome="stopped").rows()
