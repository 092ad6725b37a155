"""Files of a group that were not meant for the bot by themselves: the one whose words name it may come last.

A client shows the words under an album's last file, and sends them with it. Until they come nobody knows whether
the files before were meant, and what was not meant is nobody's to store: so it is kept in mind for a moment, by the
process that read it, and forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from gateway.domain.chat import Inbound, SessionKey
from gateway.domain.command import parse_command
from gateway.store.records import Arrival
from gateway.turns.parts import of_group

KEPT: Final = 30.0  # seconds: an album is sent at once, but each of its files when it is there
_MOST: Final = 1_000  # albums that are kept in mind

_Album = tuple[SessionKey, str, str]  # whose conversation, who sent it, its name


class Overheard:
    """What was read lately and taken for nobody's, by album. `now` is monotonic."""

    def __init__(self) -> None:
        self._albums: OrderedDict[_Album, tuple[float, list[Arrival]]] = OrderedDict()  # the one asked about last, last

    def keep(self, arrival: Arrival, now: float) -> None:
        """It was not meant, as far as is known. A command is not: it is for whoever it names."""
        if arrival.inbound.kind != "message" or not _is_said(arrival.inbound):
            return
        album = self.before(arrival, now)
        if all(arrival.inbound.event_id != other.inbound.event_id for other in album):
            album.append(arrival)
        self._touch(_album(arrival), album, now)
        while len(self._albums) > _MOST or now - next(iter(self._albums.values()))[0] > KEPT:
            self._albums.popitem(last=False)

    def before(self, arrival: Arrival, now: float) -> list[Arrival]:
        """What was overheard of the album that this one, which is meant, belongs to; oldest first. It is kept in mind
        from now on: what a store that is away does not take comes again. A command has no use for it."""
        name = _album(arrival)
        at, album = self._albums.get(name, (now, []))
        if not _is_said(arrival.inbound) or now - at > KEPT:
            return []
        if album:
            self._touch(name, album, now)
        return list(album)

    def forget(self, arrival: Arrival) -> None:
        """It is stored, and with it all of its album."""
        self._albums.pop(_album(arrival), None)

    def _touch(self, name: _Album, album: list[Arrival], now: float) -> None:
        self._albums[name] = now, album
        self._albums.move_to_end(name)


def _is_said(inbound: Inbound) -> bool:
    """Whether it is one file of several that somebody says something with, also by /steer or /queue."""
    is_command = inbound.kind == "message" and parse_command(inbound.text) is not None
    return of_group(inbound) and not is_command


def _album(arrival: Arrival) -> _Album:
    return arrival.key, arrival.inbound.source.user, arrival.inbound.part_of or ""
