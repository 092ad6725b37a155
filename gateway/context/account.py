"""What a compaction did: which messages stayed, became notes or were shortened, whatever engine did it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.context.readable import images
from gateway.domain.message import Message, is_summary, note_of
from gateway.domain.session import NO_RANGE, PassWork, Range, Shortened


def account(before: Sequence[Message], after: Sequence[Message]) -> PassWork:
    """Return what became of the stored messages `before` in the transcript `after`."""
    places = {name: place for place, each in enumerate(before, 1) if (name := note_of(each).get("id"))}
    kept: dict[int, Message] = {}
    noted = False
    for message in after:
        made = is_summary(message) and note_of(message).get("id") not in places
        noted = noted or made
        sources = note_of(message).get("derived_from") or []
        if not made or note_of(message).get("merged"):  # notes in front of a message, whose row is named last
            origin = note_of(message).get("id", sources[-1] if sources else None)
            if (place := places.get(origin or "")) is not None:
                kept[place] = message
    count = len(before)
    first = next((place for place in range(1, count + 1) if place not in kept), count + 1)
    last = next((place for place in range(count, 0, -1) if place not in kept), 0)
    middle = _range(first, last) if noted else NO_RANGE
    return PassWork(
        head=_range(1, first - 1) if noted else _range(1, count),
        middle=middle,
        tail=_range(last + 1, count) if noted else NO_RANGE,
        carried=sum(first < place < last for place in kept) if noted else 0,
        shortened=_shortened((before[place - 1], message) for place, message in kept.items()),
    )


def _range(first: int, last: int) -> Range:
    return (first, last) if first <= last else NO_RANGE


def _shortened(pairs: Iterator[tuple[Message, Message]]) -> dict[Shortened, tuple[int, int]]:
    """The messages that are shorter than they were, by what is short in them, and how many tokens that saved."""
    found: dict[Shortened, tuple[int, int]] = {}
    for old, new in pairs:
        if is_summary(new) or note_of(new).get("id") == note_of(old).get("id"):
            continue
        what: Shortened = "argument" if old.get("tool_calls") else "result"
        if images(old) > images(new):
            what = "picture"
        count, tokens = found.get(what, (0, 0))
        found[what] = count + 1, tokens + max(0, note_of(old).get("tokens", 0) - note_of(new).get("tokens", 0))
    return found
