"""The program's standard streams. `--version` needs nothing else, so nothing is imported here that takes time."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing `typing` would take half as long as all of `--version`
if TYPE_CHECKING:
    from typing import NoReturn

_SIGPIPE = 13  # `signal` has it, and takes a fifth of the time of `--version`


def open_closed_streams() -> None:
    """A parent may start the program without standard streams: then there is no input, and nobody sees the output."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - open as long as the program runs
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def write(text: str, *, aside: bool = False) -> None:
    """Print a text that is safe for any terminal; `aside`: to stderr. Raises SystemExit if its reader has left, or its
    disk is full."""
    stream = sys.stderr if aside else sys.stdout
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        end_unwritten(error, aside=aside)


def end_unwritten(error: OSError, *, aside: bool = False) -> NoReturn:
    """End the program: its output takes no more, or that `aside`."""
    stream = sys.stderr if aside else sys.stdout
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # else the interpreter complains at exit
    if isinstance(error, BrokenPipeError):  # the reader (head, less) has seen enough
        sys.exit(128 + _SIGPIPE)
    if not aside:
        write(f"legato: the output cannot be written ({error.strerror})", aside=True)
    sys.exit(1)
