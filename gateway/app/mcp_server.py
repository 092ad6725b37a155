"""An MCP server: other programs read what one person and the bot said, keep facts of theirs, and write to their chat.

It speaks with the SDK's server side, over the standard streams (`legato mcp`) or in answer to a request (`answered`).
Each server is one person's alone. A SQLite store may be open for reading only: facts are written beside the gateway
that has it, and texts wait for that gateway, as those of `legato send` do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import httpx
import structlog
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from msgspec import Struct, field

from gateway import __version__
from gateway.agent.memory.memories import Memories
from gateway.agent.memory.rules import Source
from gateway.agent.memory.rules import found as facts_with
from gateway.agent.tools.arguments import Arguments
from gateway.agent.tools.base import Unindexed, schema
from gateway.agent.tools.history import RESULTS, HistoryReadTool, HistoryTool
from gateway.agent.tools.memory import MOST_RESULTS, fact_line
from gateway.app.orders import Order, leave, left
from gateway.domain.chat import SessionKey
from gateway.domain.keys import Key
from gateway.domain.memory import LONGEST_FACT, Memory, scope_of
from gateway.runtime.clock import Clock, Ids
from gateway.runtime.errors import StoreUnavailable, ToolError
from gateway.store.port import Store
from gateway.store.records import Found, Meaning, Passage
from gateway.store.shared.documents import storable

log = structlog.get_logger(__name__)

_LONGEST_WORDS: Final = 1_000  # characters
_LONGEST_TEXT: Final = 4_000
_MOST_WAITING: Final = 20  # texts for one chat
_MOST_CONVERSATIONS: Final = 500  # newest first
_AT_ONCE: Final = 4  # searches of all programs together: they use the same thread as those of the model
_SECONDS: Final = 60.0  # for one call
_MESSAGE: Final = "mcp"  # what stands in a fact for the message that said it
_WORDS: Final = {"type": "string", "minLength": 1, "maxLength": _LONGEST_WORDS}

_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, Any], bool]]] = {
    "search_history": (
        "Searches the original text of everything this person and their assistant, Legato, have said to each other. "
        "Ask a question or give key words; messages with words that you put in quotation marks come first. "
        "`read_history` reads what came before and after a message: give it the number in front of that message.",
        HistoryTool.parameters,
        True,
    ),
    "read_history": (
        "Reads messages in their original wording: those around a message that `search_history` found, or a range.",
        HistoryReadTool.parameters,
        True,
    ),
    "recall": (
        "Finds facts that Legato remembers about this person, or without words, the newest facts.",
        schema(words=_WORDS),
        True,
    ),
    "remember": (
        "Makes Legato remember a fact about this person, in one short sentence that makes sense by itself. No "
        "credentials.",
        schema("text", text={"type": "string", "minLength": 1, "maxLength": LONGEST_FACT}),
        False,
    ),
    "send": (
        "Sends this person a text in their own chat with Legato, within ten seconds while Legato runs.",
        schema("text", text={"type": "string", "minLength": 1, "maxLength": _LONGEST_TEXT}),
        False,
    ),
}
_CHECKS: Final = {name: Arguments(name, parameters) for name, (_, parameters, _) in _TOOLS.items()}

Means = Callable[[str, SessionKey], Awaitable[Meaning | None]]


class Person(Struct, frozen=True, kw_only=True):
    """Whom a server is for: a direct chat (any thread of it), the platform's id of the person, and the program that
    asks, in a few words."""

    chat: SessionKey
    user: str
    program: str


def person_of(key: Key, own: SessionKey) -> Person:
    """Whom a key asks for: the person that it was made for, else the one in its own chat."""
    chat = SessionKey.parse(key.chat) if key.chat else own
    return Person(chat=chat, user=key.user or own.chat, program=f"the program with the key {key.name}")


class Shelf(Struct, frozen=True, kw_only=True):
    """What all servers of a process read and change. `means` gives what is searched by beside the words, if anything
    does."""

    store: Store
    memories: Memories
    redact: Callable[[str], str]
    clock: Clock
    ids: Ids
    means: Means | None = None
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))


class PersonTools(Struct, frozen=True, kw_only=True):
    """The tools of one person's server. `recall` and `around` are what the tools for history ask for."""

    shelf: Shelf
    person: Person

    async def call(self, name: str, given: Mapping[str, Any]) -> str:
        """The result of a tool. Raises ToolError with a sentence, StoreUnavailable."""
        check = _CHECKS.get(name)
        if check is None:
            raise ToolError(f"There is no tool {name[:40]!r}. The tools are {', '.join(_TOOLS)}.")
        arguments = check.held(given)
        match name:
            case "search_history":
                return await HistoryTool(self.shelf.redact).run(arguments, self)
            case "read_history":
                return await HistoryReadTool(self.shelf.redact).run(arguments, self)
            case "recall":
                facts = facts_with(await self.shelf.memories.of(self.scope), arguments.get("words", ""), MOST_RESULTS)
                return "\n".join(map(fact_line, facts)) or "Nothing is remembered of that."
            case "remember":
                return await self._remember(arguments["text"])
        return await self._send(arguments["text"])

    @property
    def scope(self) -> SessionKey:
        """Whose facts these are."""
        return scope_of(self.person.chat, "direct")

    @property
    def unindexed(self) -> Unindexed:
        """The number of messages that no search finds yet."""
        return self.shelf.store.unindexed

    async def recall(self, words: str, limit: int = RESULTS) -> Sequence[Passage]:
        """The best passages of all conversations of the chat."""
        keys, found = await self._keys(), list[Passage]()
        meaning = await self.shelf.means(words, keys[0]) if keys and self.shelf.means is not None else None
        for key in keys:
            async with self.shelf.room:
                found += await self.shelf.store.search(words, key, limit, meaning)
        return sorted(found, key=lambda each: (each.hit.message["role"] == "tool", -each.score))[:limit]

    async def around(self, message_id: str, reach: int) -> Sequence[Found]:
        """A message among its neighbours, in whichever conversation of the chat it was said."""
        for key in await self._keys():
            if turns := await self.shelf.store.around(key, message_id, reach):
                return turns
        return ()

    async def _keys(self) -> Sequence[SessionKey]:
        found = await self.shelf.store.conversations(self.person.chat, _MOST_CONVERSATIONS)
        return [*dict.fromkeys(each.owner for each in found)]

    async def _remember(self, text: str) -> str:
        """What a program says is kept as its words, never as the person's."""
        now, said = self.shelf.clock.now(), [""]
        source = Source(message_id=_MESSAGE, session_id="", said_by=self.person.user, said_at=now)
        edit = self.shelf.memories.edit(self.person.chat, "direct", source, self.person.program)

        def step(memory: Memory) -> Memory:
            after, said[0] = edit.add(memory, "person", text)
            return after

        await self.shelf.memories.change(self.scope, step)
        return said[0]

    async def _send(self, text: str) -> str:
        to = self.person.chat.address
        if not (text := storable(text).strip()):
            raise ToolError("`text` is empty. Write what to send.")
        waiting = [each for each in (await left(self.shelf.store)).values() if each.address == to]
        if len(waiting) >= _MOST_WAITING:
            raise ToolError(
                f"{len(waiting)} texts are already waiting for this chat. Try again when Legato has sent them."
            )
        order = Order(
            verb="send",
            id=self.shelf.ids.new("o"),
            platform=to.platform,
            chat=to.chat,
            thread=to.thread,
            text=text,
            at=self.shelf.clock.now(),
        )
        await leave(self.shelf.store, [order])
        return "The text is stored, and Legato sends it within ten seconds, or as soon as it runs."


def server_for(tools: PersonTools) -> Server:
    """The SDK's server of one person."""

    async def listed(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    description=text,
                    input_schema=dict(parameters),
                    annotations=ToolAnnotations(
                        read_only_hint=reads,
                        destructive_hint=False,
                        idempotent_hint=name != "send",
                        open_world_hint=False,
                    ),
                )
                for name, (text, parameters, reads) in _TOOLS.items()
            ]
        )

    async def called(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        try:
            async with tools.shelf.clock.limit(_SECONDS):
                text, failed = await tools.call(params.name, params.arguments or {}), False
        except (ToolError, StoreUnavailable) as error:
            text, failed = tools.shelf.redact(str(error)), True
        except TimeoutError:
            text, failed = f"This call took longer than {_SECONDS:.0f} seconds, so Legato ended it. Ask for less.", True
        return CallToolResult(content=[TextContent(text=storable(text))], is_error=failed)

    return Server(
        "legato",
        version=__version__,
        instructions="What this person and their assistant Legato said, and what Legato remembers about them.",
        on_list_tools=listed,
        on_call_tool=called,
    )


async def serve_streams(tools: PersonTools) -> None:
    """Serve the program at the other end of the standard streams until it closes them."""
    server = server_for(tools)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def answered(
    shelf: Shelf, key: Key, own: SessionKey, headers: Sequence[tuple[str, str]], body: bytes
) -> tuple[int, str, bytes]:
    """The status, type and body of the answer to a POST of MCP's streamable HTTP, by this key's program. It leaves
    nothing behind in this process."""
    server = server_for(PersonTools(shelf=shelf, person=person_of(key, own)))
    manager = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)
    request = httpx.Request("POST", "http://localhost/mcp", headers=list(headers), content=body)
    async with manager.run():
        response = await httpx.ASGITransport(app=manager.asgi_app).handle_async_request(request)
        kind = response.headers.get("content-type", "application/json")
        return response.status_code, kind, await response.aread()
