"""Messages that a full lane would refuse are told from Telegram's JSON, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.telegram.full import FullLanes, without_refused
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound, Source
from tests.support.fakes import ManualClock

TROLL = {"id": 7, "is_bot": False, "first_name": "Troll"}
ANNA = {"id": 8, "is_bot": False, "first_name": "Anna"}
GROUP = {"id": -100, "type": "supergroup", "title": "Team"}
WORDS = "@legato_bot buy my coins"


def update(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"update_id": number, "message": {"message_id": 5, "chat": GROUP, "from": TROLL, "text": WORDS, **fields}}


@pytest.fixture
def lanes(clock: ManualClock) -> FullLanes:
    """The troll's was found full, for a second."""
    source = Source(platform="telegram", chat="-100", chat_type="group", user="7")
    full = FullLanes(clock=clock)
    full.note(
        [Inbound(event_id="e", source=source, text="buy")], [Accepted(event_id="e", status="refused", full_for=1.0)]
    )
    return full


async def test_plain_words_of_who_keeps_a_lane_full_are_refused_for_a_moment(
    lanes: FullLanes, clock: ManualClock
) -> None:
    assert lanes.refuses(update(), "legato_bot")
    assert lanes.refuses(update(text=None, caption="@legato_bot look at this"), "legato_bot")
    await clock.advance(1.0)
    assert not lanes.refuses(update(), "legato_bot")


@pytest.mark.parametrize(
    "fields",
    [
        {"from": ANNA},
        {"sender_chat": GROUP},
        {"chat": {"id": 7, "type": "private"}},
        {"message_thread_id": 3, "is_topic_message": True},
        {"text": "/stop@legato_bot"},
        {"text": "@legato_bot /stop"},
        {"text": " /stop and more words"},
        {"text": "y"},
        {"text": "@legato_bot yes."},
        {"text": None, "migrate_to_chat_id": -101},
        {"from": None},
        {"from": "me"},
        {"chat": 7},
        {"text": ["buy"]},
    ],
)
def test_what_others_say_and_what_may_have_to_reach_a_turn_is_read(lanes: FullLanes, fields: dict[str, Any]) -> None:
    assert not lanes.refuses(update(**fields), "legato_bot")


@pytest.mark.parametrize("other", [{"update_id": 1, "callback_query": {"from": TROLL}}, {"message": "?"}, 7, None])
def test_what_is_no_message_is_read(lanes: FullLanes, other: Any) -> None:
    assert not lanes.refuses(other, "legato_bot")


def test_a_refusal_for_another_reason_refuses_no_other_message(clock: ManualClock) -> None:
    """A stranger may be let in at any moment."""
    source = Source(platform="telegram", chat="-100", chat_type="group", user="7")
    full = FullLanes(clock=clock)
    full.note([Inbound(event_id="e", source=source, text="buy")], [Accepted(event_id="e", status="refused")])
    assert not full.refuses(update(), "legato_bot")


def test_of_what_is_refused_last_the_number_is_kept(lanes: FullLanes) -> None:
    """Telegram is told by it how far this has come; else it would send the same updates for ever."""
    anna = update(2, **{"from": ANNA})
    assert without_refused([update(1), anna, update(3), update(4)], lanes, "legato_bot") == [anna, {"update_id": 4}]
    assert without_refused([update(1), anna], lanes, "legato_bot") == [anna]
    assert without_refused([], lanes, "legato_bot") == []
