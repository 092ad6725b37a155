"""The text of an event: a template of the operator's, with values out of what the sender said. Pure.

    {{ a.b.0.c }}   a value by its path       {{ . }}   all of it

There is nothing else: no conditions, no code. A value that is missing says so.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

MOST: Final = 8_000  # characters of a text
_MOST_OF_ONE: Final = 2_000  # characters of a value
_PLACE: Final = re.compile(r"\{\{\s*([^{}\s][^{}]{0,200}?)\s*\}\}")
_CUT: Final = "…"
_MISSING: Final = object()


def filled(template: str | None, data: Any) -> str:
    """The text. Without a template it is what the sender says under `text`, else all of it as JSON."""
    if template is None:
        said = data.get("text") if isinstance(data, dict) else None
        text = said if isinstance(said, str) else _written(data, 2)
    else:
        text = _PLACE.sub(lambda place: _value(place[1], data), template)
    return _cut(text, MOST).strip() or "(the event is empty)"


def _value(path: str, data: Any) -> str:
    found = data
    for step in [] if path == "." else path.split("."):
        if isinstance(found, dict):
            found = found.get(step, _MISSING)
        elif isinstance(found, list) and step.isascii() and step.isdigit() and len(step) < 7:
            found = found[int(step)] if int(step) < len(found) else _MISSING
        else:
            found = _MISSING
    if found is _MISSING:
        return f"[no {path}]"
    return _cut(found if isinstance(found, str) else _written(found), MOST if path == "." else _MOST_OF_ONE)


def _written(data: Any, indent: int | None = None) -> str:
    return json.dumps(data, ensure_ascii=False, indent=indent)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}{_CUT}"
