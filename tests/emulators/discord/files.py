"""Files of messages, and the links under which they can be fetched for a while.

Source: https://discord.com/developers/docs/reference#signed-attachment-cdn-urls: `ex`, `is` and `hm` in the link are
its end, its beginning and its signature.
"""

from __future__ import annotations

import hmac
from typing import Final

from gateway.runtime.clock import Clock
from tests.emulators.discord.world import Attachment

_KEY: Final = b"a key that protects nothing"


class Files:
    """The uploaded files, by path."""

    def __init__(self, clock: Clock, life: float) -> None:
        self.root = ""  # the server's address, known once it listens
        self._clock, self._life = clock, life
        self._contents: dict[str, bytes] = {}
        self._types: dict[str, str] = {}

    def keep(self, path: str, content: bytes, content_type: str) -> None:
        """Take a file."""
        self._contents[path], self._types[path] = content, content_type

    def link(self, attachment: Attachment) -> str:
        """A fresh link to a file."""
        now = int(self._clock.now())
        begins, ends = f"{now:x}", f"{now + int(self._life):x}"
        signed = _signature(attachment.path, begins, ends)
        return f"{self.root}/attachments/{attachment.path}?ex={ends}&is={begins}&hm={signed}&"

    def fetch(self, path: str, query: dict[str, str]) -> tuple[bytes, str] | None:
        """Content and type of a file; None if there is none or the link does not hold (any more)."""
        begins, ends = query.get("is", ""), query.get("ex", "")
        if not hmac.compare_digest(query.get("hm", ""), _signature(path, begins, ends)):
            return None
        if int(ends, 16) < self._clock.now() or path not in self._contents:
            return None
        return self._contents[path], self._types[path]


def _signature(path: str, begins: str, ends: str) -> str:
    return hmac.new(_KEY, f"{path} {begins} {ends}".encode(), "sha256").hexdigest()
