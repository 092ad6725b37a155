"""How fast Slack is written to."""

from __future__ import annotations

from adapters.slack.limits import draft_rates, rates
from gateway.domain.chat import ChatAddress

HERE = ChatAddress(platform="slack", chat="C1", thread="1.5")


def test_unfinished_replies_leave_room_for_messages_that_count() -> None:
    (chat,) = rates(HERE)
    own, shared = draft_rates(HERE)
    assert (chat.bucket, own.bucket, shared.bucket) == ("chat C1", "drafts C1 1.5", "drafts")
    assert (own.most, own.seconds) == (1, 3.0)
    assert shared.most / shared.seconds < 50 / 60, "of the edits that Slack takes in a minute"
    assert draft_rates(ChatAddress(platform="slack", chat="C1"))[0].bucket == "drafts C1 "
