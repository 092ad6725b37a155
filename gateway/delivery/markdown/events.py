"""The events that pyromark reads Markdown as, all of one shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pyromark
from pyromark import Options

_PANIC: Final = "pyo3_runtime"  # the module of what Rust code raises when it gives up; it is no Exception
# The parser nests a quote for each `>` that a line begins with, also between the markers of lists: a line of thousands
# would take seconds. From the 21st on they are text.
_DEEP: Final = re.compile(r"^((?:[ \t\d.)*+-]{0,12}+>){20}[ \t\d.)*+-]{0,12}+)>", re.MULTILINE)
_STAND_INS: Final = "\x1a\x1b\x1c\x1d\x1e\x1f\x7f"  # for such a `>`, while the parser reads: as long as it
_EDGES: Final = {"Start": "start", "End": "end"}


class Event(NamedTuple):
    """One thing that the parser reads.

    `edge`: "start" or "end" of something that contains more, otherwise "". `name` and `data` are the parser's
    (https://docs.rs/pulldown-cmark: Event and Tag), with `Spoiler`, `Underline`, `Subscript` and `Superscript` as
    additional tags; `start` and `end` are byte offsets.
    """

    edge: str
    name: str
    data: Any
    start: int
    end: int


class Unreadable(ValueError):
    """The parser gave up on a text."""


@contextmanager
def contained() -> Iterator[None]:
    """Turns a parser's panic, which would end the process, into Unreadable."""
    try:
        yield
    except BaseException as error:
        if type(error).__module__ == _PANIC:
            raise Unreadable("This Markdown cannot be read: send it as it is.") from error
        raise


def events(source: str, options: Options) -> list[Event]:
    """The events of `source` in order. Raises ValueError for a text that UTF-8 cannot hold, or Unreadable."""
    found = []
    stand_in = next((sign for sign in _STAND_INS if sign not in source), "") if _DEEP.search(source) else ""
    read = _DEEP.sub(rf"\g<1>{stand_in}", source) if stand_in else source
    with contained():
        for event, where in pyromark.events_with_range(read, options=options, merge_text=True):
            name, data = _named(event)
            if stand_in and isinstance(data, str):
                data = data.replace(stand_in, ">")
            edge = _EDGES.get(name, "")
            if edge:
                name, data = _named(data)
            found.append(Event(edge, name, data, where["start"], where["end"]))
    return found


def _named(event: Any) -> tuple[str, Any]:
    """An event or tag as name and data: the parser gives `"Rule"` or `{"Code": "x"}`."""
    if isinstance(event, str):
        return event, None
    ((name, data),) = event.items()
    return name, data
