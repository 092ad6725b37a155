"""Sessions, rows of the outbox, compactions, kept files and facts, from the plain values by name that stores of earlier
layouts kept of them: columns, or the texts of a hash. A value that is neither a number nor a text was written as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Final, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import convert

from gateway.domain import memory
from gateway.domain.chat import Button, ChatAddress, KeptFile, Outbound, OutboundState, Returns, SessionKey
from gateway.domain.session import Compaction, PassWork, Session, Todo
from gateway.domain.usage import CanonicalUsage
from gateway.store.shared.documents import buttons_from, file_from, loads, returns_from

T = TypeVar("T")


class _Form(NamedTuple):
    """The form of a value: `number` makes a number of a text, and `read` the value of what was kept; None: it was kept
    as it is. `empty` stood for an empty tuple."""

    read: Callable[[Any], Any] | None = None
    number: type[int | float] | None = None
    empty: str | None = None


_TEXT: Final = _Form()
_FORMS: Final[dict[Any, _Form]] = {
    int: _Form(number=int),
    float: _Form(number=float),
    bool: _Form(lambda flag: bool(int(flag))),
    OutboundState: _Form(OutboundState),
    SessionKey: _Form(SessionKey.parse),
    KeptFile: _Form(file_from),
    Returns: _Form(returns_from),
    PassWork: _Form(lambda text: convert(loads(text), PassWork, strict=False)),
    Mapping[str, Any]: _Form(loads),
    tuple[str, ...]: _Form(lambda text: tuple(loads(text)), empty="[]"),
    tuple[Todo, ...]: _Form(
        lambda text: tuple(Todo(text=what, status=status) for what, status in loads(text)), empty="[]"
    ),
    tuple[tuple[Button, ...], ...]: _Form(buttons_from),
}


def _kind(kind: Any) -> Any:
    """A field's type without None."""
    return next(each for each in get_args(kind) if each is not NoneType) if _may_lack(kind) else kind


def _may_lack(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind)


class Shape(Generic[T]):
    """The values of a Struct by name. `parts`: fields with values of their own, which stand behind the others."""

    def __init__(self, made_of: type[T], **parts: Shape[Any]) -> None:
        kinds = {name: kind for name, kind in get_type_hints(made_of).items() if name not in parts}
        self._class = made_of
        self._parts = parts
        self._forms = {name: _FORMS.get(_kind(kind), _TEXT) for name, kind in kinds.items()}
        self._needed = [name for name, kind in kinds.items() if not _may_lack(kind)]
        self.names: tuple[str, ...] = (*kinds, *(name for part in parts.values() for name in part.names))

    def of_texts(self, texts: Mapping[str, Any]) -> T:
        """The Struct of these values; numbers may be texts, and values of other names are passed over. A field that
        must not be None has its default instead. Raises TypeError for a field without a default."""
        given: dict[str, Any] = {name: part.of_texts(texts) for name, part in self._parts.items()}
        for name, form in self._forms.items():
            value = texts.get(name)
            if value is None:
                if name not in self._needed:
                    given[name] = None
            elif form.number is not None:
                given[name] = form.number(value)
            elif form.read is not None:
                given[name] = () if value == form.empty else form.read(value)
            else:
                given[name] = value
        return self._class(**given)


USAGE: Final = Shape(CanonicalUsage)
SESSION: Final = Shape(Session, usage=USAGE)
OUTBOUND: Final = Shape(Outbound, to=Shape(ChatAddress))
COMPACTION: Final = Shape(Compaction)
FILE: Final = Shape(KeptFile)
FACT: Final = Shape(memory.Fact)
