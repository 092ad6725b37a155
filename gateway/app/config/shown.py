"""Settings as an operator may see them: those that differ from the defaults, and no credential."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from gateway.app.config.source import KeyPath, dotted
from gateway.domain.settings import Section
from gateway.runtime.redaction import Redact

SECRET: Final = "(set, and secret)"
_WORDS: Final = {True: "on", False: "off", None: "none"}
_OF_SERVERS: Final = ("headers", "env", "extra_body")  # may hold a credential under any name


def shown(config: Section, redact: Redact) -> list[tuple[str, str]]:
    """Each key whose value differs from its default, with the value."""
    return [(dotted(path), _value(path, value, redact)) for path, value in _set((), config, type(config)())]


def _set(path: KeyPath, value: Any, default: Any) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, Section):
        plain = default if type(default) is type(value) else None
        for name, each in public(value).items():
            field = type(value).model_fields[name]
            inner = getattr(plain, name) if plain is not None else field.get_default(call_default_factory=True)
            yield from _set((*path, name), each, inner)
    elif isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _set((*path, str(name)), each, default.get(name) if isinstance(default, dict) else None)
    elif value != default:
        yield path, value


def public(section: BaseModel) -> dict[str, Any]:
    """The values of a section by their keys, each as it may be shown."""
    values = {name: getattr(section, name) for name in type(section).model_fields}
    return {**values, **section.shown_instead} if isinstance(section, Section) else values


def is_for_a_server(path: KeyPath) -> bool:
    """Whether a value is passed on to a server or a program: it may be a credential, whatever its name."""
    return not set(_OF_SERVERS).isdisjoint(map(str, path[:-1]))


def _value(path: KeyPath, value: Any, redact: Redact) -> str:
    items = value if isinstance(value, list | tuple) else (value,)
    if is_for_a_server(path) or any(isinstance(each, SecretStr) for each in items):
        return SECRET
    return redact(", ".join(_WORDS[each] if each is None or isinstance(each, bool) else str(each) for each in items))
