"""The hosts that commands in a sandbox reach: those of the configuration, and those that a person allows to one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from gateway.domain.settings import Host
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolError
from gateway.runtime.plugins import imported
from gateway.runtime.sandbox import PORTS, Network, Reach, Sandbox, named

_MOST: Final = 20  # hosts of one call
_NAMED: Final = 10  # hosts in the description
_HOST: Final = TypeAdapter[str](Host)
_PROXY: Final = "gateway.runtime.proxy"  # which most conversations do without


class WayOut(Struct, kw_only=True):
    """The way out of a tool's sandboxes. There are `hosts` where the network is listed alone. `proxy`: a ForwardProxy,
    made when a command first has a way out."""

    network: Network = "none"
    hosts: Sequence[str] = ()
    clock: Clock
    proxy: Any = None

    @property
    def described(self) -> str:
        """What is in reach, in words that can follow "a sandbox"."""
        if self.network == "public":
            return "that reaches the public internet by HTTPS"
        listed = f"that reaches {', '.join(self.hosts[:_NAMED])}" if self.hosts else "without network"
        return f"{listed} (further `hosts` are asked for)"

    def beyond(self, hosts: Sequence[str]) -> Sequence[str]:
        """Those of a call's hosts that are not in reach. Raises ToolError for what names none."""
        try:
            asked = [_HOST.validate_python(each) for each in hosts]
        except ValidationError:
            raise ToolError("`hosts` are names, such as api.example.org, or git.example.org:8443.") from None
        if len(asked) > _MOST or "*" in asked:
            raise ToolError(f"Name the hosts one by one, {_MOST} at most.")
        reach = self._reach(self.hosts)
        places = [(each, *named(each)) for each in asked]
        return [each for each, host, port in places if not reach.includes(host, port or PORTS[-1])]

    def _reach(self, hosts: Sequence[str]) -> Reach:
        return Reach(hosts=hosts, everywhere=self.network == "public", setting="tools.shell.hosts")

    @asynccontextmanager
    async def led(
        self, box: Sandbox, command: Sequence[str], hosts: Sequence[str]
    ) -> AsyncIterator[tuple[Sandbox, Sequence[str], Collection[str]]]:
        """A sandbox and a command with a way to these hosts and those in reach, open until this is left; and those that
        are refused meanwhile."""
        reach = self._reach((*self.hosts, *self.beyond(hosts)))
        if not reach.hosts and not reach.everywhere:
            yield box, command, ()
            return
        if self.proxy is None:
            self.proxy = imported(f"{_PROXY}:ForwardProxy")(clock=self.clock)
        async with self.proxy.open(reach) as door:
            yield *imported(f"{_PROXY}:led_out")(box, command, door), door.refused
