"""The checks that are the same for every bot: its processes ended as they should, everything was answered, seen once
and in order."""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from gateway.domain.turn import BUSY
from tests.chaos.bots.model import reply_to
from tests.chaos.bots.run import Record
from tests.chaos.bots.script import Said
from tests.chaos.bots.stores import Row
from tests.emulators.journal import Call

AWAY: Final = "I was away for"
BESIDE_THE_LANE: Final = ("/status", "/version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Something that was said: the message that it became, the event of that, and the chat and the thread of its
    answer."""

    said: Said
    message: str
    event: str
    place: tuple[str, str | None]


def everything_is_answered(
    rows: Sequence[Row],
    heard: Sequence[Heard],
    counts: Counter[str],
    *,
    message_of: Callable[[str | None], str],
    shown_as: Callable[[Row], str],
    parts: Callable[[str], Sequence[str]],
) -> Iterator[str]:
    """Each message has the whole answer to it, once; nothing else is a reply, and nothing failed. `parts`: the visible
    texts of the messages that an answer becomes."""
    answers: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.kind in ("reply", "command"):
            answers[message_of(row.answers)].append(row)
        elif row.kind == "notice" and row.text.startswith(AWAY):
            counts["absences told of"] += 1
        elif row.text != BUSY:
            yield f"{row.kind}: {row.text}"
        if row.state != "sent":
            yield f"a {row.kind} is {row.state}: {row.text[:80]}"
    for each in heard:
        own = answers.pop(each.message, [])
        if {(row.chat, row.thread) for row in own} - {each.place}:
            yield f"{each.said.text} was answered elsewhere"
        if not each.said.token:
            if len(own) != 1:
                yield f"{each.said.text} has {len(own)} answers"
            continue
        expected, found = list(parts(reply_to(each.said.kind, each.said.token))), [shown_as(row) for row in own]
        if found != expected:
            yield f"{each.said.text} was answered by {len(found)} messages, not {len(expected)}: {found}"
    for own in answers.values():
        yield f"nobody asked for {own[0].text[:80]}"


def everything_is_seen_once(
    rows: Sequence[Row], seen: Mapping[tuple[str, str | None], Sequence[str]], *, shown_as: Callable[[Row], str]
) -> Iterator[str]:
    """People see exactly the outbox, where nothing may be shown twice. `seen`: the texts of each place."""
    wanted = Counter(((row.chat, row.thread), shown_as(row)) for row in rows if row.state == "sent")
    found = Counter((place, text) for place, texts in seen.items() for text in texts)
    for place, text in wanted.keys() | found.keys():
        if wanted[place, text] != found[place, text]:
            yield f"{place}: shown {found[place, text]} times, not {wanted[place, text]}: {text[:80]}"


def in_lanes(
    rows: Sequence[Row], heard: Sequence[Heard], message_of: Callable[[str | None], str]
) -> dict[Hashable, list[int]]:
    """The places of the messages in each lane, as they were answered; for `answered_out_of_order`."""
    lanes: dict[Hashable, list[int]] = defaultdict(list)
    asked = {each.message: (at, each) for at, each in enumerate(heard)}
    for row in rows:
        at, each = asked.get(message_of(row.answers), (0, None))
        if row.kind in ("reply", "command") and each and each.said.kind not in BESIDE_THE_LANE:
            lanes[each.place, each.said.speaker].append(at)
    return lanes


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
