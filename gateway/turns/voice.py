"""Answers said aloud, each after its text.

What is to be said is an item in a lane of its own, under its conversation's key, so that the next message waits for no
voice, and another process can continue after a crash. It is stored before the turn ends, and names the rows of the
answer. It waits for them; if that turn ended without them, another attempt has left an item of its own. Each part of
the sound is kept before it is shown, in a row whose id is made from the answer's, so it is paid once and shown once. If
the voice fails, the text is still there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Final

import structlog
from msgspec import Struct, field
from msgspec.json import decode, encode

from gateway.agent.caps import millionths
from gateway.agent.choices import held
from gateway.agent.files.kinds import sound_format
from gateway.agent.files.speech import NO_BUDGET, TOO_SLOW, SpeechSettings
from gateway.agent.metering import Metering
from gateway.agent.sessions import Sessions
from gateway.delivery.markdown.spoken import spoken
from gateway.delivery.outbox import Outbox
from gateway.domain.chat import VOICE, Inbound, KeptFile, Outbound, OutboundState, SessionKey
from gateway.domain.session import Session
from gateway.providers.media import SpeechServer
from gateway.runtime.aside import RunsAside
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import MediaFailed, SessionConflict, SessionNotFound, SpendCapReached, TookTooLong
from gateway.runtime.points import Points
from gateway.runtime.structs import replace
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import Arrival, Forgetting, InboxItem
from gateway.turns.notices import Throttle

log = structlog.get_logger(__name__)

NOT_SAID: Final = "🔇 I could not speak this: {reason}."
_LANE: Final = "voice"  # of a conversation's voices, in the place of a helper's id
_MOST: Final = 1_000  # answers that wait there
_LOOKS: Final = (0.01, 0.1)  # seconds between looks for an answer that is about to be stored: the first, the longest
_AT_ONCE: Final = 8  # parts in this process, each in memory
_TOLD_EVERY: Final = 3_600.0  # seconds
_MIME: Final = {"ogg": "audio/ogg", "mp3": "audio/mpeg", "m4a": "audio/mp4"}


class Order(Struct, frozen=True, kw_only=True):
    """What is to be said: `rows` of the answer to an `event`, which the item `turn` gives in a `session`. `in_room`:
    only in the room that the bot is in."""

    rows: Sequence[str]
    event: str
    turn: str
    session: str
    in_room: bool = False


class Voice(Struct, kw_only=True):
    """Says answers aloud."""

    store: Store
    outbox: Outbox
    sessions: Sessions
    server: SpeechServer
    settings: SpeechSettings
    read: RunsAside
    clock: Clock
    points: Points
    _told: Throttle = field(default_factory=lambda: Throttle(every=_TOLD_EVERY))
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def ask(self, item: InboxItem, session: Session, rows: Sequence[Outbound]) -> None:
        """Have the answer in these rows said aloud once they are stored, if that is wanted."""
        inbound, replies = item.inbound, [row.id for row in rows if row.kind == "reply"]
        if not replies or inbound.terms is not None or self.outbox.largest_file(item.key.platform) is None:
            return
        chosen = held((await self.sessions.choices(session)).voice, {}, session.key.platform, session.places)
        when = chosen.value if chosen is not None else self.settings.when
        wanted = when in ("on", "always") or (when == "voice" and any(f.kind == "voice" for f in inbound.attachments))
        if not wanted and not self.outbox.speaks_in_room(inbound.source.address):
            return
        order = Order(rows=replies, event=inbound.event_id, turn=item.id, session=session.id, in_room=not wanted)
        now = self.clock.now()
        text, event = encode(order).decode(), f"{VOICE}{replies[0]}"
        told = Inbound(event_id=event, source=inbound.source, text=text, kind="speak", own="", sent_at=now)
        arrival = Arrival(inbound=told, key=replace(item.key, helper=_LANE), at=now)
        await insist(lambda: self.store.accept([arrival], cap=_MOST), clock=self.clock, what="speak")
        self.points("voice.asked")

    async def run(self, item: InboxItem, metering: Metering) -> None:
        """Say an answer aloud, part by part, from wherever an earlier attempt got to."""
        order, key = decode(item.inbound.text, type=Order), item.key.caller
        with self.sessions.helpers.aside(item.key):
            try:
                session = await self.store.session(order.session, key)
                parts = await self.read(partial(spoken, self.settings.max_chars), await self._words(item, order))
            except (SessionNotFound, TookTooLong) as error:
                log.info("not_said", item=item.id, error=str(error))
                return
            for number, words in enumerate(parts, 1):
                if order.in_room and not self.outbox.speaks_in_room(item.inbound.source.address):
                    return  # it has left
                row_id, file, text = f"{order.rows[0]}.voice{number}", None, ""
                try:
                    file = await self._kept(session, f"{VOICE}{row_id}", words, metering)
                except (TimeoutError, SpendCapReached, MediaFailed) as error:
                    text = NOT_SAID.format(reason=self._why(error))
                    if not self._told.due(key, self.clock.monotonic()):
                        return  # who talks all day need not read it each time
                if not await self._words(item, order):  # forgotten meanwhile
                    if file is not None:
                        await self._forget(key, file)
                    return
                (row,) = self.outbox.rows(item, "notice", text, first_id=row_id)
                row = replace(row, key=key, answers=order.event, session_id=order.session, file=file)
                await insist(partial(self.outbox.emit, [row]), clock=self.clock, what="emit")
                if file is None:
                    return
                self.points("voice.emitted")

    def _why(self, error: Exception) -> str:
        late, capped = isinstance(error, TimeoutError), isinstance(error, SpendCapReached)
        reason = TOO_SLOW.format(seconds=self.settings.timeout) if late else NO_BUDGET if capped else str(error)
        log.warning("not_said", reason=reason, detail=getattr(error, "detail", ""))
        return reason

    async def _words(self, item: InboxItem, order: Order) -> str:
        """The answer; "" if there is none, or none any more."""
        looks = Backoff(*_LOOKS)
        while True:
            running = await self.store.running(item.key.caller)  # first, or it might end between the looks
            rows = {row.id: row for row in await self.store.rows(item.inbound.source.address, order.rows)}
            if all(each in rows and rows[each].state != OutboundState.STREAMING for each in order.rows):
                return "\n\n".join(rows[each].text for each in order.rows)
            if running is None or running.id != order.turn:
                return ""
            await self.clock.sleep(looks.pause())

    async def _forget(self, key: SessionKey, file: KeptFile) -> None:
        """Remove a sound whose words were forgotten while it was being made."""
        while True:
            tip = await self.store.tip(key)
            deed = Forgetting(
                id=lasting_id("d", file.ref),
                key=key,
                at=self.clock.now(),
                item=None,
                tip=None if tip is None else tip.ref,
                removed=(),
                files=(file.ref,),
            )
            with suppress(SessionConflict):  # somebody speaks: look again
                await insist(partial(self.store.forget, None, deed), clock=self.clock, what="forget")
                return

    async def _kept(self, session: Session, ref: str, words: str, metering: Metering) -> KeptFile:
        """The words as sound. Raises TimeoutError, SpendCapReached and MediaFailed."""
        key = session.key
        if (known := await self.store.kept_file(key, ref)) is not None:
            return known
        price = self.settings.usd_per_million_chars
        cost = None if price is None else millionths(price * len(words) / 1_000_000) / 1_000_000
        async with self._room, metering.buying(session, "speech", self.server, cost) as paid:
            async with self.clock.limit(self.settings.timeout):
                sound = await self.server.say(words, self.settings.voice, self.outbox.voice_form(key.platform))
            paid(cost)
        self.points("voice.bought")
        if (form := sound_format(sound, "")) is None:
            raise MediaFailed(f"{self.server.who} sent no sound", detail=repr(sound[:100]))
        digest, mime = sha256(sound).hexdigest(), _MIME.get(form, f"audio/{form}")
        name, now = f"voice.{form}", self.clock.now()
        file = KeptFile(ref=ref, digest=digest, name=name, mime=mime, size=len(sound), at=now)
        await insist(lambda: self.store.keep_file(key, file, sound), clock=self.clock, what="keep_file")
        return file
