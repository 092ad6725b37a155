"""The places of a name, and which of them may be reached."""

from __future__ import annotations

import socket

import pytest

from gateway.runtime.addresses import judge, look_up, lookups


@pytest.mark.parametrize("family", [socket.AF_UNSPEC, socket.AF_INET])
async def test_a_name_has_each_place_once(family: int) -> None:
    with lookups(1) as threads:
        found = [*await look_up("127.0.0.1", 80, threads, family)]
    assert [(each[0], each[1], each[4]) for each in found] == [(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 80))]
    with pytest.raises(PermissionError):
        judge(found[0])
    judge(found[0], lambda address: address.is_loopback)
