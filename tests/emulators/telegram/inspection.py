"""The inspection API over HTTP, for programs that are not in this process. JSON in, JSON out, on the server's own port.

GET  /inspect/chats                     every chat, with what is going on in it
GET  /inspect/chats/{id}/messages       what a person sees
GET  /inspect/calls?after=0             the calls, by number
GET  /inspect/violations
POST /inspect/do/{what}                 what people do: a method of `People` by name, with named arguments;
                                        a user, chat or message is given by its id (`chat` is needed for a message)
POST /inspect/faults                    {"fault": "Refuse", "with": {"status": 500}, "method": "sendMessage", …}
DELETE /inspect/faults
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from aiohttp import web

from tests.emulators.faults import Disconnect, Flood, LoseAnswer, Refuse, Slow
from tests.emulators.telegram.cloud import Cloud, Press
from tests.emulators.telegram.people import People
from tests.emulators.telegram.refusals import Refusal
from tests.emulators.telegram.specimens import specimens
from tests.emulators.telegram.world import Chat, Message, User

ACTIONS: Final = frozenset(
    re.findall(
        r"\w+",
        "person group topic say paste send file album edit delete press forge_press react update block unblock "
        "deactivate join leave add_bot kick_bot set_status migrate",
    )
)
FAULTS: Final = {fault.__name__: fault for fault in (LoseAnswer, Refuse, Slow, Disconnect, Flood)}
_USERS: Final = ("user", "by")


def message_view(message: Message) -> dict[str, Any]:
    """A message as a person sees it, with the JSON of the Bot API below `message`."""
    return {
        "id": message.id,
        "from": message.sender.first_name if message.sender else message.chat.title,
        "text": message.text,
        "versions": len(message.texts),
        "buttons": [button["text"] for button in message.buttons],
        "reactions": message.reactions,
        "message": message.as_json(),
    }


class Inspection:
    """The routes."""

    def __init__(self, cloud: Cloud, people: People) -> None:
        self._cloud, self._people = cloud, people

    def routes(self) -> Iterable[web.RouteDef]:
        """All of them."""
        return (
            web.get("/inspect/chats", self._chats),
            web.get("/inspect/chats/{id}/messages", self._messages),
            web.get("/inspect/calls", self._calls),
            web.get("/inspect/violations", self._violations),
            web.post("/inspect/do/{what}", self._do),
            web.post("/inspect/specimens", self._specimens),
            web.post("/inspect/faults", self._add_fault),
            web.delete("/inspect/faults", self._clear_faults),
        )

    async def _chats(self, request: web.Request) -> web.Response:
        now = self._cloud.clock.monotonic()
        views = []
        for chat in self._cloud.world.chats.values():
            action = chat.action if chat.action_until > now else ""
            members = {str(number): status for number, status in chat.members.items()}
            drafts = [draft.text for draft in self._cloud.drafts(chat).values()]
            seen = {"action": action, "drafts": drafts, "members": members, "messages": len(chat.visible)}
            views.append({**chat.as_json(), **seen})
        return web.json_response(views)

    async def _messages(self, request: web.Request) -> web.Response:
        chat = self._cloud.world.find(request.match_info["id"])
        if chat is None:
            raise web.HTTPNotFound(text="There is no such chat.")
        return web.json_response([message_view(message) for message in chat.visible])

    async def _calls(self, request: web.Request) -> web.Response:
        after = int(request.query.get("after", "0"))
        calls = [dataclasses.asdict(call) for call in self._cloud.journal.calls if call.number > after]
        return web.json_response(calls)

    async def _violations(self, request: web.Request) -> web.Response:
        return web.json_response([dataclasses.asdict(violation) for violation in self._cloud.journal.violations])

    async def _do(self, request: web.Request) -> web.Response:
        what = request.match_info["what"]
        if what not in ACTIONS:
            raise web.HTTPNotFound(text=f"People cannot {what}; they can: {', '.join(sorted(ACTIONS))}.")
        action: Callable[..., Any] = getattr(self._people, what)
        try:
            positional, named = self._arguments(await request.json())
            result = action(*positional, **named)
        except (TypeError, ValueError, LookupError, Refusal) as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        return web.json_response(_view(result))

    def _arguments(self, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Ids become what they stand for; the `members` of a new group follow its title."""
        world = self._cloud.world
        named = dict(given)
        chat = world.find(str(named["chat"])) if "chat" in named else None
        if "chat" in named and chat is None:
            raise LookupError("There is no such chat.")
        for name in _USERS:
            if name in named:
                named[name] = world.users[int(named[name])]
        for name in ("message", "reply_to"):
            if chat is not None and name in named:
                named[name] = chat.messages[int(named[name])]
        if chat is not None:
            named["chat"] = chat
        if "message" in named:
            named.pop("chat", None)
        for name in ("content", "contents"):
            named = _encoded(named, name)
        members = [world.users[int(number)] for number in named.pop("members", ())]
        return ([named.pop("title"), *members], named) if members else ([], named)

    async def _specimens(self, request: web.Request) -> web.Response:
        chat = self._cloud.world.find(str((await request.json())["chat"]))
        if chat is None or chat.user is None:
            raise web.HTTPBadRequest(text="Name a private chat.")
        for kind, body in specimens(chat, chat.user, self._cloud.world.date()):
            self._people.update(kind, body)
        return web.json_response(len(self._cloud.updates))

    async def _add_fault(self, request: web.Request) -> web.Response:
        given = await request.json()
        try:
            fault = FAULTS[given.pop("fault")](**given.pop("with", {}))
            self._cloud.faults.add(fault, **given)
        except (KeyError, TypeError) as error:
            raise web.HTTPBadRequest(text=f"That is no fault: {error}.") from error
        return web.json_response(True)

    async def _clear_faults(self, request: web.Request) -> web.Response:
        self._cloud.faults.clear()
        return web.json_response(True)


def _encoded(named: dict[str, Any], name: str) -> dict[str, Any]:
    """Files come as text."""
    if isinstance(named.get(name), str):
        return {**named, name: named[name].encode()}
    if isinstance(named.get(name), list):
        return {**named, name: [str(part).encode() for part in named[name]]}
    return named


def _view(result: Any) -> Any:
    if isinstance(result, Message):
        return message_view(result)
    if isinstance(result, User | Chat):
        return result.as_json()
    if isinstance(result, Press):
        return {"id": result.id, "data": result.data}
    if isinstance(result, list):
        return [_view(item) for item in result]
    return json.loads(json.dumps(result))
