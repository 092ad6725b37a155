"""Lists and counts over everything, for people to read. They may lag behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gateway.domain.chat import ChatAddress, Outbound, OutboundState, SessionKey
from gateway.domain.session import Compaction, Session
from gateway.runtime.structs import replace
from gateway.store.kinds import (
    AT_ADDRESS,
    DEAD,
    ENDING,
    EVENT,
    HEARD,
    ITEM,
    MESSAGE,
    OF_CHAT,
    OF_KEY,
    OPENING,
    ROW,
    ROWS,
    SESSIONS,
    UNSEEN,
    UNSENT_ROWS,
    Item,
    Row,
    address_name,
    event_name,
)
from gateway.store.records import MOST_HEARD, Backlog, Fate, Found, InboxItem, Named, Pile, StoreStatus
from gateway.store.shared.platforms import chat_name
from gateway.store.space import MANY, Space
from gateway.store.steps import lanes, sessions

_UNSENT = (OutboundState.STREAMING, OutboundState.PENDING, OutboundState.SENDING)


def listed_sessions(space: Space, key: SessionKey | None, limit: int, offset: int) -> list[Session]:
    """Sessions of a key (None: of all), newest first."""
    index, under = (SESSIONS, "") if key is None else (OF_KEY, key.text)
    return [sessions.whole(space, kept) for kept in space.last(index, under, offset + limit)[offset:]]


def conversations(space: Space, chat: SessionKey, limit: int) -> list[SessionKey]:
    """The keys with sessions in a chat, threads included, newest first."""
    found = [kept.session.key for kept in space.last(OF_CHAT, chat_name(chat.address), MANY)]
    of_chat = [key for key in dict.fromkeys(found) if replace(key, thread=chat.thread) == chat]
    return of_chat[:limit]


def own_sessions(space: Space, owner: SessionKey, limit: int) -> list[Session]:
    """The sessions of all chats that a person has alone with the bot, newest first, without their prompts."""
    found = space.last(OF_CHAT, chat_name(owner.address), limit)
    return [kept.session for kept in found if kept.session.key.owner == owner]


def compactions(space: Space, session_id: str) -> list[Compaction]:
    """The compactions that ended or opened a session, oldest first."""
    found = [*space.first(ENDING, session_id, MANY), *space.first(OPENING, session_id, MANY)]
    return [made.compaction for made in sorted(found, key=lambda made: made.number)]


def heard(space: Space, key: SessionKey, limit: int) -> list[InboxItem]:
    """A key's items, whatever became of them, newest first."""
    return [lanes.read(item) for item in space.last(HEARD, key.text, min(limit, MOST_HEARD))]


def dead(space: Space, limit: int) -> list[InboxItem]:
    """The items that were given up, newest first."""
    return [lanes.read(item) for item in space.last(DEAD, "", limit)]


def bury(space: Space, item: InboxItem) -> bool:
    """Take an item off the dead ones; False if it was not among them."""
    found = space.get(ITEM, int(item.id))
    if found is None or found.outcome != "dead":
        return False
    space.put(ITEM, replace(found, outcome="withdrawn"))
    return True


def named(space: Space, name: str, platforms: Collection[str]) -> Named:
    """The items, the message and the row with this name."""
    events = [space.get(EVENT, event_name(platform, name)) for platform in platforms]
    numbers = {event.item for event in events if event is not None}
    is_number = name.isdecimal() and int(name) < 1 << 63
    if is_number:
        numbers.add(int(name))
    items = [item for number in sorted(numbers) if (item := space.get(ITEM, number)) is not None]
    said = space.get(MESSAGE, int(name)) if is_number else None
    message = None if said is None else Found(session_id=said.session_id, message=sessions.message(said), at=said.at)
    row = space.get(ROW, name)
    return Named(fates=tuple(map(_fate, items)), message=message, row=None if row is None else row.out)


def _fate(item: Item) -> Fate:
    by = None if item.absorbed_by is None else str(item.absorbed_by)
    return Fate(item=lanes.read(item), outcome=item.outcome, ended_at=item.ended_at, absorbed_by=by)


def outbox(
    space: Space, address: ChatAddress | None, limit: int, states: Collection[OutboundState] = ()
) -> list[Outbound]:
    """Rows of an address (None: of all), newest first, optionally only those in certain states."""
    if address is not None:
        found = _of_states(space.last(AT_ADDRESS, address_name(address), MANY if states else limit), states)
    elif not states or OutboundState.SENT in states:
        found = _of_states(space.last(ROWS, "", MANY if states else limit), states)
    else:
        unsent = [row for name in space.names(UNSENT_ROWS) for row in space.last(UNSENT_ROWS, name, MANY)]
        found = _of_states([*unsent, *space.last(UNSEEN, "", MANY)], states)
        found.sort(key=lambda row: -row.seq)
    return [row.out for row in found[:limit]]


def _of_states(rows: Sequence[Row], states: Collection[OutboundState]) -> list[Row]:
    return [row for row in rows if not states or row.out.state in states]


def backlog(space: Space) -> Backlog:
    """What waits, on all platforms."""
    unsent: dict[tuple[str, str], Pile] = {}
    for name in space.names(UNSENT_ROWS):
        rows = space.first(UNSENT_ROWS, name, MANY)
        for state in _UNSENT:
            created = [row.out.created_at for row in rows if row.out.state is state]
            if created:
                oldest = None if state is OutboundState.STREAMING else min(created)
                unsent[name, str(state)] = Pile(count=len(created), oldest=oldest)
    return Backlog(waiting=lanes.unfinished(space), idle=lanes.idle(space), unsent=unsent, dead=space.count(DEAD, ""))


def status(space: Space, platforms: Collection[str] | None = None) -> StoreStatus:
    """Counts over everything. If platforms are given, only their waiting items and unsent rows are counted."""
    piles = lanes.unfinished(space)
    waiting = sum(piles[name].count for name in _of(list(piles), platforms))
    unsent = sum(space.count(UNSENT_ROWS, name) for name in _of(space.names(UNSENT_ROWS), platforms))
    return StoreStatus(waiting=waiting, unsent=unsent, dead=space.count(DEAD, ""), sessions=space.count(SESSIONS, ""))


def _of(names: Sequence[str], platforms: Collection[str] | None) -> list[str]:
    return [name for name in names if platforms is None or name in platforms]
