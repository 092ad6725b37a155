"""What systemd is told, and when a process that hangs ends itself."""

from __future__ import annotations

import faulthandler
import socket
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from gateway.runtime import supervisor
from gateway.runtime.supervisor import Supervisor


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """Hears what a service says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(f"{tmp_path}/notify")
        heard.setblocking(False)
        yield heard


def test_systemd_is_told_what_changed(systemd: socket.socket) -> None:
    service = Supervisor(address=systemd.getsockname())
    service.ready()
    for status in ("serving", "serving", "1 problem"):
        service.alive(status)
    service.stopping()
    assert [systemd.recv(100).decode() for _ in range(5)] == [
        "READY=1", "WATCHDOG=1\nSTATUS=serving", "WATCHDOG=1", "WATCHDOG=1\nSTATUS=1 problem", "STOPPING=1",
    ]  # fmt: skip


def test_without_systemd_nobody_is_told() -> None:
    for address in (None, "/nowhere/notify", "@nobody-listens-there"):
        Supervisor(address=address).ready()


@pytest.mark.parametrize("ends", [True, False])
def test_only_a_process_that_may_end_itself_does(monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    later, cancel, end = Mock(), Mock(), Mock()
    monkeypatch.setattr(faulthandler, "dump_traceback_later", later)
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", cancel)
    monkeypatch.setattr(supervisor, "end_process", end)
    service = Supervisor(ends=ends, patience=7.0)
    service.alive("serving")
    service.stopping()
    service.end("It hangs.")
    assert later.call_args == (((7.0,), {"exit": True}) if ends else None)
    assert cancel.called is ends
    assert end.call_args == ((("It hangs.",),) if ends else None)
