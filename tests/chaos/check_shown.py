"""What people must have been shown, however many processes there were: one answer each, the right one,
in the order of what they asked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gateway.tools.runtime import UNKNOWN_OUTCOME
from tests.chaos.answers import final_text
from tests.chaos.check_store import Facts
from tests.chaos.drive import ANSWERS
from tests.chaos.script import Event

BYPASSING: Final = ("/status", "/stop", "/help")
REFUSALS: Final = ("There is nothing to", "There is no session number", "You are in that session already")
CANNOT_STORE: Final = ("I cannot store my work right now", "Messages cannot be stored just now")
_TOLD: Final = re.compile(r"^Answer to (tok\w+) \[(.*?)\]", re.DOTALL)

Said = tuple[str, str, str, str | None]
"""A message's id, its kind, its text, and the event that it is about."""


def one_answer_each(facts: Facts, said: Iterable[Said]) -> Iterator[str]:
    """Exactly one message answers each event, and none is told the same twice."""
    answers: dict[str, set[str]] = defaultdict(set)
    notices: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row_id, kind, text, event_id in said:
        if event_id and kind in ANSWERS:
            answers[event_id].add(row_id)
        elif event_id:
            notices[event_id, text].add(row_id)
    for event in facts.events:
        expected = {"absorbed": (0,), "stopped": (0, 1)}.get(str(facts.outcome(event)), (1,))
        if len(answers[event.id]) not in expected:
            yield f"{event.id} ({event.text[-40:]}) was answered by {len(answers[event.id])} messages"
    for (event_id, text), ids in notices.items():
        if len(ids) > 1:
            yield f"{event_id} was told {len(ids)} times: {text[:60]}"


def answers_in_order(facts: Facts) -> Iterator[str]:
    """For each key answers come in the order of what they answer; what bypasses its lane may overtake."""
    shown: dict[Any, list[int]] = defaultdict(list)
    for event_id in facts.answered_in_order():
        event = facts.event(event_id)
        if event.text not in BYPASSING:
            shown[event.key].append(facts.last.inbox[event_id][0])
    for key, numbers in shown.items():
        if numbers != sorted(numbers):
            yield f"{key}: answers were shown out of order"


def told_results(facts: Facts, event: Event, text: str) -> tuple[Event, list[str]] | None:
    """What a reply to an event is about (where messages share a turn, the newest of them), and what it
    says that tools said; None if it is about something else."""
    told = _TOLD.match(text)
    if not told:
        return None
    about = facts.about(told[1]) if facts.joins else event
    if told[1] != about.token:
        return None
    return about, [UNKNOWN_OUTCOME if part == "unknown" else part for part in told[2].split(", ") if part]


def reply_is_right(facts: Facts, event: Event, text: str) -> Iterator[str]:
    """An event's reply is about it, and whole."""
    told = told_results(facts, event, text)
    if told is None:
        yield f"{event.id} (about {event.token}) was answered: {text[:80]}"
    elif final_text(told[0].kind, told[0].token, told[1]) != text:
        yield f"{event.id}: the answer is not whole: {text[:80]}"
