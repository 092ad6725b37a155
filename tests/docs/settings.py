"""The reference of all settings: a table for each section."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.app.config.models import Config
from gateway.app.config.shape import Shape, is_section
from gateway.app.config.source import Tree, dotted
from gateway.app.plugins import platforms, providers
from gateway.cli.reference import choices, default_of, named_section, paragraphs
from gateway.providers.plugin import ModelSettings

_ANY_NAME: Final = "NAME"  # of a section whose name people choose


def as_markdown() -> str:
    """The reference: a table for each section."""
    shape = Shape(Tree(name=""), platforms(), providers())
    tables: list[str] = []
    described: dict[type[BaseModel] | None, str] = {}
    for path in shape.paths():
        section = shape.section(path)
        if len(path) == 1 and section is None:
            key, field = str(path[0]), Config.model_fields[str(path[0])]
            inner = named_section(field)
            tables.append(_table(key, inner, inner.model_fields) if inner else _table(key, None, {key: field}))
        if section in described:
            if not shape.may_be_null(path) and not shape.may_be_null(path[:-1]):  # else the row of its key names it
                tables.append(f"### `{dotted(path)}`\n\nThe same keys as `{described[section]}`.\n")
        elif section:
            described[section] = dotted(path)
            tables.append(_table(dotted(path), section, section.model_fields))
        named = shape.section((*path, _ANY_NAME)) if section is None else None
        if named and len(path) > 1:  # those of a whole section stand there already
            tables.append(_table(f"{dotted(path)}.{_ANY_NAME}", named, named.model_fields))
    own = {
        (name, key): field
        for name, plugin in providers().items()
        for key, field in plugin.settings.model_fields.items()
        if not plugin.is_vendor and key not in ModelSettings.model_fields  # a vendor's are those of its wire format
    }
    owners = {key: tuple(name for name, theirs in own if theirs == key) for _, key in own}
    for names in dict.fromkeys(owners.values()):
        fields = {key: own[names[0], key] for key, theirs in owners.items() if theirs == names}
        tables.append(_table("model` with `provider: " + " | ".join(names), None, fields))
    return "\n".join(tables)


def _table(title: str, section: type[BaseModel] | None, fields: Mapping[str, FieldInfo]) -> str:
    """A heading, what the section is for, and a row for each key that is no section; None: the key is in no section."""
    rows = [
        f"| `{key}` | {'required' if field.is_required() else f'`{default_of(field)}`'} | "
        f"{choices(field)}{field.description or ''} |"
        for key, field in fields.items()
        if not is_section(field.annotation)
    ]
    table = ["| Key | Default | Meaning |", "|---|---|---|", *rows, ""] if rows else []
    said = ["\n\n".join(paragraphs(section)), ""] if section else []
    text = "\n".join([f"### `{title}`", "", *said, *table])
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)
