"""The bot's signs on what people write, and their reactions, which wait until they write next."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.domain.chat import Inbound, KeptFile, Source
from gateway.domain.turn import SessionSettings, TurnRules, TurnSettings
from gateway.runtime.errors import AdapterError
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background
from gateway.store.port import Store
from gateway.store.records import Arrival, InboxItem, Receipt
from gateway.turns.reactions import Reactions
from tests.support.fakes import ManualClock
from tests.support.store_kit import key, outbound

RULES = TurnRules(sessions=SessionSettings(reactions=True), turns=TurnSettings())


class Place:
    """A group whose rows the store has: `answer` is the platform's name for one of the bot's."""

    def __init__(self, store: Store, clock: ManualClock, shows: bool = True) -> None:
        self.clock, self.background, self.platform = clock, Background(), Mock(react=AsyncMock())
        self.writes = 0
        self.store = cast(Any, Mock(wraps=store, set_notes=self._set_notes))
        self._set = store.set_notes
        self.rows = [outbound("o1", text="On [Tuesday]", platform_message_id="answer")]
        self.store.outbox = AsyncMock(side_effect=lambda *_: [*self.rows])
        self.strangers = set[str]()
        rules = RULES if shows else replace(RULES, sessions=SessionSettings())
        self.reactions = Reactions(
            store=self.store,
            rules=rules,
            pairing=cast(Any, Mock(lets_in=self._lets_in)),
            clock=clock,
            background=self.background,
            adapters={"test": self.platform},
            signs=True,
        )

    async def _lets_in(self, source: Source) -> bool:
        return source.user not in self.strangers

    async def _set_notes(self, *given: Any) -> bool:
        self.writes += 1
        return await self._set(*given)

    async def react(self, change: str, who: str = "anna", on: str = "answer") -> None:
        """Somebody changes their reaction."""
        await self.reactions.take(inbound(change, who, kind="reaction", reply_to=on))

    async def hear(self, text: str, who: str = "anna", **more: Any) -> str:
        """What a message says when it is accepted, and stored."""
        said = inbound(text, who, **more)
        found = await self.reactions.before(Arrival(inbound=said, key=key(), at=0.0))
        await self.reactions.settle([Receipt(event_id=said.event_id, status="new")])
        assert found.inbound.own == (None if found.inbound.text == text else text)
        return found.inbound.text

    async def sign(self, *signs: Any, number: int = 1, **more: Any) -> list[str]:
        """The signs that the platform was asked to show so far, after these on one message."""
        item = InboxItem(
            id=f"{number}", key=key(), inbound=inbound(**{"text": "hi", **more}), accepted_at=0.0, attempts=1
        )
        for each in signs:
            self.reactions.put(item, each)
        await self.clock.settle()
        return [call.args[2] for call in self.platform.react.await_args_list]


def inbound(text: str, who: str = "anna", **more: Any) -> Inbound:
    source = Source(platform="test", chat="1", chat_type="direct", user=who, user_name=who.title())
    return Inbound(**{"event_id": f"e-{text}", "source": source, "text": text, "place": "p", **more})


@pytest.fixture
def place(store: Store, clock: ManualClock) -> Place:
    """A chat with reactions."""
    return Place(store, clock)


async def test_what_somebody_put_on_an_answer_is_told_once_before_their_next_words(place: Place) -> None:
    await place.react("+👍")
    await place.react("-👍 +👎")
    await place.react("+🔥", on="somebody's message")
    assert await place.hear("hm", "ben") == "hm"
    assert await place.hear("/new") == "/new"
    assert await place.hear("Sure?") == '[Anna reacted 👎 to: "On (Tuesday)"]\nSure?'
    assert await place.hear("Well") == "Well"
    await place.react("-👎")
    assert await place.hear("And now") == "And now"


async def test_what_was_taken_away_again_is_not_told(place: Place) -> None:
    for change in ("+👍 +🤔", "-🤔", "-👍"):
        await place.react(change)
    assert await place.hear("Well") == "Well"
    assert key() in place.reactions.none


async def test_the_last_five_signs_count_and_each_is_told_once(place: Place) -> None:
    await place.react(" ".join(f"+{sign}" for sign in "abcdefa"))
    assert (await place.hear("x")).startswith("[Anna reacted c d e f a to:")
    await place.react(f"+{'s' * 41}")
    assert f" {'s' * 40} to:" in await place.hear("y")


async def test_a_message_that_was_not_taken_leaves_them_for_the_next(place: Place) -> None:
    await place.react("+👍")
    said = inbound("one")
    found = await place.reactions.before(Arrival(inbound=said, key=key(), at=0.0))
    await place.reactions.settle([Receipt(event_id=said.event_id, status="full")])
    assert found.inbound.text != "one"
    assert (await place.hear("two")).startswith("[Anna")


async def test_strangers_and_things_that_are_gone_write_nothing(place: Place) -> None:
    place.strangers.add("eve")
    await place.react("+👍", "eve")
    await place.react("-👍", "eve")
    assert place.writes == 0
    await place.react("+👍")
    place.rows.clear()  # it was forgotten
    place.reactions._others.clear()
    await place.react("-👍 +👎")
    assert await place.hear("hm") == "hm"


async def test_a_flood_is_written_once_in_ten_seconds_and_read_as_it_ended(place: Place) -> None:
    for number in range(200):
        await place.react("+👎 -👍" if number % 2 else "+👍 -👎")
    assert place.writes == 1
    await place.clock.advance(9.9)
    await place.react("+🤔")
    assert place.writes == 1
    await place.clock.advance(0.1)
    await place.react("+🔥")
    assert place.writes == 2
    assert await place.hear("x") == '[Anna reacted 👎 🤔 🔥 to: "On (Tuesday)"]\nx'


async def test_no_more_than_twenty_messages_wait(place: Place) -> None:
    place.rows = [outbound(f"{n}", text=f"{n}", platform_message_id=f"{n}") for n in range(22)]
    for number in range(22):
        await place.react("+👍", on=f"{number}")
    told = await place.hear("x")
    assert (told.count("[Anna"), '"1"' in told, '"2"' in told) == (20, False, True)


async def test_another_process_reads_what_is_stored_and_asks_for_each_conversation_once(
    place: Place, store: Store, clock: ManualClock
) -> None:
    await place.react("+👍")
    other = Place(store, clock)
    assert (await other.hear("x")).startswith("[Anna reacted 👍")
    assert await other.hear("y") == "y"
    assert key() in other.reactions.none


async def test_a_file_without_words_is_called_by_its_name(place: Place) -> None:
    file = KeptFile(ref="r", digest="d", name="tea.png", mime="image/png", size=1, at=0.0)
    place.rows = [replace(place.rows[0], text="", file=file)]
    await place.react("+👍")
    assert await place.hear("x") == '[Anna reacted 👍 to: "tea.png"]\nx'


async def test_signs_come_one_after_the_other_and_the_last_ends_them(place: Place) -> None:
    assert await place.sign("done") == [], "nothing says that it was taken"
    assert await place.sign("taken") == ["taken"]
    assert await place.sign("done", "failed") == ["taken", "done"]


async def test_signs_are_for_what_people_write_where_they_are_shown(store: Store, clock: ManualClock) -> None:
    shown, hidden = Place(store, clock), Place(store, clock, shows=False)
    assert await hidden.sign("taken") == []
    for more in ({"kind": "schedule"}, {"place": None}, {"text": "/new"}):
        assert await shown.sign("taken", **more) == []
    elsewhere = Source(platform="other", chat="1", chat_type="direct", user="anna")
    assert await shown.sign("taken", source=elsewhere) == []
    assert await shown.sign("taken", kind="queue") == ["taken"]
    assert await shown.sign("taken", kind="steer", number=2) == ["taken", "taken"]


@pytest.mark.parametrize(("pause", "again"), [(3_599.0, 1), (3_600.0, 2)])
async def test_a_conversation_rests_where_a_sign_failed(place: Place, pause: float, again: int) -> None:
    place.platform.react.side_effect = AdapterError("no right")
    assert await place.sign("taken") == ["taken"]
    await place.clock.advance(pause)
    assert len(await place.sign("taken", number=2)) == again


async def test_twenty_messages_a_minute_have_signs(place: Place) -> None:
    for number in range(25):
        await place.sign("taken", number=number)
    assert place.platform.react.await_count == 20
    await place.clock.advance(60.0)
    await place.sign("taken", number=99)
    assert place.platform.react.await_count == 21
