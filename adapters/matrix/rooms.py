"""What the bot knows of its rooms, and what it asks of them: who is there, what was said before, what was missed.

Nothing is asked because of somebody who may not talk, but who else is in the room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from adapters.matrix import codec
from adapters.matrix.codec import Json, Room
from adapters.matrix.homeserver import Homeserver, Refusal
from adapters.matrix.platform import MatrixSettings
from gateway.domain.adapter import Notebook
from gateway.domain.chat import Said
from gateway.domain.reading import Recent
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError

if TYPE_CHECKING:
    from adapters.matrix.encryption import Encryption

log = structlog.get_logger(__name__)

_MOVED: Final = "moved "  # begins the name of a note: what the room behind it was called first
_GROUP: Final = " group"  # behind that
_PAGE: Final = 100  # events of a room that are fetched at once
_LOOK_BACK_SECONDS: Final = 3.0  # for what was said before: the message itself must not wait long


class Rooms:
    """The rooms of one account. `first`: what a room was called before it took the place of another one."""

    def __init__(self, server: Homeserver, settings: MatrixSettings, clock: Clock) -> None:
        self._server, self._settings, self._clock = server, settings, clock
        self.encryption: Encryption | None = None
        self._known: Recent[str, Room] = Recent()
        self._direct: dict[str, str] = {}  # the room in which somebody is alone with the bot
        self._opening = asyncio.Lock()
        self.first: dict[str, str] = {}
        self._present: dict[str, str] = {}  # the other way round
        self._groups: set[str] = set()  # those of `first` that were groups

    # -- who is there -----------------------------------------------------------------------

    async def of(self, room: str) -> Room:
        """A room with its members. Raises AdapterError."""
        found = self._known.get(room)
        if found is None:
            told = await self._server.call("GET", "rooms", room, "joined_members")
            people = {person: str(each.get("display_name") or "") for person, each in told["joined"].items()}
            name = str((await self._state(room, "m.room.name")).get("name") or "")
            sealing = (await self._state(room, "m.room.encryption") or None) if self.encryption else None
            group, first = room in self._groups, self.first.get(room, room)
            found = self._known[room] = Room(id=room, first=first, name=name, people=people, group=group)
            found.sealing = sealing
        return found

    def changed(self, room: str, event: Json) -> None:
        """Somebody came, left, or took another name; or the room did."""
        found, content = self._known.get(room), event.get("content") or {}
        self._direct = {person: alone for person, alone in self._direct.items() if alone != room}
        if found is None:
            return
        if event["type"] == "m.room.encryption":
            found.sealing = content
        elif event["type"] == "m.room.name":
            found.name = str(content.get("name") or "")
        elif content.get("membership") == "join":
            found.people[event["state_key"]] = str(content.get("displayname") or "")
        else:
            found.people.pop(event["state_key"], None)

    def forget(self, room: str) -> None:
        """The bot is no member any more."""
        self._known.pop(room, None)

    async def _state(self, room: str, *kind: str) -> Json:
        return await self._found("rooms", room, "state", *kind)

    async def _found(self, *path: str) -> Json:
        """What the server has there; empty: nothing, or nothing for the bot."""
        with suppress(Refusal):
            told: Json = await self._server.call("GET", *path)
            return told
        return {}

    # -- coming and going -------------------------------------------------------------------

    async def join(self, room: str, by: str, *, direct: bool) -> None:
        """Come in, as somebody asked. Raises AdapterError."""
        await self._server.call("POST", "join", room, body={}, query={"via": by.partition(":")[2]})
        if direct:
            await self._note_direct(by, room)

    async def alone_with(self, person: str) -> str:
        """The room of a person and the bot, which is made if there is none. Raises AdapterError."""
        if (room := self._direct.get(person)) is None:
            async with self._opening:
                room = self._direct.get(person) or await self._opened(person)
        return self.present(room)

    async def _opened(self, person: str) -> str:
        for room in (await self._direct_rooms()).get(person, ()):
            if await self._are_alone(room, person):
                self._direct[person] = room
                return str(room)
        body = {"preset": "trusted_private_chat", "is_direct": True, "invite": [person]}
        room = str((await self._server.call("POST", "createRoom", body=body))["room_id"])
        await self._note_direct(person, room)
        return room

    async def _are_alone(self, room: str, person: str) -> bool:
        """Whether nobody but this person and the bot is in a room, or is invited there in the person's case."""
        with suppress(Refusal):  # the bot is not there any more
            found = await self.of(room)
            member = await self._state(room, "m.room.member", person) if person not in found.people else {}
            return found.alone and (person in found.people or member.get("membership") == "invite")
        return False

    async def _note_direct(self, person: str, room: str) -> None:
        """Note it where all apps look for chats of two; nobody misses it for long."""
        self._direct[person] = room
        with suppress(AdapterError):
            known = await self._direct_rooms()
            body = {**known, person: [room, *(each for each in known.get(person) or () if each != room)]}
            await self._server.call("PUT", "user", self._server.user, "account_data", "m.direct", body=body)

    async def _direct_rooms(self) -> Json:
        return await self._found("user", self._server.user, "account_data", "m.direct")

    # -- rooms that take the place of others ------------------------------------------------

    async def load(self, notebook: Notebook) -> None:
        """Learn from the notes which did. Raises StoreUnavailable."""
        for name, first in (await notebook.read()).items():
            if name.startswith(_MOVED):
                self._note_moved(name.removeprefix(_MOVED), first)

    async def moved(self, room: str, notebook: Notebook) -> None:
        """The bot came into a room. Note it if that took the place of one where the bot was, and which says the same:
        of a group it is one, too, before all have come. Raises AdapterError or StoreUnavailable."""
        before = str(((await self._state(room, "m.room.create")).get("predecessor") or {}).get("room_id") or "")
        tombstone = await self._state(before, "m.room.tombstone") if before and room not in self.first else {}
        if tombstone.get("replacement_room") == room:
            log.info("room_moved", before=before, after=room)
            old = await self.of(before)
            noted = old.first if old.alone else f"{old.first}{_GROUP}"
            await notebook.write({_MOVED + before: None, _MOVED + room: noted})
            self._note_moved(room, noted)
            self.forget(room)

    def _note_moved(self, room: str, noted: str) -> None:
        first = noted.removesuffix(_GROUP)
        self.first[room], self._present[first] = first, room
        if noted != first:
            self._groups.add(room)

    def present(self, room: str) -> str:
        """The room in which the conversations of this one go on."""
        return self._present.get(room, room)

    # -- what was said ----------------------------------------------------------------------

    async def _asked(self, room: str, *path: str, **query: str) -> Json:
        """What somebody wants to know of the past; empty if there is none, or the server takes too long."""
        with suppress(AdapterError, TimeoutError):
            async with self._clock.limit(_LOOK_BACK_SECONDS):
                found: Json = await self._server.call("GET", "rooms", room, *path, query=query)
                return found
        return {}

    async def event(self, room: str, event: str) -> Json | None:
        """One message, in its present wording; None if there is none, or it was deleted."""
        found = await self._asked(room, "event", event)
        newest = ((found.get("unsigned") or {}).get("m.relations") or {}).get("m.replace") or found
        found, newest = await self.opened(room, found), await self.opened(room, newest)
        return {**found, "content": codec.content_of(newest)} if found.get("content") else None

    async def opened(self, room: str, event: Json) -> Json:
        """An event as it was written, if it is encrypted and the bot has the key."""
        if self.encryption is None or event.get("type") != "m.room.encrypted" or not event.get("content"):
            return event
        return await self.encryption.opened(room, event, waits=False) or event

    async def before(self, room: Room, event: str) -> tuple[Said, ...]:
        """The messages before a mention, since the bot's own last words."""
        found: list[Json] = []
        told = await self._asked(room.id, "context", event, limit=str(2 * self._settings.quoted))
        for each in told.get("events_before", ()):
            each = await self.opened(room.id, each)
            if each["sender"] == self._server.user and each["type"] == "m.room.message":
                break
            found.append(each)
        return codec.quoted(found[::-1], room)

    async def missed(self, room: str, until: str, since: str) -> tuple[Sequence[Json], bool]:
        """What was said in a room between two places of its history, oldest first, and whether there was more than is
        looked at. Raises AdapterError."""
        most = self._settings.catch_up.messages
        oldest = (self._clock.now() - self._settings.catch_up.hours * 3600.0) * 1000.0
        found: list[Json] = []
        while len(found) < most:
            query = {"dir": "b", "from": until, "to": since, "limit": str(min(_PAGE, most - len(found)))}
            told = await self._server.call("GET", "rooms", room, "messages", query=query)
            page = told.get("chunk") or ()
            newer = [each for each in page if each.get("origin_server_ts", 0) >= oldest]
            found += newer
            until = str(told.get("end") or "")
            if len(newer) < len(page) or not page or not until:
                return found[::-1], False
        return found[::-1], True
