"""Polls: https://discord.com/developers/docs/resources/poll."""

from __future__ import annotations

from typing import Any, Final

from tests.emulators.discord.refusals import invalid

LONGEST_QUESTION: Final = 300
LONGEST_ANSWER: Final = 55
MOST_ANSWERS: Final = 10
MOST_HOURS: Final = 768


def made(given: dict[str, Any] | None) -> dict[str, Any] | None:
    """A poll of a form, as messages show it. Raises the refusal of one that breaks a limit."""
    if given is None:
        return None
    question, answers = given["question"]["text"], given["answers"]
    if not 1 <= len(question) <= LONGEST_QUESTION:
        raise invalid("poll.question.text", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 300 in length.")
    if not 1 <= len(answers) <= MOST_ANSWERS:
        raise invalid("poll.answers", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 10 in length.")
    if any(not 1 <= len(each["poll_media"]["text"]) <= LONGEST_ANSWER for each in answers):
        raise invalid("poll.answers.0.poll_media.text", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 55 in length.")
    if not 1 <= given.get("duration", 24) <= MOST_HOURS:
        raise invalid("poll.duration", "NUMBER_TYPE_MAX", "int value should be between 1 and 768.")
    return {
        "question": {"text": question},
        "answers": [{"answer_id": number, **each} for number, each in enumerate(answers, 1)],
        "expiry": "2027-01-01T00:00:00+00:00",
        "allow_multiselect": bool(given.get("allow_multiselect")),
        "layout_type": 1,
        "results": {"is_finalized": False, "answer_counts": []},
    }
