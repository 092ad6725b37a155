"""Reads the arguments of a tool call and holds them against the tool's JSON schema.

A schema comes with an installed package, or was made safe before (`gateway.agent.mcp.schemas`). One that the library
cannot compile, or that refers to a place outside of itself, checks nothing: then the tool must defend itself.

The checks are jsonschema-rs's (https://github.com/Stranger6667/jsonschema): a schema's own draft, else 2020-12.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import structlog

from gateway.runtime.errors import ToolError

log = structlog.get_logger(__name__)

_MOST_TOLD: Final = 3  # problems
_LONGEST: Final = 300  # characters of one
_DEEPEST: Final = 64  # lists and objects in one another


class Arguments:
    """The check of one tool's arguments. The schema is compiled when first needed."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self._tool = tool
        self._schema = schema

    def read(self, text: str) -> Mapping[str, Any]:
        """The arguments of a call, as the model wrote them. Raises ToolError with a sentence for the model."""
        return self.held(parsed(text))

    def held(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments, held against the schema. Raises ToolError with a sentence for the model."""
        problems = self._problems(arguments)
        if problems and (filled := self._without_nothing(arguments)) != arguments:
            arguments, problems = filled, self._problems(filled)
        if problems:
            more = " And more." if len(problems) > _MOST_TOLD else ""
            names = ", ".join(self._schema.get("properties", ()))
            known = f" Its arguments are: {names}." if names else ""
            raise ToolError(f"The arguments do not fit. {' '.join(problems[:_MOST_TOLD])}{more}{known}")
        return arguments

    def _without_nothing(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments without those that are null and may be left out: some models fill in everything."""
        required = self._schema.get("required", ())
        return {name: value for name, value in arguments.items() if value is not None or name in required}

    def _problems(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the faults of the arguments, a sentence each."""
        if self._validator is None:
            return []
        try:
            return [self._sentence(error) for error in islice(self._validator.iter_errors(arguments), _MOST_TOLD + 1)]
        except UnicodeEncodeError:
            return ["A text in them ends in the middle of a character."]

    @cached_property
    def _validator(self) -> Any:
        """The library's; None for a schema that it cannot compile."""
        try:
            return jsonschema_rs.validator_for(dict(self._schema), retriever=_refuse, mask="it")
        except ValueError as error:
            log.warning("schema_not_checked", tool=self._tool, reason=str(error)[:_LONGEST])
            return None

    def _sentence(self, error: jsonschema_rs.ValidationError) -> str:
        where = _place(error.instance_path)
        kind = error.kind
        if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
            return f"`{_place([*error.instance_path, kind.property])}` is missing."
        if isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
            unknown = (_place([*error.instance_path, name]) for name in kind.unexpected)
            return f"There is no argument {', '.join(f'`{name}`' for name in unknown)}."[:_LONGEST]
        said = error.message[:_LONGEST]
        if isinstance(kind, jsonschema_rs.ValidationErrorKind.Enum):
            said = f"it must be one of {json.dumps(kind.options, ensure_ascii=False)}"[:_LONGEST]
        if isinstance(kind, jsonschema_rs.ValidationErrorKind.AnyOf | jsonschema_rs.ValidationErrorKind.OneOfNotValid):
            said = f"it must fit {_part(self._schema, error.schema_path)}"
        return f"`{where}`: {said}." if where else f"{said[0].upper()}{said[1:]}."


def parsed(text: str) -> Mapping[str, Any]:
    """The arguments of a call, held against no schema. Raises ToolError with a sentence for the model."""
    try:
        arguments = json.loads(text.strip() or "{}")
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


def _refuse(uri: str) -> dict[str, Any]:
    """Nothing is fetched."""
    raise ValueError(f"it refers to {uri}")


def _depth(value: Any) -> int:
    """Return how many lists and objects stand in one another."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [below for each in level for below in (each.values() if isinstance(each, dict) else each)]
    return depth


def _place(path: Sequence[str | int]) -> str:
    """A place in the arguments, such as `items[0].text`."""
    written = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return written.removeprefix(".")[:_LONGEST]


def _part(schema: Any, path: Sequence[str | int]) -> str:
    """The part of a schema at this path, as the model may read it."""
    for name in path:
        try:
            schema = schema[name]
        except (KeyError, IndexError, TypeError):
            return "the tool's schema"
    return json.dumps(schema, ensure_ascii=False)[:_LONGEST]
