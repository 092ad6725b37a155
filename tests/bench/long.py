"""Makes sessions with transcripts of any length, through the store's own port."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.domain.chat import ChatAddress, Inbound, Outbound, SessionKey, Source
from gateway.domain.message import Message, assistant, tool_result, user
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.records import Arrival, Opening, Patch, StepRecord
from tests.bench.world import REPLY, Chats

CALL = "call_{number}"
_AT_ONCE = 100  # lanes


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


async def converse(store: Store, chats: Sequence[str], transcript: Sequence[Message]) -> None:
    """Give each chat a session that holds `transcript`, as one turn that said it all leaves it:
    answered, paid and shown. The store is open and nobody else uses it."""
    for first in range(0, len(chats), _AT_ONCE):
        some = chats[first : first + _AT_ONCE]
        await store.accept([_arrival(chat) for chat in some], cap=9)
        async with asyncio.TaskGroup() as group:
            for _ in some:
                group.create_task(_turn(store, transcript))


def _arrival(chat: str) -> Arrival:
    source = Source(platform=Chats.name, chat=chat, chat_type="direct", user=chat)
    inbound = Inbound(event_id=f"open {chat}", source=source, text="Hello there.")
    return Arrival(inbound=inbound, key=SessionKey(platform=Chats.name, chat=chat), at=SystemClock().now())


async def _turn(store: Store, transcript: Sequence[Message]) -> None:
    claim = await store.claim_next("bench")
    key, now = claim.lease.key, SystemClock().now()
    session = Session(
        id=f"s_{key.chat}",
        key=key,
        chat_type="direct",
        parent_id=None,
        started_at=now,
        model="offline",
        system_prompt="You are a bench.",
        last_active_at=now,
    )
    opened = await store.open_session(claim.lease, Opening(session=session))
    usage = CanonicalUsage(input_tokens=640, output_tokens=20)
    call = LedgerEntry(at=now, purpose="turn", provider="offline", model="offline", usage=usage, cost_usd=0.0)
    record = StepRecord(messages=transcript, patch=Patch(at=now, usage=usage), ledger=[call])
    to = ChatAddress(platform=key.platform, chat=key.chat)
    reply = Outbound(
        id=f"o_{key.chat}", key=key, to=to, kind="reply", text=REPLY, session_id=session.id, created_at=now
    )
    await store.finish_turn(claim.lease, opened.ref, claim.item, record, "answered", [reply])
    await store.mark_sent(reply.id, "1")
