"""What the program shows: it may be a stranger's words, which must not steer the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import asdict

from gateway.cli.streams import write
from gateway.domain.wording import printable, printable_json

T = TypeVar("T")


def show_rows(rows: T, as_json: bool, text: Callable[[T], str]) -> None:
    """Print rows, or a Struct, as JSON, or as a text for people."""
    if not as_json:
        show(text(rows))
        return
    takes_all = (sys.stdout.encoding or "utf-8").lower() == "utf-8"  # another terminal gets JSON's own escapes
    _print(printable_json(json.dumps(rows, ensure_ascii=not takes_all, indent=2, default=asdict)))


def show(text: str) -> None:
    """Print, as far as the reader's terminal can show it."""
    _print(printable(text))


def complain(text: str) -> None:
    """Print to stderr."""
    write(printable(text), aside=True)


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    write(text.encode(encoding, "replace").decode(encoding))
