"""What is kept besides conversations: pins, facts, files, notes in folders, and the names of chats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.chat import ChatAddress, KeptFile, SessionKey
from gateway.domain.memory import Fact, Memory, MemoryChange, in_order
from gateway.domain.rule import Pins
from gateway.domain.session import Session
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.kinds import (
    CONTENT,
    CONTENTS,
    EVENT,
    FACT,
    FACTS,
    FILE,
    FILES,
    ITEM,
    NAME,
    NOTE,
    NOTES,
    PINNED,
    SCOPE,
    UNDER,
    Content,
    FactRecord,
    File,
    Name,
    NoteRecord,
    PinsRecord,
    Scope,
    event_name,
)
from gateway.store.records import Lease, Rebuilt
from gateway.store.shared.documents import storable
from gateway.store.shared.platforms import chat_name
from gateway.store.space import MANY, Space
from gateway.store.steps import lanes, outbox, sessions

# -- pins ----------------------------------------------------------------------------------------------


def pins(space: Space, key: SessionKey) -> Pins:
    """A key's pins, maybe none."""
    found = space.get(PINNED, key.owner.text)
    return Pins() if found is None else found.pins


def set_pins(space: Space, lease: Lease, known: Pins | None, wanted: Pins, rebuilt: Rebuilt | None) -> Session | None:
    """Replace a key's pins, also in its present session's prompt."""
    lanes.held(space, lease)
    if known is not None and known != pins(space, lease.key):
        raise SessionConflict("These pins were changed in another chat. Look at them again.")
    if rebuilt is None and sessions.tip(space, lease.key) is not None:
        raise SessionConflict("This key has a session, whose prompt must hold its pins.")
    session = None if rebuilt is None else sessions.rebuild(space, lease.key, rebuilt)
    space.put(PINNED, PinsRecord(key=lease.key.owner, pins=wanted))
    sessions.prompt_others_anew(space, lease.key)
    return session


# -- facts ---------------------------------------------------------------------------------------------


def memory(space: Space, scope: SessionKey) -> Memory:
    """A scope's facts, maybe none."""
    known = _scope(space, scope)
    facts = [kept.fact for kept in space.first(FACTS, scope.text, MANY)]
    return Memory(facts=in_order(facts), version=known.version, last_number=known.last_number)


def change_memory(space: Space, change: MemoryChange) -> bool:
    """Change a scope's facts; False, and nothing is stored, if someone else did so since they were read."""
    if _scope(space, change.scope).version != change.version:
        return False
    for gone in change.gone:
        space.drop(FACT, f"{change.scope.text} {gone}")
    for fact in change.kept:
        space.put(FACT, FactRecord(scope=change.scope, fact=_storable(fact)))
    space.put(SCOPE, Scope(scope=change.scope, version=change.version + 1, last_number=change.last_number))
    return True


def _scope(space: Space, scope: SessionKey) -> Scope:
    return space.get(SCOPE, scope.text) or Scope(scope=scope, version=0, last_number=0)


def _storable(fact: Fact) -> Fact:
    return replace(fact, text=storable(fact.text), said_by_name=storable(fact.said_by_name))


# -- files ---------------------------------------------------------------------------------------------


def keep_file(space: Space, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
    """Keep a file, unless the key already has one with this ref; return the one that is kept."""
    known = kept_file(space, key, file.ref)
    if known is not None:
        return known
    if file_content(space, key, file.digest) is None:
        space.put(CONTENT, Content(key=key, digest=file.digest, content=content))
    changes: dict[str, Any] = {name: storable(getattr(file, name)) for name in ("ref", "name", "mime")}
    kept = replace(file, **changes)
    space.put(FILE, File(key=key, file=kept))
    return kept


def kept_file(space: Space, key: SessionKey, ref: str) -> KeptFile | None:
    """The file of this ref."""
    found = space.get(FILE, f"{key.text} {storable(ref)}")
    return None if found is None else found.file


def kept_files(space: Space, key: SessionKey, limit: int) -> list[KeptFile]:
    """A key's files, newest first."""
    return [kept.file for kept in space.last(FILES, key.text, limit)]


def file_content(space: Space, key: SessionKey, digest: str) -> bytes | None:
    """The content of one of a key's files."""
    found = space.get(CONTENT, f"{key.text} {digest}")
    return None if found is None else found.content


def drop_files(space: Space, key: SessionKey, refs: Sequence[str]) -> None:
    """Delete these files, and contents that no other file of the key has."""
    for ref in refs:
        space.drop(FILE, f"{key.text} {storable(ref)}")
    left = {kept.file.digest for kept in space.first(FILES, key.text, MANY)}
    for content in space.first(CONTENTS, key.text, MANY):
        if content.digest not in left:
            space.drop(CONTENT, f"{key.text} {content.digest}")


# -- notes ---------------------------------------------------------------------------------------------


def notes(space: Space, folder: str) -> dict[str, str]:
    """A folder's notes."""
    return {note.name: note.text for note in space.first(NOTES, storable(folder), MANY)}


def set_notes(
    space: Space, folder: str, changes: Mapping[str, str | None], still: Mapping[str, str | None] | None
) -> bool:
    """Write and forget notes; False if those in `still` are not as they were."""
    folder = storable(folder)
    for name, text in (still or {}).items():
        known = space.get(NOTE, f"{folder}\0{storable(name)}")
        if (None if known is None else known.text) != text:
            return False
    for name, text in changes.items():
        if text is None:
            space.drop(NOTE, f"{folder}\0{storable(name)}")
        else:
            space.put(NOTE, NoteRecord(folder=folder, name=storable(name), text=storable(text)))
    return True


def folders(space: Space, key: SessionKey) -> list[str]:
    """The folders under a key."""
    return sorted({note.folder for note in space.first(UNDER, key.text, MANY)})


def drop_notes(space: Space, key: SessionKey) -> None:
    """Forget the notes in all folders under a key."""
    for note in space.first(UNDER, key.text, MANY):
        space.drop(NOTE, f"{note.folder}\0{note.name}")


# -- chats that their platform calls by several names --------------------------------------------------


def rename_chat(space: Space, platform: str, before: str, after: str) -> None:
    """`before` is now called `after`. The chat's first name keeps everything, and is open."""
    first = first_name(space, platform, before)
    if first == after:
        return
    _name(space, platform, after, first=first)
    _name(space, platform, before, later=after)
    _name(space, platform, first, later=after)
    outbox.reopen(space, _chat(platform, first))


def _name(space: Space, platform: str, chat: str, *, first: str | None = None, later: str | None = None) -> None:
    """Note a name; a known first name never changes."""
    known = space.get(NAME, _chat(platform, chat)) or Name(chat=_chat(platform, chat))
    space.put(NAME, replace(known, first=known.first or first, later=later or known.later))


def _chat(platform: str, chat: str) -> str:
    return chat_name(ChatAddress(platform=platform, chat=chat))


def first_name(space: Space, platform: str, chat: str, event_id: str = "") -> str:
    """A chat's first name; for an event that was accepted under another name, that one."""
    known = space.get(NAME, _chat(platform, chat))
    if known is None or known.first is None:
        return chat
    event = space.get(EVENT, event_name(platform, event_id)) if event_id else None
    item = None if event is None else space.get(ITEM, event.item)
    return chat if item is not None and item.key.chat == chat else known.first


def later_name(space: Space, platform: str, chat: str) -> str | None:
    """A chat's present name; None if it was not renamed."""
    known = space.get(NAME, _chat(platform, chat))
    return None if known is None else known.later
