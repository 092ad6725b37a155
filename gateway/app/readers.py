"""The readers of the platforms: each reads until there is nothing more, and is started again if a bug ended it or if it
stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final, Literal

import structlog
from msgspec import Struct, field

from gateway.app.accounts import AccountLeases
from gateway.domain.adapter import Adapter, IsTerminal, ShowsLife, TellsReach
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import GatewayError
from gateway.runtime.metrics import Counter
from gateway.runtime.tasks import Background, ended_before
from gateway.turns.poison import PoisonGuard
from gateway.turns.reception import Reception

log = structlog.get_logger(__name__)

READERS_RESTARTED: Final = Counter(
    name="readers_restarted", text="Restarts of a platform's reader.", labels=("platform", "why")
)

ReaderState = Literal["not started", "reads", "stands by", "unreached", "pauses", "ended"]
"""`stands by`: another process reads the account. `unreached`: no attempt got to the platform for half a minute.
`pauses`: after a bug, before it reads again."""

_UNREACHED: Final = 30.0  # seconds; networks and platforms have shorter troubles every day
_READ_AGAIN = (1.0, 300.0)  # seconds before a platform is read again after a bug
_READ_WELL = 600.0  # the same, after which the pauses begin anew


class Readers(Struct, kw_only=True):
    """Reads the platforms of `adapters`. `beside`: those that nobody waits for: the program ends with the others.
    `failure`: why one stopped, as a sentence for the person."""

    adapters: Mapping[str, Adapter]
    accounts: AccountLeases
    reception: Reception
    background: Background
    clock: Clock
    beside: Collection[str] = ()
    failed: bool = False
    failure: str | None = None
    _states: dict[str, ReaderState] = field(default_factory=dict)
    _stalled: dict[str, asyncio.Event] = field(default_factory=dict)

    def begin(self) -> list[asyncio.Task[None]]:
        """Read all of them; the tasks end with their platforms."""
        return [
            self.background.start(self._read(adapter), name=f"adapter {name}")
            for name, adapter in self.adapters.items()
        ]

    def state(self, name: str) -> ReaderState:
        """Return what the reader of a platform does now."""
        state, adapter = self._states.get(name, "not started"), self.adapters[name]
        if state != "reads":
            return state
        if not self.accounts.owns(adapter):
            return "stands by"
        since = adapter.unreached_since if isinstance(adapter, TellsReach) else None
        return "unreached" if since is not None and self.clock.monotonic() - since >= _UNREACHED else "reads"

    def silent_for(self, name: str) -> float | None:
        """Return the seconds since the reader's library gave a sign, if that is longer than it may take."""
        adapter = self.adapters[name]
        if not isinstance(adapter, ShowsLife) or adapter.alive_at is None:
            return None
        silent = self.clock.monotonic() - adapter.alive_at
        return silent if silent > adapter.longest_silence else None

    def restart(self, name: str, why: str) -> None:
        """End the present reading of a platform, and start again."""
        if (stalled := self._stalled.get(name)) is not None and self._states.get(name) == "reads":
            READERS_RESTARTED.count(name, why)
            stalled.set()

    async def _read(self, adapter: Adapter) -> None:
        """Read a platform until it has nothing more to say. If a bug ended the reading, or it stands still, it starts
        again after a pause; except at a person's own terminal, where the error must be seen."""
        backoff = Backoff(*_READ_AGAIN)
        stalled = self._stalled[adapter.name] = asyncio.Event()
        read = partial(self.accounts.read, adapter, PoisonGuard(self.reception, adapter).accept)
        try:
            while True:
                stalled.clear()
                self._states[adapter.name] = "reads"
                began = self.clock.monotonic()
                try:
                    if await ended_before(read, stalled):
                        return
                except GatewayError as error:
                    self.failed, self.failure = True, str(error)
                    log.info("adapter_stopped", adapter=adapter.name, error=str(error))
                    return
                except Exception:
                    # One platform's bug must not take the others down.
                    if isinstance(adapter, IsTerminal):
                        self.failed = True
                        log.exception("adapter_broke", adapter=adapter.name)
                        return
                    if self.clock.monotonic() - began > _READ_WELL:
                        backoff.reset()
                    wait = backoff.pause()
                    log.exception("adapter_broke", adapter=adapter.name, again_in=wait)
                    READERS_RESTARTED.count(adapter.name, "broke")
                    self._states[adapter.name] = "pauses"
                    await self.clock.sleep(wait)
        finally:
            self._states[adapter.name] = "ended"
