"""Sessions, rows of the outbox, compactions and kept files as plain facts by name: one description for every store.

SQLite keeps such facts in columns, Redis in the fields of a hash or in a document, both under the names that the
dataclasses give them. A fact is a text, a number or None; whatever is more is written as JSON. So a new field of a
dataclass is stored as soon as SQLite has a column for it, and what was stored without it has its default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, Final, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from gateway.domain.chat import Button, ChatAddress, Outbound, OutboundState, SessionKey
from gateway.domain.file import KeptFile
from gateway.domain.session import Compaction, Session, Todo
from gateway.domain.usage import CanonicalUsage
from gateway.store.shared.documents import buttons_from, buttons_json, dumps, file_from, file_json, storable

T = TypeVar("T")

Fact = str | int | float | None


class _Form(NamedTuple):
    write: Callable[[Any], Fact]
    read: Callable[[Any], Any]


def _todos_from(text: str) -> tuple[Todo, ...]:
    return tuple(Todo(text=what, status=status) for what, status in json.loads(text))


_TEXT: Final = _Form(storable, str)
_FORMS: Final[dict[Any, _Form]] = {
    int: _Form(int, int),
    float: _Form(float, float),
    bool: _Form(bool, bool),
    OutboundState: _Form(str, OutboundState),
    SessionKey: _Form(str, SessionKey.parse),
    KeptFile: _Form(file_json, file_from),
    Mapping[str, Any]: _Form(lambda state: dumps(dict(state)), json.loads),
    tuple[str, ...]: _Form(lambda texts: dumps(list(texts)), lambda text: tuple(json.loads(text))),
    tuple[Todo, ...]: _Form(lambda todos: dumps([[todo.text, todo.status] for todo in todos]), _todos_from),
    tuple[tuple[Button, ...], ...]: _Form(lambda rows: buttons_json(rows) if rows else None, buttons_from),
}


def _form(kind: Any) -> _Form:
    """How fields of this type are written; None is written as such."""
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not type(None))
    return _FORMS.get(kind, _TEXT)


class Shape(Generic[T]):
    """The facts of a dataclass. `parts` are the fields whose own facts stand behind the others."""

    def __init__(self, made_of: type[T], **parts: Shape[Any]) -> None:
        kinds = get_type_hints(made_of)
        self._class = made_of
        self._parts = parts
        self._forms = {name: _form(kind) for name, kind in kinds.items() if name not in parts}
        self._reads = [(name, None if form is _TEXT else form.read) for name, form in self._forms.items()]
        required = (each.name for each in fields(made_of) if each.default is each.default_factory is MISSING)  # type: ignore[arg-type]
        self._nothing: dict[str, Any] = {name: None for name in required if type(None) in get_args(kinds[name])}
        self.names: tuple[str, ...] = (*self._forms, *(name for part in parts.values() for name in part.names))

    def fact(self, name: str, value: Any) -> Fact:
        """One field's fact. Raises TypeError for what JSON cannot say, such as a strange engine's state."""
        return None if value is None else self._forms[name].write(value)

    def facts(self, value: T) -> dict[str, Fact]:
        """All of them, in the order of `names`."""
        found: dict[str, Fact] = {}
        for name, (write, _) in self._forms.items():
            field = getattr(value, name)
            found[name] = None if field is None else write(field)
        for name, part in self._parts.items():
            found |= part.facts(getattr(value, name))
        return found

    def of_row(self, row: Sequence[Any]) -> T:
        """The inverse of `facts`: a value for each of `names`, all texts or not. Raises TypeError if one is missing
        that nothing can stand for."""
        given = self._nothing.copy()
        for (name, read), fact in zip(self._reads, row, strict=False):
            if fact is not None:
                given[name] = fact if read is None else read(fact)
        first = len(self._reads)
        for name, part in self._parts.items():
            given[name] = part.of_row(row[first:])
            first += len(part.names)
        return self._class(**given)

    def of_facts(self, facts: Mapping[str, Any]) -> T:
        """The same by name; others among them are passed over."""
        return self.of_row([facts.get(name) for name in self.names])


USAGE: Final = Shape(CanonicalUsage)
SESSION: Final = Shape(Session, usage=USAGE)
OUTBOUND: Final = Shape(Outbound, to=Shape(ChatAddress))
COMPACTION: Final = Shape(Compaction)
FILE: Final = Shape(KeptFile)
