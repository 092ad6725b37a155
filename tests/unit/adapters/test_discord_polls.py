"""Polls that Discord has room for, and how they are told."""

from __future__ import annotations

import pytest

from adapters.discord.polls import payload
from gateway.domain.chat import SEVERAL, Button
from tests.support.store_kit import outbound


@pytest.mark.parametrize(
    ("question", "labels", "fits"),
    [
        ("Where?", ["A"], True),
        ("?" * 300, ["a" * 55] * 10, True),
        ("?" * 301, ["a"], False),
        ("Where?", ["a" * 56], False),
        ("Where?", ["a"] * 11, False),
        ("Where?", [], False),
    ],
)
@pytest.mark.parametrize("several", [False, True])
def test_a_poll_that_discord_has_no_room_for_is_shown_as_text(
    question: str, labels: list[str], fits: bool, several: bool
) -> None:
    rows = tuple((Button(label=each, token=SEVERAL if several else "one"),) for each in labels)
    shown = payload(outbound("o", text=f"{question}\nmore", buttons=rows))
    if not fits:
        assert shown == {}
        return
    poll = shown["poll"]
    assert (shown["content"], poll["question"], poll["allow_multiselect"]) == ("", {"text": question}, several)
    assert [each["poll_media"]["text"] for each in poll["answers"]] == labels
