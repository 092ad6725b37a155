"""A version of the program that has an index and a kind more, for stores that were filled without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from msgspec import Struct

from gateway.store import kinds
from gateway.store.kinds import NOTE, NoteRecord
from gateway.store.space import Kind, Space


class Colour(Struct, frozen=True, kw_only=True):
    """A record of the kind that is new."""

    name: str
    warmth: int


GROWN: Final = Kind("note", NoteRecord, NOTE.key)
for each in NOTE.indexes:
    GROWN.index(each.name, each.entry)
BY_NAME: Final = GROWN.index("by_name", lambda note: (note.name, len(note.text)))
COLOUR: Final = Kind("colour", Colour, lambda colour: colour.name)
WARMEST: Final = COLOUR.index("warmest", lambda colour: ("", colour.warmth))
_KINDS: Final = (*(GROWN if kind is NOTE else kind for kind in kinds.KINDS), COLOUR)


@contextmanager
def later_version(*modules: Any) -> Iterator[None]:
    """Within this block the modules know more kinds."""
    patches = [patch.object(module, "KINDS", _KINDS) for module in (kinds, *modules)]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def noted(space: Space, kind: Kind[NoteRecord], *texts: str) -> None:
    """Put a note of the same name into a folder for each text."""
    for text in texts:
        space.put(kind, NoteRecord(folder=f"of {text}", name="mood", text=text))


def coloured(space: Space) -> None:
    """Put records of the new kind."""
    for name, warmth in (("red", 9), ("blue", 1)):
        space.put(COLOUR, Colour(name=name, warmth=warmth))


def seen(space: Space) -> tuple[list[str], list[str]]:
    """What the new index and the new kind give."""
    return [note.text for note in space.first(BY_NAME, "mood", 9)], [each.name for each in space.last(WARMEST, "", 9)]
