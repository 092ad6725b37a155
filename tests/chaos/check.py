"""The promises of a run, however often the process was killed.

Every check yields a sentence for each thing that is wrong, and nothing for a run that kept all
promises. `problems` runs them all: this file looks at what people were shown and what tools did,
`check_store` at what was kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from gateway.agent.tools.runtime import UNKNOWN_OUTCOME
from tests.chaos.answers import DONE, NOTED, asked, effects_of
from tests.chaos.check_shown import (
    CANNOT_STORE,
    answers_in_order,
    chats_in_order,
    error_is_right,
    isolation,
    model_failed,
    one_answer_each,
    reply_is_right,
    told_results,
)
from tests.chaos.check_store import Facts, compactions, messages, nothing_lost, reachable, sessions
from tests.chaos.drive import Evidence
from tests.chaos.script import Event
from tests.chaos.socket_platform import Send
from tests.emulators.llm_replies import is_turn, last_user_text

_OUTCOMES: Final = {
    "queue": ("answered",),
    "collect": ("answered", "absorbed"),
    "steer": ("answered", "absorbed"),
    "interrupt": ("answered", "stopped"),
}


def problems(evidence: Evidence) -> list[str]:
    """Everything that is wrong with a run, one sentence each."""
    facts = Facts(evidence)
    checks = (
        came_to_its_end(evidence),
        outcomes(facts),
        one_answer_each(facts),
        rows_behind(facts),
        seen(facts),
        line_repeats(facts),
        send_repeats(facts),
        chats_in_order(facts),
        answers_in_order(facts),
        replies_are_right(facts),
        isolation(facts),
        effects_once(facts),
        asked_in_order(facts),
        nothing_lost(facts),
        messages(facts),
        sessions(facts),
        hooks_repeated(facts),
        compactions(facts),
        reachable(facts),
    )
    return [problem for check in checks for problem in check]


def came_to_its_end(evidence: Evidence) -> Iterator[str]:
    """The last process read all input and left by itself; every request was a valid one."""
    if evidence.exits[-1] != 0:
        yield f"the last process left with {evidence.exits[-1]}"
    for violation in evidence.violations:
        yield f"the model was sent an invalid request: {violation}"


def outcomes(facts: Facts) -> Iterator[str]:
    """Every event was accepted and ended, in the order its sender sent it."""
    inbox = facts.last.inbox
    order: dict[str, list[int]] = defaultdict(list)
    for event in facts.events:
        if event.id not in inbox:
            yield f"{event.id} was never accepted"
            continue
        number, key, outcome, _, _ = inbox[event.id]
        order[key].append(number)
        failed = outcome == "failed" and model_failed(facts, event)
        if outcome not in _OUTCOMES[facts.evidence.plan.busy_mode] and not failed:
            yield f"{event.id} ({event.text[-40:]}) ended as {outcome}"
    for event_id, row in inbox.items():
        if row[2] is None:
            yield f"{event_id} has no end"
    for key, numbers in order.items():
        if numbers != sorted(numbers):
            yield f"{key}: accepted in another order than sent"


def rows_behind(facts: Facts) -> Iterator[str]:
    """A row is behind each message."""
    for line in facts.shown:
        fields = line.fields
        if fields["text"].startswith(CANNOT_STORE):
            continue  # said once, best effort: what is said when nothing can be stored has no row
        if fields["kind"] == "notice" and facts.evidence.plan.full and fields["id"] not in facts.last.outbox:
            continue  # of a turn that went on while its notices could not be stored
        if fields["id"] not in facts.last.outbox:
            yield f"a line that no row is behind: {fields}"


def seen(facts: Facts) -> Iterator[str]:
    """Every message was shown and marked as such. On the platform one may be refused."""
    shown = {line.fields["id"] for line in facts.shown}
    refused = {send.row for send in facts.evidence.sends if send.fault == "refused"}
    for row_id, (kind, text, _, state) in facts.last.outbox.items():
        if state == "refused" and row_id in refused:
            continue
        if state == "sent" and row_id in shown:
            continue
        yield f"a {kind} is {state} and was{'' if row_id in shown else ' not'} seen: {text[:60]}"


def line_repeats(facts: Facts) -> Iterator[str]:
    """A line comes again only after a kill, with the same id and text, at most once for each kill."""
    texts: dict[str, set[str]] = defaultdict(set)
    first: dict[str, int] = {}
    again: Counter[int] = Counter()
    for line in facts.evidence.lines:
        row_id = line.fields["id"]
        texts[row_id].add(line.fields["text"])
        if row_id in first and first[row_id] == line.process:
            yield f"a line came twice from one process: {line.fields['text'][:60]}"
        if row_id in first:
            again[first[row_id]] += 1
        first[row_id] = line.process
    for row_id, versions in texts.items():
        if len(versions) > 1:
            yield f"the message {row_id} was shown with {len(versions)} texts"
    for process, count in again.items():
        if count > 1:
            yield f"{count} lines of process {process} were repeated after its one kill"


def send_repeats(facts: Facts) -> Iterator[str]:
    """The platform shows a message again only if the answer to the send before was not heard, or its
    process was killed before it could store it."""
    latest: dict[str, Send] = {}
    for send in facts.evidence.sends:
        if not send.shown:
            continue
        before = latest.get(send.row)
        latest[send.row] = send
        if before is not None and before.heard and not _left_open(facts, before):
            yield f"{send.row} was shown by process {before.process} and again by {send.process}: {send.text[:40]}"
        if before is not None and before.text != send.text:
            yield f"the message {send.row} was shown with two texts"


def _left_open(facts: Facts, send: Send) -> bool:
    """Say whether a send's process died before it stored the outcome."""
    left = facts.evidence.snapshots[send.process].outbox.get(send.row)
    return left is not None and left[3] == "sending"


def replies_are_right(facts: Facts) -> Iterator[str]:
    """Each message got the answer to itself, and the answer says what its tools did."""
    for line in facts.shown:
        if line.fields["kind"] == "error" and not line.fields["text"].startswith(CANNOT_STORE):
            yield from error_is_right(facts, line.fields["text"], line.fields["answers"])
        if line.fields["kind"] != "reply":
            continue
        event = facts.event(line.fields["answers"])
        if facts.outcome(event) in ("stopped", "failed"):
            continue
        yield from reply_is_right(facts, event, line.fields["text"])
        told = told_results(facts, event, line.fields["text"])
        if told is not None:
            yield from _honest(facts, *told)


def _honest(facts: Facts, event: Event, results: list[str]) -> Iterator[str]:
    """The model was told `done` only of effects that took place, and of the rest that it is unknown."""
    took_place = {token for _, token in facts.evidence.record("effects")}
    expected = list(effects_of(event.kind, event.token))
    for token in expected:
        told_done = f"{DONE} {token}" in results
        if told_done and token not in took_place:
            yield f"{event.id}: {token} is said to be done and is not"
        if not told_done and UNKNOWN_OUTCOME not in results:
            yield f"{event.id}: the model was told nothing about {token}: {results}"
    notes = {"note": event.token, "both": f"{event.token}b"}.get(event.kind)
    if notes and f"{NOTED} {notes}" not in results:
        yield f"{event.id}: the idempotent tool was not repeated: {results}"


def effects_once(facts: Facts) -> Iterator[str]:
    """A side effect takes place at most once; exactly once unless the model was told otherwise, which
    happens only to turns that were killed between the intent and the record of the step."""
    count = Counter(token for _, token in facts.evidence.record("effects"))
    asked_for = {token: event for event in facts.events for token in effects_of(event.kind, event.token)}
    for token, times in count.items():
        if times > 1:
            yield f"the effect {token} took place {times} times"
        if token not in asked_for:
            yield f"nobody asked for the effect {token}"
    unknown = facts.unknown_effects()
    for token, event in asked_for.items():
        answered = facts.outcome(event) == "answered" and not facts.joins
        if answered and not count[token] and token not in unknown:
            yield f"the effect {token} did not take place, and the model was told nothing"
    risky = facts.killed_among_tools()
    if unknown and not risky:
        yield f"{sorted(unknown)} are unknown although no process was killed in the middle of a tool call"


def asked_in_order(facts: Facts) -> Iterator[str]:
    """Per key the model is asked about one message after the other: never two turns at once."""
    place = {event.token: (event.key, number) for number, event in enumerate(facts.events) if event.token}
    latest: dict[Any, int] = {}
    for body in facts.evidence.requests:
        _, token = asked(last_user_text(body))
        if not is_turn(body) or token not in place:
            continue
        key, number = place[token]
        if number < latest.get(key, number):
            yield f"{key}: the model was asked about {token} after a later message"
        latest[key] = number


def hooks_repeated(facts: Facts) -> Iterator[str]:
    """A hook is called again only by a later process, because the one before was killed in it."""
    called: dict[str, list[int]] = defaultdict(list)
    for process, session_id in facts.evidence.record("hooks"):
        called[session_id].append(process)
    for session_id, processes in called.items():
        if len(set(processes)) < len(processes):
            yield f"one process called the hook of {session_id} more than once: {processes}"
        for process in processes[:-1]:
            trace, entry = facts.trace(process), f"hook {session_id}"
            if entry not in trace:
                continue  # killed between the two records of the very call
            before, after = trace[: trace.index(entry)], trace[trace.index(entry) :]
            # In its lane nothing happens until the hook's call is noted; a debt is paid beside them.
            ended = any(each.startswith("turn.finished ") for each in after)
            if before[-1:] == ["session.ended"] and len(facts.keys) == 1 and ended:
                yield f"the hook of {session_id} was called again although process {process} went on after it"
