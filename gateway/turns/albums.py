"""Albums in groups of which only the last file names the bot.

A client sends the words of an album with its last file. Until these words come nobody knows whether the files
before them are meant for the bot, and a message that is meant for others is not the bot's to store. So the
process that read such files keeps them in memory for a moment.
"""

from __future__ import annotations

from typing import Final

from gateway.domain.chat import SessionKey
from gateway.store.records import Arrival

KEPT: Final = 30.0  # seconds: an album is sent at once, but each of its files arrives when it is uploaded
_MOST: Final = 1_000  # albums

_Album = tuple[SessionKey, str, str | None]  # the conversation, the sender, the album's name


class RecentAlbums:
    """The files that were read lately and not meant for the bot, by album. `now` is monotonic."""

    def __init__(self) -> None:
        self._albums: dict[_Album, tuple[float, list[Arrival]]] = {}  # the one used last, last

    def keep(self, arrival: Arrival, now: float) -> None:
        """Remember a file that is not meant for the bot, as far as is known. A command is not remembered."""
        if arrival.inbound.kind != "message" or not _is_file(arrival):
            return
        events = {each.inbound.event_id: each for each in [*self.before(arrival, now), arrival]}
        self._albums[_album(arrival)] = now, list(events.values())
        while len(self._albums) > _MOST or now - next(iter(self._albums.values()))[0] > KEPT:
            del self._albums[next(iter(self._albums))]

    def before(self, arrival: Arrival, now: float) -> list[Arrival]:
        """The remembered files of the album of a file that is meant, oldest first. They are remembered further,
        because a store that is away takes none of them yet."""
        at, album = self._albums.get(_album(arrival), (now, []))
        if not album or not _is_file(arrival) or now - at > KEPT:
            return []
        del self._albums[_album(arrival)]
        self._albums[_album(arrival)] = now, album
        return album

    def forget(self, arrival: Arrival) -> None:
        """Forget the album of a file that is stored, for all of it is."""
        self._albums.pop(_album(arrival), None)


def _is_file(arrival: Arrival) -> bool:
    """Say whether this is a file of an album, and no command but /steer or /queue came with it."""
    return arrival.inbound.is_group_file and arrival.inbound.command is None


def _album(arrival: Arrival) -> _Album:
    return arrival.key, arrival.inbound.source.user, arrival.inbound.part_of
