"""What the parts of a gateway stand on, without a file or a server."""

import pytest

from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Limits
from gateway.runtime.points import ignore_points
from gateway.store.port import Store
from tests.support.memory_backend import MemoryBackend


@pytest.fixture
async def store(clock):
    """An open, empty store in memory."""
    opened = Store(MemoryBackend(), clock=clock)
    await opened.open()
    return opened


class Shelf(Outbox):
    """An outbox whose rows are stored, and which shows none: no platform is there."""

    def deliver(self, claimed):
        """Nobody looks."""


@pytest.fixture
def shelf(store, clock, ids):
    """Make an outbox for the platform "test", with these limits."""

    def made(**limits):
        facts = {"clock": clock, "ids": ids, "background": None, "points": ignore_points}
        return Shelf(store=store, adapters={}, limits={"test": Limits(**limits)}, **facts)

    return made
