"""Addresses of the public internet: the only ones that a stranger's page or a command in a sandbox may lead to.

The owner of a name decides where it leads, and may change that between two looks. So an address is checked when its
socket is made, and no other address is ever connected to.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from errno import EACCES
from functools import partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

Address = IPv4Address | IPv6Address
Place = tuple[Any, ...]
"""One entry of `socket.getaddrinfo`."""

PRIVATE: Final = "the address is not on the public internet"
_LOOKUPS: Final = 8  # names that are looked up at once
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address behind a translator
# What `ipaddress` takes for public in some release, and nobody serves pages from: 6to4 (RFC 3056) with its relays
# (RFC 7526), Teredo (RFC 4380), site-local (RFC 3879), the translators' own (RFC 8215), IPv4-compatible (RFC 4291),
# IETF's own (RFC 6890), documentation (RFC 9637), segment routing (RFC 9602).
_NOT_PUBLIC: Final = tuple(
    ip_network(each)
    for each in (
        "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", "::/96", "64:ff9b:1::/48", "100::/64",
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
    )
)  # fmt: skip


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet, as far as one can see."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    if any(address in network for network in _NOT_PUBLIC if network.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def literal(host: str) -> Address | None:
    """The address that a host is written as; None: it is a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def judge(place: Place, allows: Callable[[Address], bool] = is_public) -> None:
    """Raises OSError unless a socket may be connected to a place that was looked up."""
    address = literal(str(place[4][0]))
    if address is None or not allows(address):
        raise PermissionError(EACCES, PRIVATE)


def lookups(most: int = _LOOKUPS) -> ThreadPoolExecutor:
    """Threads of their own: a name whose server says nothing keeps one busy for long, and others need the loop's."""
    return ThreadPoolExecutor(max_workers=most, thread_name_prefix="lookup")


async def look_up(host: str, port: int, threads: Executor, family: int = socket.AF_UNSPEC) -> Sequence[Place]:
    """The places of a name, by the system's look-up. Raises OSError."""
    look = partial(socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM)
    return await asyncio.get_running_loop().run_in_executor(threads, look)
