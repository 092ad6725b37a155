"""`legato mcp`: an MCP server for the program that started it, beside a running gateway if need be."""

from __future__ import annotations

from gateway.agent.memory.memories import Memories
from gateway.app.config import Config
from gateway.app.mcp_server import Person, PersonTools, Shelf, person_of, serve_streams
from gateway.app.plugins import keyed_platform
from gateway.cli.importing import owner_named
from gateway.domain.chat import SessionKey
from gateway.people.keys import Keys
from gateway.runtime.clock import SystemClock, SystemIds
from gateway.runtime.errors import UserError
from gateway.runtime.redaction import Redactor
from gateway.runtime.structs import replace
from gateway.store.port import Documents, ForgettingStore, Store


async def serve(store: Store, settings: Config, secret: str, person: str, redact: Redactor) -> None:
    """Serve until the other end closes the streams: for the person of a key, else for the one that is named
    (PLATFORM:USER; "": this terminal's). Raises UserError, StoreUnavailable."""
    clock = SystemClock()
    who = await (_of_key(store, secret) if secret else _named(store, person))
    memories = Memories(store=store, clock=clock, redact=redact, settings=settings.memory)
    shelf = Shelf(store=store, memories=memories, redact=redact, clock=clock, ids=SystemIds())
    await serve_streams(PersonTools(shelf=shelf, person=who))


async def _of_key(store: Documents, secret: str) -> Person:
    key = await Keys(store=store, clock=SystemClock()).holder(secret)
    if key is None:
        raise UserError("the key in LEGATO_KEY is not known: `legato keys add NAME` makes one")
    return person_of(key, SessionKey(platform=keyed_platform(), chat=key.person))


async def _named(store: ForgettingStore, person: str) -> Person:
    owner = await owner_named(store, person)
    return Person(chat=replace(owner.key, thread=None), user=owner.user, program="a program over MCP")
