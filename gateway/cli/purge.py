"""`legato purge`: the conversations of a person, of a key, or older than some days go for good."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from msgspec import Struct

from gateway.agent.forgetting import Forgetter
from gateway.app.build import Parts, build
from gateway.app.config import Config
from gateway.app.store import configured_store
from gateway.domain.chat import SessionKey, Source
from gateway.domain.memory import scope_of
from gateway.domain.pairing import removed
from gateway.domain.session import Session
from gateway.domain.wording import counted
from gateway.people.pairing import guest_book, set_guest_book
from gateway.runtime.clock import Clock, Ids, SystemClock, SystemIds
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.store.port import Documents, ReportStore, Store
from gateway.store.records import Erasure, Talk
from gateway.store.sqlite import SqliteStore

_ENGINE = (
    "The context engine {engine} may keep a copy that Legato cannot reach. Look into {folder}, or ask the "
    "people who made that engine."
)
_PAGE = 500  # sessions looked up at once


class Purge(Struct, frozen=True, kw_only=True):
    """Exactly one of `person` (platform and id), `key` and `before` (seconds since the epoch) is given; `before` may
    stand beside either."""

    person: tuple[str, str] | None = None
    key: SessionKey | None = None
    before: float | None = None


def person_named(text: str) -> tuple[str, str]:
    """PLATFORM:USER. Raises UserError."""
    platform, colon, user = text.partition(":")
    if not (platform and colon and user):
        raise UserError(f"{text!r} does not name a person. Write PLATFORM:USER, as `legato access list` does.")
    return platform, user


def key_named(text: str) -> SessionKey:
    """A key as `legato sessions list` prints it. Raises UserError."""
    try:
        return SessionKey.parse(text)
    except ValueError:
        raise UserError(f"{text!r} is not the key of a conversation. `legato sessions list` prints the keys.") from None


async def talks_of(store: Store, purge: Purge) -> list[Talk]:
    """The conversations in question."""
    if purge.key is not None:
        known = await store.sessions(purge.key, 1)
        return [Talk(key=purge.key, chat_type=known[0].chat_type if known else "direct")]
    platform, user = purge.person or (None, None)
    return await store.talks(platform, user)


def is_whole(talk: Talk, purge: Purge) -> bool:
    """Whether a conversation goes as a whole, and not only one person's part."""
    return purge.person is None or talk.chat_type == "direct" or talk.key.user is not None


async def preview(store: Store, purge: Purge) -> list[dict[str, Any]]:
    """key, sessions, messages, what: of each conversation of which something would go."""
    rows = []
    for talk in await talks_of(store, purge):
        sessions = [each for each in await _sessions(store, talk.key) if _is_old(each, purge.before)]
        if sessions or purge.before is None:
            what = "everything" if purge.before is None else "the older part"
            rows.append(
                {
                    "key": str(talk.key),
                    "sessions": len(sessions),
                    "messages": sum(each.message_count for each in sessions),
                    "what": what if is_whole(talk, purge) else "what the person said",
                }
            )
    return rows


def preview_text(rows: Sequence[dict[str, Any]]) -> str:
    """The same to be read."""
    if not rows:
        return "There is nothing to purge."
    return "\n".join(
        f"{row['key']}: {row['what']} ({counted(row['sessions'], 'session')}, {counted(row['messages'], 'message')})"
        for row in rows
    )


async def carry_out(settings: Config, purge: Purge) -> tuple[dict[str, int], str]:
    """Purge, while nobody else has the store. Returns what went, summed, and a sentence about what is out of reach."""
    store = configured_store(settings, waits=False)
    gateway = build(settings, [], Parts(store=store))
    async with aclosing(gateway.settings), aclosing(store):
        await store.open()
        went = await _purge(store, gateway.agents.forgetter, purge, SystemClock(), SystemIds())
        engines = gateway.agents.forgetter.sessions.engines
        name = engines.out_of_reach
        return went, _ENGINE.format(engine=name, folder=engines.home / name) if name and went else ""


async def _purge(store: Store, forgetter: Forgetter, purge: Purge, clock: Clock, ids: Ids) -> dict[str, int]:
    total: dict[str, int] = {}
    for talk in await talks_of(store, purge):
        if is_whole(talk, purge):
            deed = Erasure(id=ids.new("f"), key=talk.key, at=clock.now(), before=purge.before)
            if purge.before is None:
                await forgetter.forget_memory(scope_of(talk.key, talk.chat_type))
            counts = await forgetter.erase(None, deed)
        else:
            assert purge.person is not None
            platform, user = purge.person
            who = Source(platform=platform, chat=talk.key.chat, chat_type=talk.chat_type, user=user)
            counts = await forgetter.forget_said_by(talk.key, who, ids.new("f"), before=purge.before)
        for what, count in counts.items():
            total[what] = total.get(what, 0) + count
    if purge.person is not None and purge.before is None:
        platform, user = purge.person
        await forgetter.forget_own(Source(platform=platform, chat="", chat_type="direct", user=user))
        total["guests"] = await _let_in_no_more(store, platform, user)
    if isinstance(store, SqliteStore):
        await store.rewrite()
    return {what: count for what, count in total.items() if count}


async def _let_in_no_more(store: Documents, platform: str, user: str) -> int:
    """Take a person out of the guest book: one who was let in by a code, or asks to be. Returns how many there were."""
    while True:
        book = await guest_book(store)
        after, guest = removed(book, platform, user)
        asking = tuple(each for each in after.asking if (each.platform, each.user) != (platform, user))
        if guest is None and asking == book.asking:
            return 0
        if await set_guest_book(store, replace(after, asking=asking, version=book.version + 1)):
            return 1


async def _sessions(store: ReportStore, key: SessionKey) -> list[Session]:
    found: list[Session] = []
    while page := await store.sessions(key, _PAGE, len(found)):
        found += page
    return found


def _is_old(session: Session, before: float | None) -> bool:
    return before is None or (session.ended_at is not None and session.last_active_at < before)
