"""The platforms that a process works for, and the names of their chats."""

from __future__ import annotations

from collections.abc import Collection, Container
from functools import lru_cache
from urllib.parse import quote

from gateway.domain.chat import ChatAddress, SessionKey


@lru_cache(maxsize=8_192)
def chat_name(address: ChatAddress) -> str:
    """The chat of an address as text. All threads of a chat share one order of rows, because they share the platform's
    limits."""
    return SessionKey(platform=address.platform, chat=address.chat).text


class Platforms:
    """Some platforms by name, or (None) all of them. `names` is a set, because every message may ask it."""

    __slots__ = ("names", "text")

    def __init__(self, names: Collection[str] | None = None) -> None:
        self.names: Container[str] = self if names is None else frozenset(names)
        written = sorted(quote(name, safe="") for name in names or ())
        # Names are written as in keys, without a slash, so each stands alone between two slashes.
        self.text = "*" if names is None else f"/{'/'.join(written)}/"

    def __contains__(self, platform: object) -> bool:
        return self.text == "*" or platform in self.names

    def has_chat_of(self, name: str) -> bool:
        """Whether a key or a chat, as text, is on one of these platforms."""
        return self.text == "*" or f"/{name.partition('/')[0]}/" in self.text
