"""The part of the store port that keeps pins. They belong to a key and to none of its sessions: they
outlive resets, and what is pinned under one key is never seen under another."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gateway.domain.chat import SessionKey
from gateway.domain.pin import Pins
from gateway.domain.session import Session
from gateway.store.records import Lease, Rebuilt


class PinStore(ABC):
    """Two of the port's steps; the rules of `gateway.store.port` hold for them, too."""

    @abstractmethod
    async def pins(self, key: SessionKey) -> Pins:
        """The key's pins; none is no error."""

    @abstractmethod
    async def set_pins(self, lease: Lease, pins: Pins, rebuilt: Rebuilt | None) -> Session | None:
        """Replace the key's pins and, in the same step, the prompt of its present session, whose epoch
        rises: so no prompt is ever without them. Returns that session as it now is. None: the key has
        no session; if it has one all the same, SessionConflict."""
