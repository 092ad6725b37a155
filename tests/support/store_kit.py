"""Short ways to use a store, for its contract suite."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol

from gateway.domain.chat import ChatAddress, Inbound, Outbound, SessionKey, Source
from gateway.domain.message import Message, assistant, user
from gateway.domain.reminder import Reminder
from gateway.domain.session import Session, SessionRef, Todo
from gateway.domain.usage import CanonicalUsage
from gateway.store.port import Store
from gateway.store.records import Arrival, Claim, Opening, Passage, Patch, Receipt, StepRecord, TurnEnd
from tests.support.fakes import ManualClock

START = 1_700_000_000.0
FULL_SESSION: Final = Session(
    id="s1",
    key=SessionKey(platform="test", chat="1/2", thread="t", user="ü"),
    chat_type="thread",
    parent_id="s0",
    started_at=1.5,
    model="m",
    system_prompt="You are a test.",
    epoch=3,
    ended_at=2.5,
    end_reason="compression",
    continuation_id="s2",
    hook="done",
    title="Ein Titel",
    usage=CanonicalUsage(
        input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4, reasoning_tokens=5
    ),
    cost_usd=0.1,
    last_prompt_tokens=6,
    reported_messages=7,
    transcript_tokens=8,
    message_count=9,
    compaction_count=10,
    engine_state={"a": [1]},
    todos=(Todo(text="tea"), Todo(text="milk", status="done")),
    last_active_at=11.25,
    expires_at=12.5,
    announced=("half", "most"),
    flushed_messages=13,
    model_chosen_at="openai",
    tools=("clock", "todo"),
    places=("-100/7", "-100"),
    project="p_1",
    temporary=True,
    rewritten=2,
)
"""It has every field: none is forgotten on the way into a store, or from one to another."""


class Bench(Protocol):
    """One place where a store keeps its facts, and ways to come back to it."""

    clock: ManualClock

    async def open(self, *, concurrency: int = 256) -> Store:
        """A store on this place, whose earlier ones are closed or dead."""

    async def crash(self, store: Store) -> Store:
        """As if the process died now, and another one started."""

    async def aclose(self) -> None:
        """Close whatever was opened."""


def key(chat: str = "1", *, platform: str = "test") -> SessionKey:
    """A direct chat's key."""
    return SessionKey(platform=platform, chat=chat)


def arrival(event_id: str, chat: str = "1", text: str = "hello", *, bypass: bool = False) -> Arrival:
    """A direct message."""
    source = Source(platform="test", chat=chat, chat_type="direct", user="u" + chat)
    return Arrival(inbound=Inbound(event_id=event_id, source=source, text=text), key=key(chat), at=START, bypass=bypass)


def outbound(number: str, chat: str = "1", text: str = "answer", **changes: Any) -> Outbound:
    """A reply to a direct chat."""
    to = ChatAddress(platform="test", chat=chat)
    return Outbound(id=number, key=key(chat), to=to, kind="reply", text=text, **changes)


def reminder(number: str, chat: str = "1", **changes: Any) -> Reminder:
    """A reminder in a direct chat, due at START."""
    facts: dict[str, Any] = {
        "id": number,
        "key": key(chat),
        "source": Source(platform="test", chat=chat, chat_type="direct", user="u" + chat, user_name="Ann"),
        "kind": "say",
        "text": "tea",
        "zone": "UTC",
        "start": "2023-11-14T22:13:20",
        "due_at": START,
        "settled_until": START - 100,
        "token": f"a_{number}",
        "made_by": "e1",
        "made_at": START - 100,
    }
    return Reminder(**{**facts, **changes})


def new_session(number: str, chat: str = "1", **changes: Any) -> Session:
    """A session as a lifecycle would open it."""
    facts: dict[str, Any] = {
        "id": number,
        "key": key(chat),
        "chat_type": "direct",
        "parent_id": None,
        "started_at": START,
        "model": "m",
        "system_prompt": "You are a test.",
    }
    return Session(**{**facts, **changes})


def step(*messages: Message, absorbed: Sequence[str] = (), **patch: Any) -> StepRecord:
    """A record of messages with a patch."""
    return StepRecord(messages=messages, patch=Patch(at=patch.pop("at", START), **patch), absorbed=absorbed)


def exchange(number: int) -> tuple[Message, Message]:
    """A question and its answer, three and four tokens."""
    return user(f"question {number}", tokens=3), assistant(f"answer {number}", tokens=4)


async def put(store: Store, *event_ids: str, chat: str = "1") -> list[Receipt]:
    """Accept messages one by one."""
    return [(await store.accept([arrival(each, chat)], cap=100))[0] for each in event_ids]


async def claimed(store: Store, event_id: str = "e1", chat: str = "1") -> Claim:
    """Accept one message and claim its lane."""
    await put(store, event_id, chat=chat)
    return await store.claim_next("w")


async def in_session(
    store: Store, *messages: Message, session_id: str = "s1", chat: str = "1"
) -> tuple[Claim, Session]:
    """A claimed lane with a session open under its key."""
    claim = await claimed(store, f"e-{session_id}", chat)
    opening = Opening(session=new_session(session_id, chat), transcript=messages)
    return claim, await store.open_session(claim.lease, opening)


async def finish(store: Store, claim: Claim, *rows: Outbound) -> TurnEnd:
    """End an item that touched no session."""
    return await store.finish_turn(claim.lease, None, claim.item, None, "answered", rows)


async def transcript(store: Store, session_id: str) -> list[Message]:
    """Return the present transcript of a session."""
    return list(await store.transcript(await store.session(session_id)))


def turns_of(passages: Sequence[Passage]) -> list[Message]:
    """The messages of a search's passages."""
    return [turn.message for passage in passages for turn in passage.turns]


def contents(messages: Sequence[Message]) -> list[Any]:
    """Just what was said."""
    return [message.get("content") for message in messages]


def moved(ref: SessionRef, by: int = -1) -> SessionRef:
    """A reference with another epoch."""
    return SessionRef(id=ref.id, epoch=ref.epoch + by)


async def nothing_ready(store: Store) -> bool:
    """Say whether no lane can be claimed at this moment."""
    waiter = asyncio.create_task(store.claim_next("probe"))
    for _ in range(5):
        await asyncio.sleep(0)
    ready = waiter.done()
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    return not ready
