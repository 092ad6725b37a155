"""Forgetting, as a person asks for it: the messages are chosen here, and the store removes them in one step.

`gateway.context.forgetting` decides about each message; here are the things besides transcripts: files that no other
message shows, rules that the forgotten words set, titles and to-do items with such words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from math import inf
from typing import Final, TypeVar

from msgspec import Struct

from gateway.agent.background import BackgroundCommands
from gateway.agent.choices import choices, folder_of, forget_choices
from gateway.agent.files.quota import give_back
from gateway.agent.holding import Copies, Holding, Note, counted_notes, holding
from gateway.agent.sessions import Sessions
from gateway.agent.workspace.folders import Workspaces
from gateway.context.forgetting import History, Remainder, runs, telling_words, tells, without
from gateway.context.persisted import persisted
from gateway.domain.adapter import Adapter, KeepsLinks, KeepsTyped
from gateway.domain.chat import EXPORT, OUTPUT, Inbound, KeptFile, SessionKey, Source, is_shared, speaker
from gateway.domain.memory import Fact, scope_of
from gateway.domain.message import Message, is_request, note_of, own_words, text_of
from gateway.domain.reminder import Reminder, notes_of
from gateway.domain.rule import Pin, Pins
from gateway.domain.session import Session
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.redaction import Redact
from gateway.runtime.structs import replace
from gateway.store.port import Store, under
from gateway.store.records import Arrival, Erasure, Forgetting, InboxItem, Lease, Replacement, Rewriting, Talk
from gateway.words.languages import is_stop
from gateway.words.text import Holds, HoldsInside, is_dense

T = TypeVar("T")

NOT_UNDONE: Final = (
    "I cannot take back what my model's provider has already received. Only you can delete what you see in this chat."
)
_PAGE: Final = 200  # sessions looked up at once
_NO_CAP: Final = 1_000_000  # the gateway's own requests are never refused
_ROWS: Final = 2_000  # of the outbox, newest first, in which sent files are looked for
_EVERY: Final = 1_000_000  # files, reminders: more than any key has
_LIST: Final = "forget"  # the folder that keeps the list that was shown last
_NO_TEXT: Final = ("image/", "audio/", "video/")  # beginnings of types of files
_LOOKED_AT: Final = 8_192  # bytes at the beginning of a file: a NUL there is of no text
_TELLING: Final = 12  # characters from which a forgotten text is looked for in files
_LOOKED_FOR: Final = 120  # characters of that text


class Contents(Struct, frozen=True, kw_only=True):
    """All that a key's conversations hold, as they are now."""

    sessions: Sequence[Session]  # oldest first
    history: History
    pins: Pins
    facts: Sequence[Fact]  # of the memory that these conversations have
    notes: Mapping[Note, str]  # under the key

    @property
    def tip(self) -> Session | None:
        """The session in which the conversation continues."""
        return next((session for session in self.sessions if session.ended_at is None), None)


class Deed(Struct, frozen=True, kw_only=True):
    """What forgetting does, in the store and in memory."""

    forgetting: Forgetting
    facts: Sequence[Fact]
    notes: Sequence[Note]
    words: frozenset[str]  # that nothing else holds
    held: Holding | None  # of the words that a person named
    reminders: Sequence[int]  # their numbers
    said: frozenset[str]  # what people said


class Forgetter(Struct, frozen=True, kw_only=True):
    """Makes the deed of a person's wish to forget, and has it done."""

    store: Store
    sessions: Sessions
    redact: Redact
    clock: Clock
    workspaces: Workspaces
    background: BackgroundCommands
    adapters: Sequence[Adapter] = ()

    async def contents(self, key: SessionKey) -> Contents:
        """Read everything of a key."""
        found: list[Session] = []
        while page := await self.store.sessions(key, _PAGE, len(found)):
            found += page
        transcripts = {each.id: await self.store.transcript(each) for each in reversed(found)}
        parents = {each.id: each.parent_id for each in found if each.parent_id is not None}
        history = History(transcripts=transcripts, parents=parents)
        await asyncio.to_thread(lambda: history.holders)  # a walk through all that was ever said
        chat_type = found[0].chat_type if found else "direct"
        facts = (await self.store.memory(scope_of(key, chat_type))).facts
        notes = {
            (folder, name): text
            for place in {key, key.owner}
            for folder in await self.store.folders(place)
            if folder != under(key, _LIST)
            for name, text in (await self.store.notes(folder)).items()
        }
        pins = await self.store.pins(key)
        return Contents(sessions=found[::-1], history=history, pins=pins, facts=facts, notes=notes)

    async def holding(self, contents: Contents, item: InboxItem, words: str, *, own: bool) -> Holding:
        """Find all under the item's key that holds these words; where nothing does, what holds them as parts of others.
        `own`: only what the item's person said, or had remembered, in a conversation of several people."""
        found = await self._holding(contents, item, Holds(words), own=own)
        if not found and (inside := HoldsInside(words)).every:
            wider = await self._holding(contents, item, inside, own=own)
            return wider if wider.whole else found
        return found

    async def _holding(self, contents: Contents, item: InboxItem, sought: Holds, *, own: bool) -> Holding:
        key, source = item.key, item.inbound.source
        reminders = await self.store.reminders(key, _EVERY)
        if not own:
            named = contents.tip.places if contents.tip else ()
            chosen = (await choices(self.store, key, source.chat_type, named)).persona
            copies = Copies(
                files={
                    **{
                        each.ref: await self._held_in(key, each, sought)
                        for each in await self.store.kept_files(key, _EVERY)
                    },
                    **await self._in_workspace(key, sought.held),
                },
                reminders=reminders,
                facts=contents.facts,
                rules=contents.pins.rules,
                notes={
                    **contents.notes,
                    **{(folder_of(place), "persona"): each.value for place, each in chosen.items() if each.value},
                },
            )
            return await asyncio.to_thread(holding, sought, contents.history, copies, partial(_refs, key))
        copies = Copies(
            files={},
            reminders=[each for each in reminders if each.source.user == source.user],
            facts=[each for each in contents.facts if each.said_by == source.user],
            rules=[each for each in contents.pins.rules if each.by == speaker(source)],
            notes={},
        )
        found = await asyncio.to_thread(holding, sought, contents.history, copies, partial(_refs, key))
        said = [each for each in found.exchanges if is_by(each.request, source)]
        return replace(found, exchanges=said, messages=frozenset(), others=len(found.exchanges) - len(said))

    async def _in_workspace(self, key: SessionKey, found: Callable[[str], T]) -> dict[str, T]:
        """What is found in each content of a workspace, the earlier ones as well, and in each command that ran in the
        background, by its ref."""
        if not self.workspaces.has(key):
            return {}
        workspace = self.workspaces.of(key)

        def all_found() -> dict[str, T]:
            return {ref: found(text) for ref, text in chain(workspace.texts(), self.background.texts(key))}

        return await asyncio.to_thread(all_found)

    async def _forget_in_workspace(self, deed: Deed) -> None:
        key = deed.forgetting.key
        if self.workspaces.has(key):
            await self.background.forget(key, deed.forgetting.files)
            holds = deed.held.holds if deed.held else lambda _: False
            await asyncio.to_thread(self.workspaces.of(key).forget, deed.forgetting.files, holds)

    async def _held_in(self, key: SessionKey, file: KeptFile, sought: Holds) -> frozenset[int]:
        """The sought words that a file holds, or its name."""
        text = await self._text_of(key, file)
        return await asyncio.to_thread(lambda: sought.held(file.name) | sought.held(text))

    async def _text_of(self, key: SessionKey, file: KeptFile) -> str:
        """The content of a file as text; "": it is no text."""
        if file.mime.startswith(_NO_TEXT):
            return ""
        content = await self.store.file_content(key, file.digest) or b""
        return "" if b"\0" in content[:_LOOKED_AT] else content.decode(errors="replace")

    async def keep_list(self, key: SessionKey, words: str, ids: Sequence[str]) -> None:
        """Remember the list that a person was shown: the exchanges, by their first messages, that hold these words."""
        await self.store.set_notes(under(key, _LIST), {"list": json.dumps([words, *ids], ensure_ascii=False)})

    async def kept_list(self, key: SessionKey) -> tuple[str, Sequence[str]] | None:
        """The words and exchanges of the list that was shown last."""
        noted = (await self.store.notes(under(key, _LIST))).get("list")
        if noted is None:
            return None
        words, *ids = json.loads(noted)
        return words, ids

    async def deed(
        self,
        contents: Contents,
        key: SessionKey,
        deed: str,
        chosen: Collection[str],
        item: str | None = None,
        *,
        person: str | None = None,
        held: Holding | None = None,
    ) -> Deed:
        """Return the effects of forgetting these messages, as the deed of this id that an item asks for; with
        `person` also this person's reminders, with `held` all that holds the words that were named."""
        history, tip = contents.history, contents.tip
        kept = await self.store.reminders(key, _EVERY)
        if held is not None:
            chosen = {*chosen, *held.messages}
        asked = {each.id for each in kept if each.source.user == person}
        asked |= {each.id for each in held.reminders} if held else set()
        left, words, reminders = await self._reach(history, chosen, kept, asked)
        gone, stays = _parted(history, left)
        rules = _rules_of(contents.pins, gone, held.rules if held else ())
        files = await self._files(key, gone, stays, held.files if held else ())
        named = {each.id for each in held.facts} if held else set()
        facts = [
            each
            for each in contents.facts
            if each.message_id in left.gone or each.id in named or tells(each.text, words)
        ]
        notes = [note for note, text in contents.notes.items() if tells(text, words)]
        notes += [each for each in held.notes if each not in notes] if held else []
        everywhere = rules or facts or held  # any prompt may hold them
        rewritten = contents.sessions if everywhere else [each for each in contents.sessions if each.id in left.freed]
        counts = {
            "messages": len(left.gone),
            "summaries": left.summaries,
            "rules": len(rules),
            "files": len(files),
            "reminders": len(reminders),
            "facts": sum(each.is_current for each in facts),
            **counted_notes(notes),
        }
        forgetting = Forgetting(
            id=deed,
            key=key,
            at=self.clock.now(),
            item=item,
            tip=None if tip is None else tip.ref,
            removed=tuple(sorted(left.removed)),
            replaced=_replacements(history, left),
            sessions=tuple(_rewriting(each, left.freed.get(each.id, 0), words, held) for each in rewritten),
            files=tuple(files),
            reminders=tuple(each.id for each in reminders),
            rules=rules,
            counts={what: count for what, count in counts.items() if count},
        )
        said = frozenset(own_words(each).strip() for each in gone if is_request(each))
        numbers = sorted(each.number for each in reminders)
        return Deed(
            forgetting=forgetting, facts=facts, notes=notes, words=words, held=held, reminders=numbers, said=said
        )

    async def _reach(
        self, history: History, chosen: Collection[str], kept: Sequence[Reminder], asked: Collection[str]
    ) -> tuple[Remainder, frozenset[str], list[Reminder]]:
        """The rest of the history, the telling words of the forgotten messages, and the reminders that also go,
        including those with the ids in `asked`. A reminder's message goes with its reminder, so more messages may be
        chosen."""
        while True:
            left = await asyncio.to_thread(without, history, chosen, counter=self.sessions.counter, redact=self.redact)
            gone, stays = _parted(history, left)
            words = await asyncio.to_thread(_telling, gone, [each for each in stays if not _reminded(each)])
            events = {event for each in gone if (event := note_of(each).get("event"))}
            reminders = [
                each for each in kept if each.made_by in events or _retells(each.text, words) or each.id in asked
            ]
            told = {note_of(each)["id"] for each in stays if _reminded(each) and _says(each, reminders, words)}
            if not told:
                return left, words, reminders
            chosen = {*chosen, *told}

    async def _files(
        self, key: SessionKey, gone: Sequence[Message], stays: Sequence[Message], named: Collection[str]
    ) -> list[str]:
        """The refs of files that came with forgotten messages, were sent in answer to them, or repeat them, such as
        exports, and those of the refs `named`; none that came with other messages."""
        events = {note.get("event") for message in gone if (note := note_of(message)).get("event")}
        rows = await self.store.outbox(key.address, _ROWS) if events else ()
        sent = [file.ref for row in rows if row.answers in events and row.key == key for file in row.files]
        shown = {ref for message in stays for ref in _refs(key, message)}
        came = [ref for message in gone for ref in _refs(key, message)]
        told = [text[:_LOOKED_FOR] for each in gone if len(text := own_words(each).strip()) >= _TELLING]
        told += [json.dumps(each, ensure_ascii=False)[1:-1] for each in told]  # in a file of JSON lines
        copies = list[str]()
        for file in await self.store.kept_files(key, _EVERY) if gone else ():
            if file.ref.startswith(f"{EXPORT}:"):  # of which a person makes another one
                copies.append(file.ref)
            elif file.ref not in shown and told:
                text = await self._text_of(key, file)
                copies += [file.ref] if await asyncio.to_thread(any, map(text.__contains__, told)) else []
        if told:
            repeats = await self._in_workspace(key, lambda text: any(map(text.__contains__, told)))
            copies += [ref for ref, does in repeats.items() if does]
        return [ref for ref in dict.fromkeys([*came, *sent, *copies, *named]) if ref not in shown]

    async def do(
        self, lease: Lease | None, contents: Contents, deed: Deed, *, of_list: bool = False
    ) -> Mapping[str, int]:
        """Let the store forget, and forget the process's own copies. `of_list`: this is a part of the list that was
        shown last, whose other parts may still be asked for."""
        forgetting = deed.forgetting
        if lease is not None:
            await self.sessions.helpers.end(forgetting.key)  # they would write on, and wake it with what is forgotten
        await self._erase_helpers(forgetting.key, forgetting.id)
        for session in contents.sessions:
            self.sessions.let_go(session)
        if deed.facts:
            await self.sessions.memories.forget(deed.facts[0].scope, deed.facts, ())
        for folder, name in deed.notes:
            await self.store.set_notes(folder, {name: None})
        if not of_list and (listed := await self.kept_list(forgetting.key)) is not None:
            await self.keep_list(forgetting.key, "", listed[1])  # only its numbers, and no words
        kept = await self.store.kept_files(forgetting.key, _EVERY) if forgetting.files else ()
        await self._forget_in_workspace(deed)
        counts = await self.store.forget(lease, forgetting)
        await self._give_back(forgetting.key, kept, contents.history)
        self._forget_typed(forgetting.key, lambda typed: _was_typed(deed, typed))
        await self._engine_forgets(contents, forgetting.removed)
        return counts

    async def _erase_helpers(self, key: SessionKey, deed: str) -> None:
        """Erase what the helpers of a conversation read and wrote, which may repeat anything that was said in it."""
        for each in await self.sessions.helpers.keys(key):
            await self.store.erase(None, Erasure(id=lasting_id("f", deed, each), key=each, at=self.clock.now()))
        for left in await self.sessions.helpers.of(key):
            await self.sessions.helpers.over(replace(key, helper=left.id))

    async def _engine_forgets(self, contents: Contents, gone: Iterable[str]) -> None:
        """Have a stranger's context engine forget messages, too: the newest session's knows all of a key."""
        originals = contents.history.originals
        if texts := [text_of(originals[name]) for name in gone if name in originals]:
            await self.sessions.engines.forget(contents.sessions[-1], texts)

    async def forget_line(self, lease: Lease, contents: Contents, item: InboxItem) -> None:
        """Forget only the words of an item."""
        tip = contents.tip
        line = lasting_id("f", deed_of(item), "line")
        deed = Forgetting(
            id=line, key=item.key, at=self.clock.now(), item=item.id, tip=None if tip is None else tip.ref, removed=()
        )
        await self.store.forget(lease, deed)
        self._forget_typed(item.key, lambda typed: item.inbound.text.strip() == typed.strip())

    def _forget_typed(self, key: SessionKey, goes: Callable[[str], bool]) -> None:
        """Have the terminal of this process, if that is where it was said, offer no such text again."""
        for adapter in self.adapters:
            if adapter.name == key.platform and isinstance(adapter, KeepsTyped):
                adapter.forget_typed(goes)

    async def _end_links(self, key: SessionKey) -> None:
        for adapter in self.adapters:
            if adapter.name == key.platform and isinstance(adapter, KeepsLinks):
                await adapter.end_links(key.chat)

    # -- everything of a person ---------------------------------------------------------------

    async def forget_person(self, lease: Lease, item: InboxItem) -> Mapping[str, int]:
        """Forget all that the item's person said under its key: a conversation of their own as a whole, of a shared
        one their messages and the answers to them."""
        key, source = item.key, item.inbound.source
        done = await self.store.forgotten(key, deed_of(item))
        if done is not None:
            return done
        await self.forget_own(source)
        contents = await self.contents(key)
        if is_shared(key, source):
            said = _said_by(contents, source)
            await self.forget_memory(scope_of(key, source.chat_type), source.user)
            deed = await self.deed(contents, key, deed_of(item), said, item.id, person=source.user)
            return await self.do(lease, contents, deed)
        for session in contents.sessions:
            self.sessions.let_go(session)
        await self.forget_memory(scope_of(key, source.chat_type))
        if source.chat_type == "direct":  # elsewhere people choose for everybody
            await forget_choices(self.store, key)
        self._forget_typed(key, lambda _: True)
        return await self.erase(lease, Erasure(id=deed_of(item), key=key, at=self.clock.now(), item=item.id), contents)

    async def forget_taken_back(self, lease: Lease, item: InboxItem) -> None:
        """Forget the person's messages whose events the item's text names, a line each, and the answers to them."""
        if await self.store.forgotten(item.key, deed_of(item)) is not None:
            return
        contents, source = await self.contents(item.key), item.inbound.source
        events, shared = set(item.inbound.text.split("\n")), is_shared(item.key, source)
        gone = [each for each in contents.history.exchanges if not events.isdisjoint(_events(each.request))]
        ids = {name for each in gone if not shared or is_by(each.request, source) for name in each.ids}
        if ids:
            await self.do(lease, contents, await self.deed(contents, item.key, deed_of(item), ids, item.id))

    async def erase(self, lease: Lease | None, erasure: Erasure, contents: Contents | None = None) -> Mapping[str, int]:
        """Let the store erase what is under a key, and give back the room of its files. `contents`: of the key, if they
        were read."""
        key, engines = erasure.key, self.sessions.engines
        if erasure.is_whole:
            if lease is not None:
                await self.sessions.helpers.end(key)
            await self.background.end_all(key)  # a folder in which a command writes is never empty
            await asyncio.to_thread(self.workspaces.remove, key)
            await self._erase_helpers(key, erasure.id)
        kept, copies = await self.store.kept_files(key, _EVERY), engines.keeps_copies
        if contents is None and (kept or copies):
            contents = await self.contents(key)
        counts = await self.store.erase(lease, erasure)
        await self._end_links(key)
        if contents is not None:
            await self._give_back(key, kept, contents.history)
        if contents is not None and copies:
            left = (await self.contents(key)).history.originals
            await self._engine_forgets(contents, [name for name in contents.history.originals if name not in left])
            for session in contents.sessions:
                engines.drop(session.id)
        return counts

    async def delete_temporary(self, lease: Lease, session: Session, item: InboxItem) -> None:
        """Delete a temporary chat for good, whose last session this is, and which has ended."""
        key, over = lease.key, session.ended_at
        contents = await self.contents(key)
        gone = [each for each in contents.sessions if each.temporary and (each.ended_at or inf) <= (over or 0.0)]
        spans = [(each.started_at, each.ended_at or 0.0) for each in gone]
        said = [message for each in gone for message in contents.history.transcripts[each.id]]
        came = {ref for message in said for ref in _refs(key, message)}
        kept = await self.store.kept_files(key, _EVERY)
        files = [each.ref for each in kept if each.ref in came or any(began < each.at <= end for began, end in spans)]
        name = lasting_id("f", session.id)
        erasure = Erasure(id=name, key=key, at=self.clock.now(), item=item.id, over=over, files=tuple(files))
        await self.erase(lease, erasure, contents)
        typed = {own_words(each).strip() for each in said if is_request(each)}
        self._forget_typed(key, lambda line: line.strip() in typed)

    async def _give_back(self, key: SessionKey, kept: Sequence[KeptFile], history: History) -> None:
        """Give back the room of those `kept` files that the store has no more."""
        left = {each.ref for each in await self.store.kept_files(key, _EVERY)} if kept else set[str]()
        await give_back(self.store, key, [each for each in kept if each.ref not in left], _senders(key, history))

    async def forget_own(self, source: Source) -> None:
        """Forget what a person set for themselves, such as their time zone."""
        own = notes_of(source)
        await self.store.set_notes(own, dict.fromkeys(await self.store.notes(own)))

    async def forget_memory(self, scope: SessionKey, person: str | None = None) -> None:
        """Remember nothing any more that this person said (None: nothing at all)."""
        await self.sessions.memories.change(
            scope,
            lambda memory: replace(
                memory, facts=tuple(each for each in memory.facts if person is not None and each.said_by != person)
            ),
        )

    async def forget_said_by(
        self, key: SessionKey, source: Source, deed: str, *, before: float | None = None
    ) -> Mapping[str, int]:
        """Forget a person's messages in a shared conversation, from outside of its lane. `before`: only older
        messages (seconds since the epoch)."""
        if before is None:
            await self.forget_memory(scope_of(key, source.chat_type), source.user)
        contents = await self.contents(key)
        said, person = _said_by(contents, source, before), source.user if before is None else None
        return await self.do(None, contents, await self.deed(contents, key, deed, said, person=person))

    async def talks_elsewhere(self, item: InboxItem) -> list[Talk]:
        """The other conversations of the item's person on its platform."""
        source = item.inbound.source
        talks = await self.store.talks(source.platform, source.user)
        return [each for each in talks if each.key != item.key and each.key.helper is None]

    async def ask_elsewhere(self, item: InboxItem, talks: Sequence[Talk]) -> None:
        """Have a person forgotten in other conversations, too: each in its own lane, where nothing else runs then."""
        now, person = self.clock.now(), item.inbound.source.user
        arrivals = [
            Arrival(inbound=_request(talk, person, lasting_id("f", deed_of(item), talk.key)), key=talk.key, at=now)
            for talk in talks
        ]
        if arrivals:
            await self.store.accept(arrivals, cap=_NO_CAP)
        for talk in talks:
            await self.store.signal(talk.key, "stop", now)


def _events(request: Message) -> tuple[str, ...]:
    """The events by which a message came, in all its parts."""
    note = note_of(request)
    return (note.get("event", ""), *note.get("parts", ()))


def _request(talk: Talk, person: str, event_id: str) -> Inbound:
    key = talk.key
    source = Source(platform=key.platform, chat=key.chat, chat_type=talk.chat_type, user=person, thread=key.thread)
    return Inbound(event_id=event_id, source=source, text="", kind="forget")


def _said_by(contents: Contents, source: Source, before: float | None = None) -> set[str]:
    """The messages of all exchanges that a person began."""
    own = [each for each in contents.history.exchanges if is_by(each.request, source)]
    old = [each for each in own if before is None or note_of(each.request).get("at", 0.0) < before]
    return {name for each in old for name in each.ids}


def _telling(gone: Sequence[Message], stays: Sequence[Message]) -> frozenset[str]:
    """Words that give away a text made from forgotten messages. In a short conversation nothing else may contain "the",
    and that says nothing."""
    return frozenset(word for word in telling_words(gone, stays) if not is_stop(word))


def _reminded(message: Message) -> bool:
    return "reminded" in note_of(message)


def _parted(history: History, left: Remainder) -> tuple[list[Message], list[Message]]:
    gone = [history.originals[name] for name in left.gone]
    return gone, [each for name, each in history.originals.items() if name not in left.gone]


def _retells(text: str, words: frozenset[str]) -> bool:
    """Whether a text repeats what these words tell: it has two of them, or one with a digit (such as a code). With one
    word, a person may mean something else. In a script without spaces, three characters are one word."""
    found = 0
    for run in set(runs(text)):
        parts = [run[first : first + 2] for first in range(len(run) - 1)] if is_dense(run) else [run]
        held = sum(tells(part, words) for part in parts)
        found += 2 if held and any(map(str.isdigit, run)) else (held + 1) // 2
    return found > 1


def _says(message: Message, reminders: Iterable[Reminder], words: frozenset[str]) -> bool:
    """Whether one of these reminders, or one made from the source of these words, said this."""
    return _retells(text_of(message), words) or any(each.text in text_of(message) for each in reminders)


def is_by(request: Message, source: Source) -> bool:
    """Whether this person wrote the message, in a conversation that several people share."""
    person = note_of(request).get("person")
    return person == source.user if person else text_of(request).startswith(f"[{speaker(source)}] ")


def deed_of(item: InboxItem) -> str:
    """The id of an item's deed: another attempt at the item finds its work done."""
    return lasting_id("f", item.key, item.inbound.event_id, item.id)


def _rewriting(session: Session, freed: int, words: frozenset[str], held: Holding | None) -> Rewriting:
    def goes(text: str) -> bool:
        return tells(text, words) or (held is not None and held.holds(text))

    return Rewriting(
        session_id=session.id,
        freed=freed,
        title=None if session.title and goes(session.title) else session.title,
        todos=tuple(todo for todo in session.todos if not goes(todo.text)),
    )


def _was_typed(deed: Deed, typed: str) -> bool:
    """Whether a line of the terminal repeats what a deed forgot."""
    return typed.strip() in deed.said or tells(typed, deed.words) or (deed.held is not None and deed.held.holds(typed))


def _refs(key: SessionKey, message: Message) -> list[str]:
    """The files that a message came with, the words and frames of those that are recordings, and a long result's
    file."""
    long = persisted(text_of(message)) if message["role"] == "tool" else None
    refs = [] if long is None else [f"{OUTPUT}{long.name}"]
    for file in note_of(message).get("files", ()):
        refs += [f"{key.platform}:{ref}" for ref in (file.get("ref"),) if isinstance(ref, str)]
        refs += [ref for ref in (file.get("words_ref"), *(file.get("frames") or ())) if isinstance(ref, str)]
    return refs


def _senders(key: SessionKey, history: History) -> dict[str, str]:
    """Who sent each file, by its ref."""
    return {
        ref: person
        for message in history.originals.values()
        if is_request(message) and (person := note_of(message).get("person"))
        for ref in _refs(key, message)
    }


def _rules_of(pins: Pins, gone: Sequence[Message], named: Collection[Pin]) -> tuple[Pin, ...]:
    """The rules that forgotten messages are, word for word, and those `named`."""
    said = {own_words(message).strip() for message in gone if is_request(message)}
    return tuple(rule for rule in pins.rules if rule.text in said or rule in named)


def _replacements(history: History, left: Remainder) -> tuple[Replacement, ...]:
    """The messages that are made again, each in the first session that holds it."""
    first: dict[str, str] = {}
    for session, messages in history.transcripts.items():
        for message in messages:
            first.setdefault(note_of(message)["id"], session)
    return tuple(Replacement(old=old, message=made, session_id=first[old]) for old, made in left.replaced.items())
