"""Checks of a run of several processes that look at turns: never two at once, and no hook more often than it may."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from math import inf
from typing import Any, Final

from tests.chaos.check_shown import keys_of_tokens, tokens_in
from tests.chaos.check_store import Facts
from tests.chaos.excuses import Excuses
from tests.chaos.findings import Findings
from tests.chaos.watched_model import Call

AT_ONCE: Final = "asked at once"


class Claims:
    """The times when each process took the turn of a call: the turn of the newest message in it, or of the message
    that it joined."""

    def __init__(self, findings: Findings, facts: Facts) -> None:
        events = {event.id: event for event in facts.events}
        self._keys = keys_of_tokens(facts)
        self._times: dict[tuple[int, Any], list[float]] = defaultdict(list)
        for at, process, words in findings.trace():
            if words[0] == "turn.claimed" and words[1] in events:
                event = events[words[1]]
                for subject in filter(None, (event.token, event.key)):
                    self._times[process, subject].append(at)

    def before(self, call: Call) -> float:
        """Return the time (monotonic seconds) when the call's process took its turn."""
        token = tokens_in(call.body["messages"])[-1]
        for subject in (token, self._keys[token]):
            times = self._times[call.process, subject]
            if place := bisect_right(times, call.begun):
                return times[place - 1]
        return call.begun


def overlaps(findings: Findings, facts: Facts, excuses: Excuses, excused: Counter[str]) -> Iterator[str]:
    """Per key, the model is asked by one process at a time, about one message after the other; who was
    dead or still since it took its turn may have left a call open, and once awake may make one more."""
    keys, calls, claims = keys_of_tokens(facts), defaultdict(list), Claims(findings, facts)
    for call in findings.calls:
        tokens = tokens_in(call.body["messages"])
        if tokens and not call.is_beside:
            calls[keys[tokens[-1]]].append(call)
    place = {event.token: number for number, event in enumerate(facts.events) if event.token}
    for key, ordered in calls.items():
        for earlier, call in _at_once(ordered):
            why = (
                excuses.taken_turn(earlier.process, claims.before(earlier), call.begun)
                or excuses.taken_turn(call.process, claims.before(call), call.begun)
                or (earlier.ended and excuses.unseen_end(earlier.ended))
            )
            if why is None:
                yield f"{key}: processes {earlier.process} and {call.process} asked the model at the same time"
            else:
                excused[f"{AT_ONCE}: {why}"] += 1
        yield from _asked_in_order(key, ordered, place, claims, excuses)


def _at_once(calls: list[Call]) -> Iterator[tuple[Call, Call]]:
    """Pairs of calls of different processes of which the second began before the first ended."""
    for number, call in enumerate(calls):
        for earlier in calls[:number]:
            if earlier.process != call.process and (earlier.ended or inf) > call.begun:
                yield earlier, call


def _asked_in_order(
    key: Any, calls: list[Call], place: dict[str, int], claims: Claims, excuses: Excuses
) -> Iterator[str]:
    latest = -1
    for call in calls:
        if not call.is_turn:
            continue
        said = [message for message in call.body["messages"] if message["role"] == "user"]
        tokens = tokens_in(said[-1]["content"])
        if not tokens:
            continue
        number = place[tokens[-1]]
        # One that was still may ask once more about what another has gone on from; it can store nothing.
        if number < latest and excuses.taken_turn(call.process, claims.before(call), call.begun) is None:
            yield f"{key}: the model was asked about {tokens[-1]} after a later message"
        latest = max(latest, number)


def hooks(findings: Findings, excuses: Excuses, excused: Counter[str]) -> Iterator[str]:
    """The hook of an ended session is called again only if the process that called it was struck in it."""
    calls: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for at, process, words in findings.trace():
        if words[0] == "hook":
            calls[words[1]].append((at, process))
    for session, called in calls.items():
        for first, second in pairwise(called):
            why = excuses.repeated_hook(session, first, second)
            if why is None:
                yield f"the hook of {session} was called {len(called)} times, by {[who for _, who in called]}"
            else:
                excused[f"hook again: {why}"] += 1
