"""Sessions of the gateway: what a bot is told, kept for a while in case its connection breaks.

Source: https://discord.com/developers/docs/events/gateway#resuming. Discord says that missed events are replayed and
that a session ends after a while, not how long that is: here `kept` seconds and the newest `buffer` events.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from tests.emulators.discord.intents import wants


class Op(IntEnum):
    """The opcodes of the gateway."""

    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    PRESENCE = 3
    VOICE_STATE = 4
    RESUME = 6
    RECONNECT = 7
    REQUEST_MEMBERS = 8
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One payload on its way to the bot. `sequence` and `event`: of a dispatch."""

    op: Op
    data: Any = None
    sequence: int | None = None
    event: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the payload among the faults: `HELLO`, `MESSAGE_CREATE`, …"""
        return self.event or self.op.name

    def text(self) -> str:
        """The JSON."""
        body = {"op": int(self.op), "d": self.data, "s": self.sequence, "t": self.event}
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """The events of one identified bot. `send`: where to, None while it has no connection; `left`: when it lost its
    last one (monotonic seconds)."""

    id: str
    intents: int
    buffer: deque[Frame]
    sequence: int = 0
    send: Callable[[Frame], None] | None = None
    left: float = 0.0
    direct: set[int] = field(default_factory=set)
    shard: tuple[int, int] = (0, 1)
    presence: dict[str, Any] = field(default_factory=dict)

    def tell(self, event: str, data: Any, *, in_guild: bool) -> None:
        """Dispatch an event, if the session's intents cover it."""
        if not wants(self.intents, event, in_guild=in_guild):
            return
        self.sequence += 1
        frame = Frame(op=Op.DISPATCH, data=data, sequence=self.sequence, event=event)
        self.buffer.append(frame)
        if self.send is not None:
            self.send(frame)

    def missed(self, sequence: int) -> list[Frame] | None:
        """Return the payloads after a sequence number; None if some of them are no longer kept."""
        kept = [frame for frame in self.buffer if (frame.sequence or 0) > sequence]
        return kept if len(kept) == self.sequence - sequence else None


class Packer:
    """Turns frames into what goes over the wire: text, or one zlib stream for the life of a connection."""

    def __init__(self, compression: str) -> None:
        self._stream = zlib.compressobj() if compression == "zlib-stream" else None

    def pack(self, text: str) -> str | bytes:
        """One message of the websocket."""
        if self._stream is None:
            return text
        return self._stream.compress(text.encode()) + self._stream.flush(zlib.Z_SYNC_FLUSH)
