"""Makes a session with a long transcript, through the store's own port."""

from __future__ import annotations

from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.chat import Inbound, SessionKey, Source
from gateway.domain.message import Message, assistant, tool_result, user
from gateway.domain.session import Session
from gateway.store.base import Arrival, Opening
from gateway.store.sqlite.store import SqliteStore
from tests.bench.world import Chats

CALL = "call_{number}"


def messages(count: int) -> list[Message]:
    """A conversation of `count` messages: questions, now and then a tool's long result, answers. Tokens
    are noted, as they are with every stored message."""
    made: list[Message] = []
    number = 0
    while len(made) < count:
        number += 1
        made.append(user(f"Question {number}: what does /srv/app/module_{number}.py do in line {number * 7}?"))
        if number % 3 == 0:
            name = CALL.format(number=number)
            function = {"name": "read_file", "arguments": f'{{"path": "/srv/app/module_{number}.py"}}'}
            made.append(assistant(None, [{"id": name, "type": "function", "function": function}]))  # type: ignore[typeddict-item]
            made.append(tool_result(name, f"line of module {number} with value {number * 13}\n" * 20))
        made.append(assistant(f"Answer {number}: it adds up {number} figures and writes them to report_{number}.csv."))
    kept = made[:count]
    while kept[-1]["role"] != "assistant" or kept[-1].get("tool_calls"):
        kept.pop()
    for message in kept:
        message["_legato"] = {"tokens": 12 + len(str(message.get("content"))) // 4, "at": 1.0}
    return kept


async def open_long(path: Path, chat: str, transcript: list[Message]) -> None:
    """Give `chat` a session that holds `transcript`."""
    store = SqliteStore(path, clock=SystemClock())
    await store.open()
    now = SystemClock().now()
    key = SessionKey(platform=Chats.name, chat=chat)
    source = Source(platform=Chats.name, chat=chat, chat_type="direct", user=chat)
    await store.accept(
        [Arrival(inbound=Inbound(event_id=f"open {chat}", source=source, text=""), key=key, at=now)], cap=9
    )
    claim = await store.claim_next("bench")
    session = Session(
        id=f"s_{chat}",
        key=key,
        chat_type="direct",
        parent_id=None,
        started_at=now,
        model="offline",
        system_prompt="You are a bench.",
        last_active_at=now,
    )
    await store.open_session(claim.lease, Opening(session=session, transcript=transcript))
    await store.finish_turn(claim.lease, None, claim.item, None, "answered", [])
    await store.aclose()
