"""The promises of a run of several processes, whatever struck them.

Every check yields a sentence for each thing that is wrong. `judge` runs them all; what a fault
excuses is counted by its kind, and told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.answers import effects_of
from tests.chaos.check_shown import (
    CANNOT_STORE,
    answers_in_order,
    chats_in_order,
    error_is_right,
    isolation,
    model_failed,
    one_answer_each,
    reply_is_right,
)
from tests.chaos.check_store import Facts, compactions, messages, reachable, sessions
from tests.chaos.drive import Evidence
from tests.chaos.excuses import Excuses
from tests.chaos.findings import Findings
from tests.chaos.script import Event, Plan
from tests.chaos.verdict_readers import one_reader
from tests.chaos.verdict_turns import hooks, overlaps


@dataclass(slots=True, kw_only=True)
class Verdict:
    """`problems`: what is wrong. `excused`: repeats and overlaps by the fault that they come from."""

    problems: list[str] = field(default_factory=list)
    excused: Counter[str] = field(default_factory=Counter)


def judge(findings: Findings) -> Verdict:
    """Look at everything that a run left behind."""
    verdict = Verdict(problems=list(findings.trouble))
    if findings.snapshot is None or findings.trouble:
        return verdict
    facts, excuses = _facts(findings), Excuses(findings)
    checks = (
        came_to_its_end(findings),
        outcomes(findings, facts),
        one_answer_each(facts),
        seen(findings, facts),
        repeats(findings, excuses, verdict.excused),
        terminal_repeats(findings, excuses),
        chats_in_order(facts),
        answers_in_order(facts),
        replies_are_right(facts),
        effects_once(findings, facts),
        rows_kept(findings),
        one_reader(findings, excuses, verdict.excused),
        isolation(facts),
        overlaps(findings, facts, excuses, verdict.excused),
        hooks(findings, excuses, verdict.excused),
        messages(facts),
        sessions(facts),
        compactions(facts),
        reachable(facts),
    )
    verdict.problems += [problem for check in checks for problem in check]
    return verdict


def _facts(findings: Findings) -> Facts:
    """The run as the checks of single processes know one."""
    schedule = findings.schedule
    assert findings.snapshot is not None
    plan = Plan(
        seed=schedule.seed,
        lines=schedule.events,
        kills=(),
        ahead=1,
        again=0.0,
        busy_mode="steer" if schedule.joins else "queue",
    )
    return Facts(
        Evidence(
            plan=plan,
            folder=findings.folder,
            sends=findings.sends,
            calls=findings.calls,
            snapshots=[findings.snapshot],
        )
    )


def came_to_its_end(findings: Findings) -> Iterator[str]:
    """Yield processes that were asked to leave and left badly, and requests that were not valid."""
    for process, status in findings.exits:
        if status != 0:
            yield f"process {process} left with {status}"
    for violation in findings.violations:
        yield f"the model was sent an invalid request: {violation}"


def outcomes(findings: Findings, facts: Facts) -> Iterator[str]:
    """Every event that was handed out was accepted and ended, in the order in which it was sent."""
    inbox = facts.last.inbox
    order: dict[str, list[int]] = defaultdict(list)
    for event in facts.events:
        if event.id not in inbox:
            yield f"{event.id} was handed out {findings.offered.get(event.id, 0)} times and never accepted"
            continue
        number, key, outcome, attempts, bypass = inbox[event.id]
        if not bypass:
            order[key].append(number)
        if outcome not in _allowed(findings, facts, event):
            yield f"{event.id} ({event.text[-40:]}) ended as {outcome} after {attempts} attempts"
    for event_id, row in inbox.items():
        if row[2] is None:
            yield f"{event_id} has no end"
    for key, numbers in order.items():
        if numbers != sorted(numbers):
            yield f"{key}: accepted in another order than sent"


def _allowed(findings: Findings, facts: Facts, event: Event) -> tuple[str, ...]:
    allowed = ["answered"]
    said = [other.text for other in facts.events if other.key == event.key]
    if facts.joins:
        allowed.append("absorbed")
    if findings.schedule.busy_mode == "interrupt" or "/stop" in said:
        allowed.append("stopped")
    if model_failed(facts, event):
        allowed.append("failed")
    return tuple(allowed)


def seen(findings: Findings, facts: Facts) -> Iterator[str]:
    """Every message was shown, as it is kept, where it belongs."""
    texts: dict[str, set[str]] = defaultdict(set)
    for send in findings.sends:
        texts[send.row].add(send.text)
        if send.row not in facts.last.outbox and not send.text.startswith(CANNOT_STORE):
            yield f"something was sent that no row is behind: {send.text[:60]}"
    refused = {send.row for send in findings.sends if send.fault == "refused"}
    shown = {send.row for send in findings.sends if send.shown}
    for row_id, (kind, text, _, state) in facts.last.outbox.items():
        if len(texts[row_id]) > 1:
            yield f"the message {row_id} was shown with {len(texts[row_id])} texts"
        if state == "refused" and row_id in refused:
            continue
        if state != "sent":
            yield f"a {kind} is {state}: {text[:60]}"
        elif row_id not in shown:
            yield f"a {kind} was never seen: {text[:60]}"


def repeats(findings: Findings, excuses: Excuses, excused: Counter[str]) -> Iterator[str]:
    """A message comes again only if the send before was struck: each repeat has an excuse of its own."""
    latest: dict[str, Any] = {}
    for send in findings.sends:
        if not send.shown:
            continue
        before = latest.get(send.row)
        latest[send.row] = send
        if before is None:
            continue
        why = excuses.repeated_send(before, send)
        if why is None:
            yield (
                f"{send.row} was shown by process {before.process} and again by process {send.process} "
                f"{send.at - before.at:.2f} s later: {send.text[:40]}"
            )
        else:
            excused[f"shown twice: {why}"] += 1


def terminal_repeats(findings: Findings, excuses: Excuses) -> Iterator[str]:
    """A terminal is written to by one send at a time, so that a fault repeats one of its lines at most."""
    first: dict[str, int] = {}
    again: Counter[int] = Counter()
    for send in findings.sends:
        if send.process in findings.terminals:
            if send.row in first:
                again[first[send.row]] += 1
            first[send.row] = send.process
    for process, count in again.items():
        if count > (faults := excuses.faults_of(process)):
            yield f"{count} lines of the terminal {process} were shown again after {faults} faults"


def replies_are_right(facts: Facts) -> Iterator[str]:
    """Each message got the answer to itself, and the answer says what its tools did."""
    for kind, text, event_id, _ in facts.last.outbox.values():
        if kind == "error":
            yield from error_is_right(facts, text, event_id)
        if kind != "reply" or event_id is None:
            continue
        event = facts.event(event_id)
        if facts.outcome(event) not in ("stopped", "failed"):
            yield from reply_is_right(facts, event, text)


def effects_once(findings: Findings, facts: Facts) -> Iterator[str]:
    """A side effect takes place at most once; exactly once unless the model was told otherwise."""
    count = Counter(token for _, token in findings.record("effects"))
    unknown = facts.unknown_effects()
    for event in facts.events:
        whole = facts.outcome(event) == "answered" and not facts.joins
        for token in effects_of(event.kind, event.token):
            if whole and not count[token] and token not in unknown:
                yield f"the effect {token} did not take place, and the model was told nothing"
    for token, times in count.items():
        if times > 1:
            yield f"the effect {token} took place {times} times"
        if not any(token.startswith(event.token) for event in facts.events if event.token):
            yield f"nobody asked for the effect {token}"


def rows_kept(findings: Findings) -> Iterator[str]:
    """No message row that was there at some time during the run has changed or gone."""
    left: Mapping[str, str] = findings.messages_left
    changed = [name for name, row in findings.messages_seen.items() if left.get(name) != row]
    if changed:
        yield f"{len(changed)} message rows changed or vanished: {changed[:3]}"
