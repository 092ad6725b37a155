"""The platforms whose work a process does, and the names of their chats."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

from gateway.domain.chat import ChatAddress, SessionKey


def chat_name(address: ChatAddress) -> str:
    """The chat whose rows keep their order. Threads of a chat share it: so do the platform's limits."""
    return str(SessionKey(platform=address.platform, chat=address.chat))


class Platforms:
    """Some platforms by name, or (None) every one."""

    __slots__ = ("_names", "text")

    def __init__(self, names: Collection[str] | None = None) -> None:
        self._names = None if names is None else frozenset(names)
        written = sorted(quote(name, safe="") for name in self._names or ())
        # As keys write them: names hold no slash, so each stands alone between two.
        self.text = "*" if self._names is None else f"/{'/'.join(written)}/"

    def __contains__(self, platform: object) -> bool:
        return self._names is None or platform in self._names

    def has_chat_of(self, name: str) -> bool:
        """Whether a key's or a chat's name, in its text form, is of one of these."""
        return self._names is None or f"/{name.partition('/')[0]}/" in self.text
