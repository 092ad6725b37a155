"""People, rooms and events, and what `/sync` tells of them.

All events of the server stand in one list. A token is a place in it: everything before is known to whoever has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.runtime.clock import Clock

SERVER: Final = "example.org"
_CONTEXT: Final = 50  # events that a newcomer is told of

Json = dict[str, Any]


@dataclass(eq=False, kw_only=True)
class User:
    """Somebody. `devices`: by the tokens of their logins; `data`: account data by its kind."""

    id: str
    name: str
    devices: dict[str, str] = field(default_factory=dict)
    data: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, kw_only=True)
class Room:
    """A room. `events`: those of the list that are its own, by their places; `state`: the present one."""

    id: str
    events: dict[int, Json] = field(default_factory=dict)
    state: dict[tuple[str, str], Json] = field(default_factory=dict)

    def membership(self, user: str) -> str:
        """What somebody is there."""
        found = self.state.get(("m.room.member", user))
        return str(found["content"]["membership"]) if found else "leave"

    def people(self) -> Iterator[tuple[str, Json]]:
        """Those who are there, with what is known of them."""
        for (kind, user), event in self.state.items():
            if kind == "m.room.member" and event["content"]["membership"] == "join":
                yield user, event["content"]


def text_in(content: Json) -> str:
    """What a message says, in the newest wording that it holds."""
    return str((content.get("m.new_content") or content).get("body", ""))


def edited(content: Json) -> str | None:
    """The message of which this is a new wording."""
    relation = content.get("m.relates_to") or {}
    return relation.get("event_id") if relation.get("rel_type") == "m.replace" else None


class World:
    """All of it. `changed` is called after each event."""

    def __init__(self, clock: Clock, changed: Callable[[], None]) -> None:
        self.clock, self._changed = clock, changed
        self.users: dict[str, User] = {}
        self.rooms: dict[str, Room] = {}
        self.log: list[tuple[Room, Json]] = []
        self._named: dict[str, tuple[Room, Json]] = {}

    # -- what happens -----------------------------------------------------------------------

    def person(self, name: str) -> User:
        """Somebody new."""
        user = User(id=f"@{name.lower()}{len(self.users) or ''}:{SERVER}", name=name)
        self.users[user.id] = user
        return user

    def room(self, by: User, *others: User, invited: Iterable[User] = (), name: str = "", direct: bool = False) -> Room:
        """A new room with these people in it."""
        room = Room(id=f"!room{len(self.rooms)}:{SERVER}")
        self.rooms[room.id] = room
        for each in (by, *others):
            self.join(room, each)
        if name:
            self.put(room, by, "m.room.name", {"name": name}, key="")
        for each in invited:
            self.put(room, by, "m.room.member", {"membership": "invite", "is_direct": direct}, key=each.id)
        return room

    def join(self, room: Room, user: User) -> None:
        """Somebody comes in."""
        self.put(room, user, "m.room.member", {"membership": "join", "displayname": user.name}, key=user.id)

    def put(self, room: Room, by: User, kind: str, content: Json, *, key: str | None = None) -> str:
        """Add an event; returns its id."""
        number = len(self.log)
        event: Json = {
            "event_id": f"${number}-{room.id[1:].partition(':')[0]}",
            "type": kind,
            "sender": by.id,
            "content": content,
            "origin_server_ts": int(self.clock.now() * 1000),
            "unsigned": {},
        }
        if key is not None:
            before = room.state.get((kind, key))
            event["unsigned"] = {"prev_content": before["content"]} if before else {}
            event["state_key"] = key
            room.state[kind, key] = event
        self._named[event["event_id"]] = (room, event)
        return self.again(event["event_id"])

    def again(self, name: str) -> str:
        """Tell of an event, as for the first time; returns its id."""
        room, event = self._named[name]
        room.events[len(self.log)] = event
        self.log.append((room, event))
        self._changed()
        return name

    def say(self, room: Room, by: User, text: str, **content: Any) -> str:
        """Write a message; returns its id."""
        return self.put(room, by, "m.room.message", {"msgtype": "m.text", "body": text, **content})

    def redact(self, room: Room, by: User, event: str) -> str:
        """Take a message away."""
        self.event(event)["content"] = {}
        return self.put(room, by, "m.room.redaction", {"redacts": event})

    # -- what is to be seen -----------------------------------------------------------------

    def event(self, name: str) -> Json:
        """One event. Raises KeyError."""
        return self._named[name][1]

    def shown(self, room: Room, by: User) -> list[Json]:
        """Somebody's messages in a room, each in its present wording, oldest first."""
        found: dict[str, Json] = {}
        for each in room.events.values():
            if each["sender"] != by.id or each["type"] != "m.room.message" or not each["content"]:
                continue
            first = edited(each["content"])
            if first is None:
                found[each["event_id"]] = each
            elif first in found:
                found[first] = {**found[first], "content": each["content"]["m.new_content"]}
        return list(found.values())

    def with_newest(self, event: Json) -> Json:
        """An event as it is told alone: with its newest wording beside it."""
        room, _ = self._named[event["event_id"]]
        for each in reversed(room.events.values()):
            if each["sender"] == event["sender"] and edited(each["content"]) == event["event_id"]:
                return {**event, "unsigned": {"m.relations": {"m.replace": each}}}
        return event

    # -- what is told -----------------------------------------------------------------------

    def news(self, user: User, since: int | None, given: str) -> Json:
        """What `/sync` tells somebody from a place on, without waiting. `given`: its filter."""
        timeline = ((json.loads(given) if given else {}).get("room") or {}).get("timeline") or {}
        most, kinds = int(timeline.get("limit", 10)), timeline.get("types")
        told: dict[str, Json] = {}
        begun = since or 0
        touched = dict.fromkeys(room for room, _ in self.log[begun:])
        for room in touched:
            mine = room.state.get(("m.room.member", user.id))
            membership = room.membership(user.id)
            new = [(at, each) for at, each in _after(room, begun) if kinds is None or each["type"] in kinds]
            is_news = any(each is mine for _, each in new)
            if membership == "invite" and is_news:
                state = {"events": [dict(each) for each in room.state.values()]}
                told.setdefault("invite", {})[room.id] = {"invite_state": state}
            elif membership == "join":
                came = since is None or (is_news and not _was_there(mine))
                if came:
                    new = [(at, each) for at, each in room.events.items() if kinds is None or each["type"] in kinds]
                if new:
                    told.setdefault("join", {})[room.id] = self._part(room, new, min(most, _CONTEXT) if came else most)
            elif is_news:
                told.setdefault("leave", {})[room.id] = {"timeline": {"events": [mine]}}
        return {"next_batch": f"s{len(self.log)}", "rooms": told}

    def _part(self, room: Room, new: Sequence[tuple[int, Json]], most: int) -> Json:
        shown = new[-most:]
        limited = len(shown) < len(new)
        left_out = [each for _, each in new[: -len(shown)] if "state_key" in each]
        state = {(each["type"], each["state_key"]): each for each in left_out}
        return {
            "timeline": {
                "events": [each for _, each in shown],
                "limited": limited,
                "prev_batch": f"s{shown[0][0]}",
            },
            "state": {"events": list(state.values())},
        }

    def history(self, room: Room, until: int, since: int, most: int) -> tuple[list[Json], int | None]:
        """What was said before one place and from another on, newest first, and where to go on."""
        found = [(at, each) for at, each in room.events.items() if since <= at < until][::-1]
        page = found[:most]
        return [each for _, each in page], page[-1][0] if len(page) < len(found) else None


def _after(room: Room, since: int) -> list[tuple[int, Json]]:
    found = []
    for at in reversed(room.events):
        if at < since:
            break
        found.append((at, room.events[at]))
    return found[::-1]


def _was_there(event: Json | None) -> bool:
    before = ((event or {}).get("unsigned") or {}).get("prev_content") or {}
    return bool(before.get("membership") == "join")
