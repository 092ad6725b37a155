"""The one place that prints: what is shown may be a stranger's words, which must not steer the terminal."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import TextIO, TypeVar

from gateway.domain.terminal import printable, printable_json

T = TypeVar("T")


def show_rows(rows: T, as_json: bool, text: Callable[[T], str]) -> None:
    """Print rows as JSON, or as a text for people."""
    if not as_json:
        show(text(rows))
        return
    encoding = sys.stdout.encoding or "utf-8"
    output = json.dumps(rows, ensure_ascii=False, indent=2)
    try:
        output.encode(encoding)
    except UnicodeEncodeError:  # a terminal that is not UTF-8 gets JSON's own escapes
        output = json.dumps(rows, indent=2)
    _print(printable_json(output))


def show(text: str) -> None:
    """Print as far as the reader's terminal can show it."""
    _print(printable(text))


def complain(text: str) -> None:
    """Print to stderr."""
    _write(printable(text), sys.stderr)


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    _write(text.encode(encoding, "replace").decode(encoding), sys.stdout)


def _write(text: str, stream: TextIO) -> None:
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # else the interpreter complains at exit
        sys.exit(128 + signal.SIGPIPE)
