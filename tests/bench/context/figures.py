"""The worth of a policy: the figures of its replays, taken together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from tests.bench.context.facts import Fact
from tests.bench.context.observing import DEPTHS, Need, Record

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Shares are 0 to 1, None where there was nothing to count. Per-100 figures are of 100 turns.

    `in_view`, `found`: of what was needed later, what stood in the first request of its turn, and what did or
    was found with the model's own search. `identifiers`, `clauses`: what stood in view after 1, 3 and 10
    compactions of values, and of decisions and rules. `pinned`: requests that hold every pin. `stale`: values
    that were shown as if they held still. `fits`, `valid`: of the requests. `same`: the median share of a
    request's bytes with which the request before it began, between compactions. `wait`: virtual seconds that
    95 of 100 turns waited at most. `broke`: the first turn that ended without its answer.
    """

    needs: int
    in_view: float | None
    found: float | None
    identifiers: Mapping[int, float | None]
    clauses: Mapping[int, float | None]
    pinned: float | None
    stale: int
    replaced: int
    fits: float | None
    valid: float | None
    leaks: int
    same: float | None
    calls: float
    summaries: float
    tokens: float
    wait: float
    waited: float | None
    compactions: int
    fallbacks: int
    failed: float | None
    broke: int | None


def summed(records: Sequence[Record]) -> Figures:
    """The figures of some replays of one policy."""
    needs = [need for record in records for need in record.needs]
    probes = [probe for record in records for probe in record.probes]
    requests = [request for record in records for request in record.requests]
    waits = sorted(wait for record in records for wait in record.waits)
    spent = [usage for record in records for usage in record.spent]
    same = [request.same for request in requests if request.same is not None]
    turns = len(waits)

    def after(wanted: Callable[[Fact], bool]) -> dict[int, float | None]:
        return {
            depth: share(probe.in_view for probe in probes if probe.depth == depth and wanted(probe.fact))
            for depth in DEPTHS
        }

    summaries = sum(record.summaries for record in records)
    return Figures(
        needs=len(needs),
        in_view=share(need.in_view for need in needs),
        found=share(need.found for need in needs),
        identifiers=after(lambda fact: fact.is_identifier),
        clauses=after(lambda fact: not fact.is_identifier),
        pinned=share(request.pinned for request in requests),
        stale=sum(len(record.stale) for record in records),
        replaced=sum(len(record.replaced) for record in records),
        fits=share(request.fits for request in requests),
        valid=share(request.valid for request in requests),
        leaks=sum(len(record.leaks) for record in records),
        same=median(same) if same else None,
        calls=100 * (len(requests) + summaries) / turns,
        summaries=100 * summaries / turns,
        tokens=100 * sum(usage.total_tokens for usage in spent) / turns,
        wait=waits[min(turns - 1, int(0.95 * turns))],
        waited=share(wait > 0 for wait in waits),
        compactions=sum(record.compactions for record in records),
        fallbacks=sum(record.fallbacks for record in records),
        failed=share(turn in record.failed for record in records for turn in range(len(record.waits))),
        broke=min((record.failed[0] for record in records if record.failed), default=None),
    )


def share(hits: Iterable[bool]) -> float | None:
    """Return the share of true hits; None of none."""
    counted = list(hits)
    return sum(counted) / len(counted) if counted else None


def lost_by(records: Sequence[Record], key: Callable[[Need], Key]) -> dict[Key, tuple[int, int, int]]:
    """(in view, in view or found, needed) of what was needed later, by `key`."""
    counts: dict[Key, tuple[int, int, int]] = {}
    for record in records:
        for need in record.needs:
            held, found, all_ = counts.get(key(need), (0, 0, 0))
            counts[key(need)] = (held + need.in_view, found + need.found, all_ + 1)
    return counts
