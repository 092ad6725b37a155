"""`/v1/responses`. An id says where its answer is, so a response can be continued, or referred to, for good."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote, unquote

from aiohttp import web

from adapters.api.answers import Answer
from adapters.api.chat import Chat, asked_in
from adapters.api.desk import Asked
from adapters.api.history import Exchange, hashed
from adapters.api.responses_shapes import Reply, read_response
from adapters.api.server import body_of
from adapters.api.shapes import Wire, decoded, invalid
from gateway.domain.chat import Source
from gateway.runtime.structs import replace

_ID: Final = re.compile(r"(?:resp|msg|fc)_([\w%-]{1,600})\.([\w-]{1,100})(?:\.(\d{1,3}))?", re.ASCII)
_LOOKED_AT: Final = 500  # rows of a conversation


def routes(chat: Chat) -> list[web.RouteDef]:
    """The one route."""
    return [web.post("/v1/responses", partial(_respond, chat))]


async def _respond(chat: Chat, request: web.BaseRequest) -> web.StreamResponse:
    key = await chat.server.caller(request)
    data = decoded(await body_of(request, chat.clock))
    items = data.get("input")
    if isinstance(items, list) and any(map(_is_reference, items)):
        source = asked_in(request, key, read_response(data, loosely=True)[0]).source
        data |= {"input": await _resolved(chat, items, source)}
    wanted, before = read_response(data)
    chat.require(wanted.model)
    asked = replace(asked_in(request, key, wanted), param="input")
    if before:
        asked = await _behind(chat, asked, before)

    def wire(answer: Answer) -> Wire:
        return Reply(
            id=f"resp_{quote(answer.to.thread or '', safe='-_')}.{answer.event}",
            model=wanted.model,
            created=int(chat.clock.now()),
            before=before,
            tools=wanted.tools,
        )

    return await chat.deliver(request, asked, wanted, wire)


async def _behind(chat: Chat, asked: Asked, before: str) -> Asked:
    """A message that continues a response. Raises ApiError, StoreUnavailable."""
    found = _ID.fullmatch(before)
    source = replace(asked.source, thread=unquote(found[1])) if found else asked.source
    if found is None or not await chat.desk.histories.known(source, [found[2]]):
        text = "You have no response with this id. Send the whole conversation as `input` instead."
        raise invalid("previous_response_id", text, "previous_response_not_found")
    past = [Exchange(name=found[2])]
    return replace(asked, source=source, name=hashed(found[2], asked.name), past=past)


async def _resolved(chat: Chat, items: Sequence[Any], source: Source) -> list[Any]:
    """The items of a request, with what references mean in their place. Raises ApiError, StoreUnavailable."""
    return [await _referred(chat, each, at, source) if _is_reference(each) else each for at, each in enumerate(items)]


async def _referred(chat: Chat, item: Mapping[str, Any], at: int, source: Source) -> Mapping[str, Any]:
    named = _ID.fullmatch(str(item.get("id")))
    if named is not None:
        rows = await chat.desk.views.shown(replace(source, thread=unquote(named[1])), _LOOKED_AT)
        for row in rows:
            if row.answers == named[2] and row.kind in ("reply", "command"):
                calls = row.returns.calls if row.returns else ()
                if named[3] is None:
                    return {"type": "message", "role": "assistant", "content": row.text}
                if int(named[3]) < len(calls):
                    call = calls[int(named[3])]
                    return {"type": "function_call", "call_id": call["id"], **call["function"]}
    raise invalid(
        f"input[{at}].id",
        "You have no item with this id. Send the item itself instead of a reference.",
        "not_found",
    )


def _is_reference(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "item_reference"
