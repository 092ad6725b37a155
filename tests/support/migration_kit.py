"""A store with something of everything in it, and what a store shows of itself, for migration tests."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

from gateway.domain.approval import Approval
from gateway.domain.chat import Button, ChatAddress, KeptFile, Returns, SessionKey, Source
from gateway.domain.memory import Fact, MemoryChange
from gateway.domain.message import HOST, Message, assistant, note_of, user
from gateway.domain.pairing import GuestBook, asked, confirmed
from gateway.domain.rule import Pin, Pins
from gateway.domain.session import Compaction, PassWork, Todo
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.people.pairing import guest_book, set_guest_book
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from gateway.store.port import Store, under
from gateway.store.records import (
    MOST_ATTEMPTS,
    Cap,
    Claim,
    Forgetting,
    Opening,
    Patch,
    Rebuilt,
    Reservation,
    Rewriting,
    StepRecord,
    ToolIntent,
)
from gateway.store.transfer import Report, migrate, source_at, target_at
from tests.support.forks import forks
from tests.support.store_kit import (
    FULL_SESSION,
    START,
    arrival,
    claimed,
    exchange,
    finish,
    in_session,
    key,
    new_session,
    outbound,
    put,
    reminder,
    step,
    turns_of,
)

CHATS: Final = [str(number) for number in range(12)]
WORDS: Final = ("question", "你好", "好", "gruß", "ananas", "late", "nowhere")
PICTURE: Final = bytes(range(256)) * 8_000
LONG: Final = "An ananas, and 20,000 more characters. " + "long text 長い文章 " * 1_300
AT_ONCE: Final = (0.0,) * MOST_ATTEMPTS  # the pauses of a store that `fill` need not wait for
GROUP_SCOPE: Final = SessionKey(platform="test", chat="2", user="u 2/ö")


async def fill(store: Store) -> None:
    """Everything that a store can hold. All steps go through the port."""
    await _conversation(store)
    await _forgotten(store)
    await _compaction(store)
    await _branch(store)
    await _memory(store)
    await _dead(store)
    await _turn_in_the_middle(store)
    await _waiting(store)
    await _suspect(store)
    await _ended_otherwise(store)
    await _rows(store)
    await _files(store)
    await _reminders(store)
    await _spending(store)
    await store.set_notes("x:1", {"read é/ 买": "17", "base": "3", "forgotten": "1"})
    await store.set_notes("x:1", {"forgotten": None})
    await store.set_notes("y:2", {"base": "4"})
    await store.set_notes(under(key("1"), "mood"), {"now": "fröhlich"})
    await _guest_book(store)
    await _closed_chats(store)
    await store.rename_chat("test", "ÄÖ/ 买", "x3")
    await store.rename_chat("test", "x3", "x4")


async def _forgotten(store: Store) -> None:
    claim, session = await in_session(store, *exchange(1), *exchange(2), chat="forgets", session_id="forgets")
    said = await store.transcript(session)
    rewriting = Rewriting(session_id=session.id, freed=3, title=None, todos=())
    deed = Forgetting(
        id="d1",
        key=session.key,
        at=START,
        item=claim.item.id,
        tip=session.ref,
        removed=(note_of(said[0])["id"],),
        sessions=(rewriting,),
        counts={"messages": 1},
    )
    await store.forget(claim.lease, deed)
    await finish(store, claim)


async def _conversation(store: Store) -> None:
    claim, session = await in_session(store, chat="1", session_id="s1")
    usage = CanonicalUsage(
        input_tokens=10, output_tokens=4, cache_read_tokens=2, cache_write_tokens=5, reasoning_tokens=1
    )
    calls = [
        LedgerEntry(at=START + 1, purpose="turn", provider="p", model="m", usage=usage, cost_usd=0.1),
        LedgerEntry(at=START + 1, purpose="title", provider="p", model="n", usage=usage, cost_usd=None),
    ]
    patch = Patch(
        at=START + 9,
        usage=usage,
        cost_usd=0.1 + 0.2,
        last_prompt_tokens=12,
        reported_messages=1,
        engine_state={"strikes": 1, "names": ["ß", 1.5, None]},
        todos=(Todo(text="buy milk"), Todo(text="買う", status="done")),
        expires_at=START + 100,
        announced=("65", "80"),
        tools=("clock", "todo"),
    )
    said: list[Message] = [
        user("你好 \ud83d \x00 ½ Gruß \u2028 \U0001f600", tokens=3, speaker="Ann", at=START - 5, identifiers=["a/b"]),
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}],
        },
        assistant(LONG, tokens=9_000),
    ]
    record = StepRecord(messages=said, patch=patch, ledger=calls)
    await store.finish_turn(claim.lease, session.ref, claim.item, record, "answered", [outbound("o1", "1")])
    await store.mark_sent("o1", "platform-1")
    claim = await claimed(store, "titled", "1")
    ref = (await store.session("s1")).ref
    await store.update_session(
        claim.lease, ref, title="Ein Titel", model="bigger", model_chosen_at="openai", places=("1",)
    )
    await finish(store, claim)


async def _compaction(store: Store) -> None:
    claim, session = await in_session(store, *exchange(1), *exchange(2), chat="2", session_id="s2")
    before = await store.transcript(session)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("a late question", tokens=2)))
    summary = user("What was said: 你好", tokens=2, summary=True, derived_from=[note_of(m)["id"] for m in before[:2]])
    opening = Opening(
        session=new_session("s2b", "2", parent_id="s2", started_at=START + 3, compaction_count=1),
        transcript=[summary, *before[2:]],
    )
    compaction = Compaction(
        at=START + 2,
        parent_id="s2",
        child_id="s2b",
        trigger="manual",
        messages_before=4,
        messages_after=3,
        tokens_before=14,
        tokens_after=9,
        focus="grüße",
        fallback=True,
        error="none at all",
        work=PassWork(head=(1, 1), middle=(2, 3), tail=(4, 4), shortened={"result": (1, 70)}, model="m", tries=2),
    )
    await store.continue_session(claim.lease, session.ref, opening, 4, compaction)
    child = await store.session("s2b")
    said = step(*exchange(3), last_prompt_tokens=7, reported_messages=2)
    await store.finish_turn(claim.lease, child.ref, claim.item, said, "answered", [outbound("o2", "2")])


async def _branch(store: Store) -> None:
    """Sessions that share messages, and hooks that are owed, done and not owed."""
    claim, session = await in_session(store, *exchange(4), chat="3", session_id="s3")
    shared = await store.transcript(session)
    begins = {"ended_at": None, "end_reason": None, "continuation_id": None, "hook": "none", "epoch": 1}
    full = replace(FULL_SESSION, id="s3b", key=key("3"), parent_id="s3", **begins)  # type: ignore[arg-type]
    branch = await store.end_session(
        claim.lease, session.ref, "switched", START + 4, Opening(session=full, transcript=shared)
    )
    assert branch is not None
    await store.end_session(claim.lease, branch.ref, "reset", START + 5, None)
    await store.hook_done("s3")
    await finish(store, claim)
    claim, session = await in_session(store, *shared[:1], chat="3", session_id="s3c")
    rules = tuple(Pin(text=text, at=START + 0.1) for text in ("niemals grüßen", "two\nlines \ud83d"))
    rebuilt = Rebuilt(ref=session.ref, system_prompt="With pins.", last_prompt_tokens=0)
    now = await store.set_pins(claim.lease, Pins(rules=rules, set_by=claim.item.id), rebuilt)
    assert now is not None
    await store.finish_turn(claim.lease, now.ref, claim.item, step(*exchange(5)), "stopped", [])


async def _memory(store: Store) -> None:
    """Facts that hold, one that was replaced, one without words and one that is gone with its number, of two scopes."""
    said = {"message_id": "12", "session_id": "s1", "said_by": "u1", "said_at": START + 0.25}
    old = Fact(scope=key("1"), id="f1", about="person", text="likes 茶 \ud83d", made_at=START + 2, **said)  # type: ignore[arg-type]
    new = replace(
        old,
        id="f2",
        text="likes coffee",
        said_by_name="Änn",
        used_at=START + 9.5,
        uses=3,
        made_at=START + 3,
        number=2,
        origin="the page ö",
    )
    old = replace(old, superseded_by="f2", superseded_at=START + 3.5)
    bare = replace(old, id="f0", text="", forgotten=True, superseded_by=None, superseded_at=None, said_by="")
    gone = replace(new, id="f9", number=7)
    assert await store.change_memory(MemoryChange(scope=key("1"), version=0, kept=(new, old, bare, gone)))
    assert await store.change_memory(MemoryChange(scope=key("1"), version=1, last_number=7, gone=("f9",)))
    note = replace(new, scope=GROUP_SCOPE, id="f3", about="notes", said_by="u 2/ö")
    assert await store.change_memory(MemoryChange(scope=GROUP_SCOPE, version=0, kept=(note,)))
    session = await store.tip(key("1"))
    assert session is not None
    await store.note_flushed(session, 2)


async def _turn_in_the_middle(store: Store) -> None:
    claim, session = await in_session(store, chat="4", session_id="s4")
    await put(store, "behind-1", "behind-2", "behind-3", chat="4")
    behind = await store.waiting(key("4"), 9)
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(6), absorbed=[behind[0].id]))
    await store.open_reply(claim.lease, claim.item, outbound("o4", "4", "", session_id="s4", answers="e-s4"))
    await store.note_streamed("o4", "platform-4")
    intents = [ToolIntent(call_id="c1", tool="pay"), ToolIntent(call_id="c2", tool="pay", waits=True)]
    await store.begin_tools(claim.lease, session.ref, claim.item, step(user("x")), intents)
    for number, state in enumerate(("open", "approved"), 1):
        asked = Approval(
            token=f"token-{number}",
            key=key("4"),
            item=claim.item.id,
            call=f"1/c{number}",
            number=number,
            person="u4",
            question="Pay 5 €? \ud83d",
            shown_as=f"asks-{number}",
            asked_at=START + number,
            expires_at=START + 300,
        )
        buttons = ((Button(label="Ja", token=f"approve token-{number}"),),)
        returns = Returns(finish="tool_calls", calls=({"id": "c", "function": {"name": "weather"}},))
        row = outbound(f"asks-{number}", "4", "Pay?", buttons=buttons, returns=returns)
        await store.ask(claim.lease, asked, [row])
        if state == "approved":
            edit = outbound(f"says-{number}", "4", "Pay? Ja.", edits=row.id)
            await store.decide(asked, "approved", "u4", START + 9, [edit])
    await store.signal(key("4"), "interrupt", START + 6)
    await store.signal(key("4"), "stop", START + 5)


async def _waiting(store: Store) -> None:
    for number, chat in enumerate(("9", "5", "8", "6", "7")):
        await put(store, f"waits-{number}", f"waits-too-{number}", chat=chat)
    await store.accept([arrival("bypass-1", "5", "/status", bypass=True)], cap=9)
    await store.accept([arrival("bypass-2", "4", "/stop", bypass=True)], cap=9)


async def _suspect(store: Store) -> None:
    """An item that has been claimed three times, among others that are not claimed now."""
    claims: list[Claim] = []
    while len(claims) < 5:
        claims.append(await store.claim_next("w"))
    for claim in claims:
        await store.release(claim.lease, counted=claim.lease.key == key("8"))
    for _ in range(2):
        claims = [await store.claim_next("w") for _ in range(5)]
        for claim in claims:
            await store.release(claim.lease, counted=claim.lease.key == key("8"))


async def _ended_otherwise(store: Store) -> None:
    await store.refuse(arrival("refused", "10"), outbound("o-full", "10", "There is too much waiting."))
    (receipt,) = await store.accept([arrival("bypass-3", "10", "/help", bypass=True)], cap=9)
    assert receipt.item is not None
    await store.finish_bypassed(receipt.item, [outbound("o-help", "10", "Help")])


async def _dead(store: Store) -> None:
    claim = await claimed(store, "dead", "11")
    await store.set_pins(claim.lease, Pins(set_by=claim.item.id), None)
    await store.finish_turn(claim.lease, None, claim.item, None, "dead", [outbound("o-dead", "11", "given up")])


async def _spending(store: Store) -> None:
    """A call that was settled, and one whose process died."""
    caps = (
        Cap(name="gateway", account="day 2100", limit=10**9, resets_at=4_102_444_800.25),
        Cap(name="session", account="session s1", limit=10**9),
    )
    settled, left = (Reservation(id=call, amount=1_000, caps=caps) for call in ("c1", "c2"))
    assert await store.reserve(settled) is None
    assert await store.reserve(left) is None
    await store.settle(settled, 7)


async def _guest_book(store: Store) -> None:
    """A person who was let in, one who asks, and a code that was wrong."""
    book = GuestBook()
    for number, name in enumerate(("Grüße \ud83d", "买东西")):
        source = Source(platform="p", chat=f"c{number}", chat_type="direct", user=f"u{number}", user_name=name)
        book, _ = asked(book, source, f"e{number}", f"CODE{number}", START)
        assert await set_guest_book(store, book)
    for code in ("code0", "nobody's"):
        book, _, _ = confirmed(book, code, START + 1)
        assert await set_guest_book(store, book)


async def _closed_chats(store: Store) -> None:
    """Two that are closed, one of them named in an odd way, and one that is open again."""
    for chat in ("x1", "é/ 买", "x2"):
        await store.close_chat(outbound("x", chat).to, f"{chat} was deleted")
    await store.open_chat(outbound("x", "x2").to)


async def _rows(store: Store) -> None:
    await store.emit([outbound("r1", "0"), outbound("r2", "0"), outbound("r3", "0")])
    await store.mark_refused("r1", "not that", outbound("r1b", "0", "instead"))  # r1b takes its place, and is sending
    await store.mark_retry("r1b", 50, ambiguous=True)
    await store.mark_refused("o-full", "never", None)
    to = ChatAddress(platform="test", chat="3", thread="a/b")
    await store.emit([replace(outbound("r-thread", "3"), to=to, created_at=START + 0.5)])


async def _reminders(store: Store) -> None:
    """One that waits, one with odd words that fired, one that is over, and one in a closed chat."""
    for number, chat in enumerate(("1", "1", "3", "x1")):
        made = reminder(f"r_{number}", chat, text=f"té {number} 买 \ud83d", due_at=START + 500 + number)
        assert await store.add_reminder(made, 9, 10_000) is not None
    first, second = reminder("r_0", "1", due_at=START + 500), reminder("r_1", "1", due_at=START + 501)
    row = outbound("o-reminder", "1", "tea")
    await store.change_reminder(first.changed(fired=1, fired_at=START, shown_as=row.id, due_at=START + 900), [row])
    await store.change_reminder(second.changed(state="cancelled", due_at=None))


async def _files(store: Store) -> None:
    """A long one, an empty one, the same content twice, and a row that shows one."""
    for chat, ref, content in (("1", "r2", PICTURE), ("1", "r1", PICTURE), ("3", "r1", b"")):
        await store.keep_file(key(chat), kept(ref, content), content)
    await store.emit([outbound("o-file", "3", "caption", file=kept("r1", b""))])


def kept(ref: str, content: bytes) -> KeptFile:
    """A file of this content."""
    digest = sha256(content).hexdigest()
    return KeptFile(ref=ref, digest=digest, name="größe\n.png", mime="image/png", size=len(content), at=START + 7)


def nameless(messages: Sequence[Message]) -> list[Any]:
    """Messages without their ids: each store gives its own."""
    return [{**each, HOST: {name: fact for name, fact in note_of(each).items() if name != "id"}} for each in messages]


async def shown(store: Store) -> dict[str, Any]:
    """All that a store's readers say."""
    sessions = await store.sessions(None, 999)
    return {
        "sessions": sessions,
        "of keys": {chat: await store.sessions(key(chat), 99) for chat in CHATS},
        "tips": {chat: await store.tip(key(chat)) for chat in CHATS},
        "transcripts": {each.id: nameless(await store.transcript(each)) for each in sessions},
        "order of fields": [[list(message) for message in await store.transcript(each)] for each in sessions],
        "lineages": {each.id: await store.lineage(each.id) for each in sessions},
        "compactions": {each.id: await store.compactions(each.id) for each in sessions},
        "waiting": {chat: await store.waiting(key(chat), 99) for chat in CHATS},
        "hooks": await store.pending_hooks(99),
        "pins": {chat: await store.pins(key(chat)) for chat in CHATS},
        "memory": [await store.memory(scope) for scope in (key("1"), GROUP_SCOPE)],
        "reminders": {chat: await store.reminders(key(chat), 99) for chat in (*CHATS, "x1")},
        "due reminders": await store.due_reminders(START + 10_000, 99),
        "files": {chat: await store.kept_files(key(chat), 99) for chat in CHATS},
        "contents": {
            (chat, size): await store.file_content(key(chat), kept("", size).digest)
            for chat in CHATS
            for size in (PICTURE, b"")
        },
        "asked": {chat: await store.approvals(outbound("x", chat).to) for chat in CHATS},
        "notes": [await store.notes(account) for account in ("x:1", "y:2")],
        "guests": await guest_book(store),
        "closed": {chat: await store.closed(outbound("x", chat).to) for chat in (*CHATS, "x1", "x2", "é/ 买")},
        "names": [
            (await store.first_name("test", chat, "e"), await store.later_name("test", chat))
            for chat in ("ÄÖ/ 买", "x3", "x4", "x5")
        ],
        "rows": await store.outbox(None, 999),
        "rows of chats": {chat: await store.outbox(outbound("x", chat).to, 99) for chat in CHATS},
        "usage": [await store.usage(0, by) for by in ("model", "purpose", "platform", "session")],
        "spent": await store.spent(["day 2100", "session s1", "unknown"]),
        "status": await store.status(),
        "found": {words: sorted(map(str, nameless(turns_of(await store.search(words, None, 99))))) for words in WORDS},
        "found in chats": {
            (words, chat): nameless(turns_of(await store.search(words, key(chat), 99)))
            for words in WORDS
            for chat in CHATS
        },
    }


async def worked_off(store: Store) -> dict[str, Any]:
    """Work off everything that a starting gateway finds in the store, in its order."""
    store._time.learn(START + 1_000_000_000)  # whatever was put off is due
    bypassed = await store.claim_bypassed("w")
    for each in bypassed:
        await store.finish_bypassed(each, [])
    due = await store.claim_due_sessions(START + 1_000, 99)
    turns = []
    while (await store.status()).waiting:
        async with asyncio.timeout(60):
            claim = await store.claim_next("w")
        item: Any = claim.item
        while item is not None:
            journal, signals = await store.journal(item), await store.signals(item)
            turns.append((item, journal, signals))
            end = await store.finish_turn(claim.lease, None, item, None, "answered", [])
            item = end.next
    rows = []
    left = await store.claim_outbound(99)
    while left:
        row: Any = left.pop(0)
        while row is not None:
            rows.append(row)
            row = await store.mark_sent(row.id, None)
        left = left or await store.claim_outbound(99)
    per_chat = {chat: [row for row in rows if row.to.chat == chat] for chat in CHATS}
    return {"bypassed": bypassed, "due": due, "turns": turns, "rows": per_chat, "status": await store.status()}


async def move(source: str, target: str, **how: Any) -> Report:
    """Migrate between two addresses."""
    clock = SystemClock()
    return await migrate(source_at(source, clock), target_at(target, clock), clock=clock, **how)


async def killed(source: str, target: str, page: int) -> None:
    """A migration in a process of its own that dies after so many pages."""
    process = await forks().program("tests.support.killed_migration", source, target, str(page))
    _, errors = await process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()
