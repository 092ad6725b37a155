"""Links by which anybody may read one conversation, until its owner takes the link back.

A link shows what the store holds at the moment, so what was forgotten is not in it; no word of a conversation is kept
here. It ends with its owner's right to the page.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Final

from msgspec import Struct, convert
from msgspec.structs import asdict

from gateway.domain.adapter import Notebook
from gateway.runtime.clock import Clock

_NOTE: Final = "share "  # begins the names of notes about links
MOST: Final = 100  # links of a person


class Share(Struct, frozen=True, kw_only=True):
    """A link to a conversation. `token` is what makes the link; nobody can guess it."""

    token: str
    person: str
    session: str
    made_at: float

    @property
    def path(self) -> str:
        """Return the link, behind the page's address."""
        return f"/shared/{self.token}"


class Shares:
    """The links of all people. `is_somebody`: whether a person has a login here."""

    def __init__(self, clock: Clock, is_somebody: Callable[[str], bool]) -> None:
        self._clock = clock
        self._is_somebody = is_somebody
        self._shares: dict[str, Share] = {}
        self._notebook: Notebook | None = None

    async def begin(self, notebook: Notebook | None) -> None:
        """Read the links that hold. Raises StoreUnavailable."""
        self._notebook = notebook
        notes = await notebook.read() if notebook is not None else {}
        facts = [json.loads(text) for name, text in notes.items() if name.startswith(_NOTE)]
        found = [convert(each, Share) for each in facts]  # a later version may add fields
        self._shares = {each.token: each for each in found}

    def at(self, token: str) -> Share | None:
        """The link of this token, while it holds."""
        share = self._shares.get(token)
        return share if share is not None and self._is_somebody(share.person) else None

    def of(self, person: str) -> list[Share]:
        """A person's links, newest first."""
        return sorted((each for each in self._shares.values() if each.person == person), key=lambda each: -each.made_at)

    async def make(self, person: str, session: str) -> Share | None:
        """The link to a conversation, a new one if it has none; None: there are too many. Raises StoreUnavailable."""
        mine = self.of(person)
        if (there := next((each for each in mine if each.session == session), None)) is not None:
            return there
        if len(mine) >= MOST:
            return None
        token = secrets.token_urlsafe(24)
        share = Share(token=token, person=person, session=session, made_at=self._clock.now())
        await self._write(token, json.dumps(asdict(share)))
        self._shares[token] = share
        return share

    async def take_back(self, person: str, token: str) -> None:
        """End a link, if it is the person's own. Raises StoreUnavailable."""
        share = self._shares.get(token)
        if share is not None and share.person == person:
            await self._write(token, None)
            self._shares.pop(token, None)

    async def _write(self, token: str, text: str | None) -> None:
        if self._notebook is not None:
            await self._notebook.write({_NOTE + token: text})
