"""What a server tells of rooms is read whole, and one odd room or event holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from adapters.matrix.homeserver import Homeserver, Refusal
from adapters.matrix.platform import MatrixSettings
from adapters.matrix.receiving import Receiver
from adapters.matrix.rooms import Rooms
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound
from gateway.domain.place import NOT_SAID
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import Ambiguous

ME, ANNA, EVE, ROOM = "@legato:example.org", "@anna:example.org", "@eve:example.org", "!r"


class NoPauses(SystemClock):
    """A clock whose pauses take no time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Server:
    """A homeserver that tells these things one after the other. `past`: what it has of the room, newest first;
    `people`: who is in the room."""

    user = ME

    def __init__(self, *told: dict[str, Any], past: Sequence[Any] = (), people: Sequence[str] = (ME, ANNA)) -> None:
        self.told, self.past, self.people = [{}, *told], past, people
        self.calls: list[str] = []

    async def call(self, method: str, *path: str, query: Mapping[str, str] | None = None, **_: Any) -> Any:
        self.calls.append(path[0])
        if path[0] == "sync":
            if not self.told:
                await asyncio.Event().wait()
            return {"next_batch": f"s{len(self.told)}", "rooms": self.told.pop(0)}
        if path[0] == "join":
            raise Ambiguous("its own server does not answer")
        if path[-1] == "joined_members":
            return {"joined": {each: {} for each in (self.people if path[1] == ROOM else (ME,))}}
        if path[0] == "user":
            return {ANNA: ["!left", ROOM]}
        if path[-1] == "messages":
            return {"chunk": list(self.past)}
        if path[2:3] == ("context",):
            return {"events_before": list(self.past)}
        raise Refusal(404, {})


class Notes:
    """A notebook that keeps nothing. `read_all`: everything that the server told is stored."""

    def __init__(self) -> None:
        self.read_all = asyncio.Event()

    async def read(self) -> Mapping[str, str]:
        return {}

    async def write(self, changes: Mapping[str, str | None]) -> None:
        if changes.get("since") == "s1":
            self.read_all.set()


def said(body: str, by: str = ANNA, **content: Any) -> dict[str, Any]:
    """A message."""
    content = {"msgtype": "m.text", "body": body, **content}
    now = SystemClock().now() * 1000.0
    return {"type": "m.room.message", "event_id": f"${body}", "sender": by, "origin_server_ts": now, "content": content}


def member(person: str) -> dict[str, Any]:
    """What shows who is in the room."""
    return {"type": "m.room.member", "event_id": "$m", "state_key": person, "content": {"membership": "join"}}


async def heard(server: Server, last: str, rooms: Rooms | None = None) -> list[str]:
    """The texts that are accepted, once this one was and everything is stored."""
    return [_text(each) for each in await heard_whole(server, last, rooms)]


def _text(inbound: Inbound) -> str:
    return inbound.text or f"-{inbound.amends[0]}"


async def heard_whole(server: Server, last: str, rooms: Rooms | None = None) -> list[Inbound]:
    """What is accepted, once this text was and everything is stored."""
    clock, settings = NoPauses(), MatrixSettings(user=ME)
    rooms = rooms or Rooms(cast(Homeserver, server), settings, clock)
    receiver = Receiver(cast(Homeserver, server), rooms, settings, clock, NOT_SAID, frozenset())
    receiver.name = "Legato"
    found, notes = list[Inbound](), Notes()
    came = asyncio.Event()

    async def accept(batch: Sequence[Inbound]) -> Sequence[Accepted]:
        found.extend(each for each in batch if each.kind in ("message", "withdrawn"))
        if last in map(_text, found):
            came.set()
        return [Accepted(event_id=each.event_id, status="new") for each in batch]

    running = asyncio.create_task(receiver.run(accept, notes))
    async with asyncio.timeout(5):
        await came.wait()
        await notes.read_all.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return found


async def test_what_was_missed_is_fetched_though_the_server_shows_that_the_bot_is_there() -> None:
    timeline = {"limited": True, "prev_batch": "p", "events": [said("three"), said("late", by=ME)]}
    told = {"join": {ROOM: {"state": {"events": [member(ME)]}, "timeline": timeline}}}
    assert await heard(Server(told, past=[said("two"), said("one")]), "three") == ["one", "two", "three"]


async def test_a_bot_that_came_long_ago_in_the_same_gap_answers_nothing_older() -> None:
    timeline = {"limited": True, "prev_batch": "p", "events": [said("three")]}
    past = [said("two"), member(ME), said("one")]
    told = {"join": {ROOM: {"timeline": timeline}}}
    assert await heard(Server(told, past=[{"origin_server_ts": 9e15, **each} for each in past]), "three") == [
        "two",
        "three",
    ]


async def test_an_invitation_into_a_room_whose_server_is_gone_holds_up_nobody() -> None:
    invited = {**member(ME), "sender": ANNA, "content": {"membership": "invite"}}
    told = {
        "invite": {"!dead": {"invite_state": {"events": [invited]}}},
        "join": {ROOM: {"timeline": {"events": [said("Hello")]}}},
    }
    server = Server(told)
    await heard(server, "Hello")
    assert server.calls.count("join") == 10


async def test_an_odd_event_before_a_mention_hides_neither_it_nor_the_others() -> None:
    odd = [said("a", by=EVE, **{"m.relates_to": "x"}), said("b", by=EVE, msgtype=[]), said("c", by=EVE)]
    told = {"join": {ROOM: {"timeline": {"events": [said("Legato: hi")]}}}}
    server = Server(told, past=odd, people=(ME, ANNA, EVE))
    (mention,) = await heard_whole(server, "hi")
    assert [(each.source.user, each.text) for each in mention.before] == [(EVE, "c")]


async def test_a_message_that_waits_since_before_the_start_can_be_taken_back() -> None:
    gone = {"type": "m.room.redaction", "event_id": "$g", "sender": ANNA, "redacts": "$x", "content": {}}
    told = {"join": {ROOM: {"timeline": {"events": [gone, said("Hello")]}}}}
    assert await heard(Server(told), "Hello") == [f"-$x/{ANNA}", "Hello"]


async def test_odd_events_of_a_stranger_are_told_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    odd = [{**said(str(number), by=EVE), "content": {"m.relates_to": "x"}} for number in range(5)]
    told = {"join": {ROOM: {"timeline": {"events": [*odd, said("Hello")]}}}}
    assert await heard(Server(told), "Hello") == ["Hello"]
    assert capsys.readouterr().out.count("event_unreadable") == 1


async def test_nobody_is_written_to_in_a_room_that_they_left() -> None:
    server = Server(people=(ME, ANNA))
    rooms = Rooms(cast(Homeserver, server), MatrixSettings(user=ME), NoPauses())
    assert await rooms.alone_with(ANNA) == ROOM


async def test_a_room_of_two_is_opened_once_though_the_server_tells_of_it_meanwhile() -> None:
    direct = dict[str, Any]()

    class Opens(Server):
        async def call(self, method: str, *path: str, body: Any = None, **how: Any) -> Any:
            if path[0] == "createRoom":
                return {"room_id": f"!new{len(direct)}"}
            if method == "PUT":
                direct.update(body)
                rooms.changed("!new0", member(ANNA))
            if path[0] == "user":
                return dict(direct)
            if path[-2:] == ("m.room.member", ANNA):
                return {"membership": "invite"}
            return await super().call(method, *path, **how)

    rooms = Rooms(cast(Homeserver, Opens()), MatrixSettings(user=ME), NoPauses())
    assert await asyncio.gather(*(rooms.alone_with(ANNA) for _ in range(2))) == ["!new0", "!new0"]


async def test_a_message_that_pretends_to_close_the_room_leads_the_bot_nowhere() -> None:
    feigned = {**said("x", by=EVE), "type": "m.room.tombstone", "content": {"replacement_room": "!trap"}}
    told = {"join": {ROOM: {"timeline": {"events": [feigned, said("Hello")]}}}}
    server = Server(told)
    assert await heard(server, "Hello") == ["Hello"]
    assert "join" not in server.calls


async def test_a_message_that_pretends_to_encrypt_or_name_the_room_changes_nothing() -> None:
    feigned = [
        {**said("x", by=EVE), "type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}},
        {**said("y", by=EVE), "type": "m.room.name", "content": {"name": "Trap"}},
    ]
    told = {"join": {ROOM: {"timeline": {"events": [said("One"), *feigned, said("Hello")]}}}}
    server, clock = Server(told), NoPauses()
    rooms = Rooms(cast(Homeserver, server), MatrixSettings(user=ME), clock)
    await heard(server, "Hello", rooms)
    found = await rooms.of(ROOM)
    assert (found.name, found.sealing) == ("", None)
