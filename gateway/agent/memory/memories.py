"""The memories of all scopes, read and changed through the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Final

from msgspec import Struct

from gateway.agent.memory.rules import Edit, Source, barring, change, found, used
from gateway.agent.memory.snapshot import MemorySettings, snapshot
from gateway.domain.chat import ChatType, SessionKey
from gateway.domain.memory import About, Fact, Memory, is_alone, scope_of
from gateway.domain.message import Message, is_request, note_of, own_words, text_of
from gateway.domain.session import Session
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable, ToolError
from gateway.store.port import Store

_TRIES: Final = 20  # of a change beside others; each round one of them gets through


class Memories(Struct, frozen=True, kw_only=True):
    """Reads and changes memories. `zone`: of the people who talk here."""

    store: Store
    clock: Clock
    redact: Callable[[str], str]
    settings: MemorySettings
    zone: tzinfo | None = None

    async def of(self, scope: SessionKey) -> Memory:
        """The memory of a scope, with the numbers by which people name its facts."""
        return (await self.store.memory(scope)).numbered()

    async def snapshot(self, session: Session) -> str:
        """The memory of a session's scope, as its prompt shows it from now on; a temporary chat is shown none."""
        if session.temporary:
            return ""
        memory = await self.store.memory(scope_of(session.key, session.chat_type))
        alone = is_alone(session.key, session.chat_type)
        return snapshot(memory, self.settings, self.redact, self.zone, alone=alone)

    async def change(self, scope: SessionKey, step: Callable[[Memory], Memory]) -> Memory:
        """Change a memory; `step` may be asked again, of a newer one. Raises the errors of the decision."""
        for _ in range(_TRIES):
            before = await self.store.memory(scope)
            after = step(before.numbered()).numbered()
            difference = change(scope, before, after)
            if not difference.kept and not difference.gone:
                return after
            if await self.store.change_memory(difference):
                return after
        raise StoreUnavailable("Too many others are changing the memory; try again.")

    def edit(self, key: SessionKey, chat_type: ChatType, source: Source, origin: str = "") -> Edit:
        """A step by which the message of `source` changes the memory of a conversation. `origin`: of the new text, as
        in a Fact."""
        scope, alone = scope_of(key, chat_type), is_alone(key, chat_type)
        return Edit(scope=scope, source=source, now=self.clock.now(), alone=alone, redact=self.redact, origin=origin)

    async def forget(self, scope: SessionKey, facts: Sequence[Fact], messages: Sequence[Source]) -> None:
        """Forget facts for good. Facts that they replaced go, too, and no flush learns them again from their own
        messages, or from `messages`."""
        now = self.clock.now()
        await self.change(scope, lambda memory: barring(memory, facts, messages, now))


class TurnMemory(Struct, frozen=True):
    """The memory as a turn's tool uses it. The source of a new fact is the message that the turn answers. `origin`
    says whose words a new text is. Each change returns a sentence for the model, and raises ToolError for one that
    cannot be made."""

    memories: Memories
    session: Session
    messages: Sequence[Message]  # as they are stored
    origin: Callable[[str], str] = lambda _: ""

    async def add(self, about: About, text: str) -> str:
        """Remember a text."""
        return await self._edited(lambda edit, memory: edit.add(memory, about, text), text)

    async def replace(self, words: str, text: str) -> str:
        """Replace the fact that has these words, or this #number."""
        return await self._edited(lambda edit, memory: edit.replace(memory, words, text), text)

    async def remove(self, words: str) -> str:
        """Forget the fact with these words, or this #number."""
        return await self._edited(lambda edit, memory: edit.remove(memory, words))

    async def search(self, words: str, limit: int) -> Sequence[Fact]:
        """The facts that fit best, which count as used."""
        scope, now = scope_of(self.session.key, self.session.chat_type), self.memories.clock.now()
        facts = found(await self.memories.of(scope), words, limit)
        wanted = {fact.id for fact in facts}
        if facts:
            await self.memories.change(
                scope, lambda memory: used(memory, [each for each in memory.facts if each.id in wanted], now)
            )
        return facts

    async def _edited(self, step: Callable[[Edit, Memory], tuple[Memory, str]], text: str = "") -> str:
        key, chat_type = self.session.key, self.session.chat_type
        edit = self.memories.edit(key, chat_type, self._source(), self.origin(text) if text else "")
        said: list[str] = []

        def make(memory: Memory) -> Memory:
            after, sentence = step(edit, memory)
            said.append(sentence)
            return after

        await self.memories.change(edit.scope, make)
        return said[-1]

    def _source(self) -> Source:
        request = next((message for message in reversed(self.messages) if is_request(message)), None)
        if request is None or "id" not in note_of(request):
            raise ToolError("There is no message of a person that this could be remembered of.")
        return source_of(request, self.session)


def source_of(message: Message, session: Session) -> Source:
    """A stored message of a person as a source of facts."""
    note, own = note_of(message), own_words(message)
    whole = text_of(message)
    name = ""
    if not is_alone(session.key, session.chat_type) and whole.startswith("["):
        name = whole[1:].partition("] ")[0]
    return Source(
        message_id=note.get("id", ""),
        session_id=session.id,
        said_by=note.get("person") or session.key.user or "",
        said_by_name=name,
        said_at=note.get("at", 0.0),
        own=own,
        others=whole.replace(own, "", 1).strip() if own != whole else "",
    )
