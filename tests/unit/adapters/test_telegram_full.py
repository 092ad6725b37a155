"""Messages that a full lane would refuse are told from their updates, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.telegram.receiving import FullLanes
from adapters.telegram.updates import Update, read
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound, Source
from tests.support.fakes import ManualClock

TROLL = {"id": 7, "is_bot": False, "first_name": "Troll"}
ANNA = {"id": 8, "is_bot": False, "first_name": "Anna"}
GROUP = {"id": -100, "type": "supergroup", "title": "Team"}
WORDS = "@legato_bot buy my coins"


def update(**fields: Any) -> Update:
    message = {"message_id": 5, "date": 1, "chat": GROUP, "from": TROLL, "text": WORDS, **fields}
    return read({"update_id": 1, "message": {name: value for name, value in message.items() if value is not None}})


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
    ],
)
def test_what_others_say_and_what_may_have_to_reach_a_turn_is_read(lanes: FullLanes, fields: dict[str, Any]) -> None:
    assert not lanes.refuses(update(**fields), "legato_bot")


def test_what_is_no_message_is_read(lanes: FullLanes) -> None:
    press = {"id": "1", "from": TROLL}
    assert not lanes.refuses(read({"update_id": 1, "callback_query": press}), "legato_bot")


def test_a_refusal_for_another_reason_refuses_no_other_message(clock: ManualClock) -> None:
    """A stranger may be let in at any moment."""
    source = Source(platform="telegram", chat="-100", chat_type="group", user="7")
    full = FullLanes(clock=clock)
    full.note([Inbound(event_id="e", source=source, text="buy")], [Accepted(event_id="e", status="refused")])
    assert not full.refuses(update(), "legato_bot")
