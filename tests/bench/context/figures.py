"""The worth of a policy: the figures of its replays, taken together, and what they should reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from tests.bench.context.observing import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Shares are 0 to 1, None where there was nothing to count.

    `in_view`, `found`: of what was needed later, what stood in the first request of its turn, and what did or
    was found with the model's own search. `pinned`: requests that hold every pin. `stale`: values that were shown as if
    they held still. `fits`, `valid`: of the requests. `same`: the median share of a request's bytes with which the
    request before it began, between compactions. `wait`: virtual seconds that 95 of 100 turns waited at most. `broke`:
    the first turn that ended without its answer.
    """

    in_view: float | None
    found: float | None
    pinned: float | None
    stale: int
    fits: float | None
    valid: float | None
    leaks: int
    same: float | None
    summaries: int
    wait: float
    compactions: int
    failed: float | None
    broke: int | None


TARGETS: Final[Mapping[str, Callable[[Figures], bool]]] = {
    "of what is needed later, 0.97 in view": lambda figures: (figures.in_view or 0) >= 0.97,
    "needed later: all in view or recalled": lambda figures: figures.found == 1,
    "every pin in every request": lambda figures: figures.pinned == 1,
    "no stale value shown as current": lambda figures: figures.stale == 0,
    "requests that fit the window": lambda figures: figures.fits == 1,
    "requests that are valid": lambda figures: figures.valid == 1,
    "no secrets in notes, no directives outside": lambda figures: figures.leaks == 0,
    "0.95 of the bytes as before, median": lambda figures: (figures.same or 0) >= 0.95,
    "no wait with a summariser of 20 s": lambda figures: figures.wait == 0,
}


def missed(figures: Figures) -> list[str]:
    """The targets that are not reached."""
    return [what for what, reached in TARGETS.items() if not reached(figures)]


def summed(records: Sequence[Record]) -> Figures:
    """The figures of some replays of one policy."""
    needs = [need for record in records for need in record.needs]
    requests = [request for record in records for request in record.requests]
    waits = sorted(wait for record in records for wait in record.waits)
    same = [request.same for request in requests if request.same is not None]
    return Figures(
        in_view=share(need.in_view for need in needs),
        found=share(need.found for need in needs),
        pinned=share(request.pinned for request in requests),
        stale=sum(len(record.stale) for record in records),
        fits=share(request.fits for request in requests),
        valid=share(request.valid for request in requests),
        leaks=sum(len(record.leaks) for record in records),
        same=median(same) if same else None,
        summaries=sum(record.summaries for record in records),
        wait=waits[min(len(waits) - 1, int(0.95 * len(waits)))],
        compactions=sum(record.compactions for record in records),
        failed=share(turn in record.failed for record in records for turn in range(len(record.waits))),
        broke=min((record.failed[0] for record in records if record.failed), default=None),
    )


def share(hits: Iterable[bool]) -> float | None:
    """Return the share of true hits; None of none."""
    counted = list(hits)
    return sum(counted) / len(counted) if counted else None
