"""Reads the arguments of a tool call and holds them against the tool's JSON schema.

A schema comes with an installed package, or was made safe before (`gateway.agent.mcp.schemas`). One that is not valid,
or that refers to a place outside of itself, checks nothing: then the tool must defend itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from math import isfinite
from typing import Any, Final

from msgspec import Struct

from gateway.runtime.errors import ToolError

_MOST_TOLD: Final = 3  # problems
_DEEPEST: Final = 64  # lists and objects in one another
_LONGEST_NUMBER: Final = 20  # characters of one that is told


class Arguments(Struct, frozen=True, dict=True):
    """The check of one tool's arguments. The schema is compiled when first needed."""

    tool: str
    schema: Mapping[str, Any]

    def read(self, text: str) -> Mapping[str, Any]:
        """The arguments of a call, as the model wrote them. Raises ToolError with a sentence for the model."""
        return self.held(parsed(text))

    def held(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments, held against the schema. Raises ToolError with a sentence for the model."""
        problems, required = self._problems(arguments), self.schema.get("required", ())
        if problems and None in arguments.values():  # some models fill in everything, also what may be left out
            arguments = {name: value for name, value in arguments.items() if value is not None or name in required}
            problems = self._problems(arguments)
        if problems:
            more = " And more." if len(problems) > _MOST_TOLD else ""
            names = ", ".join(self.schema.get("properties", ()))
            known = f" Its arguments are: {names}." if names else ""
            raise ToolError(f"The arguments do not fit. {' '.join(problems[:_MOST_TOLD])}{more}{known}")
        return arguments

    def _problems(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the faults of the arguments, a sentence each."""
        try:
            json.dumps(arguments, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return ["A text in them ends in the middle of a character."]
        faults: list[str] = self._check.faults(arguments, _MOST_TOLD + 1)
        return faults

    @cached_property
    def _check(self) -> Any:
        return import_module("gateway.agent.checks").Check(self.tool, self.schema)


def parsed(text: str) -> Mapping[str, Any]:
    """The arguments of a call, held against no schema. Raises ToolError with a sentence for the model."""
    try:
        arguments = json.loads(text.strip() or "{}", parse_constant=_finite, parse_float=_finite)
    except RecursionError:
        raise ToolError("The arguments are nested too deeply.") from None
    except ValueError as error:
        raise ToolError(f"The arguments are not valid JSON ({error}); send one JSON object.") from None
    if arguments is None:  # some servers send that for a call without any
        return {}
    if not isinstance(arguments, dict):
        raise ToolError("The arguments must be one JSON object.")
    if _depth(arguments) > _DEEPEST:
        raise ToolError(f"The arguments are nested too deeply; {_DEEPEST} levels are the most.")
    return arguments


def _finite(written: str) -> float:
    """A number. One without an end, such as NaN or 1e999, would be within all bounds, and is no JSON. Raises
    ValueError."""
    number = float(written)
    if not isfinite(number):
        raise ValueError(f"{written[:_LONGEST_NUMBER]} is no number")
    return number


def _depth(value: Any) -> int:
    """Return how many lists and objects stand in one another."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [below for each in level for below in (each.values() if isinstance(each, dict) else each)]
    return depth
