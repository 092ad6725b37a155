"""Finds what is wrong with a tool's arguments by its JSON schema: its own draft, else 2020-12.

The library is loaded with this module, when a tool is first called: it takes as long as a tenth of a start. It is
jsonschema (https://python-jsonschema.readthedocs.io), which mcp needs anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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


class Check:
    """One tool's schema. One that is not valid checks nothing."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self._tool = tool
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            self._validator = None
            self._give_up(error.message)
        else:
            self._validator = extend(kind, {"pattern": _pattern})(schema, registry=Registry())  # which fetches nothing

    def faults(self, arguments: Mapping[str, Any], most: int) -> list[str]:
        """What is wrong with the arguments, `most` faults at most, a sentence each."""
        if self._validator is None:
            return []
        try:
            return [_sentence(error) for error in islice(self._validator.iter_errors(arguments), most)]
        except (Unresolvable, RecursionError) as error:
            self._give_up(str(error))
            return []

    def _give_up(self, reason: str) -> None:
        log.warning("schema_not_checked", tool=self._tool, reason=reason[:_LONGEST])


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """The library's own searches as long as it takes."""
    try:
        fits = not isinstance(value, str) or regex.search(pattern, value, timeout=_SECONDS)
    except TimeoutError:
        fits = False
    if not fits:
        yield ValidationError("it does not match")


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
