"""Runs of several processes on Redis: what they found, and the figures."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from tests.chaos.campaign import listed
from tests.chaos.findings import Findings
from tests.chaos.fleet import Stage, stage
from tests.chaos.schedule import Schedule
from tests.chaos.timeline import timeline
from tests.chaos.trial import Result, failed, last_words, summed, took
from tests.chaos.verdict import judge
from tests.chaos.verdict_turns import AT_ONCE

_TAKEOVERS = "takeovers of an account"
_REPEATED = "messages shown twice"


async def perform(on: Stage, schedule: Schedule) -> Result:
    """One run and the verdict on it."""
    began = time.monotonic()
    findings = await on.run(schedule)
    verdict = await asyncio.to_thread(judge, findings)
    shown = [send.row for send in findings.sends if send.shown]
    return Result(
        schedule=schedule,
        faults=_faults(findings),
        counts=Counter({_TAKEOVERS: _takeovers(findings), _REPEATED: len(shown) - len(set(shown))}),
        excused=verdict.excused,
        problems=tuple(verdict.problems),
        seconds=time.monotonic() - began,
        log=(*timeline(findings), *last_words(findings.folder, 60)),
    )


def _faults(findings: Findings) -> Counter[str]:
    """Return the planned faults that took place, by kind."""
    faults = Counter(hit.kind for hit in (*findings.hits, *findings.starved()))
    faults.update(f"send {send.fault}" for send in findings.sends if send.fault)
    faults.update(f"model {call.fault}" for call in findings.calls if call.fault)
    return faults


def _takeovers(findings: Findings) -> int:
    """Return how often an account changed hands."""
    owners = Counter(words[1] for _, _, words in findings.trace() if words[0] == "owns")
    return sum(times - 1 for times in owners.values())


@asynccontextmanager
async def fleets() -> AsyncIterator[Callable[[Schedule], Awaitable[Result]]]:
    """A laboratory for `campaign`."""
    async with stage() as one:
        yield partial(perform, one)


def fleet_report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    faults, counts, excused = (
        summed(getattr(result, name) for result in results) for name in ("faults", "counts", "excused")
    )
    at_once = sum(count for name, count in excused.items() if name.startswith(AT_ONCE))
    return [
        "faults by kind: " + listed(faults),
        "excused by a fault that struck the very row, turn, hook or poll: " + (listed(excused) or "nothing"),
        took(results),
        f"{len(results)} runs of several processes on Redis, "
        f"{sum(len(result.schedule.said) for result in results):,} messages, "
        f"{faults.total()} faults, {counts[_TAKEOVERS]} takeovers of an account, "
        f"{counts[_REPEATED]} messages shown twice, {failed(results)} runs with problems; "
        f"excused: {at_once} model calls made at once by a process that had been stopped",
    ]
