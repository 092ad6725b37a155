"""Reactions: the bot's on messages that it answers, and people's on the bot's messages.

A person's reaction begins no turn. It waits under their conversation, one note for each message, and is put before
their words when they write next. The store is asked once about each conversation; after that, a plain message costs
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from gateway.domain.adapter import CanReact, Sign
from gateway.domain.chat import ChatAddress, Inbound, SessionKey, speaker
from gateway.domain.quoting import clipped, flat
from gateway.domain.turn import TurnRules
from gateway.people.pairing import Pairing
from gateway.runtime.clock import Clock
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background, best_effort
from gateway.store.port import Store, under
from gateway.store.records import Arrival, InboxItem, Receipt
from gateway.turns.notices import Quota, Throttle

_FOLDER: Final = "reactions"
_PLAIN: Final = ("message", "queue", "steer")  # kinds of what people write
_REMEMBERED: Final = 10_000  # conversations, messages
_WRITE_AGAIN: Final = 10.0  # seconds between two writes about one message
_MOST: Final = 20  # messages with reactions that wait in a conversation
_LOOKED_AT: Final = 50  # rows of the chat, for the message that a reaction is on
_MOST_SIGNS: Final = 5  # of one person on one message
_LONGEST_SIGN: Final = 40  # characters
_SIGNED: Final = 20  # messages of a conversation that get signs in a minute
_RESTS: Final = 3_600.0  # seconds without signs in a conversation where one failed


class _Held(Struct):
    """A conversation's present reactions, by message and person; which of them are not stored like that, and when each
    was last stored (monotonic)."""

    notes: dict[str, str]
    unwritten: set[str] = field(default_factory=set)
    written: dict[str, float] = field(default_factory=dict)


class Reactions(Struct, kw_only=True):
    """Reactions on platforms that have them. `signs`: somewhere, the bot reacts itself. `none`: conversations without
    any, about which the store need not be asked. `given`: reactions that messages hold, by event, until these are
    stored."""

    store: Store
    rules: TurnRules
    pairing: Pairing
    clock: Clock
    background: Background
    adapters: Mapping[str, CanReact]
    signs: bool
    none: set[SessionKey] = field(default_factory=set)
    given: dict[str, tuple[SessionKey, Sequence[str]]] = field(default_factory=dict)
    _held: dict[SessionKey, _Held] = field(default_factory=dict)
    _others: set[tuple[ChatAddress, str]] = field(default_factory=set)  # messages that the bot did not write
    _signed: dict[str, list[Sign]] = field(default_factory=dict)  # by item, what is still to be shown
    _quota: Quota = field(default_factory=lambda: Quota(most=_SIGNED, seconds=60.0))
    _failed: Throttle = field(default_factory=lambda: Throttle(every=_RESTS))

    def put(self, item: InboxItem, sign: Sign) -> None:
        """React to the message of an item, if it is one, in the background and as well as possible. Reactions to one
        message come one after the other."""
        inbound, now = item.inbound, self.clock.monotonic()
        adapter = self.adapters.get(inbound.source.platform)
        if adapter is None or inbound.place is None or inbound.kind not in _PLAIN or inbound.command is not None:
            return
        if sign == "taken":
            rests = self._failed.left(item.key, now) or not self._quota.left(item.key, now)
            if rests or not self.rules.shows_signs(inbound.source):
                return
            self._quota.take(item.key, now)
            self._signed[item.id] = []
        waiting = self._signed.get(item.id)
        if waiting is None:
            return
        if sign != "taken":
            del self._signed[item.id]
        waiting.append(sign)
        if len(waiting) == 1:
            self.background.start(self._show(adapter, item, inbound.place, waiting), name=f"signs {item.id}")

    async def _show(self, adapter: CanReact, item: InboxItem, place: str, waiting: list[Sign]) -> None:
        while waiting:
            if not await best_effort(adapter.react(item.inbound.source.address, place, waiting[0]), what="sign"):
                self._failed.due(item.key, self.clock.monotonic())
                return
            waiting.pop(0)

    async def take(self, inbound: Inbound) -> None:
        """Note a reaction to one of the bot's messages. Raises StoreUnavailable."""
        source, message, changes = inbound.source, inbound.reply_to or "", inbound.text.split()
        key, name = self.rules.key(source), f"{message} {source.user}"
        if "+" in inbound.text and not await self.pairing.lets_in(source):
            return
        held = await self._look(key)
        if "+" not in inbound.text and name not in held.notes:
            return  # a stranger's, or one that is told of already
        signs, text = json.loads(held.notes.pop(name)) if name in held.notes else ([], None)
        if text is None and (text := await self._text(source.address, message)) is None:
            return
        for change in changes:
            sign = flat(change[1 : _LONGEST_SIGN + 1])
            signs = [each for each in signs if each != sign] + [sign] * (change[0] == "+")
        if signs:
            held.notes[name] = json.dumps([signs[-_MOST_SIGNS:], text], ensure_ascii=False)
        self.none.discard(key)
        held.unwritten |= {name, *list(held.notes)[:-_MOST]}
        held.notes = dict(list(held.notes.items())[-_MOST:])
        now = self.clock.monotonic()
        if now - held.written.get(name, -_WRITE_AGAIN) >= _WRITE_AGAIN:
            held.written = {each: at for each, at in held.written.items() if now - at < _WRITE_AGAIN} | {name: now}
            await self._write(key, held)

    async def before(self, arrival: Arrival) -> Arrival:
        """A person's message, after a line for each of their reactions. Raises StoreUnavailable."""
        inbound, key = arrival.inbound, arrival.key
        source = inbound.source
        if source.platform not in self.adapters or inbound.kind not in _PLAIN or inbound.command or inbound.terms:
            return arrival
        held = await self._look(key)
        await self._write(key, held)
        there = await self.store.notes(under(key, _FOLDER)) if held.notes else {}  # some may be forgotten
        if not there:
            self._held.pop(key, None)
            self.none = self.none if len(self.none) < _REMEMBERED else set()
            self.none.add(key)
        mine = [name for name in held.notes if name in there and name.endswith(f" {source.user}")]
        if not mine:
            return arrival
        self.given[inbound.event_id] = key, mine
        lines = [_line(speaker(source), *json.loads(there[name])) for name in mine]
        own = inbound.text if inbound.own is None else inbound.own
        return replace(arrival, inbound=replace(inbound, text="".join([*lines, inbound.text]), own=own))

    async def settle(self, receipts: Sequence[Receipt]) -> None:
        """Forget reactions that are in messages which are now stored. Raises StoreUnavailable."""
        for receipt in receipts:
            key, names = self.given.pop(receipt.event_id, (None, ()))
            if key is not None and receipt.status != "full":
                held = await self._look(key)
                held.notes = {name: note for name, note in held.notes.items() if name not in names}
                await self.store.set_notes(under(key, _FOLDER), dict.fromkeys(names))

    async def _look(self, key: SessionKey) -> _Held:
        if key not in self._held:
            notes = await self.store.notes(under(key, _FOLDER))
            while len(self._held) >= _REMEMBERED:
                del self._held[next(iter(self._held))]
            self._held[key] = _Held(dict(notes))
        return self._held[key]

    async def _write(self, key: SessionKey, held: _Held) -> None:
        if held.unwritten:
            for name in held.unwritten & held.notes.keys():
                if await self._text(key.address, name.partition(" ")[0]) is None:  # forgotten meanwhile
                    held.notes.pop(name, None)
            changes = {name: held.notes.get(name) for name in held.unwritten}
            held.unwritten = set()
            await self.store.set_notes(under(key, _FOLDER), changes)

    async def _text(self, chat: ChatAddress, message: str) -> str | None:
        """The beginning of one of the bot's messages; None if it is someone else's, or old."""
        if (chat, message) in self._others:
            return None
        rows = await self.store.outbox(chat, _LOOKED_AT)
        found = next((each for each in rows if each.platform_message_id == message and each.edits is None), None)
        if found is None:
            self._others = self._others if len(self._others) < _REMEMBERED else set()
            self._others.add((chat, message))
            return None
        return flat(clipped(found.text or (found.file.name if found.file else "")))


def _line(who: str, signs: Sequence[str], text: str) -> str:
    return f'[{who} reacted {" ".join(signs)} to: "{text}"]\n'
