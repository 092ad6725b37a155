"""Receipt of events: each is stored before Slack is told so, and before the next one of its channel is looked at.

Events are put into the queue of their channel in the moment that they come. A worker for each channel that has any
stores them in their order. After a gap a channel's worker first fetches what was missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from adapters.slack import codec
from adapters.slack.commands import SlashCommands
from adapters.slack.history import SlackHistory
from adapters.slack.platform import SlackSettings
from adapters.slack.reactions import reaction_inbound
from gateway.domain.adapter import Accept, Accepted, Admits, Notebook
from gateway.domain.chat import Inbound
from gateway.domain.place import EVERYWHERE, Listen, ListenRules
from gateway.domain.reading import (
    UNREADABLE,
    OddEvents,
    OtherBots,
    Reader,
    Recent,
    Written,
    absence,
    is_admitted,
    written,
)
from gateway.runtime.clock import Clock
from gateway.runtime.structs import replace

_LOOKS_AT_ONCE: Final = 20  # channels; of each, Slack is asked once at least, and no more than fifty times a minute
_LOOK_SECONDS: Final = 2.5  # between two more of them
_LEFT: Final = ("channel_left", "group_left", "channel_deleted", "group_deleted", "channel_archive", "group_archive")

LEFT: Final = "the channel was closed, or the bot was removed from it"

Json = Mapping[str, Any]


class _Event(Struct, frozen=True):
    kind: str
    data: Any
    taken: asyncio.Future[Accepted | None] | None = None


class Receiver:
    """Hands what Slack sends to `accept`."""

    def __init__(
        self, settings: SlackSettings, clock: Clock, commands: SlashCommands, history: SlackHistory, places: ListenRules
    ) -> None:
        self._settings, self._clock, self._commands, self._history = settings, clock, commands, history
        self._places = places
        self._reader: Reader[_Event] = Reader(clock, codec.id_at, lambda: self._since if self.connected() else None)
        self._cursors = self._reader.cursors
        self._said: Recent[tuple[str, str], Written] = Recent()
        self._bots = OtherBots(settings.bots)
        self._since: float | None = None  # when the present connection began
        self._looking: asyncio.Task[None] | None = None
        self._odd = OddEvents()
        self.admits: Admits | None = None
        self.connected: Callable[[], bool] = lambda: True

    # -- lifetime ---------------------------------------------------------------------------

    async def run(self, accept: Accept, notebook: Notebook, me: codec.Me, reading: Coroutine[Any, Any, None]) -> None:
        """Take what `reading` hears until that ends. Raises AdapterError."""
        self._me = me
        self._looking = self._since = None
        self._said.clear()  # a reading that was ended may not have stored the last of them
        catch_up, given = self._settings.catch_up, (self._missed, self._meaning, self._concluded)
        await self._reader.run(accept, notebook, catch_up.hours, reading, *given)

    # -- events -----------------------------------------------------------------------------

    def begun(self, missed: bool) -> None:
        """From now on Slack is heard; what was `missed` before that is fetched."""
        if not missed:
            return
        self._since = self._clock.now()
        self._reader.begin_session()
        if self._looking is not None:
            self._looking.cancel()
        self._looking = self._reader.crew.start(self._look_around())

    async def _look_around(self) -> None:
        """Look for missed messages everywhere, no faster than leaves Slack's calls for what is said meanwhile."""
        self._reader.looks_around, looks = True, 0
        async for channel in self._history.channels(place.partition("/")[0] for place in self._cursors.put_away(())):
            if self._reader.channels.is_known(channel):
                continue
            if looks >= _LOOKS_AT_ONCE:
                await self._clock.sleep(_LOOK_SECONDS)
            self._reader.channels.put(channel)
            looks += 1
        self._reader.looks_around = False

    def heard(self, kind: str, payload: Json) -> asyncio.Future[Accepted | None]:
        """What happened is in its queue when this returns; the result comes when it is stored."""
        taken: asyncio.Future[Accepted | None] = asyncio.get_running_loop().create_future()
        found = None
        with self._odd.contained(kind):
            found = self._sorted(kind, payload)
        if found is None:
            taken.set_result(None)
        else:
            channel, what, data = found
            self._reader.channels.put(channel, _Event(what, data, taken))
        return taken

    def _sorted(self, kind: str, payload: Json) -> tuple[str, str, Any] | None:
        """The channel, the kind and the data of what an envelope brought; None if nobody here wants it."""
        if kind == "slash_commands":
            return payload["channel_id"], "command", payload
        if kind == "interactive":
            is_press = payload.get("type") == "block_actions" and payload["actions"][0]["type"] == "button"
            channel = payload["container"].get("channel_id") if is_press else None  # a box that is ticked waits
            return (channel, "press", payload) if channel else None
        event = payload["event"] if kind == "events_api" else {}
        match event.get("type"), event.get("subtype"):
            case "message", "message_changed":
                gone = event["message"].get("subtype") == "tombstone"
                return event["channel"], "delete" if gone else "edit", event
            case "message", "message_deleted":
                return event["channel"], "delete", event
            case (("message" | "app_mention"), _) if codec.is_said(event) and event["channel"]:
                return event["channel"], "message", event
            case (("reaction_added" | "reaction_removed"), _) if self._me.id == event.get("item_user") != event["user"]:
                return event["item"]["channel"], "reaction", event
            case what, _ if what in _LEFT:
                return event["channel"], "left", event
        return None

    # -- one channel ------------------------------------------------------------------------

    async def _missed(self, channel: str) -> tuple[Sequence[_Event], str]:
        """What was written in a channel while nobody read it, oldest first; and what the channel is told about that."""
        threads = [name.partition("/")[2] for name in self._cursors.put_away(()) if name.startswith(f"{channel}/")]
        found: list[Json] = []
        cut = False
        if self._settings.catch_up.messages:
            with self._odd.contained("history"):
                found, cut = await self._history.missed(channel, self._cursors.of, threads, self._settings.catch_up)
        events = [_Event("message", {**each, "channel": channel}) for each in found if codec.is_said(each)]
        return events, absence(self._reader.away, self._settings.catch_up.messages if cut else None)

    def _concluded(self, channel: str, event: _Event, inbound: Inbound | None, fate: Accepted | None) -> None:
        if event.taken is not None and not event.taken.done():
            event.taken.set_result(fate)
        if event.kind == "message":
            self._advance(channel, event.data, heard=inbound is not None)

    def _advance(self, channel: str, message: Json, *, heard: bool) -> None:
        """A channel is read up to its own messages, a thread of the bot's up to the thread's."""
        with suppress(*UNREADABLE):
            place = codec.place_of(message, channel)
            if place.thread is None or heard:
                self._cursors.advance(place.cursor, codec.number(message["ts"]), alone=False)
            if place.thread is None and (said := self._said.get((channel, message["ts"]))) and said.place.thread:
                self._cursors.advance(said.place.cursor, codec.number(message["ts"]), alone=False)

    # -- one event --------------------------------------------------------------------------

    async def _meaning(self, _: str, event: _Event) -> Inbound | None:
        with self._odd.contained(event.kind):
            return await self._inbound(event)
        return None

    async def _inbound(self, event: _Event) -> Inbound | None:
        data = event.data
        if event.kind == "message":
            return await self._of_message(data, data["channel"])
        if event.kind == "edit":
            return await self._of_edit(data)
        if event.kind == "delete":
            gone = data.get("deleted_ts") or data["message"]["ts"]
            if (said := self._said.get((data["channel"], gone))) is not None:
                return said.withdrawn
            return await self._withdrawn_unknown(data.get("previous_message") or {}, data["channel"])
        if event.kind == "press":
            return codec.press_inbound(data, self._me)
        if event.kind == "reaction":
            channel, message = data["item"]["channel"], data["item"]["ts"]
            if not await self._is_admitted(data, codec.Place(channel=channel)):
                return None
            return reaction_inbound(data, await self._history.place_of(channel, message), self._me)
        if event.kind == "command":
            place = codec.Place(channel=data["channel_id"], name=str(data.get("channel_name") or ""))
            text = self._commands.typed(data)
            private = not place.alone and self._commands.is_private(text)
            return codec.command_inbound(data, place, self._me, text, private=private)
        source = codec.source(codec.Place(channel=data["channel"]), self._me, "", {})
        return Inbound(event_id=f"left:{data['channel']}:{data['event_ts']}", source=source, kind="left", text=LEFT)

    async def _of_message(self, message: Json, channel: str, amends: tuple[str, ...] = ()) -> Inbound | None:
        if (channel, message["ts"]) in self._said:
            return None  # a mention comes as a message, too
        place = codec.place_of(message, channel)
        if not await self._hears(message, place):
            return None
        admitted = await self._is_admitted(message, place)
        mode = self._mode(place)
        if self._opens_thread(place):
            place = codec.Place(channel=channel, thread=message["ts"])
            self._history.note_thread(place, own=True)
        before: list[Json] = []
        names: Mapping[str, str] = {}
        if admitted:
            place = replace(place, name=await self._history.channel_name(place))
            if mode == "mention" and not place.alone and self._settings.quoted and codec.is_named(message, self._me):
                before = await self._history.before(message, place, self._me, self._settings.quoted)
            names = await self._history.names(codec.people_in([message, *before]) - {self._me.id})
        is_command = codec.words(message, self._me, names).startswith("/")
        quoted = () if is_command else codec.quoted(before, place, self._me, names)
        inbound = codec.message_inbound(message, place, self._me, names, before=quoted, amends=amends)
        if inbound is not None:
            self._said[channel, message["ts"]] = written(inbound, place=place)
        return inbound

    def _opens_thread(self, place: codec.Place) -> bool:
        mode = self._mode(place)
        opens = mode == "thread" or (mode == "mention" and self._settings.threads)
        return place.thread is None and not place.alone and opens

    async def _withdrawn_unknown(self, message: Json, channel: str) -> Inbound | None:
        """A message was deleted that came before this process, and may still wait."""
        author, place = codec.author_of(message), codec.place_of(message, channel) if message else None
        if place is None or codec.is_bots(message) or not await self._is_admitted(message, place):
            return None
        name = codec.event_id(self._me, place, author, message["ts"])
        place = codec.Place(channel=channel, thread=message["ts"]) if self._opens_thread(place) else place
        return Written(codec.source(place, self._me, author, {}, codec.team_of(message)), (name,)).withdrawn

    async def _hears(self, message: Json, place: codec.Place) -> bool:
        """Whether the bot answers this message."""
        author = codec.author_of(message)
        if author in ("", self._me.id, self._me.bot) or message.get("bot_id") == self._me.bot != "":
            return False
        mode, named = self._mode(place), codec.is_named(message, self._me)
        if mode == "off":
            return False
        if codec.is_bots(message):
            return self._bots.hears(place.channel, author, named=named)
        self._bots.person_spoke(place.channel)
        if place.alone or named or mode in ("free", "thread"):
            return True
        if place.thread is None or not await self._is_admitted(message, place):
            return False
        return message.get("parent_user_id") == self._me.id or await self._history.is_own(place, self._me)

    def _mode(self, place: codec.Place) -> Listen:
        """The rule of a place: its own, else of what it lies in, else the general one."""
        if place.alone:
            return "free"
        named = (place.cursor, place.channel, self._me.team, self._me.enterprise, EVERYWHERE)
        return self._places.of(*named) or self._settings.listen

    async def _is_admitted(self, message: Json, place: codec.Place) -> bool:
        author = codec.author_of(message)
        writer = codec.source(place, self._me, author, {}, codec.team_of(message))
        return await is_admitted(self._clock, self.admits, writer)

    async def _of_edit(self, data: Json) -> Inbound | None:
        """A new wording. Slack tells of the preview of a link, and of an answer in a thread, in the same way."""
        message, before, channel = data["message"], data.get("previous_message") or {}, data["channel"]
        if not message.get("edited") or message.get("text") == before.get("text"):
            return None
        said = self._said.get((channel, message["ts"]))
        if said is None:  # before this process began
            first = codec.event_id(self._me, codec.Place(channel=channel), codec.author_of(message), message["ts"])
            return await self._of_message(message, channel, amends=(first,))
        names = await self._history.names(codec.people_in([message]) - {self._me.id})
        inbound = codec.message_inbound(message, said.place, self._me, names, amends=said.events)
        if inbound is not None:
            self._said[channel, message["ts"]] = written(inbound, place=said.place)
        return inbound
