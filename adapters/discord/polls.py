"""Polls: https://discord.com/developers/docs/resources/poll. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.domain.chat import SEVERAL, Outbound
from gateway.domain.quoting import poll_in_a_line

_HOURS: Final = 768  # for which a poll is open at most
_MOST: Final = 10  # answers
_LONGEST_ANSWER: Final = 55  # characters
_LONGEST_QUESTION: Final = 300


def payload(outbound: Outbound) -> dict[str, Any]:
    """The fields of a message that shows a poll; none: Discord has no room for it, so it is shown as text."""
    answers = [button for row in outbound.buttons for button in row]
    question = outbound.text.partition("\n")[0]
    fits = all(len(each.label) <= _LONGEST_ANSWER for each in answers) and len(question) <= _LONGEST_QUESTION
    if not fits or not 1 <= len(answers) <= _MOST:
        return {}
    poll = {
        "question": {"text": question},
        "answers": [{"poll_media": {"text": each.label}} for each in answers],
        "duration": _HOURS,
        "allow_multiselect": any(each.token == SEVERAL for each in answers),
        "layout_type": 1,
    }
    return {"content": "", "poll": poll}


def words(poll: Mapping[str, Any]) -> str:
    """A poll in a line."""
    results = poll.get("results") or {}
    counts = {each["id"]: each["count"] for each in results.get("answer_counts") or ()}
    answers = [
        (str(each["poll_media"].get("text", "")), counts.get(each.get("answer_id"), 0)) for each in poll["answers"]
    ]
    return poll_in_a_line(poll["question"].get("text", ""), answers, closed=bool(results.get("is_finalized")))
