"""What the bot knows of its Matrix rooms: who is there, which took the place of another, and what was said before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from adapters.matrix.encryption import Encryption
from adapters.matrix.homeserver import Homeserver, Refusal
from adapters.matrix.platform import MatrixSettings
from adapters.matrix.rooms import Rooms
from gateway.runtime.errors import Ambiguous
from tests.support.fakes import ManualClock

ME, ANNA, BEN = "@legato:example.org", "@anna:example.org", "@ben:example.org"
NOW = 1_000_000.0


class Server:
    """A homeserver with these answers, by the end of the path; it refuses everything else, and breaks where told."""

    user = ME

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, str, Any]] = []

    async def call(
        self, method: str, *path: str, body: Any = None, query: Mapping[str, str] | None = None, **_: Any
    ) -> Any:
        where = "/".join(path)
        self.calls.append((method, where, body if query is None else dict(query)))
        found = self.answers.get(where if where in self.answers else path[-1])
        if isinstance(found, list):
            found = found.pop(0)
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise Refusal(404, {})
        return found


class Notes(dict[str, str]):
    """A notebook in memory."""

    async def read(self) -> Mapping[str, str]:
        return self

    async def write(self, changes: Mapping[str, str | None]) -> None:
        self.update({name: value for name, value in changes.items() if value is not None})
        for name in [name for name, value in changes.items() if value is None]:
            self.pop(name, None)


def rooms_of(server: Server, **settings: Any) -> Rooms:
    made = MatrixSettings(user=ME, **settings)
    return Rooms(cast(Homeserver, server), made, ManualClock(NOW))


def members(*people: str, **named: str) -> dict[str, Any]:
    return {"joined": {each: {"display_name": named.get(each[1:].partition(":")[0])} for each in people}}


async def test_a_room_is_asked_for_once_and_changes_as_the_server_tells() -> None:
    server = Server(
        **{
            "joined_members": members(ME, ANNA, anna="Anna"),
            "m.room.name": {"name": "Home"},
            "m.room.encryption": {"a": 1},
        }
    )
    rooms = rooms_of(server)
    room = await rooms.of("!r")
    assert (room.id, room.first, room.name, room.people) == ("!r", "!r", "Home", {ME: "", ANNA: "Anna"})
    assert (room.alone, room.sealing, len(server.calls)) == (True, None, 2)
    assert room.called(ANNA) == "Anna"
    for event in (
        {"type": "m.room.member", "state_key": BEN, "content": {"membership": "join", "displayname": "Ben"}},
        {"type": "m.room.member", "state_key": ANNA, "content": {"membership": "join", "displayname": "Anne"}},
        {"type": "m.room.name", "content": {"name": "House"}},
        {"type": "m.room.encryption", "content": {"algorithm": "m"}},
    ):
        rooms.changed("!r", event)
        rooms.changed("!unknown", event)
    assert (room.name, room.people, room.alone) == ("House", {ME: "", ANNA: "Anne", BEN: "Ben"}, False)
    assert room.sealing == {"algorithm": "m"}
    rooms.changed("!r", {"type": "m.room.member", "state_key": BEN, "content": {"membership": "leave"}})
    rooms.changed("!r", {"type": "m.room.member", "state_key": "@nobody:x", "content": None})
    rooms.changed("!r", {"type": "m.room.name"})
    assert (room.name, room.alone, len(server.calls)) == ("", True, 2)
    assert await rooms.of("!r") is room
    rooms.forget("!r")
    rooms.forget("!unknown")
    rooms.encryption = cast(Encryption, object())
    assert (await rooms.of("!r")).sealing == {"a": 1}
    server.answers["m.room.encryption"] = server.answers["m.room.name"] = None
    rooms.forget("!r")
    assert ((await rooms.of("!r")).sealing, (await rooms.of("!r")).name) == (None, "")


DIRECT = f"user/{ME}/account_data/m.direct"


THERE, OF_ANNA = "rooms/!r/joined_members", f"rooms/!r/state/m.room.member/{ANNA}"


@pytest.mark.parametrize(
    ("told", "room", "noted"),
    [
        pytest.param({THERE: members(ME, ANNA)}, "!r", None, id="both are there"),
        pytest.param({THERE: members(ME), OF_ANNA: {"membership": "invite"}}, "!r", None, id="invited"),
        pytest.param({THERE: members(ME), OF_ANNA: {"membership": "leave"}}, "!new", ["!new", "!r"], id="has left"),
        pytest.param({THERE: members(ME, ANNA, BEN)}, "!new", ["!new", "!r"], id="others are there"),
        pytest.param({}, "!new", ["!new", "!r"], id="the bot is not there"),
    ],
)
async def test_somebody_is_written_to_where_nobody_else_is(
    told: dict[str, Any], room: str, noted: list[str] | None
) -> None:
    server = Server(**told, **{DIRECT: {ANNA: ["!r"], BEN: ["!b"]}, "createRoom": {"room_id": "!new"}})
    rooms = rooms_of(server)
    assert await rooms.alone_with(ANNA) == room
    asked = len(server.calls)
    assert (await rooms.alone_with(ANNA), len(server.calls)) == (room, asked), "it is remembered"
    written = [body for method, where, body in server.calls if (method, where) == ("PUT", DIRECT)]
    assert written == ([{ANNA: noted, BEN: ["!b"]}] if noted else [])
    made = [body for _, where, body in server.calls if where == "createRoom"]
    assert made == ([{"preset": "trusted_private_chat", "is_direct": True, "invite": [ANNA]}] if noted else [])
    rooms.changed(room, {"type": "m.room.member", "state_key": ANNA, "content": {"membership": "leave"}})
    await rooms.alone_with(ANNA)
    assert len(server.calls) > asked, "it is looked up again"


@pytest.mark.parametrize("direct", [True, False])
async def test_an_invitation_is_followed_by_the_way_of_who_asked(direct: bool) -> None:
    server = Server(join=None, **{"join/!r": {}, DIRECT: [{ANNA: ["!r", "!o"]}, Ambiguous("lost")]})
    await rooms_of(server).join("!r", ANNA, direct=direct)
    wanted: list[tuple[str, str, Any]] = [("POST", "join/!r", {"via": "example.org"})]
    if direct:  # that the server does not note it stops nobody
        wanted += [("GET", DIRECT, None), ("PUT", DIRECT, {ANNA: ["!r", "!o"]})]
    assert server.calls == wanted


@pytest.mark.parametrize(
    ("people", "noted", "group"), [((ME, ANNA), "!old", False), ((ME, ANNA, BEN), "!old group", True)]
)
async def test_a_room_that_takes_the_place_of_another_goes_on_with_it(
    people: tuple[str, ...], noted: str, group: bool
) -> None:
    told: dict[str, Any] = {
        "rooms/!new/state/m.room.create": {"predecessor": {"room_id": "!old"}},
        "rooms/!old/state/m.room.tombstone": {"replacement_room": "!new"},
        "rooms/!old/joined_members": members(*people),
        "rooms/!new/joined_members": members(ME),
    }
    rooms, notes = rooms_of(Server(**told)), Notes({"moved !old": "!older", "since": "s1"})
    await rooms.of("!new")
    await rooms.moved("!new", notes)
    assert notes == {"moved !new": noted, "since": "s1"}
    later = rooms_of(Server(**told))
    await later.load(notes)
    for each in (rooms, later):
        room = await each.of("!new")
        assert (each.present("!old"), each.present("!other"), each.first) == ("!new", "!other", {"!new": "!old"})
        assert (room.first, room.group, room.alone) == ("!old", group, not group)
    asked = len(later._server.calls)  # type: ignore[attr-defined]
    await later.moved("!new", notes)
    assert len(later._server.calls) == asked + 1, "what is known is not asked again"  # type: ignore[attr-defined]


@pytest.mark.parametrize("tombstone", [None, {}, {"replacement_room": "!another"}])
async def test_a_room_that_only_says_so_takes_no_place(tombstone: Any) -> None:
    told = {"m.room.create": {"predecessor": {"room_id": "!old"}}, "m.room.tombstone": tombstone}
    rooms, notes = rooms_of(Server(**told)), Notes()
    await rooms.moved("!new", notes)
    assert (notes, rooms.first, rooms.present("!old")) == ({}, {}, "!old")


def said(text: str, by: str = ANNA, at: float = NOW, **content: Any) -> dict[str, Any]:
    content = {"msgtype": "m.text", "body": text, **content}
    return {
        "type": "m.room.message",
        "event_id": f"${text}",
        "sender": by,
        "origin_server_ts": at * 1000.0,
        "content": content,
    }


async def test_before_a_mention_stands_what_came_after_the_bots_own_words() -> None:
    told = [said("three", BEN), said("two"), {**said("noise", ME), "type": "m.reaction"}, said("mine", ME), said("one")]
    server = Server(joined_members=members(ME, ANNA, BEN), **{"$now": {"events_before": told}})
    rooms = rooms_of(server, quoted=7)
    room = await rooms.of("!r")
    quoted = await rooms.before(room, "$now")
    assert [(each.text, each.source.user) for each in quoted if each.source.user != ME] == [
        ("two", ANNA),
        ("three", BEN),
    ]
    assert server.calls[-1] == ("GET", "rooms/!r/context/$now", {"limit": "14"})
    server.answers["$now"] = Ambiguous("it took too long")
    assert await rooms.before(room, "$now") == ()


async def test_a_message_is_looked_up_in_its_newest_wording() -> None:
    newer = said(
        "* new", **{"m.new_content": {"body": "new"}, "m.relates_to": {"rel_type": "m.replace", "event_id": "$old"}}
    )
    server = Server(
        **{
            "$plain": said("plain"),
            "$gone": {"content": {}},
            "$old": said("old") | {"unsigned": {"m.relations": {"m.replace": newer}}},
        }
    )
    rooms = rooms_of(server)
    found = [await rooms.event("!r", each) for each in ("$plain", "$old", "$gone", "$never")]
    assert [each and each["content"]["body"] for each in found] == ["plain", "new", None, None]


async def test_what_was_missed_is_read_back_to_the_limit_the_hours_or_the_beginning() -> None:
    def page(first: int, count: int, end: str, at: float = NOW) -> dict[str, Any]:
        return {"chunk": [said(str(number), at=at) for number in range(first, first - count, -1)], "end": end}

    limits = {"catch_up": {"messages": 120, "hours": 2}}
    texts = [str(number) for number in range(400)]

    async def read(*pages: dict[str, Any]) -> tuple[list[str], bool, list[Any]]:
        server = Server(messages=list(pages))
        found, more = await rooms_of(server, **limits).missed("!r", "until", "since")
        asked = [(each["from"], each["limit"], each["to"], each["dir"]) for _, _, each in server.calls]
        return [each["content"]["body"] for each in found], more, asked

    first, second = ("until", "100", "since", "b"), ("e1", "20", "since", "b")
    assert await read(page(399, 100, "e1"), page(299, 20, "e2")) == (texts[280:], True, [first, second])
    assert await read(page(399, 100, "e1"), page(299, 5, "")) == (texts[295:], False, [first, second])
    assert await read(page(399, 100, "e1"), {"end": "e2"}) == (texts[300:], False, [first, second])
    older = {"chunk": [*page(299, 1, "")["chunk"], *page(298, 1, "", NOW - 7_200.0)["chunk"]], "end": ""}
    assert await read(page(399, 100, "e1"), older) == (texts[298:], False, [first, second])
    assert await read(page(399, 100, "e1", at=NOW - 7_201.0)) == ([], False, [first])
