"""Sessions, rows of the outbox, compactions and kept files as plain facts by name: one description for every store.

SQLite keeps such facts in columns, Redis in the fields of a hash or in a document, both under the names of the
Struct's fields. A fact is a text, a number or None; any other value is written as JSON. So a new field is stored
as soon as SQLite has a column for it, and an object that was stored without the field has its default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from gateway.domain import memory
from gateway.domain.chat import Button, ChatAddress, Outbound, OutboundState, SessionKey
from gateway.domain.file import KeptFile
from gateway.domain.session import Compaction, Session, Todo
from gateway.domain.usage import CanonicalUsage
from gateway.store.shared.documents import buttons_from, buttons_json, dumps, file_from, file_json, loads, storable

T = TypeVar("T")

Fact = str | int | float | None


class _Form(NamedTuple):
    """The form of a value: `write` makes a fact of a value, and `read` a value of a fact; None: both are the same.
    `number` makes a number of a text."""

    write: Callable[[Any], Fact] | None
    read: Callable[[Any], Any] | None
    number: type[int | float] | None = None


def _todos_json(todos: tuple[Todo, ...]) -> str:
    return dumps([[todo.text, todo.status] for todo in todos]) if todos else _NONE


def _todos_from(text: str) -> tuple[Todo, ...]:
    return tuple(Todo(text=what, status=status) for what, status in loads(text)) if text != _NONE else ()


def _texts_from(text: str) -> tuple[str, ...]:
    return tuple(loads(text)) if text != _NONE else ()


_NONE: Final = "[]"
_TEXT: Final = _Form(storable, None)
_FORMS: Final[dict[Any, _Form]] = {
    int: _Form(None, None, int),
    float: _Form(float, None, float),
    bool: _Form(bool, bool),
    OutboundState: _Form(str, OutboundState),
    SessionKey: _Form(attrgetter("text"), SessionKey.parse),
    KeptFile: _Form(file_json, file_from),
    Mapping[str, Any]: _Form(lambda state: dumps(dict(state)), loads),
    tuple[str, ...]: _Form(lambda texts: dumps(list(texts)) if texts else _NONE, _texts_from),
    tuple[Todo, ...]: _Form(_todos_json, _todos_from),
    tuple[tuple[Button, ...], ...]: _Form(lambda rows: buttons_json(rows) if rows else None, buttons_from),
}


def _kind(kind: Any) -> Any:
    """A field's type without None."""
    return next(each for each in get_args(kind) if each is not NoneType) if _may_lack(kind) else kind


def _may_lack(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind)


class Shape(Generic[T]):
    """The facts of a Struct. `parts`: fields with facts of their own, which stand behind the others."""

    def __init__(self, made_of: type[T], **parts: Shape[Any]) -> None:
        kinds = {name: kind for name, kind in get_type_hints(made_of).items() if name not in parts}
        forms = {name: _FORMS.get(_kind(kind), _TEXT) for name, kind in kinds.items()}
        self._class = made_of
        self._parts = parts
        self._forms = forms
        self._own = self.some(tuple(kinds))
        self._reads = [(name, form.read) for name, form in forms.items() if form.read]
        self._numbers = [(name, form.number) for name, form in forms.items() if form.number]
        self._needed = [name for name, kind in kinds.items() if not _may_lack(kind)]
        self._nothing: dict[str, Any] = {name: None for name in kinds if name not in self._needed}
        self.names: tuple[str, ...] = (*kinds, *(name for part in parts.values() for name in part.names))

    def some(self, names: Sequence[str]) -> Callable[[Any], list[Fact]]:
        """A function that gives the facts of these fields of an object that has them."""
        values = attrgetter(*names)
        made = [(place, write) for place, name in enumerate(names) if (write := self._forms[name].write)]
        texts = [place for place, write in made if write is storable]
        written = [each for each in made if each[1] is not storable]

        def facts(value: Any) -> list[Fact]:
            row = list(values(value))
            for place in texts:
                if row[place] is not None and not row[place].isascii():
                    row[place] = storable(row[place])
            for place, write in written:
                if row[place] is not None:
                    row[place] = write(row[place])
            return row

        return facts

    def fact(self, name: str, value: Any) -> Fact:
        """One field's fact. Raises TypeError for a value that JSON cannot express, such as a strange engine's state."""
        write = self._forms[name].write
        fact: Fact = value if value is None or write is None else write(value)
        return fact

    def row(self, value: T) -> list[Fact]:
        """A fact for each of `names`."""
        row = self._own(value)
        for name, part in self._parts.items():
            row += part.row(getattr(value, name))
        return row

    def facts(self, value: T) -> dict[str, Fact]:
        """The same by name."""
        return dict(zip(self.names, self.row(value), strict=True))

    def of_row(self, row: Sequence[Any]) -> T:
        """The inverse of `row`. A field that must not be None has its default instead. Raises TypeError for a field
        without a default."""
        given: dict[str, Any] = dict(zip(self._forms, row, strict=False))
        for name in self._needed:
            if given[name] is None:
                del given[name]
        first = len(self._forms)
        for name, part in self._parts.items():
            given[name] = part.of_row(row[first:])
            first += len(part.names)
        return self._made(given)

    def of_texts(self, texts: Mapping[str, Any]) -> T:
        """The inverse of `facts`; numbers may be texts, and facts of other names are passed over."""
        given = self._nothing | {name: text for name, text in texts.items() if name in self._forms and text is not None}
        for name, number in self._numbers:
            if given.get(name) is not None:
                given[name] = number(given[name])
        for name, part in self._parts.items():
            given[name] = part.of_texts(texts)
        return self._made(given)

    def _made(self, given: dict[str, Any]) -> T:
        for name, read in self._reads:
            if given.get(name) is not None:
                given[name] = read(given[name])
        return self._class(**given)


USAGE: Final = Shape(CanonicalUsage)
SESSION: Final = Shape(Session, usage=USAGE)
OUTBOUND: Final = Shape(Outbound, to=Shape(ChatAddress))
COMPACTION: Final = Shape(Compaction)
FILE: Final = Shape(KeptFile)
FACT: Final = Shape(memory.Fact)
