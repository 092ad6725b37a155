"""The keys of other programs. The store has only the hash of each secret, so a copy of it lets nobody in. They are one
folder of notes. A key that was taken back is refused within ten seconds, a new one is known within one."""

from __future__ import annotations

import secrets
from hashlib import sha256
from math import inf
from typing import Any, Final

from msgspec import Struct, convert, field, json, to_builtins

from gateway.domain.keys import NAME, Key
from gateway.domain.wording import utc
from gateway.runtime.clock import Clock
from gateway.runtime.errors import UserError
from gateway.store.port import Documents

NONE: Final = (
    "There is no key for {person}. `legato keys add {name}` makes a key, and `legato keys list` shows the names."
)
_FOLDER: Final = "keys"
_FRESH: Final = 10.0  # seconds for which a key that holds is not looked up again
_FRESH_FOR_STRANGERS: Final = 1.0


class Keys(Struct, kw_only=True):
    """The keys in the store. `_known`, by the hash of their secret, and `_read_at` (monotonic) change."""

    store: Documents
    clock: Clock
    _known: dict[str, Key] = field(default_factory=dict)
    _read_at: float | None = None

    async def holder(self, secret: str) -> Key | None:
        hashed = _hash(secret)
        await self._look(hashed in self._known)
        return self._known.get(hashed)

    async def of(self, person: str) -> Key:
        await self._look(any(key.speaks_for(person) for key in self._known.values()))
        for key in self._known.values():
            if key.speaks_for(person):
                return key
        raise UserError(NONE.format(person=person, name=person.partition("/")[0]))

    async def _look(self, known: bool) -> None:
        """Read the keys again, unless that was just done. `known`: the key that is asked for was valid then."""
        now = self.clock.monotonic()
        if self._read_at is None or now - self._read_at >= (_FRESH if known else _FRESH_FOR_STRANGERS):
            self._known = {facts["hash"]: _key(name, facts) for name, facts in (await self._notes()).items()}
            self._read_at = now

    def is_strange(self, secret: str) -> bool:
        is_fresh = self._read_at is not None and self.clock.monotonic() - self._read_at < _FRESH_FOR_STRANGERS
        return is_fresh and _hash(secret) not in self._known

    async def all(self) -> list[Key]:
        """All keys, by name. Raises StoreUnavailable."""
        return [_key(name, facts) for name, facts in sorted((await self._notes()).items())]

    async def add(self, key: Key) -> str:
        """Make a key and return its secret, which nobody can read again. Raises UserError, StoreUnavailable."""
        if NAME.fullmatch(key.name) is None:
            raise UserError(f'{key.name!r} cannot be the name of a key: use at most 64 letters, digits and "-"')
        if key.cap is not None and not 0 <= key.cap < inf:
            raise UserError(f"{key.cap:g} is not an amount in US dollars")
        secret = f"sk-legato-{secrets.token_urlsafe(32)}"
        facts = {**to_builtins(key), "hash": _hash(secret)}
        note = {key.name: json.encode(facts).decode()}
        if not await self.store.set_notes(_FOLDER, note, {key.name: None}):
            raise UserError(f"there is already a key named {key.name}: choose another name, or remove it first")
        return secret

    async def remove(self, name: str) -> bool:
        """Take a key back; False: there was none. Raises StoreUnavailable."""
        there = name in await self.store.notes(_FOLDER)
        await self.store.set_notes(_FOLDER, {name: None})
        return there

    async def _notes(self) -> dict[str, dict[str, Any]]:
        return {name: json.decode(text) for name, text in (await self.store.notes(_FOLDER)).items()}


def line_of(key: Key) -> str:
    """A key in a line, without its secret."""
    what = "front end" if key.front_end else "admin" if key.admin else "person"
    cap = "" if key.cap is None else f", ${key.cap:g} a day"
    seen = f", over MCP for {key.chat}" if key.chat else ""
    return f"{key.name}: {what}{cap}{seen}, since {utc(key.made_at)[:10]}"


def _key(name: str, facts: dict[str, Any]) -> Key:
    return convert({**facts, "name": name}, Key)


def _hash(secret: str) -> str:
    return sha256(secret.encode(errors="surrogateescape")).hexdigest()
