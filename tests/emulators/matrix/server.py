"""The door: calls in; one at a time disturbed if so wished, done and answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Self
from urllib.parse import unquote

from aiohttp import web

from gateway.runtime.clock import Clock, SystemClock
from tests.emulators.faults import Disconnect, Fault, Faults, Flood, LoseAnswer, Refuse, Slow, cut
from tests.emulators.journal import Call, Journal, Violation
from tests.emulators.matrix.world import Json, Room, User, World, edited

_PREFIX: Final = ("_matrix", "client", "v3")
_CLOSE: Final = 0.2
_LARGEST: Final = 65_536  # bytes of an event


class _Refused(Exception):
    def __init__(self, status: int, code: str, error: str, **more: Any) -> None:
        super().__init__(error)
        self.status, self.told = status, {"errcode": code, "error": error, **more}


class MatrixServer:
    """A server with a bot on it, whose password is `password`.

    `world` does what people do; `faults` disturbs calls, whose names are the last fixed part of their paths: sync,
    send, edit (a send of a new wording), receipt, joined_members … `repeats`: sends of a transaction that was there.
    """

    password: Final = "secret"

    def __init__(self, *, clock: Clock | None = None, keep: int = 100_000) -> None:
        self.clock = clock or SystemClock()
        self.journal = Journal(self.clock, keep=keep)
        self._changed = asyncio.Event()
        self.world = World(self.clock, self._tell)
        self.bot = self.world.person("Legato")
        self.faults: Faults[Fault] = Faults()
        self._sent: dict[tuple[str, ...], str] = {}
        self._syncs: set[asyncio.BaseTransport | None] = set()
        self._runner: web.ServerRunner | None = None
        self._closing = asyncio.Event()
        self._logins = self.repeats = 0
        self.port = 0

    @property
    def url(self) -> str:
        """The value of `homeserver`."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._called, access_log=None), shutdown_timeout=_CLOSE)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        self._tell()
        if self._runner is not None:
            await self._runner.cleanup()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        self.journal.changed()

    # -- what is to be seen -----------------------------------------------------------------

    @property
    def violations(self) -> Sequence[Violation]:
        """The deeds of a bot that breaks the rules."""
        return self.journal.violations

    @property
    def connected(self) -> bool:
        """The bot waits for news."""
        return bool(self._syncs)

    def shown(self, room: Room) -> list[Json]:
        """The bot's messages in a room in their present wording, oldest first."""
        return self.world.shown(room, self.bot)

    async def until(self, condition: Callable[[], Any]) -> Any:
        """The value of `condition()` once that is true."""
        return await self.journal.until(condition)

    def cut(self) -> None:
        """Break the connections of those who wait for news."""
        for each in self._syncs:
            if isinstance(each, asyncio.Transport):
                each.abort()

    # -- one call ---------------------------------------------------------------------------

    async def _called(self, request: web.BaseRequest) -> web.StreamResponse:
        path = tuple(unquote(each) for each in request.rel_url.raw_path.split("/")[1:])
        if path[:3] != _PREFIX:
            return web.json_response({"errcode": "M_UNRECOGNIZED", "error": "unknown"}, status=404)
        body = json.loads(await request.read() or b"{}")
        way = path[3:]
        room = way[1] if way[0] in ("rooms", "join") else ""
        call = self.journal.open(_name(way, body), room, {**request.query, "body": body})
        try:
            return await self._disturbed(request, call, way, body)
        except ConnectionError:
            call.status = 499
            return cut(request)
        finally:
            self.journal.changed()

    async def _disturbed(
        self, request: web.BaseRequest, call: Call, way: tuple[str, ...], body: Json
    ) -> web.StreamResponse:
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse):
            call.status, call.answered = fault.status, True
            return web.Response(status=fault.status, text=fault.body or "<html>Try again</html>")
        if isinstance(fault, Disconnect) and not fault.done:
            return cut(request)
        if isinstance(fault, Flood):
            told = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many", "retry_after_ms": fault.seconds * 1000}
            call.status, call.answered = 429, True
            return web.json_response(told, status=429)
        if isinstance(fault, Slow):
            await self.clock.sleep(fault.seconds)
        told, status = await self._performed(request, call, way, body)
        if isinstance(fault, Disconnect):
            return cut(request)
        if isinstance(fault, LoseAnswer):
            await (self._closing.wait() if fault.seconds is None else self.clock.sleep(fault.seconds))
            return cut(request)
        call.answered, call.status = True, status
        return web.json_response(told, status=status)

    async def _performed(
        self, request: web.BaseRequest, call: Call, way: tuple[str, ...], body: Json
    ) -> tuple[Json, int]:
        try:
            if way == ("login",):
                told = self._login(body)
            else:
                token = request.headers.get("Authorization", "").removeprefix("Bearer ")
                user = next((each for each in self.world.users.values() if token in each.devices), None)
                if user is None:
                    raise _Refused(401, "M_UNKNOWN_TOKEN", "Unrecognised access token", soft_logout=False)
                if way == ("sync",):
                    told = await self._synced(request, user)
                else:
                    told = self._done(request, user, token, way, body)
        except _Refused as refused:
            call.description = str(refused)
            return refused.told, refused.status
        call.done, call.result = True, told
        return told, 200

    def _login(self, body: Json) -> Json:
        user = self.world.users.get(body["identifier"]["user"])
        if user is None or body["password"] != self.password:
            raise _Refused(403, "M_FORBIDDEN", "Invalid username or password")
        self._logins += 1
        device, token = body.get("device_id") or f"DEVICE{self._logins}", f"token{self._logins}"
        user.devices[token] = device
        return {"user_id": user.id, "access_token": token, "device_id": device}

    async def _synced(self, request: web.BaseRequest, user: User) -> Json:
        given, since = request.query.get("filter", ""), request.query.get("since", "")
        begun = int(since[1:]) if since else None
        if begun is None:
            return self.world.news(user, begun, given)
        transport = request.transport
        self._syncs.add(transport)
        self.journal.changed()
        try:
            async with self.clock.limit(int(request.query.get("timeout", "0")) / 1000.0):
                while not (told := self.world.news(user, begun, given))["rooms"] and not self._closing.is_set():
                    await self._changed.wait()
                return told
        except TimeoutError:
            return self.world.news(user, begun, given)
        finally:
            self._syncs.discard(transport)

    # -- calls ------------------------------------------------------------------------------

    def _done(self, request: web.BaseRequest, user: User, token: str, way: tuple[str, ...], body: Json) -> Json:
        match (request.method, *way):
            case "GET", "account", "whoami":
                return {"user_id": user.id, "device_id": user.devices[token]}
            case "GET", "profile", who, "displayname":
                return {"displayname": self.world.users[who].name}
            case "GET", "joined_rooms":
                rooms = self.world.rooms.values()
                return {"joined_rooms": [each.id for each in rooms if each.membership(user.id) == "join"]}
            case "POST", "logout":
                del user.devices[token]
                return {}
            case "GET", "user", _, "account_data", kind:
                if kind not in user.data:
                    raise _Refused(404, "M_NOT_FOUND", "Account data not found")
                return user.data[kind]
            case "PUT", "user", _, "account_data", kind:
                user.data[kind] = body
                return {}
            case "POST", "createRoom":
                invited = [self.world.users[each] for each in body.get("invite") or ()]
                return {"room_id": self.world.room(user, invited=invited, direct=body.get("is_direct", False)).id}
            case "POST", "join", name:
                room = self._room(name)
                if room.membership(user.id) == "leave":
                    raise _Refused(403, "M_FORBIDDEN", "You are not invited to this room.")
                self.world.join(room, user)
                return {"room_id": name}
            case _, "rooms", name, *rest:
                room = self._room(name)
                if room.membership(user.id) != "join" and rest != ["leave"]:
                    raise _Refused(403, "M_FORBIDDEN", f"User {user.id} not in room {name}")
                return self._in_room(request, user, token, room, rest, body)
        raise _Refused(404, "M_UNRECOGNIZED", f"nobody taught the emulator {way}")

    def _room(self, name: str) -> Room:
        if name not in self.world.rooms:
            raise _Refused(404, "M_NOT_FOUND", "there is no such room")
        return self.world.rooms[name]

    def _in_room(
        self, request: web.BaseRequest, user: User, token: str, room: Room, rest: Sequence[str], body: Json
    ) -> Json:
        match (request.method, *rest):
            case "PUT", "send" | "redact" as what, about, row:
                return {"event_id": self._once((user.devices[token], room.id, what, about, row), user, room, body)}
            case "GET", "joined_members":
                joined = {who: {"display_name": each.get("displayname")} for who, each in room.people()}
                return {"joined": joined}
            case "GET", "state", kind, *key:
                found = room.state.get((kind, key[0] if key else ""))
                if found is None:
                    raise _Refused(404, "M_NOT_FOUND", "Event not found.")
                return dict(found["content"])
            case "GET", "event" | "context" as what, name:
                if name not in {each["event_id"] for each in room.events.values()}:
                    raise _Refused(404, "M_NOT_FOUND", "Event not found.")
                event = self.world.event(name)
                if what == "event":
                    return self.world.with_newest(event)
                at = next(at for at, each in room.events.items() if each is event)
                before, _ = self.world.history(room, at, 0, int(request.query.get("limit", "10")) // 2)
                return {"event": event, "events_before": before}
            case "GET", "messages":
                until, since = (int((request.query.get(name) or "s0")[1:]) for name in ("from", "to"))
                page, more = self.world.history(room, until, since, int(request.query.get("limit", "10")))
                return {"chunk": page, **({"end": f"s{more}"} if more is not None else {})}
            case "POST", "leave":
                self.world.put(room, user, "m.room.member", {"membership": "leave"}, key=user.id)
                return {}
            case ("POST", "receipt", _, _) | ("PUT", "typing", _):
                return {}
        raise _Refused(404, "M_UNRECOGNIZED", f"nobody taught the emulator {rest}")

    def _once(self, name: tuple[str, ...], user: User, room: Room, body: Json) -> str:
        """Send an event, or give back the one that this transaction of a device sent before."""
        _, _, what, about, _ = name
        if name in self._sent:
            self.repeats += 1
            return self._sent[name]
        if len(json.dumps(body)) > _LARGEST:
            self.journal.violation(what, room.id, "an event is too large")
            raise _Refused(413, "M_TOO_LARGE", "event too large")
        if about == "m.room.message" and not (isinstance(body.get("body"), str) and body.get("msgtype")):
            self.journal.violation(what, room.id, "a message has no body")
            raise _Refused(400, "M_BAD_JSON", "no body")
        shown = self.world.redact(room, user, about) if what == "redact" else self.world.put(room, user, about, body)
        self._sent[name] = shown
        return shown


def _name(way: tuple[str, ...], body: Json) -> str:
    """What the journal calls a call."""
    if way[0] == "rooms":
        is_message = way[2:4] == ("send", "m.room.message")
        return "edit" if is_message and edited(body) else "react" if way[3:4] == ("m.reaction",) else way[2]
    return way[2] if way[0] == "user" else way[-1] if way[0] == "account" else way[0]
