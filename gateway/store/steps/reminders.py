"""Reminders. Each change names the version that it changes, so if two try, one is first."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.reminder import Reminder
from gateway.runtime.structs import replace
from gateway.store.kinds import ALARM, ALARMS, CHAT, DUE_ALARMS, OPEN_ALARMS, PERSONS, ReminderRecord
from gateway.store.records import Arrival
from gateway.store.shared.documents import storable
from gateway.store.shared.platforms import chat_name
from gateway.store.space import MANY, Caller, Space, served
from gateway.store.steps import lanes, outbox


class Replaced(Struct, frozen=True, kw_only=True):
    """What a change came to. `first`: nobody had changed the reminder since."""

    first: bool
    claimed: list[lanes.Claimed] = []
    outbound: tuple[Outbound, ...] = ()


def add(space: Space, reminder: Reminder, most: int, in_chat: int) -> Reminder | None:
    """Store a reminder under the next number of its key, unless its id is known; None if its person or its chat has too
    many."""
    known = space.get(ALARM, reminder.id)
    if known is not None:
        return known.reminder
    chat = chat_name(reminder.key.address)
    user = storable(reminder.source.user)
    if space.count(OPEN_ALARMS, chat) >= in_chat or space.count(PERSONS, f"{chat} {user}") >= most:
        return None
    latest = space.last(ALARMS, reminder.key.owner.text)
    place = space.get(CHAT, chat)
    number = latest[0].reminder.number + 1 if latest else 1
    kept = replace(reminder, number=number, parked=place is not None and place.closed is not None)
    space.put(ALARM, ReminderRecord(reminder=kept))
    return kept


def of_id(space: Space, chat: ChatAddress, reminder_id: str) -> Reminder | None:
    """The reminder of this id in a chat."""
    found = space.get(ALARM, reminder_id)
    return found.reminder if found is not None and found.chat == chat_name(chat) else None


def of_key(space: Space, key: SessionKey, over: int) -> list[Reminder]:
    """A key's open reminders by number, and its latest others."""
    found = [alarm.reminder for alarm in space.first(ALARMS, key.owner.text, MANY)]
    others = [each for each in reversed(found) if not each.is_open]
    return [each for each in found if each.is_open] + others[:over]


def has_any(space: Space, key: SessionKey) -> bool:
    """Whether a key ever had a reminder."""
    return bool(space.first(ALARMS, key.owner.text))


def due(space: Space, caller: Caller, now: float, limit: int) -> list[Reminder]:
    """Reminders whose time has come, on platforms that the process sends to, earliest first."""
    platforms = served(space, caller.sends, DUE_ALARMS)
    found = [alarm.reminder for name in platforms for alarm in space.first(DUE_ALARMS, name, limit)]
    waiting = [(each.due_at, each) for each in found if each.due_at is not None and each.due_at <= now]
    return [each for _, each in sorted(waiting, key=lambda one: one[0])][:limit]


def change(
    space: Space,
    caller: Caller,
    reminders: Sequence[Reminder],
    shown: Sequence[Outbound],
    arrivals: Sequence[Arrival],
    room: int,
) -> Replaced:
    """Replace reminders' earlier versions, all or none, and store the rows that they show and the items that they
    make."""
    present = [space.get(ALARM, each.id) for each in reminders]
    known = [alarm.reminder for alarm in present if alarm is not None]
    if [each.version + 1 for each in known] != [each.version for each in reminders]:
        return Replaced(first=False)
    for before, each in zip(known, reminders, strict=True):
        space.put(ALARM, ReminderRecord(reminder=replace(each, number=before.number, parked=before.parked)))
    accepted = lanes.accept(space, caller, arrivals, lanes.NO_CAP, room)
    return Replaced(first=True, claimed=accepted.claimed, outbound=outbox.emit(space, caller, shown))
