"""`/v1/embeddings`, passed on to the model for searches by meaning."""

from __future__ import annotations

import struct
from base64 import b64encode
from functools import partial
from typing import Annotated, Any, Final

from aiohttp import web
from msgspec import Meta, Struct

from adapters.api.chat import Chat, asked_in
from adapters.api.server import body_of, json_of
from adapters.api.shapes import ApiError, ChatRequest, Turn, cap_reached, decoded, failed, invalid, shaped, written
from gateway.domain.chat import ERRANDS
from gateway.runtime.errors import ProviderError, SpendCapReached
from gateway.runtime.structs import replace

_MOST: Final = 2_048  # texts, as at OpenAI
_NONE: Final = "This server has no embedding model. The operator can set search.embeddings."


class _Wanted(Struct, frozen=True):
    model: str
    input: str | Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1, max_length=_MOST)]
    encoding_format: str | None = None
    dimensions: int | None = None
    user: str | None = None


def routes(chat: Chat) -> list[web.RouteDef]:
    """The one route."""
    return [web.post("/v1/embeddings", partial(_embed, chat))]


async def _embed(chat: Chat, request: web.BaseRequest) -> web.StreamResponse:
    """POST /v1/embeddings. Any model name means the configured one."""
    key = await chat.server.caller(request)
    wanted = shaped(decoded(await body_of(request, chat.clock)), _Wanted)
    if wanted.dimensions is not None:
        raise invalid(
            "dimensions", "Leave `dimensions` out, because you cannot choose it here.", "unsupported_parameter"
        )
    texts = [wanted.input] if isinstance(wanted.input, str) else wanted.input
    asks = ChatRequest(model=wanted.model, turns=(Turn(role="user"),), user=wanted.user or "")
    source = replace(asked_in(request, key, asks).source, thread=ERRANDS)
    try:
        found = await chat.desk.views.embed(source, texts)
    except SpendCapReached as error:
        raise cap_reached(str(error)) from error
    except (ProviderError, TimeoutError) as error:
        raise failed(
            str(error) or "The server of the embedding model does not answer. Try again in a moment."
        ) from error
    if found is None:
        raise ApiError(404, _NONE, code="model_not_found", param="model")
    name, vectors, tokens = found
    made: list[Any] = [*vectors]
    if wanted.encoding_format == "base64":
        made = [b64encode(struct.pack(f"<{len(each)}f", *each)).decode() for each in vectors]
    rows = [{"object": "embedding", "index": at, "embedding": each} for at, each in enumerate(made)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json_of(written({"object": "list", "data": rows, "model": name, "usage": usage}))
