"""Yeses that last: a person allows one very call, with just these arguments, for a session or always. It holds for this
person in this conversation, in turns that the person began, until it is taken back."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.json import decode, encode

from gateway.domain.approval import Approval, Lasts
from gateway.domain.chat import SessionKey
from gateway.store.port import Store, under

_FOLDER: Final = "approved"
_MOST: Final = 100  # of a conversation; the oldest go


class Standing(Struct, frozen=True, kw_only=True):
    """One of them. `question`: as the person read it; `session`: where it holds, with the continuations; "": in all."""

    deed: str
    person: str
    question: str
    at: float
    session: str = ""


async def keep(store: Store, asked: Approval, lasts: Lasts, at: float) -> None:
    """Let the yes to a question last. Raises StoreUnavailable."""
    session = asked.session if lasts == "session" else ""
    made = Standing(deed=asked.deed, person=asked.person, question=asked.question, at=at, session=session)
    folder = under(asked.key, _FOLDER)
    kept = sorted(await _all(store, asked.key), key=lambda each: each.at)
    gone = {_name(each): None for each in kept[: max(0, len(kept) + 1 - _MOST)]}
    await store.set_notes(folder, {**gone, _name(made): encode(made).decode()})


async def standing(store: Store, key: SessionKey, person: str, session: str) -> list[Standing]:
    """The yeses of a person that hold in a session, oldest first. Raises StoreUnavailable."""
    mine = [each for each in await _all(store, key) if each.person == person]
    chain = {each.id for each in await store.lineage(session)} if session and any(each.session for each in mine) else ()
    return sorted((each for each in mine if not each.session or each.session in chain), key=lambda each: each.at)


async def take_back(store: Store, key: SessionKey, yes: Standing) -> None:
    """Let a yes hold no more. Raises StoreUnavailable."""
    await store.set_notes(under(key, _FOLDER), {_name(yes): None})


async def _all(store: Store, key: SessionKey) -> list[Standing]:
    return [decode(text, type=Standing) for text in (await store.notes(under(key, _FOLDER))).values()]


def _name(yes: Standing) -> str:
    return f"{yes.deed} {yes.session} {yes.person}"
