"""`legato config`: every setting with its default and its meaning, as they stand in the settings models."""

from __future__ import annotations

import inspect
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from gateway.app.config.models import Config
from gateway.app.config.shape import Shape, alternatives, is_section
from gateway.app.config.source import KeyPath, Tree, dotted
from gateway.app.plugins import platforms, providers
from gateway.domain.settings import variable_of
from gateway.providers.plugin import ModelSettings

_WIDTH: Final = 120
_ANY_NAME: Final = "NAME"  # of a section whose name people choose
_COMMENTS_AT: Final = 28  # the column of a comment behind a short line


def as_yaml() -> str:
    """A config.yaml with every key at its default."""
    shape = Shape(Tree(name=""), platforms(), providers())
    lines = _comments(Config, "")
    for name in Config.model_fields:
        lines += ["", *_yaml(shape, (name,))]
    return "\n".join(lines) + "\n"


def as_markdown() -> str:
    """The reference: a table for each section."""
    shape = Shape(Tree(name=""), platforms(), providers())
    tables = []
    for path in shape.paths():
        section = shape.section(path)
        if len(path) == 1 and section is None:
            key, field = str(path[0]), Config.model_fields[str(path[0])]
            inner = _named_section(field)
            tables.append(_table(key, inner, inner.model_fields) if inner else _table(key, None, {key: field}))
        if section and path[:2] != ("auxiliary", "compression"):  # whose keys are those of `model`
            tables.append(_table(dotted(path), section, section.model_fields))
        if named := shape.section((*path, _ANY_NAME)) if section is None else None:
            tables.append(_table(f"{dotted(path)}.{_ANY_NAME}", named, named.model_fields))
    for name, plugin in providers().items():
        if plugin.is_vendor:
            continue  # with the keys of its wire format
        fields = plugin.settings.model_fields
        if own := {key: fields[key] for key in fields if key not in ModelSettings.model_fields}:
            tables.append(_table(f"model` with `provider: {name}", plugin.settings, own))
    return "\n".join(tables)


# -- YAML ------------------------------------------------------------------------------------


def _yaml(shape: Shape, path: KeyPath) -> Iterator[str]:
    """The lines of a key, or of a section with its keys."""
    indent, name, section, field = "  " * (len(path) - 1), path[-1], shape.section(path), shape.field(path)
    if section is not None and not shape.may_be_null(path):
        yield from _comments(section, indent)
        yield f"{indent}{name}:"
        for inner in section.model_fields:
            yield from _yaml(shape, (*path, inner))
    elif field is not None and (each := _named_section(field)) is not None:
        yield from _comments(each, indent)
        yield f"{indent}{name}: {{}}"
    elif field is not None:
        line, meaning = f"{indent}{name}: {_default(field)}", _choices(field) + (field.description or "")
        beside = f"{line:<{_COMMENTS_AT - 2}}  # {meaning}"
        if len(beside) > _WIDTH:
            yield from _wrapped(meaning, indent)
        yield beside if meaning and len(beside) <= _WIDTH else line


def _named_section(field: FieldInfo) -> type[BaseModel] | None:
    """The section of which a key holds several, by names that people choose."""
    held = [typing.get_args(kind)[1] for kind in alternatives(field.annotation) if typing.get_origin(kind) is dict]
    return next((kind for kind in held if is_section(kind)), None)


def _comments(section: type[BaseModel], indent: str) -> list[str]:
    """Return a section's description as comments; indented paragraphs are examples, and stay as they are."""
    lines: list[str] = []
    for number, paragraph in enumerate(_paragraphs(section)):
        lines += [f"{indent}#"] if number else []
        is_example = paragraph.startswith("  ")
        lines += [f"{indent}# {line}" for line in paragraph.splitlines()] if is_example else _wrapped(paragraph, indent)
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    return [f"{indent}# {line}" for line in textwrap.wrap(" ".join(text.split()), _WIDTH - 2 - len(indent))]


def _paragraphs(section: type[BaseModel]) -> list[str]:
    text = inspect.getdoc(section) or ""
    examples = [f"    {each}" for plugin in providers().values() for each in plugin.examples]
    return [*text.split("\n\n"), *(["\n".join(examples)] if section is ModelSettings else [])] if text else []


def _choices(field: FieldInfo) -> str:
    literal = next((each for each in alternatives(field.annotation) if typing.get_origin(each) is Literal), None)
    *others, last = [str(each).lower() for each in typing.get_args(literal)] or [""]
    return f"{', '.join(others)} or {last}: " if others else ""


def _default(field: FieldInfo) -> str:
    """As YAML has it. A secret is named by the variable in which people keep it."""
    if variable := variable_of(field):
        return f'"${{{variable}}}"'
    value = field.get_default(call_default_factory=True)
    if isinstance(value, str) and value[:1].isdigit() and ":" in value:
        return f'"{value}"'  # YAML takes some times of day for numbers
    value = list(value) if isinstance(value, tuple) else value
    return str(yaml.safe_dump(value, default_flow_style=True, width=1_000)).removesuffix("...\n").strip()


# -- Markdown --------------------------------------------------------------------------------

_WORDS: Final = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    SecretStr: "secret",
    types.NoneType: "null",
}
_BOUNDS: Final = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}


def _table(title: str, section: type[BaseModel] | None, fields: Mapping[str, FieldInfo]) -> str:
    """A heading, what the section is for, and a row for each key that is no section; None: the key is in no section."""
    rows = [
        f"| `{key}` | {_words(_whole(field))} | {'none' if field.is_required() else f'`{_default(field)}`'} | "
        f"{field.description or ''} |"
        for key, field in fields.items()
        if not is_section(field.annotation)
    ]
    table = ["| Key | Value | Default | Meaning |", "|---|---|---|---|", *rows, ""] if rows else []
    said = ["\n\n".join(_paragraphs(section)), ""] if section else []
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
