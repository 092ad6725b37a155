"""Receipt of what `/sync` brings: each event is stored before the next one of its room, and the token that says how far
the account is read moves on over nothing that is not stored.

A worker for each room that has news takes them in their order, so a room whose lane is full, or of which much was
missed, holds up no other.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import structlog
from msgspec import Struct, field

from adapters.matrix import codec
from adapters.matrix.codec import Json, Room
from adapters.matrix.homeserver import Homeserver, Refusal, SignedOut
from adapters.matrix.platform import MatrixSettings
from adapters.matrix.rooms import Rooms
from gateway.domain.adapter import Accept, Admits, Notebook
from gateway.domain.chat import Inbound, InboundKind, Source
from gateway.domain.place import EVERYWHERE, Listen, ListenRules, names
from gateway.domain.reading import OddEvents, Recent, Written, absence, is_admitted, keep_saved, stored, taken, written
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, Ambiguous, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Crew

log = structlog.get_logger(__name__)

T = TypeVar("T")

POLL_SECONDS: Final = 30.0  # for which the server may hold a request open
_BATCH: Final = 50  # messages that are stored at once
_MOST_BATCHES: Final = 100  # answers of the server that are not stored yet; then no other is asked for
_MOST_JOINS: Final = 10  # attempts to come into a room, whose own server may be gone: the token waits for them
_SINCE, _ALIVE = "since", "alive"  # notes
_INVITED: Final = "!"  # before the token: the first answer's invitations wait
_MESSAGES: Final = ("m.room.message", "m.sticker", "m.room.encrypted")
_NONE: Final = {"types": list[str]()}
_HEARD: Final = (*_MESSAGES, "m.reaction", "m.room.redaction", "m.room.member", "m.room.name", "m.room.encryption")
_TIMELINE: Final = (*_HEARD, "m.room.tombstone")
_FILTER: Final = json.dumps(
    {
        "presence": _NONE,
        "account_data": _NONE,
        "room": {
            "account_data": _NONE,
            "ephemeral": _NONE,
            "state": {"types": ["m.room.member", "m.room.name", "m.room.encryption"], "lazy_load_members": True},
            "timeline": {"limit": _BATCH, "types": _TIMELINE},
        },
    }
)


class _Batch(Struct):
    """One answer of the server. `rooms`: those whose part of it is not stored yet."""

    token: str
    rooms: set[str] = field(default_factory=set)


class _News(Struct, frozen=True):
    """One room's part of an answer. `since`: the token that was asked with; `kind`: join, invite or leave; `missed`: it
    was said before this process read."""

    batch: _Batch
    kind: str
    since: str
    missed: bool
    told: Json


class Receiver:
    """Hands what the server tells to `accept`. `name`: what people call the bot; `commands`: names of commands;
    `redacted`: messages of the bot's that somebody took away."""

    def __init__(
        self,
        server: Homeserver,
        rooms: Rooms,
        settings: MatrixSettings,
        clock: Clock,
        listens: ListenRules,
        commands: frozenset[str],
    ) -> None:
        self._server, self._rooms, self._settings, self._clock = server, rooms, settings, clock
        self._listens, self._commands = listens, commands
        self.name = ""
        self.admits: Admits | None = None
        self.alive_at: float | None = None
        self.unreached_since: float | None = None
        self.redacted: Recent[str, None] = Recent()
        self._since = self._saved = ""  # everything up to here is stored
        self._away: float | None = None  # seconds before this reading that nobody read
        self._batches: deque[_Batch] = deque()
        self._room_for_more = asyncio.Event()
        self._queues: dict[str, deque[_News]] = {}
        self._odd = OddEvents()
        self._expected: Recent[str, None] = Recent()  # rooms that take the place of others
        self._said: Recent[str, Written] = Recent()
        self._reactions: Recent[str, Inbound | None] = Recent()  # what each meant
        self._events: Recent[str, Json] = Recent()  # messages, for answers to them

    # -- lifetime ---------------------------------------------------------------------------

    async def run(self, accept: Accept, notebook: Notebook) -> None:
        """Read until cancelled. Raises SignedOut."""
        self._accept, self._notebook = accept, notebook
        self._crew = Crew()
        self._batches.clear()
        self._queues.clear()
        await self._insist(lambda: self._rooms.load(notebook))
        if (encryption := self._rooms.encryption) is not None:
            await self._insist(encryption.begin)
        notes = await self._insist(notebook.read)
        self._since = self._saved = notes.get(_SINCE, _INVITED)
        self._away = self._clock.now() - float(notes[_ALIVE]) if _ALIVE in notes else None
        self._crew.start(self._read())
        self._crew.start(keep_saved(self._clock, self._save))
        try:
            await self._crew.work()
        finally:
            self.alive_at = None
            with suppress(StoreUnavailable):
                await self._save()

    async def _insist(self, step: Callable[[], Awaitable[T]], most: int | None = None) -> T:
        """The result of a step, which is repeated while the store or the server is away; `most`: so often at most where
        the server is there, and cannot say what became of it. Raises Refusal, SignedOut."""
        backoff, lost = Backoff(0.1, 5.0), 0
        while True:
            try:
                return await step()
            except (Refusal, SignedOut):
                raise
            except (StoreUnavailable, AdapterError) as error:
                lost += isinstance(error, Ambiguous)
                if lost == most:
                    raise Refusal(0, {"error": str(error)}) from error
                wait = max(backoff.pause(), getattr(error, "retry_after", 0.0))
                log.warning("matrix_waits", error=str(error), again_in=wait)
            await self._clock.sleep(wait)

    async def _save(self) -> None:
        if (since := self._since) != self._saved:
            await self._notebook.write({_SINCE: since, _ALIVE: f"{self._clock.now():.0f}"})
            self._saved = since

    # -- reading ----------------------------------------------------------------------------

    async def _read(self) -> None:
        """Ask for news for ever."""
        since = self._since.removeprefix(_INVITED)
        missed = bool(since)
        if self._since.startswith(_INVITED):
            told = await self._insist(lambda: self._asked(""))
            since = since or str(told["next_batch"])
            # Nothing that is said from now on may be missed, and no invitation, whatever becomes of this process.
            self._since = _INVITED + since
            await self._insist(self._save)
            self._take({**told, "next_batch": since}, "")
        while True:
            told = await self._insist(lambda since=since: self._asked(since))  # type: ignore[misc]
            self._take(told, since, missed=missed)
            since, missed = told["next_batch"], False
            while len(self._batches) > _MOST_BATCHES:
                self._room_for_more.clear()
                await self._room_for_more.wait()

    async def _asked(self, since: str) -> Json:
        self.alive_at = self._clock.monotonic()
        waits = POLL_SECONDS if since and self.unreached_since is None else 0.0
        query = {"filter": _FILTER, "timeout": str(int(waits * 1000)), **({"since": since} if since else {})}
        try:
            told: Json = await self._server.call("GET", "sync", query=query, patience=waits + POLL_SECONDS)
        except AdapterError:
            self.unreached_since = self.unreached_since or self.alive_at
            raise
        self.unreached_since = None
        if (encryption := self._rooms.encryption) is not None:  # the server forgets what it told a device
            await self._insist(lambda: encryption.hear(told))
        return told

    def _take(self, told: Json, since: str, *, missed: bool = False) -> None:
        """Give each room its part of an answer. What was said before the bot first ran is not a question to it."""
        batch = _Batch(told["next_batch"])
        self._batches.append(batch)
        for kind in ("join", "invite", "leave") if since else ("invite",):
            for room, part in ((told.get("rooms") or {}).get(kind) or {}).items():
                batch.rooms.add(room)
                if room not in self._queues:
                    self._queues[room] = deque()
                    self._crew.start(self._work(room, self._queues[room]))
                self._queues[room].append(_News(batch, kind, since, missed, part))
        self._advance()

    def _advance(self) -> None:
        while self._batches and not self._batches[0].rooms:
            self._since = self._batches.popleft().token
        self._room_for_more.set()

    async def _work(self, room: str, queue: deque[_News]) -> None:
        while queue:
            news = queue[0]
            try:
                await (self._invited(room, news.told) if news.kind == "invite" else self._of_room(room, news))
            except (Refusal, *codec.UNREADABLE) as error:  # the bot is no member any more, or somebody's event is odd
                log.warning("room_not_read", room=room, error=f"{type(error).__name__}: {error}")
            queue.popleft()
            news.batch.rooms.discard(room)
            self._advance()
        del self._queues[room]

    async def _of_room(self, room: str, news: _News) -> None:
        if news.kind == "leave":
            self._rooms.forget(room)
            return await self._tell(room, "left", "the bot is no longer in the room")
        timeline, state = news.told.get("timeline") or {}, (news.told.get("state") or {}).get("events") or ()
        events: Sequence[Json] = timeline.get("events") or ()
        missed, is_cut = news.missed, False
        if timeline.get("limited") and not any(map(self._is_my_coming, events)):
            self._rooms.forget(room)  # who came and went meanwhile is not told in full
            earlier, is_cut = await self._insist(lambda: self._rooms.missed(room, timeline["prev_batch"], news.since))
            known = {event["event_id"] for event in earlier}
            events, missed = [*earlier, *(each for each in events if each["event_id"] not in known)], True
        notice = absence(self._away, self._settings.catch_up.messages if is_cut else None) if news.missed else ""
        coming = [at for at, event in enumerate(events) if self._is_my_coming(event)]
        if coming:  # what was said before that is nobody's question to it
            events = events[coming[0] :]
            await self._insist(lambda: self._rooms.moved(room, self._notebook))
            await self._tell(room, "joined", "")
        for event in state:
            self._rooms.changed(room, event)
        for first in range(0, len(events), _BATCH):
            notice = await self._heard(room, events[first : first + _BATCH], notice, can_wait=missed)
        return None

    def _is_my_coming(self, event: Json) -> bool:
        """Whether the bot was invited or came in by this event."""
        if event["type"] != "m.room.member" or event.get("state_key") != self._server.user:
            return False
        before = ((event.get("unsigned") or {}).get("prev_content") or {}).get("membership")
        return event["content"].get("membership") in ("invite", "join") and before != "join"

    # -- coming and going -------------------------------------------------------------------

    async def _invited(self, room: str, told: Json) -> None:
        """Accept an invitation, or decline it: then it can be made again."""
        state = told["invite_state"]["events"]
        mine = [each for each in state if each["type"] == "m.room.member" and each["state_key"] == self._server.user]
        by, direct, rule = mine[-1]["sender"], bool(mine[-1]["content"].get("is_direct")), self._settings.invitations
        said = Source(platform=codec.PLATFORM, chat=room, chat_type="direct", user=by)
        welcome = rule == "all" or room in self._expected
        if welcome or (rule == "allowed" and await is_admitted(self._clock, self.admits, said)):
            return await self._insist(lambda: self._rooms.join(room, by, direct=direct), _MOST_JOINS)
        log.info("invitation_declined", room=room, by=by)
        await self._insist(lambda: self._server.call("POST", "rooms", room, "leave", body={}))
        return None

    async def _closed(self, tombstone: Json) -> None:
        """Another room takes the place of this one: go there, now or once somebody invites the bot."""
        if after := str(tombstone["content"].get("replacement_room") or ""):
            self._expected[after] = None
            with suppress(Refusal):
                join = partial(self._rooms.join, after, tombstone["sender"], direct=False)
                await self._insist(join, _MOST_JOINS)

    async def _tell(self, room: str, kind: InboundKind, text: str) -> None:
        where = Source(platform=codec.PLATFORM, chat=self._rooms.first.get(room, room), chat_type="group", user="")
        told = Inbound(event_id=f"{kind}:{room}", source=where, kind=kind, text=text)
        await stored(self._clock, self._accept, [told])

    # -- events -----------------------------------------------------------------------------

    async def _heard(self, room: str, events: Sequence[Json], notice: str, *, can_wait: bool) -> str:
        """Store what these events mean. The room is told `notice` before the first answer; returns the notice if there
        is no answer."""
        found, fates, notice = await taken(
            self._clock, self._accept, room, events, self._meaning, notice, missed=can_wait
        )
        read = [
            each
            for _, each in found
            if each and each.place and (fate := fates.get(each.event_id)) and fate.status == "new"
        ]
        if read and (place := read[-1].place):
            self._crew.start(self._read_up_to(room, place))
        return notice

    async def _read_up_to(self, room: str, event: str) -> None:
        with suppress(AdapterError):
            await self._server.call("POST", "rooms", room, "receipt", "m.read", event, body={})

    async def _meaning(self, room: str, event: Json) -> Inbound | None:
        with self._odd.contained(str(event.get("type"))):
            return await self._inbound(room, event)
        return None

    async def _inbound(self, where: str, event: Json) -> Inbound | None:
        if event["type"] == "m.room.encrypted" and event["content"] and self._rooms.encryption is not None:
            opened = await self._rooms.encryption.opened(where, event, waits=True)
            if opened is None:
                return None
            event = opened
        match event["type"]:
            case "m.room.member" | "m.room.name" | "m.room.encryption" if "state_key" in event:
                self._rooms.changed(where, event)
            case "m.room.tombstone" if "state_key" in event:  # without one it is a message, which anybody may send
                await self._closed(event)
            case "m.room.redaction":
                gone = str(event.get("redacts") or event["content"].get("redacts"))
                if gone in self._reactions:
                    return self._taken_away(gone, event["sender"])
                return self._withdrawn(gone) or await self._withdrawn_unknown(where, gone, event["sender"])
            case "m.reaction" if event["sender"] != self._server.user:
                meant = await self._reacted(await self._insist(lambda: self._rooms.of(where)), event)
                self._reactions[event["event_id"]] = meant
                return meant
            case kind if kind in _MESSAGES and event["content"]:  # it was not taken back meanwhile
                named = codec.replaced(event) or event["event_id"]
                if named == event["event_id"] or event["sender"] == self._server.user:  # with its present buttons
                    self._events[named] = {**event, "content": codec.content_of(event)}
                if event["sender"] != self._server.user and event["content"].get("msgtype") != "m.notice":
                    return await self._message(await self._insist(lambda: self._rooms.of(where)), event)
        return None

    async def _message(self, room: Room, event: Json) -> Inbound | None:
        first, amends, said = codec.replaced(event), tuple[str, ...](), None
        if first is not None:
            said = self._said.get(first)
            if said is not None and (said.source.user != event["sender"] or said.words == codec.digest(event)):
                return None
            amends = said.events if said is not None else (f"{first}/{event['sender']}",)
        where = said.source if said is not None else codec.source(room, event["sender"], codec.thread_of(event))
        rule = self._rule(where)
        if rule == "off":
            return None
        admitted = await is_admitted(self._clock, self.admits, where)
        answered = await self._answered(room, event) if admitted and not amends else None
        if not (said or rule != "mention" or self._is_meant(event, answered)):
            return None
        if rule == "thread" and where.thread is None:
            where = replace(where, chat_type="thread", thread=event["event_id"])
        looks_back = admitted and rule == "mention" and not where.thread and self._settings.quoted and not amends
        inbound = codec.message_inbound(
            event,
            where,
            self._me,
            sealed=self._rooms.encryption is not None,
            answered=answered,
            answered_name=room.called(answered["sender"]) if answered else "",
            before=await self._rooms.before(room, event["event_id"]) if looks_back else (),
            amends=amends,
        )
        if inbound is not None and inbound.kind == "message":
            self._said[first or event["event_id"]] = written(inbound, codec.digest(event))
        return inbound

    def _rule(self, where: Source) -> Listen:
        rule = self._listens.of(*names(where))
        if where.chat_type == "direct":
            return "off" if rule == "off" else "free"
        return rule or self._listens.of(EVERYWHERE) or self._settings.listen

    def _is_meant(self, event: Json, answered: Json | None) -> bool:
        is_answer = answered is not None and answered["sender"] == self._server.user
        return is_answer or codec.is_meant(event, self._me)

    @property
    def _me(self) -> codec.Me:
        return codec.Me(self._server.user, self.name, self._commands)

    async def _answered(self, room: Room, event: Json) -> Json | None:
        named = codec.answered_by(event)
        return (self._events.get(named) or await self._rooms.event(room.id, named)) if named else None

    def _withdrawn(self, gone: str) -> Inbound | None:
        mine, said = self._events.pop(gone, None), self._said.pop(gone, None)
        if mine is not None and mine["sender"] == self._server.user:
            self.redacted[gone] = None
        return said.withdrawn if said is not None else None

    def _taken_away(self, reaction: str, by: str) -> Inbound | None:
        """A reaction was taken away. To press a button again, people have no other way."""
        meant = self._reactions.pop(reaction)
        if meant is None or meant.source.user != by:
            return None
        text = meant.text if meant.kind == "press" else f"-{meant.text[1:]}"
        return replace(meant, event_id=f"{meant.event_id}:redacted", text=text)

    async def _withdrawn_unknown(self, where: str, gone: str, by: str) -> Inbound | None:
        """Somebody took away what may be a message of theirs from before this process, which may still wait."""
        if by == self._server.user or gone in self.redacted:
            return None
        source = codec.source(await self._insist(lambda: self._rooms.of(where)), by, None)
        admitted = await is_admitted(self._clock, self.admits, source)
        return Written(source, (f"{gone}/{by}",)).withdrawn if admitted else None

    async def _reacted(self, room: Room, event: Json) -> Inbound | None:
        """A reaction to a message of the bot's, which may press a button."""
        message, key = codec.reaction_of(event)
        where = codec.source(room, event["sender"], None)
        if not await is_admitted(self._clock, self.admits, where):
            return None
        asked = self._events.get(message) or await self._rooms.event(room.id, message)
        if asked is not None:
            self._events[message] = asked
        if asked is None or asked["sender"] != self._server.user:
            return None
        where, name = codec.source(room, event["sender"], codec.thread_of(asked)), codec.event_id(event)
        if token := codec.tokens(asked["content"]).get(key):
            return Inbound(event_id=name, source=where, text=token, kind="press")
        if codec.is_button(key):
            return None  # its question is closed
        return Inbound(event_id=name, source=where, text=f"+{key}", kind="reaction", reply_to=message)
