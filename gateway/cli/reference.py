"""`legato config`: every setting with its default and its meaning, as they stand in the settings models."""

from __future__ import annotations

import inspect
import textwrap
import typing
from collections.abc import Iterator
from typing import Final, Literal

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.app.config.models import Config
from gateway.app.config.shape import Shape, alternatives, is_section
from gateway.app.config.source import KeyPath, Tree
from gateway.app.plugins import platforms, providers
from gateway.domain.settings import variable_of
from gateway.providers.plugin import ModelSettings

_WIDTH: Final = 120
_COMMENTS_AT: Final = 28  # the column of a comment behind a short line


def as_yaml() -> str:
    """A config.yaml with every key at its default."""
    shape = Shape(Tree(name=""), platforms(), providers())
    lines = _comments(Config, "")
    for name in Config.model_fields:
        lines += ["", *_yaml(shape, (name,))]
    return "\n".join(lines) + "\n"


def _yaml(shape: Shape, path: KeyPath) -> Iterator[str]:
    """The lines of a key, or of a section with its keys."""
    indent, name, section, field = "  " * (len(path) - 1), path[-1], shape.section(path), shape.field(path)
    if section is not None and not shape.may_be_null(path):
        yield from _comments(section, indent)
        yield f"{indent}{name}:"
        for inner in section.model_fields:
            yield from _yaml(shape, (*path, inner))
    elif field is not None and (each := named_section(field)) is not None:
        yield from _comments(each, indent)
        yield f"{indent}{name}: {{}}"
    elif field is not None:
        line, meaning = f"{indent}{name}: {default_of(field)}", choices(field) + (field.description or "")
        beside = f"{line:<{_COMMENTS_AT - 2}}  # {meaning}"
        if len(beside) > _WIDTH:
            yield from _wrapped(meaning, indent)
        yield beside if meaning and len(beside) <= _WIDTH else line


def named_section(field: FieldInfo) -> type[BaseModel] | None:
    """The section of which a key holds several, by names that people choose."""
    held = [typing.get_args(kind)[1] for kind in alternatives(field.annotation) if typing.get_origin(kind) is dict]
    return next((kind for kind in held if is_section(kind)), None)


def _comments(section: type[BaseModel], indent: str) -> list[str]:
    """Return a section's description as comments; indented paragraphs are examples, and stay as they are."""
    lines: list[str] = []
    for number, paragraph in enumerate(paragraphs(section)):
        lines += [f"{indent}#"] if number else []
        is_example = paragraph.startswith("  ")
        lines += [f"{indent}# {line}" for line in paragraph.splitlines()] if is_example else _wrapped(paragraph, indent)
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    return [f"{indent}# {line}" for line in textwrap.wrap(" ".join(text.split()), _WIDTH - 2 - len(indent))]


def paragraphs(section: type[BaseModel]) -> list[str]:
    """What a section says of itself."""
    text = inspect.getdoc(section) or ""
    examples = [f"    {each}" for plugin in providers().values() for each in plugin.examples]
    return [*text.split("\n\n"), *(["\n".join(examples)] if section is ModelSettings else [])] if text else []


def choices(field: FieldInfo) -> str:
    """The values that a key may have, to stand before its meaning; "" if they are many, or if it explains each."""
    literal = next((each for each in alternatives(field.annotation) if typing.get_origin(each) is Literal), None)
    *others, last = [str(each).lower() for each in typing.get_args(literal)] or [""]
    explained = all(f"{each}:" in (field.description or "") for each in (*others, last))
    return f"{', '.join(others)} or {last}: " if others and not explained else ""


def default_of(field: FieldInfo) -> str:
    """As YAML has it. A secret is named by the variable in which people keep it."""
    if variable := variable_of(field):
        return f'"${{{variable}}}"'
    value = field.get_default(call_default_factory=True)
    if isinstance(value, str) and value[:1].isdigit() and ":" in value:
        return f'"{value}"'  # YAML takes some times of day for numbers
    value = list(value) if isinstance(value, tuple) else value
    return str(yaml.safe_dump(value, default_flow_style=True, width=1_000)).removesuffix("...\n").strip()
