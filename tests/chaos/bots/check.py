"""The checks that are the same for every bot: its processes ended as they should, and its rows were shown in order."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import groupby

from tests.chaos.bots.run import Record, Row
from tests.emulators.journal import Call


def ended_badly(record: Record) -> Iterator[str]:
    """The last process left when it was asked to, and the others were killed."""
    if record.exit_status != 0:
        yield f"the last process ended with {record.exit_status}"
    for death in record.deaths:
        if death.status != -signal.SIGKILL:
            yield f"a process ended by itself, with {death.status}"


def answered_out_of_order(lanes: Mapping[Hashable, Sequence[int]]) -> Iterator[str]:
    """In each lane, the places of the messages as they were answered only rise."""
    for lane, places in lanes.items():
        if list(places) != sorted(places):
            yield f"{lane}: messages were answered out of order"


def shown_out_of_order(
    rows: Sequence[Row],
    calls: Mapping[str, Sequence[Call]],
    *,
    read_in: Callable[[Call], str],
    shown_as: Callable[[Row], str],
    struck: Mapping[tuple[str, str], int],
) -> Iterator[str]:
    """Each message of a chat got its last text after those that were emitted before it. `calls`: of each chat, those
    that showed or changed something. `struck`: what was sent with an unknown outcome, by chat and text; it may never
    have been seen, or only by a send in doubt, and has no place then."""
    reached: Counter[str] = Counter()
    alike = Counter((row.chat, shown_as(row)) for row in rows)
    for _, together in groupby(rows, key=lambda row: row.place):
        begun = reached.copy()  # rows that share a place go in any order
        for row in together:
            text = shown_as(row)
            if alike[row.chat, text] > 1 and struck.get((row.chat, text)):
                continue  # which of them was never seen, nobody can tell
            own = [call.number for call in calls.get(row.chat, ()) if read_in(call) == text]
            later = [number for number in own if number > begun[row.chat]]
            if later:
                reached[row.chat] = max(reached[row.chat], later[0])
            elif own and not struck.get((row.chat, text)):
                yield f"{row.chat}: was shown before what was emitted earlier: {text[:80]}"
