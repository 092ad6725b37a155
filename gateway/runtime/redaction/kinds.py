"""Credentials that have a form of their own, from a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gateway.runtime.patterns import table
from gateway.runtime.redaction.places import Kind
from gateway.runtime.redaction.plausible import (
    ends_mixed,
    ends_random,
    holds_chosen,
    holds_cookies,
    holds_mixed,
    is_mixed_twice,
    is_strewn,
    names_nothing,
)

Looks = Callable[[re.Match[str]], bool]
_PLAUSIBLE: Final[dict[str, Looks]] = {
    each.__name__: each
    for each in (
        *(ends_mixed, ends_random, holds_chosen, holds_cookies, holds_mixed),
        *(is_mixed_twice, is_strewn, names_nothing),
    )
}


def kinds(rows: Mapping[str, Sequence[str]], **own: Looks) -> tuple[Kind, ...]:
    """The kinds of a table: a heading is a name, a line below it the name of a field and its value. What else stands
    there are parts of patterns. Several lines of `begins` are starts with blanks in them. `own`: further tests of what
    is plausible, by their names."""
    return tuple(_kind(name, lines, _PLAUSIBLE | own) for name, lines in rows.items() if _is_kind(lines))


def _is_kind(lines: Sequence[str]) -> bool:
    return any(line.startswith("form ") for line in lines)


def _kind(name: str, lines: Sequence[str], plausible: dict[str, Looks]) -> Kind:
    begins = [line.removeprefix("begins ") for line in lines if line.startswith("begins ")]
    fields = dict(line.partition(" ")[::2] for line in lines)
    form, heads = fields["form"], "heads" in fields
    if heads:
        begins, form = [_PREFIXES], form + _PREFIXED
    return Kind(
        name,
        begins[0] if len(begins) == 1 else tuple(begins),
        form,
        run=int(fields.get("run", 0)),
        needs=fields.get("needs", ""),
        probe=fields.get("probe"),
        plausible=plausible[fields["plausible"]] if "plausible" in fields else bool,
        heads=heads,
    )


_TABLE: Final = table(__file__)
_PREFIX_ROWS: Final = [row.split(" ", 2) for row in _TABLE["prefixes"]]
_PREFIXES: Final = " ".join(names for _, _, names in _PREFIX_ROWS)
_ALTERNATIVES: Final = [
    f"(?:{'|'.join(map(re.escape, names.split()))}){alphabet}{{{least},}}" for alphabet, least, names in _PREFIX_ROWS
]
_PREFIXED: Final = f"({'|'.join(_ALTERNATIVES)})"
KINDS: Final = kinds(_TABLE)
