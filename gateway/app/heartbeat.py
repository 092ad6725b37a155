"""A look now and then: the agent reads HEARTBEAT.md and what is due, and speaks only if there is something to say.

A look is a helper of the conversation that it is for. So the conversation holds nothing of a look that found nothing;
one that found something wakes it. Looks and dollars a day are bounded. No model is asked if the file, the due reminders
and the person's last words are the same as at the look before. A note of the store has what was seen; of several
processes one looks, the one that changes the note."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, tzinfo
from hashlib import sha256
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct, json

from gateway.agent.delegation import Helpers, Order
from gateway.agent.waking import WOKE_BY_ITSELF
from gateway.app.config.models import HeartbeatSettings
from gateway.app.orders import place_of
from gateway.domain.chat import ERRANDS, HEARTBEAT, ChatAddress, SessionKey
from gateway.domain.message import is_request, note_of
from gateway.domain.reminder import Reminder
from gateway.domain.session import Session
from gateway.domain.turn import TurnRules
from gateway.people.pairing import Pairing
from gateway.people.people import Home, Place
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable, ToolError, UserError
from gateway.runtime.redaction import Redactor
from gateway.runtime.structs import replace
from gateway.store.port import Store

log = structlog.get_logger(__name__)

FILE: Final = "HEARTBEAT.md"
LONGEST: Final = 8_000  # characters of the file that are read
LOOK_EVERY: Final = 60.0  # seconds between two questions whether it is time
AHEAD: Final = 86_400.0  # seconds in which a reminder counts as due soon
FOUND: Final = "a look at what you wrote down found something"
TASK: Final = """\
This is one of the looks that you take now and then while nobody waits. It is {now}. Below stand the person's {file} \
and what is due soon. See whether there is something that the person should be told now; look things up where that \
helps. You can change nothing. If there is nothing to tell (nearly always), answer with the single word NOTHING. \
Otherwise answer with what they should be told, in few words.

{file}:
{text}

Due within a day:
{due}"""

_LOOKED_AT: Final = 20  # conversations of a person
_NOTES, _STATE = "heartbeat", "state"


class Looked(Struct, frozen=True, kw_only=True):
    """The last look: its time (seconds since the epoch), how many looks its `day` had by it, and a hash of what was
    seen."""

    day: str = ""
    looks: int = 0
    at: float = 0.0
    seen: str = ""


class Heartbeat(Struct, frozen=True, kw_only=True):
    """Looks now and then. `folder` has the file; `zone` None: this machine's."""

    settings: HeartbeatSettings
    folder: Path
    store: Store
    helpers: Helpers
    rules: TurnRules
    redact: Redactor
    zone: tzinfo | None
    pairing: Pairing
    home: Home
    clock: Clock

    async def look(self) -> None:
        """Begin a look if it is time for one, and something changed since the last one."""
        try:
            await self._look()
        except (StoreUnavailable, ToolError, UserError) as error:
            log.warning("heartbeat_waits", error=str(error))

    async def _look(self) -> None:
        now = self.clock.now()
        local, noted = datetime.fromtimestamp(now, self.zone), (await self.store.notes(_NOTES)).get(_STATE)
        last = json.decode(noted, type=Looked) if noted else Looked()
        looks = last.looks if last.day == f"{local:%Y-%m-%d}" else 0
        text = await asyncio.to_thread(written_in, self.folder)
        if not text or not self.settings.may_look(local.hour, now - last.at, looks):
            return
        said = self.settings.to
        place = await self.home.needed() if said is None else Place(to=said)
        by = await self.pairing.key_of(place.to.platform, place.to.chat)
        to = place.to if by is None else await self._newest(place.to)
        source = await place_of(self.store, to, self.settings.person or place.person, by)
        key = self.rules.key(source)
        session = next(iter(await self.store.sessions(key, 1)), None)
        if session is None or await self.store.running(key):
            return  # nobody has talked there yet, or somebody does just now
        due = [each for each in await self.store.reminders(key, 0) if each.due_at and each.due_at <= now + AHEAD]
        facts = (text, *(f"{each.id}:{each.version}" for each in due), await self._last_words(session))
        seen = sha256(json.encode(facts)).hexdigest()
        this = replace(last, at=now)
        if seen == last.seen:
            await self._note(noted, this)
            return
        this = replace(this, day=f"{local:%Y-%m-%d}", looks=looks + 1)
        if (begun := await self._note(noted, this)) is None:
            return  # another process is at it
        order = Order(
            task=TASK.format(now=f"{local:%A %Y-%m-%d %H:%M}", file=FILE, text=self.redact(text), due=_listed(due)),
            background=True,
            session=session.id,
            event=f"{HEARTBEAT}{this.day}",
            lets=(),
            woke=FOUND,
        )
        await self.helpers.run(order, key, source, f"{HEARTBEAT}{this.day}:{this.looks}", lambda: None)
        await self._note(begun, replace(this, seen=seen))  # after it is on its way: a crash before costs one more look

    async def _newest(self, to: ChatAddress) -> ChatAddress:
        """Where the person of a key wrote last."""
        keys = await self.store.conversations(SessionKey(platform=to.platform, chat=to.chat), _LOOKED_AT)
        found = [session for key in keys if key.thread != ERRANDS for session in await self.store.sessions(key, 1)]
        return max(found, key=lambda each: each.last_active_at).key.address if found else to

    async def _note(self, noted: str | None, looked: Looked) -> str | None:
        """Write down the look; returns what was written, None if another process was first."""
        text = json.encode(looked).decode()
        return text if await self.store.set_notes(_NOTES, {_STATE: text}, {_STATE: noted}) else None

    async def _last_words(self, session: Session) -> str:
        """What names the newest message of a person in the conversation."""
        for message in reversed(await self.store.transcript(session)):
            if is_request(message) and not str(note_of(message).get("event", "")).startswith(WOKE_BY_ITSELF):
                return str(note_of(message).get("id", ""))
        return ""


def written_in(folder: Path) -> str:
    """The text of the file; "" if there is none."""
    try:
        with (folder / FILE).open(encoding="utf-8-sig") as file:
            return file.read(LONGEST).strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        log.warning("heartbeat_file_not_read", error=str(error))
        return ""


def _listed(due: Sequence[Reminder]) -> str:
    return "\n".join(f"- {each.local(each.due_at or 0.0)}: {each.brief}" for each in due) or "(nothing)"
