"""Sessions, their transcripts, and the transitions from one session to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from gateway.domain.chat import SessionKey
from gateway.domain.message import HOST, Message, note_of, noted, noted_tokens, wire
from gateway.domain.session import Compaction, EndReason, Session, SessionRef
from gateway.domain.usage import CanonicalUsage
from gateway.runtime.errors import SessionConflict, SessionNotFound, StoreError
from gateway.runtime.structs import replace
from gateway.store.kinds import (
    COMPACTION,
    DUE,
    MESSAGE,
    OF_CHAT,
    OF_KEY,
    OFFERED,
    OWED,
    PRESENT,
    PROMPT,
    SESSION,
    SESSIONS,
    TURN,
    CompactionRecord,
    Item,
    MessageRecord,
    Prompt,
    SessionRecord,
)
from gateway.store.records import EXPIRY_CLAIM, PATCHED, Lease, Opening, Rebuilt, StepRecord
from gateway.store.shared.documents import storable
from gateway.store.shared.platforms import chat_name
from gateway.store.space import MANY, Caller, Space
from gateway.store.steps import lanes, spending


class Appended(Struct, frozen=True, kw_only=True):
    """Messages as stored, and the position of the first one in the transcript."""

    session_id: str
    position: int
    messages: tuple[Message, ...] = ()


class Opened(Struct, frozen=True, kw_only=True):
    """A session as stored, with its first messages, except those that a continuation took over from its parent."""

    session: Session
    messages: tuple[Message, ...] = ()


# -- looking -------------------------------------------------------------------------------------------


def by_id(space: Space, session_id: str) -> Session:
    """The session with this id. Raises SessionNotFound."""
    kept = space.get(SESSION, session_id)
    if kept is None:
        raise SessionNotFound(f"There is no session {session_id}.")
    return whole(space, kept)


def whole(space: Space, kept: SessionRecord) -> Session:
    """A session with its prompt."""
    prompt = space.get(PROMPT, kept.session.id)
    return replace(kept.session, system_prompt=prompt.text if prompt is not None else "")


def tip(space: Space, key: SessionKey) -> Session | None:
    """A key's present session."""
    found = space.first(PRESENT, key.text)
    return whole(space, found[0]) if found else None


def check(space: Space, ref: SessionRef, key: SessionKey, after: int | None = None) -> SessionRecord:
    """The session of a reference. Raises SessionConflict if it is no longer the key's, or has changed."""
    kept = space.get(SESSION, ref.id)
    if kept is None or kept.session.key != key:
        raise SessionConflict(f"Session {ref.id} does not belong to the lane that writes.")
    if kept.session.epoch != ref.epoch or kept.session.ended_at is not None:
        raise SessionConflict(f"Session {ref.id} was changed by someone else. Look at it again.")
    if after is not None and after != kept.session.message_count:
        raise SessionConflict(f"Session {ref.id} holds other messages than this turn knows.")
    return kept


# -- messages ------------------------------------------------------------------------------------------


def transcript(space: Space, session_id: str, since: int) -> list[Message]:
    """The messages of a session, from a position on."""
    return [message(said) for said in space.many(MESSAGE, space.members(session_id, since))]


def length(space: Space, session_id: str) -> int:
    """The number of messages of a session."""
    kept = space.get(SESSION, session_id)
    return 0 if kept is None else kept.session.message_count


def message(said: MessageRecord) -> Message:
    """A message with its full note."""
    note: dict[str, Any] = {**(said.note or {}), "id": str(said.number), "at": said.at}
    if said.tokens is not None:
        note["tokens"] = said.tokens
    noted: dict[str, Any] = {**said.message, HOST: note}
    return noted  # type: ignore[return-value]


def number_of(message_id: str) -> int:
    """The number in a message's id. Raises StoreError if it is not one."""
    if not message_id.isdecimal():
        raise StoreError(f"There is no message with the id {message_id!r}.")
    return int(message_id)


def store_message(
    space: Space, session_id: str, key: SessionKey, new: Message, at: float, *, hidden: bool = False
) -> tuple[int, Message]:
    """A message's number, and the message as stored. One that already has an id is not stored again. `hidden`: only its
    own chat finds it."""
    note: dict[str, Any] = {**note_of(new)}
    if "id" in note:
        return number_of(note["id"]), new
    if hidden:
        note["hidden"] = key.text
    number, at, tokens = space.number(), note.pop("at", at), note.pop("tokens", None)
    said = MessageRecord(
        number=number,
        key=key.owner,
        session_id=session_id,
        at=at,
        tokens=tokens,
        message=wire(new),
        note=note or None,
    )
    space.put(MESSAGE, said)
    return number, noted(new, id=str(number), at=at)


def _refer(space: Space, session: Session, messages: Sequence[Message], at: float) -> tuple[Message, ...]:
    """Append messages to a transcript."""
    numbers, stored = list[int](), list[Message]()
    for each in messages:
        number, kept = store_message(space, session.id, session.key, each, at, hidden=session.temporary)
        numbers.append(number)
        stored.append(kept)
    space.extend(session.id, numbers, at=session.message_count)
    return tuple(stored)


# -- appending -----------------------------------------------------------------------------------------


def append(space: Space, ref: SessionRef, item: Item, record: StepRecord) -> Appended:
    """Add a step of an item to a session: messages, changes, model calls, and the items that it absorbed."""
    kept = check(space, ref, item.key, record.after)
    before, patch = kept.session, record.patch
    stored = _refer(space, before, record.messages, patch.at)
    changes = {name: value for name in PATCHED if (value := getattr(patch, name)) is not None}
    session = replace(
        before,
        usage=before.usage + (patch.usage or CanonicalUsage()),
        cost_usd=before.cost_usd + patch.cost_usd,
        last_active_at=max(before.last_active_at, patch.at),
        message_count=before.message_count + len(stored),
        transcript_tokens=before.transcript_tokens + noted_tokens(record.messages),
        **changes,
    )
    _put(space, kept, session)
    spending.enter(space, record.ledger, session.id, item.key)
    lanes.absorb(space, item, record.absorbed)
    return Appended(session_id=ref.id, position=before.message_count, messages=stored)


def _put(space: Space, kept: SessionRecord, session: Session, **changes: Any) -> None:
    """Store a session's new state. If its deadline has changed, the session is no longer on offer."""
    if session.expires_at != kept.session.expires_at:
        changes |= {"offered_to": "", "offered_until": 0.0}
    space.put(SESSION, replace(kept, session=session, **changes))


# -- transitions ---------------------------------------------------------------------------------------


def open_session(space: Space, lease: Lease, opening: Opening) -> Opened:
    """Open a session under a key that has none open."""
    lanes.held(space, lease)
    return _open(space, lease.key, opening)


def _open(space: Space, key: SessionKey, opening: Opening) -> Opened:
    if space.first(PRESENT, key.text):
        raise SessionConflict(f"There is a session open under {key} already.")
    return _insert(space, key, opening, space.number())


def _insert(space: Space, key: SessionKey, opening: Opening, seq: int) -> Opened:
    session = opening.session
    if session.key != key:
        raise SessionConflict(f"Session {session.id} does not belong to the lane that writes.")
    if space.get(SESSION, session.id) is not None:
        raise SessionConflict(f"There is a session {session.id} already.")
    empty = replace(session, message_count=0, system_prompt="")
    stored = _refer(space, empty, opening.transcript, session.started_at)
    counted = replace(empty, message_count=len(stored), transcript_tokens=noted_tokens(stored))
    space.put(SESSION, SessionRecord(seq=seq, session=counted))
    _put_prompt(space, session.id, session.system_prompt)
    return Opened(session=replace(counted, system_prompt=session.system_prompt), messages=stored)


def _put_prompt(space: Space, session_id: str, text: str) -> None:
    space.put(PROMPT, Prompt(session_id=session_id, text=storable(text)))


def end_session(
    space: Space, lease: Lease, ref: SessionRef, reason: EndReason, at: float, opening: Opening | None
) -> Opened | None:
    """End a session for good; from now on its hook is owed."""
    lane = lanes.held(space, lease)
    kept = check(space, ref, lease.key)
    ended = replace(kept.session, epoch=ref.epoch + 1, ended_at=at, end_reason=reason, hook="pending")
    if ended.temporary:
        goes_on = opening is not None and opening.session.temporary
        ended = replace(ended, expires_at=None if goes_on else at)
    _put(space, kept, ended, owed=space.number(), owed_by=lane.owner)
    return None if opening is None else _open(space, lease.key, opening)


def continue_session(
    space: Space, lease: Lease, ref: SessionRef, opening: Opening, snapshot_length: int, compaction: Compaction
) -> Opened:
    """End a parent by compression and open its child, which takes over messages that came after the snapshot. The
    running turn continues in the child."""
    lane = lanes.held(space, lease)
    kept = check(space, ref, lease.key)
    # A child starts at or after its parent's end, whatever the clock did in between.
    ended_at = min(compaction.at, opening.session.started_at)
    parent = replace(
        kept.session,
        epoch=ref.epoch + 1,
        ended_at=ended_at,
        end_reason="compression",
        continuation_id=opening.session.id,
        expires_at=None if opening.session.temporary else kept.session.expires_at,
    )
    _put(space, kept, parent)
    placed = replace(opening.session, project=kept.session.project)  # it may have been moved meanwhile
    opened = _open(space, lease.key, replace(opening, session=placed))
    opened = replace(opened, session=_take_over(space, ref.id, opened.session, snapshot_length))
    space.put(COMPACTION, CompactionRecord(number=space.number(), compaction=compaction))
    turn = space.get(TURN, lane.head)
    if turn is not None and turn.session_id == ref.id:
        space.put(TURN, replace(turn, session_id=opened.session.id))
    return opened


def _take_over(space: Space, parent_id: str, child: Session, snapshot_length: int) -> Session:
    late = space.members(parent_id, snapshot_length)
    if not late:
        return child
    space.extend(child.id, late, at=child.message_count)
    tokens = sum([said.tokens or 0 for said in space.many(MESSAGE, late)])
    taken = replace(
        child, message_count=child.message_count + len(late), transcript_tokens=child.transcript_tokens + tokens
    )
    kept = space.get(SESSION, child.id)
    assert kept is not None
    space.put(SESSION, replace(kept, session=replace(taken, system_prompt="")))
    return taken


def keep_temporary(space: Space, lease: Lease, ref: SessionRef, expires_at: float | None) -> None:
    """Make a temporary chat an ordinary one: searches find it, and its next prompt is made anew."""
    lanes.held(space, lease)
    check(space, ref, lease.key)
    for kept in space.first(OF_KEY, lease.key.text, MANY):
        session = kept.session
        if session.temporary and (session.ended_at is None or session.expires_at is None):
            for said in space.many(MESSAGE, space.members(session.id)):
                note = {name: value for name, value in (said.note or {}).items() if name != "hidden"}
                space.put(MESSAGE, replace(said, note=note or None))
            if session.ended_at is None:
                session = replace(session, epoch=session.epoch + 1, expires_at=expires_at)
            _put(space, kept, replace(session, temporary=False))
    space.drop(PROMPT, ref.id)


def import_session(space: Space, opening: Opening) -> bool:
    """Store an ended session behind all others, unless its id is known."""
    if space.get(SESSION, opening.session.id) is not None:
        return False
    earliest = space.first(SESSIONS, "")
    _insert(space, opening.session.key, opening, min(0, earliest[0].seq if earliest else 0) - 1)
    return True


def update_session(space: Space, lease: Lease, ref: SessionRef, changes: Mapping[str, Any]) -> Session:
    """Change fields of a session; a new model or prompt raises the epoch."""
    lanes.held(space, lease)
    kept = check(space, ref, lease.key)
    before = whole(space, kept)
    changed: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()
    }
    if any(name in changed and changed[name] != getattr(before, name) for name in ("model", "system_prompt")):
        changed["epoch"] = before.epoch + 1
    if changed.get("model", before.model) != before.model:
        # The old model's report says nothing about the new model's tokenizer.
        changed |= {"last_prompt_tokens": 0, "reported_messages": 0}
    if "system_prompt" in changed:
        _put_prompt(space, ref.id, changed.pop("system_prompt"))
    _put(space, kept, replace(kept.session, **changed))
    return by_id(space, ref.id)


def set_project(space: Space, owner: SessionKey, session_ids: Sequence[str], project: str) -> None:
    """Put sessions of an owner's chats into a project, whether they have ended or not."""
    for session_id in session_ids:
        kept = space.get(SESSION, session_id)
        if kept is not None and kept.session.key.owner == owner:
            space.put(SESSION, replace(kept, session=replace(kept.session, project=project)))


def rebuild(space: Space, key: SessionKey, rebuilt: Rebuilt) -> Session:
    """Give a session another prompt, and the report that the provider would have made for it."""
    kept = check(space, rebuilt.ref, key)
    _put_prompt(space, rebuilt.ref.id, rebuilt.system_prompt)
    session = replace(kept.session, epoch=kept.session.epoch + 1, last_prompt_tokens=rebuilt.last_prompt_tokens)
    _put(space, kept, session)
    return whole(space, replace(kept, session=session))


def prompt_others_anew(space: Space, key: SessionKey) -> None:
    """Drop the prompts of the same person's other chats: the next turn there makes its own of what holds by then."""
    for kept in space.first(OF_CHAT, chat_name(key.address), MANY):
        session = kept.session
        if session.ended_at is None and session.key != key and session.key.owner == key.owner:
            space.drop(PROMPT, session.id)


# -- ends that are owed, and sessions that are due -----------------------------------------------------


def pending_hooks(space: Space, owner: str, limit: int) -> list[tuple[int, Session]]:
    """Ended sessions whose hook this process owes, with what orders their ends. It takes over what a dead process
    owed, so that no two of the living call the same hook."""
    for kept in space.first(OWED, "", limit):
        space.put(SESSION, replace(kept, owed_by=owner))
    return [(kept.owed, whole(space, kept)) for kept in space.first(OWED, owner, limit)]


def hook_done(space: Space, session_id: str) -> None:
    """The hook is owed no more."""
    kept = space.get(SESSION, session_id)
    if kept is not None and kept.owed:
        _put(space, kept, replace(kept.session, hook="done"), owed=0)


def note_flushed(space: Space, session_id: str, messages: int) -> None:
    """Memory has been given so many messages of a session."""
    kept = space.get(SESSION, session_id)
    if kept is not None and messages > kept.session.flushed_messages:
        _put(space, kept, replace(kept.session, flushed_messages=messages))


def note_title(space: Space, session: Session, title: str) -> None:
    """Give the session a title, unless it got one meanwhile, or something of it was forgotten."""
    kept = space.get(SESSION, session.id)
    if kept is not None and kept.session.title is None and kept.session.rewritten == session.rewritten:
        _put(space, kept, replace(kept.session, title=storable(title)))


def claim_due(space: Space, caller: Caller, now: float, limit: int) -> list[Session]:
    """Sessions whose time to be ended, or to be deleted, has passed and that nobody else is handling, earliest
    first."""
    found = [kept for kept in space.first(DUE, "", limit) if _place(kept) <= now]
    found.sort(key=lambda kept: kept.session.expires_at or 0.0)
    for kept in found:
        space.put(SESSION, replace(kept, offered_to=caller.owner, offered_until=now + EXPIRY_CLAIM))
    return [whole(space, kept) for kept in found]


def _place(kept: SessionRecord) -> float:
    return max(kept.session.expires_at or 0.0, kept.offered_until)


def leave(space: Space, owner: str) -> None:
    """A process is dead: others may handle the sessions that it was offered."""
    for kept in space.first(OFFERED, owner, MANY):
        space.put(SESSION, replace(kept, offered_to="", offered_until=0.0))
    for kept in space.first(OWED, owner, MANY):
        space.put(SESSION, replace(kept, owed_by=""))
        space.tell("left")
