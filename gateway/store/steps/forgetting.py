"""Forgetting: what a person wants forgotten goes, and so do the words of everything that came in and was shown around
it. A deed is done once."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.domain.chat import PLACED, UNSENT, ChatType, Inbound, OutboundState, SessionKey
from gateway.domain.session import Session
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.kinds import (
    ALARM,
    ALARMS,
    AT_ADDRESS,
    COMPACTION,
    DEED,
    ENDING,
    FILES,
    HEARD,
    ITEM,
    LANE,
    MESSAGE,
    OF_KEY,
    OPENING,
    PINNED,
    PROMPT,
    ROW,
    SESSION,
    SESSIONS,
    TURN,
    CompactionRecord,
    DeedRecord,
    Item,
    PinsRecord,
    Row,
    SessionRecord,
    address_name,
)
from gateway.store.records import Erasure, Forgetting, Lease, Rewriting, Talk
from gateway.store.shared.documents import WORDLESS
from gateway.store.space import MANY, Space
from gateway.store.steps import keeping, lanes, outbox, sessions, spending


def forgotten(space: Space, deed: str) -> Mapping[str, int] | None:
    """The counts of a deed; None if it was not done."""
    known = space.get(DEED, deed)
    return None if known is None else known.counts


# -- some messages -------------------------------------------------------------------------------------


def forget(space: Space, lease: Lease | None, deed: Forgetting) -> Mapping[str, int]:
    """Take messages out of a key's conversations, with all that the deed names."""
    if lease is not None:
        lanes.held(space, lease)
    known = space.get(DEED, deed.id)
    if known is not None:
        return known.counts
    tip = sessions.tip(space, deed.key)
    if (tip and tip.ref) != deed.tip:
        raise SessionConflict("This conversation was changed by someone else. Look at it again.")
    gone: dict[int, int | None] = {sessions.number_of(each): None for each in deed.removed}
    for made in deed.replaced:
        number, _ = sessions.store_message(space, made.session_id, deed.key, made.message, deed.at)
        gone[sessions.number_of(made.old)] = number
    for session in deed.sessions:
        _rewrite(space, session, gone)
    for number in gone:
        space.drop(MESSAGE, number)
    pins = keeping.pins(space, deed.key)
    if deed.rules:
        left = tuple(rule for rule in pins.rules if rule not in deed.rules)
        space.put(PINNED, PinsRecord(key=deed.key.owner, pins=replace(pins, rules=left)))
    sessions.prompt_others_anew(space, deed.key)
    if deed.files:
        keeping.drop_files(space, deed.key, deed.files)
    for reminder in deed.reminders:
        _drop_alarm(space, deed.key, reminder)
    _silence(space, deed.key, deed.item)
    _done(space, DeedRecord(id=deed.id, key=deed.key, at=deed.at, counts=deed.counts))
    return deed.counts


def _drop_alarm(space: Space, key: SessionKey, reminder: str) -> None:
    alarm = space.get(ALARM, reminder)
    if alarm is not None and alarm.reminder.key.owner == key.owner:
        space.drop(ALARM, reminder)


def _rewrite(space: Space, wanted: Rewriting, gone: Mapping[int, int | None]) -> None:
    """Leave messages out of a transcript, or replace them."""
    kept = space.get(SESSION, wanted.session_id)
    if kept is None:
        return
    numbers = space.members(wanted.session_id)
    first = next((place for place, number in enumerate(numbers) if number in gone), len(numbers))
    left = [new for number in numbers[first:] if (new := gone.get(number, number)) is not None]
    space.shorten(wanted.session_id, first)
    space.extend(wanted.session_id, left, at=first)
    space.put(SESSION, replace(kept, session=_rewritten(kept.session, wanted, first + len(left))))
    space.drop(PROMPT, wanted.session_id)
    for made in _compactions(space, wanted.session_id):
        wordless = replace(made.compaction, focus=None, error=None)
        space.put(COMPACTION, replace(made, compaction=wordless))


def _rewritten(session: Session, wanted: Rewriting, messages: int) -> Session:
    return replace(
        session,
        message_count=messages,
        transcript_tokens=max(0, session.transcript_tokens - wanted.freed),
        flushed_messages=max(0, session.flushed_messages - (session.message_count - messages)),
        title=wanted.title,
        todos=wanted.todos,
        engine_state={},
        last_prompt_tokens=0,
        reported_messages=0,
        epoch=session.epoch + 1,
        rewritten=session.rewritten + 1,
    )


def _compactions(space: Space, session_id: str) -> list[CompactionRecord]:
    return [*space.first(ENDING, session_id, MANY), *space.first(OPENING, session_id, MANY)]


def _silence(space: Space, key: SessionKey, asking: str | None) -> None:
    """Remove the words of what came in and was shown under a key. Rows that are not shown yet never will be, except
    those of the item that asks."""
    asks = -1 if asking is None else int(asking)
    for item in space.first(HEARD, key.text, MANY):
        if item.outcome is not None or item.number == asks:
            _make_wordless(space, item, asked=item.number == asks)
    for row in _rows(space, key):
        _silence_row(space, row, _event(space, asks))


def _make_wordless(space: Space, item: Item, *, asked: bool) -> None:
    came = item.inbound
    if came is not None:
        text = WORDLESS if asked else ""
        left = Inbound(event_id=came.event_id, source=came.source, text=text, kind=came.kind, sent_at=came.sent_at)
        space.put(ITEM, replace(item, inbound=left))


def _event(space: Space, number: int) -> str | None:
    item = space.get(ITEM, number)
    return None if item is None or item.inbound is None else item.inbound.event_id


def _rows(space: Space, key: SessionKey) -> list[Row]:
    """The rows of a conversation, which lie among those of everybody who speaks there."""
    there = space.first(AT_ADDRESS, address_name(key.address), MANY)
    return [row for row in there if row.out.key == key]


def _silence_row(space: Space, row: Row, own: str | None) -> None:
    was_unsent = row.out.state in UNSENT
    if was_unsent and _answers(space, row, own):
        return
    error = row.out.error and outbox.FORGOTTEN
    state = row.out.state
    if was_unsent or state is OutboundState.WITHHELD:
        state = OutboundState.REFUSED
    if was_unsent:
        error = outbox.FORGOTTEN
    out = replace(row.out, text="", file=None, buttons=(), returns=None, error=error, state=state)
    space.put(ROW, replace(row, out=out))
    if row.out.state in PLACED:
        outbox.look_now(space, row)


def _answers(space: Space, row: Row, event: str | None) -> bool:
    """Whether a row answers an event, or replaces such an answer."""
    edited = None if row.out.edits is None else space.get(ROW, row.out.edits)
    answered = (row.out.answers, None if edited is None else edited.out.answers)
    return event is not None and event in answered


# -- everything of a key -------------------------------------------------------------------------------


def erase(space: Space, lease: Lease | None, deed: Erasure) -> Mapping[str, int]:
    """Delete everything of a key. Without a lease, the items that wait in its lane end, too."""
    if lease is not None:
        lanes.held(space, lease)
    known = space.get(DEED, deed.id)
    if known is not None:
        return known.counts
    if lease is None:
        _end_items(space, deed)
    found = space.first(OF_KEY, deed.key.text, MANY)
    old = [kept for kept in found if _goes(kept.session, deed)]
    if deed.over is not None:
        _erase_around(space, deed, old)
    counts = {**_erase_sessions(space, found, old), **_erase_kept(space, deed)}
    if deed.over is None:
        _erase_items(space, deed)
        _erase_rows(space, deed)
    _done(space, DeedRecord(id=deed.id, key=deed.key, at=deed.at, counts=counts))
    return counts


def _done(space: Space, deed: DeedRecord) -> None:
    """Note a deed. What a backend keeps besides the records must be cleaned, too."""
    space.put(DEED, deed)
    space.tell("forgotten")


def _end_items(space: Space, deed: Erasure) -> None:
    """The lane's items end, and whoever runs it is shut out."""
    space.drop(LANE, deed.key.text)
    for item in space.first(HEARD, deed.key.text, MANY):
        if item.outcome is None:
            space.put(ITEM, replace(item, outcome="refused", ended_at=deed.at))


def _goes(session: Session, deed: Erasure) -> bool:
    if deed.is_whole:
        return True
    if session.ended_at is None:
        return False
    if deed.over is not None:
        return session.temporary and session.ended_at <= deed.over
    return deed.before is not None and session.last_active_at < deed.before


def _erase_around(space: Space, deed: Erasure, gone: list[SessionRecord]) -> None:
    """Erase the words of what came in and was shown in a temporary chat: its lane did nothing else meanwhile."""
    spans = [(kept.session.started_at, kept.session.ended_at or 0.0) for kept in gone]
    notes = [said.note or {} for kept in gone for said in space.many(MESSAGE, space.members(kept.session.id))]
    events = {event for note in notes for event in (note.get("event"), *note.get("parts", ())) if event}
    for item in space.first(HEARD, deed.key.text, MANY):
        event = None if item.inbound is None else item.inbound.event_id
        if event in events or any(began < (item.ended_at or 0.0) <= end for began, end in spans):
            space.put(ITEM, replace(item, inbound=None))
            space.drop(TURN, item.number)
    own = _event(space, -1 if deed.item is None else int(deed.item))
    for row in _rows(space, deed.key):
        is_its = row.out.answers in events or any(began < row.out.created_at <= end for began, end in spans)
        if is_its and not _answers(space, row, own):
            _drop_row(space, row)


def _erase_sessions(space: Space, found: list[SessionRecord], old: list[SessionRecord]) -> dict[str, int]:
    stays: dict[int, str] = {}  # a message → the first session that holds it and stays
    for kept in found:
        if kept not in old:
            for number in space.members(kept.session.id):
                stays.setdefault(number, kept.session.id)
    held = {number for kept in old for number in space.members(kept.session.id)}
    for number in held:
        _leave_message(space, number, stays.get(number), [kept.session.id for kept in old])
    for kept in old:
        _erase_session(space, kept)
    return {"sessions": len(old), "messages": len(held - stays.keys())}


def _leave_message(space: Space, number: int, session_id: str | None, gone: list[str]) -> None:
    """A message that a later session shares now belongs to one of that session; any other is deleted."""
    said = space.get(MESSAGE, number)
    if session_id is None:
        space.drop(MESSAGE, number)
    elif said is not None and said.session_id in gone:
        space.put(MESSAGE, replace(said, session_id=session_id))


def _erase_session(space: Space, kept: SessionRecord) -> None:
    session_id = kept.session.id
    space.shorten(session_id, 0)
    for made in _compactions(space, session_id):
        space.drop(COMPACTION, made.number)
    spending.leave_nobody(space, kept.session.key, session_id)
    space.drop(PROMPT, session_id)
    space.drop(SESSION, session_id)


def _erase_kept(space: Space, deed: Erasure) -> dict[str, int]:
    """Files, and without a moment everything else under the key."""
    files = [kept.file for kept in space.first(FILES, deed.key.text, MANY)]
    old = [file.ref for file in files if deed.is_whole or file.at < (deed.before or 0.0) or file.ref in deed.files]
    keeping.drop_files(space, deed.key, old)
    if not deed.is_whole:
        return {"files": len(old)}
    rules = len(keeping.pins(space, deed.key).rules) if not deed.key.is_own else 0
    space.drop(PINNED, deed.key.text)
    for alarm in space.first(ALARMS, deed.key.owner.text, MANY):
        if alarm.reminder.key == deed.key:
            space.drop(ALARM, alarm.reminder.id)
    keeping.drop_notes(space, deed.key)
    spending.leave_nobody(space, deed.key)
    sessions.prompt_others_anew(space, deed.key)
    return {"files": len(old), "rules": rules}


def _erase_items(space: Space, deed: Erasure) -> None:
    """Erase the words of what came in. The events' ids stay known."""
    asks = -1 if deed.item is None else int(deed.item)
    for item in space.first(HEARD, deed.key.text, MANY):
        if item.number == asks:
            _make_wordless(space, item, asked=True)
        elif item.outcome is not None and (deed.before is None or item.accepted_at < deed.before):
            space.put(ITEM, replace(item, inbound=None))
            space.drop(TURN, item.number)


def _erase_rows(space: Space, deed: Erasure) -> None:
    own = _event(space, -1 if deed.item is None else int(deed.item))
    for row in _rows(space, deed.key):
        is_old = deed.before is None or (row.out.created_at < deed.before and row.out.state not in UNSENT)
        if is_old and not _answers(space, row, own):
            _drop_row(space, row)


def _drop_row(space: Space, row: Row) -> None:
    space.drop(ROW, row.out.id)
    if row.out.state in PLACED:
        outbox.look_now(space, row)


# -- who spoke where -----------------------------------------------------------------------------------


def talks(space: Space, platform: str | None, person: str | None) -> list[Talk]:
    """The conversations in which a person (None: anybody) spoke. Scans the store."""
    found: set[tuple[str, ChatType]] = set()
    for lane in space.names(HEARD):
        for item in space.first(HEARD, lane, MANY):
            source = None if item.inbound is None else item.inbound.source
            if source is not None and platform in (None, source.platform) and person in (None, source.user):
                found |= {(lane, source.chat_type), (SessionKey.parse(lane).owner.text, source.chat_type)}
    if platform is None and person is None:
        found |= {(kept.session.key.text, kept.session.chat_type) for kept in space.first(SESSIONS, "", MANY)}
    return [Talk(key=SessionKey.parse(lane), chat_type=kind) for lane, kind in sorted(found)]
