"""The promises to people, however many processes there were: one answer each, the right one, in order, and no word of
another conversation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from gateway.agent.tools.runtime import UNKNOWN_OUTCOME
from tests.chaos.answers import final_text
from tests.chaos.check_store import INSTEAD, REFUSALS, Facts
from tests.chaos.drive import ANSWERS
from tests.chaos.script import Event

BYPASSING: Final = ("/status", "/stop", "/help")
CANNOT_STORE: Final = ("I cannot store my work right now", "I cannot store your messages right now")
_TOLD: Final = re.compile(r"^Answer to (tok\w+) \[(.*?)\]", re.DOTALL)

_TOKEN: Final = re.compile(r"tok\d\d[0-9a-f]{5}")


def one_answer_each(facts: Facts) -> Iterator[str]:
    """Exactly one message answers each event, and none is told the same twice."""
    answers: dict[str, set[str]] = defaultdict(set)
    notices: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row_id, (kind, text, event_id, _) in facts.last.outbox.items():
        if text.startswith(INSTEAD) or not event_id:
            continue
        if kind in ANSWERS:
            answers[event_id].add(row_id)
        else:
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


def chats_in_order(facts: Facts) -> Iterator[str]:
    """In a chat, what one person is told is first shown in the order in which it was emitted. Another's answer may
    come before it: a chat is fair to those in it."""
    place = {row_id: number for number, row_id in enumerate(facts.last.outbox)}
    told: dict[Any, list[str]] = defaultdict(list)
    for fields in (line.fields for line in facts.shown):
        rows = told[fields["chat"], facts.event(fields["answers"]).key if fields["answers"] else None]
        if fields["id"] in place and fields["id"] not in rows and not fields["text"].startswith(INSTEAD):
            rows.append(fields["id"])
    for (chat, _), rows in told.items():
        for one, other in pairwise(rows):
            if place[one] > place[other]:
                yield f"{chat}: {other} was shown after {one}, which was emitted later"


def tokens_in(text: Any) -> list[str]:
    """The words in it that name messages."""
    return _TOKEN.findall(str(text))


def keys_of_tokens(facts: Facts) -> dict[str, Any]:
    """Return the conversation of each message, by the word in it."""
    return {event.token: event.key for event in facts.events if event.token}


def isolation(facts: Facts) -> Iterator[str]:
    """No word of one conversation is in another's prompt or chat: every message has a word of its own."""
    keys = keys_of_tokens(facts)
    for call in facts.evidence.calls:
        met = {keys[token] for token in tokens_in(call.body["messages"])}
        if len(met) > 1:
            yield f"a prompt holds words of {sorted(map(str, met))}"
    for fields in (line.fields for line in facts.shown):
        whose = {keys[token] for token in tokens_in(fields["text"])}
        if {chat for chat, _ in whose} - {fields["chat"]}:
            yield f"{fields['chat']} was shown words of {sorted(map(str, whose))}: {fields['text'][:60]}"
        if fields["answers"] and whose - {facts.event(fields["answers"]).key}:
            yield f"the answer to {fields['answers']} holds words of another conversation: {fields['text'][:60]}"


def model_failed(facts: Facts, event: Event) -> bool:
    """Say whether the model failed when it was asked about an event, so that it may end without an answer."""
    return bool(event.token) and any(
        call.fault and event.token in str(call.body["messages"]) for call in facts.evidence.calls
    )


def error_is_right(facts: Facts, text: str, event_id: str | None) -> Iterator[str]:
    """An error says that a command had nothing to work on, that the platform refused a message, or that the
    model failed: with a message, or with a command that asks it to compress."""
    if text.startswith((*REFUSALS, *INSTEAD)):
        return
    failed = event_id is not None and facts.outcome(facts.event(event_id)) == "failed"
    compressing = "compress" in text.lower() and any(call.fault for call in facts.evidence.calls)
    if not failed and not compressing:
        yield f"an error was shown: {text[:120]}"


def told_results(facts: Facts, event: Event, text: str) -> tuple[Event, list[str]] | None:
    """Return the event of a reply (where messages share a turn, the newest), and the tools' results in it; None if
    the reply is about something else."""
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
