"""Which items of a lane are one message that a client had to send in several. Pure.

A text that is too long for its platform comes cut, several files come as a group. Each part is
stored as it comes, because its platform is told at once; the lane joins them when it comes to the
first. What belongs together is decided by what was stored, so a lane that runs again after a crash
joins the same parts again.

    the first part         what goes on with it
    -------------------    ---------------------------------------------------------------
    a text that was cut    the speaker's next item, if it is a text that came directly after it,
                           and so on for as long as that looks cut, too
    a file of a group      the speaker's next items, for as long as they are of the same group

What others say in between is theirs and stays where it is. A command ends the message, but /steer and /queue
are ways to say one: their words may be cut, and may stand with any file of a group, which they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gateway.domain.chat import CUT, TORN, Inbound
from gateway.domain.command import parse_command
from gateway.store.records import InboxItem

DEBOUNCE: Final = 0.8  # seconds from one part's receipt in which the next one comes
# Seconds between the sending of two parts. After an outage all of it is received at once, so receipt
# alone says little; and platforms give whole seconds.
_SENT_WITHIN: Final = 2.0


def following(head: InboxItem, behind: Sequence[InboxItem]) -> list[InboxItem]:
    """The items of `behind`, which is oldest first, that go on with the message begun by `head`."""
    parts = [head]
    for item in behind if _may_begin(head) else ():
        if parts[-1].inbound.part_of is None or not (_is_said(item) or _is_of_album(item, head)):
            break
        if _same_speaker(item, head):
            if not _goes_on(parts[-1], item):
                break
            parts.append(item)
    return parts[1:]


def patience(head: InboxItem, behind: Sequence[InboxItem], now: float) -> float:
    """Seconds to wait for the next part of `head`'s message, at `now` (wall time); 0.0: it is whole."""
    parts = [head, *following(head, behind)]
    last = parts[-1]
    rest = [item for item in behind if item not in parts]
    if last.inbound.part_of is None or not _may_begin(head):
        return 0.0
    if any(not _is_said(item) or _same_speaker(item, head) for item in rest):
        return 0.0  # something else came after it
    # A clock that was set back must not make anybody wait longer.
    return min(max(last.accepted_at + DEBOUNCE - now, 0.0), DEBOUNCE)


def joined(head: Inbound, parts: Sequence[Inbound]) -> Inbound:
    """One message of all parts, with every word and every file of each; what was said with a command comes first.

    Between texts stands nothing where a client cut because nothing more fitted, and a line end where it
    cut at white space, which it left out. Captions stand on lines of their own. What an adapter notes
    in front of each part (what it answers, that it was forwarded) is said once.
    """
    everything = (head, *parts)
    first, *others = sorted(everything, key=lambda part: part.kind == "message")  # in this order else
    note = _note(first)
    text, last = first.text, first
    for part in others:
        added = part.text
        if note and added.startswith(note) and (of_group(first) or first.reply_to == part.reply_to is not None):
            added = added[len(note) :]
        glued = last.part_of == TORN or not added or not text or text.endswith("\n")
        text, last = text + ("" if glued else "\n") + added, part
    files = (file for each in everything for file in each.attachments)
    return replace(head, kind=first.kind, text=text, attachments=tuple(files), part_of=None)


def is_continuation(event_id: str, items: Sequence[InboxItem]) -> bool:
    """Whether the item of this event goes on with one before it; `items`: the lane from its head on."""
    return any(
        part.inbound.event_id == event_id
        for place, head in enumerate(items)
        for part in following(head, items[place + 1 :])
    )


def _goes_on(last: InboxItem, item: InboxItem) -> bool:
    before, after = last.inbound, item.inbound
    if of_group(before):
        return after.part_of == before.part_of
    at_once = (
        abs(item.accepted_at - last.accepted_at) <= DEBOUNCE and abs(after.sent_at - before.sent_at) <= _SENT_WITHIN
    )
    return at_once and not after.attachments and not of_group(after)


def of_group(inbound: Inbound) -> bool:
    """Whether it is a file of several that were sent together."""
    return inbound.part_of not in (None, CUT, TORN)


def _may_begin(item: InboxItem) -> bool:
    return _is_said(item) or item.inbound.kind in ("steer", "queue")


def _is_of_album(item: InboxItem, head: InboxItem) -> bool:
    return of_group(head.inbound) and item.inbound.part_of == head.inbound.part_of and _may_begin(item)


def _is_said(item: InboxItem) -> bool:
    return item.inbound.kind == "message" and parse_command(item.inbound.text) is None


def _same_speaker(one: InboxItem, other: InboxItem) -> bool:
    return one.inbound.source.user == other.inbound.source.user


def _note(inbound: Inbound) -> str:
    """The line in brackets that a text begins with."""
    line, end, _ = inbound.text.partition("\n")
    return line + end if line.startswith("[") and line.endswith("]") and end else ""
