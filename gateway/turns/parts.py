"""The items of a lane that are parts of one message, because a client had to cut it. Pure.

A text that is too long for its platform comes cut, and several files come as a group. Each part is stored
when it comes, because its platform is told at once; the lane joins the parts when it comes to the first one.
Only what was stored decides, so a lane that runs again after a crash joins the same parts.

    the first part         the parts behind it
    -------------------    ---------------------------------------------------------------
    a text that was cut    the speaker's next item, if it is a text that came directly after it,
                           and so on for as long as that looks cut, too
    a file of a group      the speaker's next items, for as long as they are of the same group

Messages that others send in between stay where they are. A command ends the message, but /steer and /queue
may begin one: their words may be cut, and may stand with any file of the group that they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from gateway.domain.chat import TORN, Inbound, SessionKey, named
from gateway.runtime.structs import replace
from gateway.store.records import Arrival, InboxItem

DEBOUNCE: Final = 0.8  # seconds from the receipt of one part to that of the next
# Seconds between the sending of two parts. After an outage everything is received at once, so the receipt
# alone says little; and platforms give whole seconds.
_SENT_WITHIN: Final = 2.0
_FIRST_READING: Final = 5.0  # seconds that a start may take until it has read what a platform held back


def following(head: InboxItem, behind: Sequence[InboxItem]) -> list[InboxItem]:
    """The items of `behind`, oldest first, that continue the message that begins with `head`."""
    parts = [head]
    for item in behind if head.inbound.part_of is not None and _may_begin(head) else ():
        if parts[-1].inbound.part_of is None or not (_is_plain(item) or _is_of_album(item, head)):
            break
        if _same_speaker(item, head):
            if not _goes_on(parts[-1], item):
                break
            parts.append(item)
    return parts[1:]


def patience(head: InboxItem, behind: Sequence[InboxItem], now: float, age: float = inf) -> float:
    """Seconds to wait for the next part of `head`'s message, at `now` (wall time); 0.0 if it is complete. `age`: for
    how many seconds this process has run. The platform may still hold the rest of an album that an earlier process
    began to read."""
    parts = [head, *following(head, behind)]
    last = parts[-1]
    if last.inbound.part_of is None or not _may_begin(head):
        return 0.0
    rest = (item for item in behind if item not in parts)
    if any(not _is_plain(item) or _same_speaker(item, head) for item in rest):
        return 0.0  # another message came after it
    left, most = last.accepted_at + DEBOUNCE - now, DEBOUNCE
    if head.inbound.is_group_file and now - last.accepted_at > age:
        left, most = _FIRST_READING - age, _FIRST_READING
    # A clock that was set back must not make anybody wait longer.
    return min(max(left, 0.0), most)


def joined(head: Inbound, parts: Sequence[Inbound]) -> Inbound:
    """One message with every word and every file of its parts. The words of /steer or /queue come first.

    Nothing stands between two texts where a client cut because nothing more fitted. A line end stands where
    the client cut at white space, which it left out, and around captions. Of several captions each says whose it is.
    The note that an adapter puts before each part (on the message that it answers, on its origin) stands once.
    """
    if not parts and head.part_of is None:  # as nearly always
        return head
    everything = (head, *parts)
    first, *others = sorted(everything, key=lambda part: part.kind == "message")  # a stable sort
    note, labels = _note(first), _labels(everything)
    text, last = note + labels.get(first.event_id, "") + first.text[len(note) :], first
    for part in others:
        added = part.text
        if note and added.startswith(note) and (first.is_group_file or first.reply_to == part.reply_to is not None):
            added = added[len(note) :]
        added = labels.get(part.event_id, "") + added
        glued = last.part_of == TORN or not added or not text or text.endswith("\n")
        text, last = text + ("" if glued else "\n") + added, part
    files = (file for each in everything for file in each.attachments)
    mixed = labels or any(part.own is not None for part in everything)
    own = "\n".join(part.text if part.own is None else part.own for part in (first, *others)) if mixed else None
    events = tuple(part.event_id for part in parts)
    return replace(head, kind=first.kind, text=text, attachments=tuple(files), part_of=None, own=own, parts=events)


def _labels(parts: Sequence[Inbound]) -> dict[str, str]:
    """What stands before each of several captions, by event; nothing if a caption may be about all files."""
    captions: dict[str, str] = {}
    number = 1
    for part in parts:
        if part.is_group_file and part.attachments and part.text[len(_note(part)) :].strip():
            plain = part.kind == "message"
            captions[part.event_id] = f"({number}: {named(part.attachments[0])}) " if plain else ""
        number += len(part.attachments)
    return captions if len(captions) > 1 else {}


def is_continuation(event_id: str, items: Sequence[InboxItem]) -> bool:
    """Whether the item of this event continues one before it. `items` is the lane, from its head on."""
    return any(
        part.inbound.event_id == event_id
        for place, head in enumerate(items)
        for part in following(head, items[place + 1 :])
    )


def _goes_on(last: InboxItem, item: InboxItem) -> bool:
    before, after = last.inbound, item.inbound
    if before.is_group_file:
        return after.part_of == before.part_of
    at_once = (
        abs(item.accepted_at - last.accepted_at) <= DEBOUNCE and abs(after.sent_at - before.sent_at) <= _SENT_WITHIN
    )
    return at_once and not after.attachments and not after.is_group_file


def _may_begin(item: InboxItem) -> bool:
    return _is_plain(item) or item.inbound.kind in ("steer", "queue")


def _is_of_album(item: InboxItem, head: InboxItem) -> bool:
    return head.inbound.is_group_file and item.inbound.part_of == head.inbound.part_of and _may_begin(item)


def _is_plain(item: InboxItem) -> bool:
    return item.inbound.kind == "message" and item.inbound.command is None


def _same_speaker(one: InboxItem, other: InboxItem) -> bool:
    return one.inbound.source.user == other.inbound.source.user


def _note(inbound: Inbound) -> str:
    """The bracketed line at the beginning of a text."""
    line, end, _ = inbound.text.partition("\n")
    return line + end if line.startswith("[") and line.endswith("]") and end else ""


# -- albums in groups ----------------------------------------------------------------------------------


KEPT: Final = 30.0  # seconds: an album is sent at once, but each of its files arrives when it is uploaded
_MOST: Final = 1_000  # albums

_Album = tuple[SessionKey, str, str | None]  # the conversation, the sender, the album's name


class RecentAlbums:
    """Recently read files, by album, that were not meant for the bot. `now` is monotonic."""

    def __init__(self) -> None:
        self._albums: dict[_Album, tuple[float, list[Arrival]]] = {}  # the one used last, last

    def keep(self, arrival: Arrival, now: float) -> None:
        """Remember a file that is not meant for the bot, as far as is known. Commands are not remembered."""
        if arrival.inbound.kind != "message" or not _is_file(arrival):
            return
        events = {each.inbound.event_id: each for each in [*self.before(arrival, now), arrival]}
        self._albums[_album(arrival)] = now, list(events.values())
        while len(self._albums) > _MOST or now - next(iter(self._albums.values()))[0] > KEPT:
            del self._albums[next(iter(self._albums))]

    def before(self, arrival: Arrival, now: float) -> list[Arrival]:
        """The remembered files of an album that turns out to be meant, oldest first. They stay remembered, because a
        store that is away takes none of them yet."""
        at, album = self._albums.get(_album(arrival), (now, []))
        if not album or not _is_file(arrival) or now - at > KEPT:
            return []
        del self._albums[_album(arrival)]
        self._albums[_album(arrival)] = now, album
        return album

    def forget(self, arrival: Arrival) -> None:
        """Forget the album of a stored file, because all of it is stored."""
        self._albums.pop(_album(arrival), None)


def _is_file(arrival: Arrival) -> bool:
    """Whether this is a file of an album, without a command other than /steer or /queue."""
    return arrival.inbound.is_group_file and arrival.inbound.command is None


def _album(arrival: Arrival) -> _Album:
    return arrival.key, arrival.inbound.source.user, arrival.inbound.part_of
