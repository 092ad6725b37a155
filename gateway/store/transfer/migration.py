"""`legato migrate`: everything from one store into another, and the proof that it is all there.

The target is marked before the first record is written, and the mark goes only when what the target
gives back has been found equal. Whatever happens between leaves the source as it was and a target that
no gateway opens and that the next migration fills again from its start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreError
from gateway.store.moved import KINDS, Kind, Record
from gateway.store.moving import Figure, Source, Tally, Target, canonical

Stage = Literal["copying", "verifying"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How many records are done in this stage; `total` None: nobody knows yet how many there are."""

    stage: Stage
    done: int
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A migration that went well: how many records of each kind were copied and found equal, and how
    many seconds copying and verifying took."""

    source: str
    target: str
    copied: dict[Kind, int]
    verified: dict[Kind, int]
    copying_seconds: float
    verifying_seconds: float


Tell = Callable[[Progress], None]


def tell_nobody(_: Progress) -> None:
    """Nobody watches."""


async def migrate(source: Source, target: Target, *, clock: Clock, tell: Tell = tell_nobody) -> Report:
    """Copy, verify, publish. `tell` is called after every page. Raises StoreLocked or StoreUnavailable
    if either store cannot be used, and StoreError if they differ in the end."""
    try:
        await source.open()
        await _open_target(source, target)
        started = clock.monotonic()
        await target.begin(source.name)
        now = clock.now()
        copied = await _copy(source, target, now, tell)
        await target.complete()
        between = clock.monotonic()
        verified = await _read_back(target, copied.total, now, tell)
        await _check_equal(source, target, now, copied.figures(), verified.figures())
        await source.check()
        await target.check()
        await target.publish()
        ended = clock.monotonic()
    finally:
        await target.aclose()
        await source.aclose()
    return Report(
        source=source.name,
        target=target.name,
        copied={kind: figure.count for kind, figure in copied.figures().items()},
        verified={kind: figure.count for kind, figure in verified.figures().items()},
        copying_seconds=between - started,
        verifying_seconds=ended - between,
    )


async def _open_target(source: Source, target: Target) -> None:
    same = StoreError(f"{source.name} and {target.name} are the same store: choose an empty one to migrate to.")
    try:
        await target.open()
    except StoreError as error:
        if target.identity == source.identity:
            raise same from error
        raise
    if target.identity == source.identity:
        raise same


async def _copy(source: Source, target: Target, now: float, tell: Tell) -> Tally:
    tally = Tally()
    async with aclosing(_pages(source, now)) as pages:
        async for page in pages:
            await source.check()
            await target.check()
            await target.restore(page)
            tally.add(page)
            tell(Progress(stage="copying", done=tally.total, total=None))
    return tally


async def _read_back(target: Target, total: int, now: float, tell: Tell) -> Tally:
    tally = Tally()
    async with aclosing(_pages(target, now)) as pages:
        async for page in pages:
            tally.add(page)
            tell(Progress(stage="verifying", done=tally.total, total=total))
    return tally


async def _pages(store: Source, now: float) -> AsyncGenerator[Sequence[Record], None]:
    async with aclosing(store.dump(now)) as pages:
        async for page in pages:
            if page:
                yield page


# -- what differs -------------------------------------------------------------------------------


async def _check_equal(
    source: Source, target: Target, now: float, given: dict[Kind, Figure], found: dict[Kind, Figure]
) -> None:
    for kind in KINDS:
        if given[kind] != found[kind]:
            what = await _first_difference(source, target, now, kind)
            raise StoreError(
                f"{target.name} does not hold what {source.name} does: of {given[kind].count:,} {kind} it gives back "
                f"{found[kind].count:,}, and the first that differs is {what}; no gateway will open it, and the source "
                "is as it was. Run `legato migrate` again, and report this if it comes again."
            )


async def _first_difference(source: Source, target: Target, now: float, kind: Kind) -> str:
    """Both are read once more, side by side."""
    async with aclosing(_of_kind(source, now, kind)) as ours, aclosing(_of_kind(target, now, kind)) as theirs:
        while True:
            one, other = await anext(ours, None), await anext(theirs, None)
            if one is None and other is None:
                return "not the same at a second look"
            if one is None or other is None or canonical(one) != canonical(other):
                return (one or other).id  # type: ignore[union-attr]


async def _of_kind(store: Source, now: float, kind: Kind) -> AsyncGenerator[Record, None]:
    async with aclosing(_pages(store, now)) as pages:
        async for page in pages:
            for record in page:
                if record.kind == kind:
                    yield record
