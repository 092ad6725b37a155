"""Runs of one process on SQLite: what they found, and the figures."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from tests.chaos.campaign import listed
from tests.chaos.check import problems
from tests.chaos.check_store import Facts
from tests.chaos.drive import Evidence, carry_out
from tests.chaos.faults import by_call
from tests.chaos.script import PASSED, Plan
from tests.chaos.trial import Result, failed, last_words, summed, took, trial
from tests.chaos.watched_model import Watch, WatchedModel

_HANGS = 0.4  # real seconds of a call that hangs: nobody else's lease is waited for
_REPEATED = "messages shown twice"
_REFUSED = "writes refused"


async def perform(server: WatchedModel, plan: Plan) -> Result:
    """One run."""
    async with trial(plan, "chaos") as run:
        watch = Watch(by_call(plan.faults, "model"), random.Random(plan.seed), hangs=_HANGS, slowest=0.0)
        server.watch = watch
        evidence = await carry_out(plan, run.folder, server)
        evidence.calls = watch.calls
        run.problems += problems(evidence)
        run.killed_at = tuple(map(str, plan.kills[: evidence.kills]))
        run.faults = _faults(evidence)
        shown = Facts(evidence).shown
        run.counts[_REPEATED] = len(shown) - len({line.fields["id"] for line in shown})
        run.counts[_REFUSED] = sum('"store_unavailable"' in word for word in last_words(run.folder, 10_000))
    return run.result()


def _faults(evidence: Evidence) -> Counter[str]:
    """Return the planned faults beside the kills that took place."""
    faults = Counter(f"send {send.fault}" for send in evidence.sends if send.fault)
    faults.update(f"model {call.fault}" for call in evidence.calls if call.fault)
    faults.update(fault.kind for fault in evidence.plan.faults if fault.at is not None)
    return faults


@asynccontextmanager
async def benches() -> AsyncIterator[Callable[[Plan], Awaitable[Result]]]:
    """A laboratory for `campaign`, with one model for all its runs."""
    async with WatchedModel() as server:
        yield partial(perform, server)


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    kills = Counter(point for result in results for point in result.killed_at)
    faults, counts = (summed(getattr(result, name) for result in results) for name in ("faults", "counts"))
    full = sum(result.schedule.full is not None for result in results)
    return [
        "kills by point: "
        + ", ".join(f"{point} {kills[point]}" for point in PASSED)
        + f", anywhere {kills.total() - sum(kills[point] for point in PASSED)}",
        "other faults by kind: " + (listed(faults) or "none"),
        took(results),
        f"{len(results)} runs of one process on SQLite, "
        f"{sum(len(result.schedule.events) for result in results):,} messages, {kills.total()} kills, "
        f"{full} full disks ({counts[_REFUSED]} writes refused), {faults.total()} other "
        f"faults, {counts[_REPEATED]} messages shown twice, {failed(results)} runs with "
        f"problems",
    ]
