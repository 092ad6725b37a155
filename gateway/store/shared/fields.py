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

from msgspec import convert, to_builtins

from gateway.domain import memory
from gateway.domain.chat import Button, ChatAddress, KeptFile, Outbound, OutboundState, Returns, SessionKey
from gateway.domain.session import Compaction, PassWork, Session, Todo
from gateway.domain.usage import CanonicalUsage
from gateway.store.shared.documents import (
    buttons_from,
    buttons_json,
    dumps,
    file_from,
    file_json,
    loads,
    returns_from,
    returns_json,
    storable,
)

T = TypeVar("T")

Fact = str | int | float | None


class _Form(NamedTuple):
    """How a value is stored: `write` makes a fact of a value, `read` a value of a fact (None: both are the same).
    `number` makes a number of a text; `empty` is the fact for an empty tuple."""

    write: Callable[[Any], Fact] | None
    read: Callable[[Any], Any] | None
    number: type[int | float] | None = None
    empty: Fact = None


def _todos_json(todos: tuple[Todo, ...]) -> str:
    return dumps([[todo.text, todo.status] for todo in todos])


def _todos_from(text: str) -> tuple[Todo, ...]:
    return tuple(Todo(text=what, status=status) for what, status in loads(text))


_TEXT: Final = _Form(storable, None)
_FORMS: Final[dict[Any, _Form]] = {
    int: _Form(None, None, int),
    float: _Form(float, None, float),
    bool: _Form(bool, bool),
    OutboundState: _Form(str, OutboundState),
    SessionKey: _Form(attrgetter("text"), SessionKey.parse),
    KeptFile: _Form(file_json, file_from),
    Returns: _Form(returns_json, returns_from),
    PassWork: _Form(lambda work: dumps(to_builtins(work)), lambda text: convert(loads(text), PassWork, strict=False)),
    Mapping[str, Any]: _Form(lambda state: dumps(dict(state)), loads),
    tuple[str, ...]: _Form(lambda texts: dumps(list(texts)), lambda text: tuple(loads(text)), empty="[]"),
    tuple[Todo, ...]: _Form(_todos_json, _todos_from, empty="[]"),
    tuple[tuple[Button, ...], ...]: _Form(buttons_json, buttons_from),
}


def _kind(kind: Any) -> Any:
    """A field's type without None."""
    return next(each for each in get_args(kind) if each is not NoneType) if _may_lack(kind) else kind


def _may_lack(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind)


class Shape(Generic[T]):
    """The facts of a Struct. `parts`: fields with facts of their own, which come after the others."""

    def __init__(self, made_of: type[T], **parts: Shape[Any]) -> None:
        kinds = {name: kind for name, kind in get_type_hints(made_of).items() if name not in parts}
        forms = {name: _FORMS.get(_kind(kind), _TEXT) for name, kind in kinds.items()}
        self._class = made_of
        self._parts = parts
        self._reads = [(name, form.read, form.empty) for name, form in forms.items() if form.read]
        self._needed = [name for name, kind in kinds.items() if not _may_lack(kind)]
        self._own = tuple(kinds)
        self._forms: dict[str, _Form] = forms | {
            f"{of}.{name}": form for of, part in parts.items() for name, form in part._forms.items()
        }
        self.names: tuple[str, ...] = (*kinds, *(name for part in parts.values() for name in part.names))
        self.row: Callable[[T], list[Fact]] = self.some(tuple(self._forms))  # a fact for each of `names`

    def some(self, names: Sequence[str]) -> Callable[[Any], list[Fact]]:
        """A function that gives the facts of these fields of an object that has them."""
        values = attrgetter(*names)
        made = [(place, form.write, form.empty) for place, form in enumerate(map(self._forms.__getitem__, names))]
        texts = [place for place, write, _ in made if write is storable]
        written = [(place, write, empty) for place, write, empty in made if write and write is not storable]

        def facts(value: Any) -> list[Fact]:
            row = list(values(value))
            for place in texts:
                if row[place] is not None and not row[place].isascii():
                    row[place] = storable(row[place])
            for place, write, empty in written:
                if row[place] is not None:
                    row[place] = write(row[place]) if row[place] != () else empty
            return row

        return facts

    def fact(self, name: str, value: Any) -> Fact:
        """One field's fact. Raises TypeError for a value that JSON cannot express, such as some engine's state."""
        form = self._forms[name]
        fact: Fact = value if value is None or form.write is None else form.write(value)
        return fact if value != () else form.empty

    def facts(self, value: T) -> dict[str, Fact]:
        """The facts of `row` by name."""
        return dict(zip(self.names, self.row(value), strict=True))

    def of_row(self, row: Sequence[Any]) -> T:
        """The inverse of `row`. A field that may not be None gets its default instead. Raises TypeError for a field
        without one."""
        given: dict[str, Any] = dict(zip(self._own, row, strict=False))
        for name in self._needed:
            if given[name] is None:
                del given[name]
        for name, read, empty in self._reads:
            if (fact := given.get(name)) is not None:
                given[name] = read(fact) if fact != empty else ()
        first = len(self._own)
        for name, part in self._parts.items():
            given[name] = part.of_row(row[first:])
            first += len(part.names)
        return self._class(**given)

    def of_texts(self, texts: Mapping[str, Any]) -> T:
        """The inverse of `facts`. Numbers may be texts, and unknown names are ignored."""
        found = [(texts.get(name), form.number) for name, form in zip(self.names, self._forms.values(), strict=True)]
        return self.of_row([number(text) if number and text is not None else text for text, number in found])


USAGE: Final = Shape(CanonicalUsage)
SESSION: Final = Shape(Session, usage=USAGE)
OUTBOUND: Final = Shape(Outbound, to=Shape(ChatAddress))
COMPACTION: Final = Shape(Compaction)
FILE: Final = Shape(KeptFile)
FACT: Final = Shape(memory.Fact)
