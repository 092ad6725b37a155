"""The reference of all settings: a table for each section."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from gateway.app.config.models import Config
from gateway.app.config.shape import Shape, is_section
from gateway.app.config.source import Tree, dotted
from gateway.app.plugins import platforms, providers
from gateway.cli.reference import default_of, named_section, paragraphs
from gateway.providers.plugin import ModelSettings

_ANY_NAME: Final = "NAME"  # of a section whose name people choose
_WORDS: Final = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    SecretStr: "secret",
    types.NoneType: "null",
}
_BOUNDS: Final = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}


def as_markdown() -> str:
    """The reference: a table for each section."""
    shape = Shape(Tree(name=""), platforms(), providers())
    tables: list[str] = []
    described: dict[type[BaseModel] | None, str] = {}
    same: set[str] = set()
    for path in shape.paths():
        section = shape.section(path)
        if len(path) == 1 and section is None:
            key, field = str(path[0]), Config.model_fields[str(path[0])]
            inner = named_section(field)
            tables.append(_table(key, inner, inner.model_fields) if inner else _table(key, None, {key: field}))
        if section in described:
            if dotted(path[:-1]) not in same:  # where it is, its parts are told, too
                same.add(dotted(path))
                tables.append(f"### `{dotted(path)}`\n\nThe same keys as `{described[section]}`.\n")
        elif section:
            described[section] = dotted(path)
            tables.append(_table(dotted(path), section, section.model_fields))
        named = shape.section((*path, _ANY_NAME)) if section is None else None
        if named and len(path) > 1:  # those of a whole section stand there already
            tables.append(_table(f"{dotted(path)}.{_ANY_NAME}", named, named.model_fields))
    for name, plugin in providers().items():
        if plugin.is_vendor:
            continue  # with the keys of its wire format
        fields = plugin.settings.model_fields
        if own := {key: fields[key] for key in fields if key not in ModelSettings.model_fields}:
            tables.append(_table(f"model` with `provider: {name}", plugin.settings, own))
    return "\n".join(tables)


def _table(title: str, section: type[BaseModel] | None, fields: Mapping[str, FieldInfo]) -> str:
    """A heading, what the section is for, and a row for each key that is no section; None: the key is in no section."""
    rows = [
        f"| `{key}` | {_words(_whole(field))} | {'none' if field.is_required() else f'`{default_of(field)}`'} | "
        f"{field.description or ''} |"
        for key, field in fields.items()
        if not is_section(field.annotation)
    ]
    table = ["| Key | Value | Default | Meaning |", "|---|---|---|---|", *rows, ""] if rows else []
    said = ["\n\n".join(paragraphs(section)), ""] if section else []
    return "\n".join([f"### `{title}`", "", *said, *table])


def _whole(field: FieldInfo) -> Any:
    return typing.Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def _words(kind: Any, limits: Iterable[Any] = ()) -> str:
    """A declared type as people would call it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _words(inner[0], [each for extra in inner[1:] for each in getattr(extra, "metadata", [extra])])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(each, limits) for each in inner))
    if origin is Literal:
        return ", ".join(f"`{str(each).lower() if isinstance(each, bool) else each}`" for each in inner)
    if origin is dict:
        return f"{_words(inner[1])} by name"
    if origin is tuple:
        return f"list of {_words(inner[0])}"
    words = "section" if is_section(kind) else _WORDS.get(kind, "text")
    stated = ((word, getattr(limit, name, None)) for limit in limits for name, word in _BOUNDS.items())
    return " ".join([words, *(f"{word} {bound:g}" for word, bound in stated if bound is not None)])
