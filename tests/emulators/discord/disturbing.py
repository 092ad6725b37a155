"""Faults of Discord beside those of any platform (`tests.emulators.faults`).

    server.faults.add(RateLimit(seconds=3, scope="shared"), method="POST /channels/{channel}/messages")
    server.frames.add(Drop(), method="send MESSAGE_CREATE")
    server.frames.add(InvalidSession(resumable=True), method="receive RESUME")

The faults of the gateway befall payloads: `send HELLO`, `send READY`, `receive IDENTIFY`, … The handshake before
them is the request `GET /gateway/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.emulators.faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """A 429; the request is not done. `via`: without the header of that name it comes from Cloudflare, as HTML.
    `global`: all other requests are refused meanwhile, too, but for those about interactions."""

    seconds: float = 1.0
    scope: Literal["user", "shared", "global"] = "user"
    via: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """The connection ends instead of this payload, or (`after`) behind it: with a close code, or (0) without a word."""

    code: int = 0
    after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnect:
    """The bot is asked to come again, instead of this payload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidSession:
    """The session is declared invalid, instead of this payload."""

    resumable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """From this payload on the connection stays open and says nothing: a zombie."""


Mishap = Fault | RateLimit | Drop | Reconnect | InvalidSession | Silence
