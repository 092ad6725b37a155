"""Histories that clients hold: what of one is known here, and the rest of it as a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from msgspec import Struct

from gateway.agent.choices import Choice, choose
from gateway.agent.sessions import exchange_of, searched
from gateway.context import identifiers
from gateway.domain.chat import SessionKey, Source, speaker
from gateway.domain.message import Message, note_of, noted
from gateway.domain.place import choosing, names
from gateway.domain.session import Session
from gateway.domain.turn import TurnRules
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.tokens import TokenCounter
from gateway.store.imports.past import Tally, paired
from gateway.store.port import Store
from gateway.store.records import Opening


class StoreHistories(Struct, frozen=True, kw_only=True):
    """`Histories` in the store."""

    store: Store
    rules: TurnRules
    counter: TokenCounter
    clock: Clock

    async def known(self, source: Source, events: Sequence[str]) -> int:
        key = self.rules.key(source)
        if not events or await self._came(key, events[-1]):
            return len(events)  # it may still wait in its lane
        best = 0
        for session in sorted(await searched(self.store, key), key=lambda each: not _is_taken(each)):
            there = set(_names(await self.store.transcript(session)))
            best = max(best, next((at for at in range(len(events), best, -1) if events[at - 1] in there), best))
            if best == len(events) or (best and not _is_taken(session) and not await self._came(key, events[best])):
                break  # what did not come has nothing known behind it, but for what `take` was given
        return best

    async def _came(self, key: SessionKey, event: str) -> bool:
        """Say whether the message of an event was accepted."""
        return any(each.item.key == key for each in (await self.store.named(event, [key.platform])).fates)

    async def take(self, source: Source, after: str, messages: Sequence[Message]) -> None:
        key = self.rules.key(source)
        event, _, mark = after.partition("/")
        found = await exchange_of(self.store, key, event, mark) if event else None
        before, shared = found or (None, ())
        new = await asyncio.to_thread(self._measured, source, messages)
        now = self.clock.now()
        session = Session(
            id=lasting_id("s", "history", key, *(_names(messages))),
            key=key,
            chat_type=source.chat_type,
            parent_id=before.id if before is not None else None,
            started_at=now,
            ended_at=now,
            end_reason="reset",
            hook="done",
            model=before.model if before is not None else "",
            system_prompt="",
            last_active_at=now,
            flushed_messages=len(shared) + len(new),
        )
        await self.store.import_sessions([Opening(session=session, transcript=[*shared, *new])])

    def _measured(self, source: Source, messages: Sequence[Message]) -> list[Message]:
        """The messages as a transcript, with what must be known of each."""
        made = []
        whole = [*paired(messages, Tally())]
        if messages and messages[-1].get("tool_calls"):  # what they came to is with the message that comes
            last = max(at for at, each in enumerate(whole) if each.get("tool_calls"))
            whole[last:] = messages[-1:]
        for message in whole:
            facts = {"person": source.user} if message["role"] == "user" else {}
            if message["role"] == "tool":
                message = noted(message, identifiers=identifiers.found(message))
            made.append(noted(message, at=self.clock.now(), tokens=self.counter.message(message), **facts))
        return made

    async def instruct(self, source: Source, text: str) -> None:
        place = choosing(self.rules.key(source), source.chat_type, names(source))[0]
        await choose(self.store, place, "persona", Choice(value=text or None, by=speaker(source), at=self.clock.now()))


def _is_taken(session: Session) -> bool:
    """Say whether it was made of a client's history: nothing was said in it."""
    return session.started_at == session.ended_at


def _names(messages: Sequence[Message]) -> Iterator[str]:
    """The events of what people said, without the number of those asked anew."""
    return (event.partition("-")[0] for message in messages if (event := note_of(message).get("event", "")))
