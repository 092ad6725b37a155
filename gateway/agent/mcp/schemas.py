"""A server's tool as a model reads it: its description and the schema of its arguments, made safe.

Pure. A server may say anything here, and an API that refuses one schema refuses the whole request, in every chat. So
schemas are built again from keywords that all APIs know, each with a value of its kind, and are bounded. Regular
expressions are left out, because they would be run here. The server itself checks its arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

from gateway.context.prompts import neutralise

_LONGEST: Final = 1_000  # characters of a tool's description
_LONGEST_INSIDE: Final = 500  # of a text within a schema
_LARGEST: Final = 20_000  # characters of a schema as JSON
_DEEPEST: Final = 12  # levels
_MOST_PARTS: Final = 2_000  # schemas within a schema
_MOST_CHOICES: Final = 200
# https://docs.claude.com/en/docs/agents-and-tools/tool-use: other names of arguments are refused
_ARGUMENT: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")

OPEN: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


def described(text: str) -> str:
    """A description, bounded, without our own marks."""
    plain = neutralise(_UNSEEN.sub(" ", text[: 2 * _LONGEST])).strip()
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1].rstrip()}…"


def arguments_schema(given: object) -> Mapping[str, Any]:
    """The schema of a tool's arguments, made from the server's own."""
    if not isinstance(given, Mapping):
        return OPEN
    top = {name: value for name, value in given.items() if name not in ("anyOf", "oneOf", "allOf", "type")}
    # No alternatives on the first level, which some APIs refuse.
    made = {**OPEN, **_Maker(given).schema(top, 0), "type": "object"}
    return made if len(json.dumps(made, ensure_ascii=False)) <= _LARGEST else OPEN


class _Maker:
    """Makes one schema. References within the schema are replaced by their targets."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_PARTS

    def schema(self, given: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """The keywords with a value of their kind."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return {}
        if "$ref" in given:
            return {**self._referred(given["$ref"], depth), **_texts(given)}
        made: dict[str, Any] = {}
        for name, value in given.items():
            kept = self._kept(name, value, depth + 1)
            if kept is not None:
                made[name] = kept
        if "array" in made.get("type", ()):
            made.setdefault("items", {})  # which some APIs want
        if "required" in made:
            made["required"] = [name for name in made["required"] if name in made.get("properties", {})]
        return made

    def _referred(self, reference: Any, depth: int) -> dict[str, Any]:
        found: Any = self._root
        parts = reference.split("/") if isinstance(reference, str) else [""]
        if parts[0] != "#" or len(parts) > _DEEPEST:
            return {}
        for part in parts[1:]:
            found = found.get(part) if isinstance(found, Mapping) else None
        return self.schema(found, depth + 1) if isinstance(found, Mapping) else {}

    def _kept(self, name: str, value: Any, depth: int) -> Any:
        if name in _PLAIN:
            return _PLAIN[name](value)
        if name == "properties" and isinstance(value, Mapping):
            return {key: self._inner(each, depth) for key, each in value.items() if _ARGUMENT.fullmatch(key)}
        if name == "additionalProperties" and isinstance(value, bool):
            return value
        if name in ("items", "additionalProperties") and isinstance(value, Mapping):
            return self.schema(value, depth)
        if name in ("anyOf", "oneOf", "allOf") and isinstance(value, list) and len(value) <= _MOST_CHOICES:
            return [self._inner(each, depth) for each in value] or None
        return None

    def _inner(self, given: Any, depth: int) -> dict[str, Any]:
        return self.schema(given, depth) if isinstance(given, Mapping) else {}


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that stand beside a reference."""
    return {name: text for name in ("title", "description") if (text := _text(given.get(name))) is not None}


def _text(value: Any) -> str | None:
    return neutralise(_UNSEEN.sub(" ", value[:_LONGEST_INSIDE])) if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    is_one = isinstance(value, int) or (isinstance(value, float) and isfinite(value))
    return value if is_one and not isinstance(value, bool) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _type(value: Any) -> str | list[str] | None:
    if isinstance(value, str):
        return value if value in _TYPES else None
    if not isinstance(value, list):
        return None
    return [each for each in dict.fromkeys(map(str, value)) if each in _TYPES] or None


def _small(value: Any) -> Any:
    """A value that is no schema, such as a default."""
    try:
        fits = len(json.dumps(value, allow_nan=False)) <= _LONGEST_INSIDE
    except ValueError:  # a number without an end, which JSON cannot express
        return None
    return value if value is not None and fits else None


def _choices(value: Any) -> list[Any] | None:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_CHOICES:
        return None
    plain = all(isinstance(each, str | bool) or each is None or _number(each) is not None for each in value)
    return value if plain else None


def _names(value: Any) -> list[str] | None:
    return list(dict.fromkeys(each for each in value if isinstance(each, str))) if isinstance(value, list) else None


_PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "type": _type, "title": _text, "description": _text, "format": _text, "default": _small, "const": _small,
    "enum": _choices, "required": _names, "minimum": _number, "maximum": _number, "exclusiveMinimum": _number,
    "exclusiveMaximum": _number, "minLength": _count, "maxLength": _count, "minItems": _count, "maxItems": _count,
    "uniqueItems": lambda value: value if isinstance(value, bool) else None,
}  # fmt: skip
