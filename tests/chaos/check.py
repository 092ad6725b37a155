"""What must be true after a run, however often the process was killed (SPEC 21).

Every check yields a sentence for each thing that is wrong, and nothing for a run that kept all
promises. `problems` runs them all: this file looks at what people were shown and what tools did,
`check_store` at what was kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from gateway.tools.runtime import UNKNOWN_OUTCOME
from tests.chaos.answers import DONE, NOTED, asked, effects_of
from tests.chaos.check_shown import (
    CANNOT_STORE,
    REFUSALS,
    Said,
    answers_in_order,
    one_answer_each,
    reply_is_right,
    told_results,
)
from tests.chaos.check_store import Facts, compactions, messages, nothing_lost, reachable, sessions
from tests.chaos.drive import Evidence
from tests.chaos.script import Event
from tests.emulators.llm_replies import last_user_text

_OUTCOMES: Final = {
    "queue": ("answered",),
    "steer": ("answered", "absorbed"),
    "interrupt": ("answered", "stopped"),
}


def problems(evidence: Evidence) -> list[str]:
    """Everything that is wrong with a run, one sentence each."""
    facts = Facts(evidence)
    checks = (
        came_to_its_end(evidence),
        outcomes(facts),
        answered_once(facts),
        repeats(facts),
        answers_in_order(facts),
        replies_are_right(facts),
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
        if outcome not in _OUTCOMES[facts.evidence.plan.busy_mode]:
            yield f"{event.id} ({event.text[-40:]}) ended as {outcome}"
    for event_id, row in inbox.items():
        if row[2] is None:
            yield f"{event_id} has no end"
    for key, numbers in order.items():
        if numbers != sorted(numbers):
            yield f"{key}: accepted in another order than sent"


def answered_once(facts: Facts) -> Iterator[str]:
    """Exactly one message answers each event, and every message was shown and marked as such."""
    said: list[Said] = []
    for line in facts.shown:
        fields = line.fields
        if fields["text"].startswith(CANNOT_STORE):
            continue  # said once, best effort: what is said when nothing can be stored has no row
        if fields["kind"] == "notice" and facts.evidence.plan.full and fields["id"] not in facts.last.outbox:
            continue  # of a turn that went on while its notices could not be stored
        if fields["id"] not in facts.last.outbox:
            yield f"a line that no row is behind: {fields}"
        said.append((fields["id"], fields["kind"], fields["text"], fields["answers"]))
    yield from one_answer_each(facts, said)
    seen = {line.fields["id"] for line in facts.shown}
    for row_id, (kind, text, _, state) in facts.last.outbox.items():
        if state != "sent" or row_id not in seen:
            yield f"a {kind} is {state} and was{'' if row_id in seen else ' not'} seen: {text[:60]}"


def repeats(facts: Facts) -> Iterator[str]:
    """A line comes again only after a kill, with the same id and text, at most once for each kill."""
    texts: dict[str, set[str]] = defaultdict(set)
    first: dict[str, int] = {}
    again: Counter[int] = Counter()
    for line in facts.shown:
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


def replies_are_right(facts: Facts) -> Iterator[str]:
    """Each message got the answer to itself, and the answer says what its tools did."""
    for line in facts.shown:
        if line.fields["kind"] == "error" and not line.fields["text"].startswith((*REFUSALS, *CANNOT_STORE)):
            yield f"an error was shown: {line.fields['text'][:80]}"
        if line.fields["kind"] != "reply":
            continue
        event = facts.event(line.fields["answers"])
        if facts.outcome(event) == "stopped":
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
    known = {token for event in facts.events for token in effects_of(event.kind, event.token)}
    for token, times in count.items():
        if times > 1:
            yield f"the effect {token} took place {times} times"
        if token not in known:
            yield f"nobody asked for the effect {token}"
    unknown = facts.unknown_effects()
    for token in known:
        if not count[token] and token not in unknown and not facts.joins:
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
        if "tools" not in body or token not in place:
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
            if before[-1:] == ["session.ended"] and len(facts.keys) == 1 and "turn.finished" in after:
                yield f"the hook of {session_id} was called again although process {process} went on after it"
