"""Links by which anybody may read one conversation, until its owner takes the link back, or forgets the conversation.

A link shows what the store holds at the moment, so what was forgotten is not in it; no word of a conversation is kept
here, and of a link only a hash: it is shown while the process that made it runs. It ends with its owner's right to the
page.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final

from msgspec import Struct, convert

from gateway.domain.adapter import Notebook
from gateway.runtime.clock import Clock

_NOTE: Final = "share "  # begins the names of notes about links
MOST: Final = 100  # links of a person


class Share(Struct, frozen=True, kw_only=True):
    """A link to a conversation. `name` is a hash of the `token` that makes the link, which nobody can guess. `token`
    "": another process made it."""

    name: str
    person: str
    session: str
    made_at: float
    token: str = ""

    @property
    def path(self) -> str:
        """The link, after the page's address; "" if nobody knows it any more."""
        return f"/shared/{self.token}" if self.token else ""


class Shares:
    """The links of all people. `is_somebody`: whether a person has a login here."""

    def __init__(self, clock: Clock, is_somebody: Callable[[str], bool]) -> None:
        self._clock = clock
        self._is_somebody = is_somebody
        self._shares: dict[str, Share] = {}
        self._notebook: Notebook | None = None

    async def begin(self, notebook: Notebook | None) -> None:
        """Read the valid links, perhaps again. Raises StoreUnavailable."""
        self._notebook = notebook
        notes = await notebook.read() if notebook is not None else {}
        tokens = {name: share.token for name, share in self._shares.items()}
        self._shares = {
            name: convert({**json.loads(text), "name": name, "token": tokens.get(name, "")}, Share)
            for note, text in notes.items()
            if note.startswith(_NOTE)
            for name in [note.removeprefix(_NOTE)]
        }

    def at(self, token: str) -> Share | None:
        """The link of this token, while it holds."""
        share = self._shares.get(_hash(token))
        return share if share is not None and self._is_somebody(share.person) else None

    def of(self, person: str) -> list[Share]:
        """A person's links, newest first."""
        return sorted((each for each in self._shares.values() if each.person == person), key=lambda each: -each.made_at)

    async def make(self, person: str, session: str) -> Share | None:
        """The link to a conversation, a new one if none is known; None: there are too many. Raises StoreUnavailable."""
        mine = self.of(person)
        if (there := next((each for each in mine if each.session == session and each.token), None)) is not None:
            return there
        if len(mine) >= MOST:
            return None
        token = secrets.token_urlsafe(24)
        share = Share(name=_hash(token), person=person, session=session, made_at=self._clock.now(), token=token)
        kept = {"person": person, "session": session, "made_at": share.made_at}
        await self._write(share.name, json.dumps(kept))
        self._shares[share.name] = share
        return share

    async def take_back(self, person: str, name: str) -> None:
        """End a link, if it is the person's own. Raises StoreUnavailable."""
        share = self._shares.get(name)
        if share is not None and share.person == person:
            await self._write(name, None)
            self._shares.pop(name, None)

    async def end_gone(self, person: str, title: Callable[[str], Awaitable[str | None]]) -> None:
        """End a person's links to conversations that are no more: those without a `title`. Raises StoreUnavailable."""
        for each in self.of(person):
            if await title(each.session) is None:
                await self.take_back(person, each.name)

    async def _write(self, name: str, text: str | None) -> None:
        if self._notebook is not None:
            await self._notebook.write({_NOTE + name: text})


def _hash(token: str) -> str:
    return sha256(token.encode(errors="surrogateescape")).hexdigest()
