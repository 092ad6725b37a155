"""One process reads an account at a time, as the platform sees it that is polled.

A platform that allows one reader answers 409 to the older of two polls; what it cannot see, that a poll
still hangs because its process has been stopped, is all that is excused here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.chaos.excuses import Excuses
from tests.chaos.findings import Findings
from tests.chaos.socket_platform import Poll

_SHOWN: Final = 3  # of the same finding; a process that reads without the right to polls several times a second


def one_reader(findings: Findings, excuses: Excuses, excused: Counter[str]) -> Iterator[str]:
    """Another process polls only when who polled so far is dead, is still, leaves, or may have lost its lease
    in an outage of the store; only a dead or a still one has left a poll open. Who was still and has just
    woken may poll some more, until all of it has heard that the right is lost."""
    reader: Poll | None = None
    found = []
    for poll in findings.polls:
        if reader is None:
            reader = poll
        elif poll.process == reader.process:
            # Who has just woken may have lost the right meanwhile, even to somebody who has just woken as well.
            reader = reader if excuses.just_woken(poll.process, poll.begun) else poll
        elif excuses.just_woken(poll.process, poll.begun):
            excused["polled some more: woken"] += 1
        elif excuses.taken_over(reader.process, reader.begun, poll.begun, left_open=_open(reader, poll.begun)):
            reader = poll
        else:
            found.append(
                f"two readers at once: process {poll.process} polled {poll.begun - reader.begun:.2f} s after "
                f"process {reader.process}, which was well{' and still polled' if _open(reader, poll.begun) else ''}"
            )
            reader = poll
    yield from found[:_SHOWN]


def _open(poll: Poll, at: float) -> bool:
    return poll.ended is None or poll.ended > at
