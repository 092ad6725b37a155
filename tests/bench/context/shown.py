"""The conversation in a request for a summary, read from the real prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.context.listing import HEADING as LIST_HEADING
from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest

_MATERIAL: Final = re.compile(r"<conversation>\n(.*?)\n</conversation>", re.DOTALL)
_PREVIOUS: Final = re.compile(r"<previous-notes>\n(.*?)\n</previous-notes>", re.DOTALL)
_NEWEST: Final = re.compile(r"<newest-requests>\n(.*?)\n</newest-requests>", re.DOTALL)
_SIZE: Final = re.compile(r"Write at most (\d+) tokens")
_BLOCK: Final = re.compile(r"^\[(user|assistant calls|assistant|system|result of)\b([^\]\n]*)\] ?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One thing of the material: `role` is user, assistant, call or result."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A request for a summary, taken apart. `notes`: the sections of the notes so far, by heading, without
    the list that a program appends. `tokens`: how long the new ones may be."""

    said: Sequence[Said]
    notes: dict[str, list[str]]
    newest: Sequence[str]
    tokens: int
    text: str


def read(request: ModelRequest) -> Shown:
    """The parts of a stand-alone summary request."""
    text = "\n\n".join(map(text_of, request.messages))
    task = text_of(request.messages[-1])
    material, previous, newest = _MATERIAL.search(task), _PREVIOUS.search(task), _NEWEST.search(task)
    size = _SIZE.findall(task)
    if material is None or not size:
        raise ValueError("this is no request for a summary, or one of a form that the bench does not know")
    return Shown(
        said=_said(material[1]),
        notes=sections(previous[1]) if previous else {},
        newest=newest[1].splitlines() if newest else (),
        tokens=int(size[-1]),
        text=text,
    )


def _said(material: str) -> list[Said]:
    places = list(_BLOCK.finditer(material))
    ends = [place.start() for place in places[1:]] + [len(material)]
    made = []
    for place, end in zip(places, ends, strict=True):
        role = {"result of": "result", "assistant calls": "call"}.get(place[1], place[1])
        made.append(Said(role=role, text=material[place.end() : end].strip()))
    return made


def sections(notes: str) -> dict[str, list[str]]:
    """The lines of notes by heading; the identifiers' list is left out."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in notes.splitlines():
        if line.startswith("## "):
            heading = line
        elif line.strip() and heading != LIST_HEADING:
            found.setdefault(heading, []).append(line.removeprefix("- ").strip())
    return found
