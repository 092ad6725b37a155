"""Histories that clients hold: what of one is known here, and the rest of it as a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from gateway.agent.choices import Choice, choices, choose
from gateway.agent.sessions import exchange_of, searched
from gateway.app.imports.past import Tally, measured, paired
from gateway.context.summary import as_ours
from gateway.domain.chat import SessionKey, Source, speaker
from gateway.domain.message import Message, answer_mark, note_of, text_of
from gateway.domain.place import choosing, names
from gateway.domain.session import Session
from gateway.domain.turn import TurnRules
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import Store
from gateway.store.records import Opening

_MOST_TALKS = 20  # conversations of a person, and sessions of each, in which the end of a history is looked for
_MOST_BRANCHES = 20
_LEAST = 40  # characters: fewer may be the end of many a conversation


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
        best, all_by_name = 0, True
        for session in sorted(await searched(self.store, key), key=lambda each: not _is_taken(each)):
            there = dict(_names(await self.store.transcript(session)))
            best = max(best, next((at for at in range(len(events), best, -1) if events[at - 1] in there), best))
            all_by_name = all_by_name and all(not each or each.isdecimal() for each in there.values())
            if best == len(events):
                break
            if best and all_by_name and not _is_taken(session) and not await self._came(key, events[best]):
                break  # what did not come has nothing known behind it, but for what `take` was given
        return best

    async def _came(self, key: SessionKey, event: str) -> bool:
        return any(each.item.key == key for each in (await self.store.named(event, [key.platform])).fates)

    async def overlapping(
        self, source: Source, past: Sequence[tuple[str, str, bool]], *, elsewhere: bool
    ) -> tuple[str | None, str] | None:
        key, found, there = self.rules.key(source), None, set[str]()
        others = await self.store.conversations(replace(key, thread=None), _MOST_TALKS) if elsewhere else ()
        for each in dict.fromkeys((key, *others)):
            for session in await self.store.sessions(each, _MOST_BRANCHES):
                shown = _exchanges(await self.store.transcript(session))
                ends = (end for end in range(len(shown), 0, -1) if _ends_so(shown, end, past, session))
                if (end := next(ends, None)) is None:
                    continue
                event, _, told = shown[end - 1]
                if found is None:
                    found = each.thread, f"{event}/{answer_mark(told)}"
                    there = {name for name, _, _ in shown}
                elif found[0] != each.thread or (event not in there and session.end_reason != "compression"):
                    return None
        return found

    async def take(self, source: Source, after: str, messages: Sequence[Message]) -> None:
        key = self.rules.key(source)
        event, _, mark = after.partition("/")
        found = await exchange_of(self.store, key, event, mark) if event else None
        before, shared = found or (None, ())
        new = await asyncio.to_thread(self._measured, source, messages)
        now = self.clock.now()
        session = Session(
            id=lasting_id("s", "history", key, *[name for name, _ in _names(messages)]),
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
        whole = as_ours([*paired(messages, Tally())], ("user",))  # answers are known again by their words
        if messages and messages[-1].get("tool_calls"):  # what they came to is with the message that comes
            last = max(at for at, each in enumerate(whole) if each.get("tool_calls"))
            whole[last:] = messages[-1:]
        return measured(whole, source.user, self.clock.now(), self.counter)

    async def instruct(self, source: Source, text: str) -> None:
        key, named = self.rules.key(source), names(source)
        place = choosing(key, source.chat_type, named)[0]
        if not text:
            made = (await choices(self.store, key, source.chat_type, named)).persona.get(place)
            if made is None or made.provider != source.platform:
                return
        made = Choice(value=text or None, by=speaker(source), at=self.clock.now(), provider=source.platform)
        await choose(self.store, place, "persona", made)


def _is_taken(session: Session) -> bool:
    """Whether it was made from a client's history, so nothing was said in it."""
    return session.started_at == session.ended_at


def _exchanges(messages: Sequence[Message]) -> list[tuple[str, str, str]]:
    """The event, the words and the answer of each exchange that a client saw."""
    made: list[tuple[str, str, str]] = []
    for message in messages:
        event = note_of(message).get("event", "")
        if message["role"] == "assistant" and made:
            made[-1] = (*made[-1][:2], text_of(message))
        elif event:
            made.append((event.partition("-")[0], note_of(message).get("said", text_of(message)).strip(), ""))
    return [each for each in made if ":" not in each[0]]


def _ends_so(
    shown: Sequence[tuple[str, str, str]], end: int, past: Iterable[tuple[str, str, bool]], session: Session
) -> bool:
    """Whether the exchanges before `end` end as a client shows the past, in words that others are unlikely to
    contain."""
    size = 0
    for said, told, may_miss in past:
        if not end:
            return bool(session.compaction_count) and size >= _LEAST
        if said.strip() == shown[end - 1][1] and told.strip().endswith(shown[end - 1][2].strip()):
            size += len(said) + len(told)
            end -= 1
        elif not may_miss:
            return False
    return size >= _LEAST


def _names(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """The events of what people said, each with what is behind its name: the number of those asked anew, or what a
    caller's own name for it has become."""
    for message in messages:
        if event := note_of(message).get("event", ""):
            name, _, more = event.partition("-")
            yield name, more
