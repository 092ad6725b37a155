"""Finds what is wrong with a tool's arguments by its JSON schema: its own draft, else 2020-12.

The library is loaded with this module, when a tool is first called: it takes as long as a tenth of a start. It is
jsonschema (https://python-jsonschema.readthedocs.io), which mcp needs anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import regex
import structlog
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

log = structlog.get_logger(__name__)

_LONGEST: Final = 300  # characters of a sentence
_SECONDS: Final = 0.1  # for one pattern: everybody waits meanwhile
_MOST_STEPS: Final = 30_000  # of one check, for the same reason: a fifth of a second
_COMPARED: Final = 16  # values that are compared in the time of one step

_Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


class Check:
    """One tool's schema. One that is not valid checks nothing."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self._tool = tool
        self._left = 0
        self._validator = None
        try:
            kind = validator_for(schema, default=Draft202012Validator)
            kind.check_schema(schema, format_checker=None)  # which would refuse patterns that only others can read
            keywords = {name: self._counted(each) for name, each in {**kind.VALIDATORS, **_OWN}.items()}
            # A schema that names its draft is checked by the library's own keywords where it refers to itself.
            plain = {name: value for name, value in schema.items() if name != "$schema"}
            self._validator = extend(kind, keywords)(plain, registry=Registry())  # which fetches nothing
        except (SchemaError, TypeError, ValueError) as error:
            self._give_up(str(error))

    def faults(self, arguments: Mapping[str, Any], most: int) -> list[str]:
        """What is wrong with the arguments, `most` faults at most, a sentence each."""
        if self._validator is None:
            return []
        self._left = _MOST_STEPS
        try:
            return [_sentence(error) for error in islice(self._validator.iter_errors(arguments), most)]
        except (OverflowError, RecursionError, TimeoutError):
            return ["They hold too much to be checked in one call; send less."]
        except (Unresolvable, TypeError, ValueError, re.error) as error:
            self._give_up(str(error))
            return []

    def _counted(self, keyword: _Keyword) -> _Keyword:
        def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterable[ValidationError] | None:
            self._left -= 1 + (len(wanted) // _COMPARED if isinstance(wanted, list) else 0)
            if self._left < 0:
                raise TimeoutError
            return keyword(validator, wanted, value, schema)

        return counted

    def _give_up(self, reason: str) -> None:
        log.warning("schema_not_checked", tool=self._tool, reason=reason[:_LONGEST])


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern, of which the library's own search takes as long as it takes, is found. One that cannot be read
    matches everything. Raises TimeoutError."""
    try:
        return regex.search(pattern, text, timeout=_SECONDS) is not None
    except regex.error:
        return True


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    try:
        fits = not isinstance(value, str) or _matches(pattern, value)
    except TimeoutError:
        fits = False
    if not fits:
        yield ValidationError("it does not match")


def _pattern_properties(validator: Any, patterns: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    for pattern, wanted in patterns.items() if isinstance(value, dict) else ():
        for name, each in value.items():
            if _matches(pattern, name):
                yield from validator.descend(each, wanted, path=name, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict) and (patterns := schema.get("patternProperties")):
        value = {name: each for name, each in value.items() if not any(_matches(one, name) for one in patterns)}
        schema = {name: each for name, each in schema.items() if name != "patternProperties"}
    yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, wanted, value, schema)


def _unique_items(_validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """The library's own compares each with each."""
    if wanted and isinstance(value, list) and len(set(map(_hashed, value))) < len(value):
        yield ValidationError("an item is there twice")


def _hashed(value: Any) -> Any:
    """What is equal for equal values of JSON only; 1 is 1.0, but not true."""
    if isinstance(value, dict):
        return frozenset((name, _hashed(each)) for name, each in value.items())
    return tuple(map(_hashed, value)) if isinstance(value, list) else (isinstance(value, bool), value)


_OWN: Final[Mapping[str, _Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}


def _sentence(error: ValidationError) -> str:
    path = list(error.absolute_path)
    if error.validator == "required":
        name = next(each for each in error.validator_value if error.message.startswith(repr(each)))
        return f"`{_place([*path, name])}` is missing."
    if error.validator == "additionalProperties" and "patternProperties" not in error.schema:
        unknown = (name for name in error.instance if name not in error.schema.get("properties", ()))
        return f"There is no argument {', '.join(f'`{_place([*path, name])}`' for name in unknown)}."[:_LONGEST]
    wanted = json.dumps({error.validator: error.validator_value}, ensure_ascii=False)[:_LONGEST]
    return f"`{_place(path)}` must fit {wanted}." if path else f"They must fit {wanted}."


def _place(path: Sequence[str | int]) -> str:
    """A place in the arguments, such as `items[0].text`."""
    written = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return written.removeprefix(".")[:_LONGEST]
