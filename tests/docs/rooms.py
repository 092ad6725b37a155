"""The rooms of the gateway and the floors that they stand on, drawn from the import contract that is checked."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Final

from tests.docs.lettering import width, wrapped
from tests.docs.svg import Ink, box, picture, text

ROOT: Final = Path(__file__).parents[2]

_WIDTH: Final = 900
_EDGE: Final = 16
_GAP: Final = 8
_LINE: Final = 15
_BESIDE: Final = 170  # pixels for the adapters, beside the rooms
_NAME: Final = Ink(fill="#16324a", bold=True)
_WORDS: Final = Ink(fill="#3d4f5e")
_FLOORS: Final = ("#d9e8f5", "#e8f1e4")
_ADAPTERS: Final = "#f6e8d3"


def drawn() -> str:
    """The floors from top to bottom: a room may import from the floors below it, and from nowhere else."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contract if each["id"] == "rooms")
    parts: list[str] = []
    y = float(_EDGE)
    for number, floor in enumerate(floor for layer in layers if (floor := _floor(layer))):
        drawing, y = _on(floor, y, _FLOORS[number % 2])
        parts += drawing
    parts += _adapters(_EDGE, y - _GAP)
    told = "A room imports from the floors below its own. Rooms of one floor do not know one another."
    parts.append(text(_EDGE, y + 16, told, _WORDS, size=13))
    height = y + _EDGE + 18
    title = "The rooms of the gateway, floor by floor"
    return picture(_WIDTH, height, title, [box(0, 0, _WIDTH, height, "#ffffff", radius=10), *parts])


def _floor(layer: str) -> list[str]:
    """The rooms of a layer that are there."""
    return [name for name in re.split(r"[ |]+", layer) if (ROOT / "gateway" / name / "__init__.py").is_file()]


def _about(room: str) -> str:
    """The first sentence of a room's docstring."""
    code = (ROOT / "gateway" / room / "__init__.py").read_text(encoding="utf-8")
    words = " ".join((ast.get_docstring(ast.parse(code)) or "").split())
    return re.split(r"(?<=\.)\s", words, maxsplit=1)[0].replace("`", "")


def _on(rooms: list[str], y: float, fill: str) -> tuple[list[str], float]:
    """One floor, and where the next begins."""
    whole = _WIDTH - 2 * _EDGE - _BESIDE - _GAP
    each = (whole - _GAP * (len(rooms) - 1)) / len(rooms)
    lines = max(len(wrapped(_about(room), _WORDS, 12, each - 24)) for room in rooms)
    high = 38 + _LINE * lines
    parts: list[str] = []
    for place, room in enumerate(rooms):
        parts += _box(_EDGE + place * (each + _GAP), y, each, high, f"{room}/", _about(room), fill)
    return parts, y + high + _GAP


def _adapters(top: float, bottom: float) -> list[str]:
    """Beside all floors; they use the lowest only."""
    folders = sorted(path.parent.name for path in (ROOT / "adapters").glob("*/__init__.py"))
    about = f"One folder for each platform: {', '.join(folders)}. An adapter imports domain/ and runtime/ only. "
    about += "The gateway finds an adapter by its entry point and imports none."
    return _box(_WIDTH - _EDGE - _BESIDE, top, _BESIDE, bottom - top, "adapters/", about, _ADAPTERS)


def _box(x: float, y: float, wide: float, high: float, name: str, about: str, fill: str) -> list[str]:
    parts = [box(x, y, wide, high, fill, radius=8), text(x + 12, y + 23, name, _NAME, size=15)]
    for number, line in enumerate(wrapped(about, _WORDS, 12, wide - 24)):
        place = y + 42 + _LINE * number
        parts.append(text(x + 12, place, line, _WORDS, size=12, width=width(line, _WORDS, 12)))
    return parts
