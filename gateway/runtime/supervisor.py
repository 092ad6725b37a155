"""Whoever keeps this process running, such as systemd, and the last resort of a process that can do nothing more."""

from __future__ import annotations

import faulthandler
import os
import socket
from contextlib import suppress

from msgspec import Struct


def end_process(sentence: str) -> None:
    """End the process. What it had accepted is on the disk; its supervisor starts it again."""
    os.write(2, f"legato: {sentence}\n".encode())
    os._exit(1)


class Supervisor(Struct, kw_only=True):
    """Tells systemd how the process is (sd_notify(3)), if `address` names its socket. With `ends` the process may end
    itself: with a traceback and exit status 1 if nobody says `alive` for `patience` seconds, and by `end`."""

    address: str | None = None
    ends: bool = False
    patience: float = 300.0
    _told: str = ""

    def ready(self) -> None:
        """The program serves."""
        self._notify("READY=1")

    def alive(self, status: str) -> None:
        """The event loop runs; `status` is one line for people."""
        if self.ends:
            # A timer of the interpreter's own: it strikes, too, where no Python code comes to its turn.
            faulthandler.dump_traceback_later(self.patience, exit=True)
        self._notify("WATCHDOG=1" if status == self._told else f"WATCHDOG=1\nSTATUS={status}")
        self._told = status

    def stopping(self) -> None:
        """The program ends, in its own time."""
        if self.ends:
            faulthandler.cancel_dump_traceback_later()
        self._notify("STOPPING=1")

    def end(self, sentence: str) -> None:
        """End a process that nothing else helps; its supervisor starts it again."""
        if self.ends:
            end_process(sentence)

    def _notify(self, text: str) -> None:
        if self.address is None:
            return
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.connect(address)
            sending.send(text.encode())
