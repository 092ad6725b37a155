"""Reads the arguments of a tool call and holds them against the tool's JSON schema.

Schemas come from strangers, too. So nothing that a schema names is fetched, a pattern runs in linear time or not at
all, and a schema whose check could take for ever checks nothing: then the tool must defend itself, as it had to.

The checks are jsonschema-rs's (https://github.com/Stranger6667/jsonschema): a schema's own draft, else 2020-12.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import structlog

from gateway.runtime.errors import ToolError

log = structlog.get_logger(__name__)

_MOST_TOLD: Final = 3  # problems
_LONGEST: Final = 300  # characters of one
_DEEPEST: Final = 64  # lists and objects in one another
_MOST_SCHEMA: Final = 200_000  # characters
_MOST_STEPS: Final = 20_000  # through the parts of a schema, at any place of the arguments
_PATTERNS: Final = jsonschema_rs.RegexOptions(size_limit=1_000_000, dfa_size_limit=1_000_000)  # bytes
_AT_ONE_PLACE: Final = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))
_NO_SCHEMAS: Final = frozenset(("$defs", "definitions", "enum", "const", "default", "examples"))
_NAMED: Final = frozenset(("properties", "patternProperties", "dependentSchemas"))
_STRANGE: Final = frozenset(("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor"))


class Arguments:
    """The check of one tool's arguments. It is prepared when first needed."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self._tool = tool
        self._schema = schema
        self._properties: Mapping[str, Any] = _mapping(schema.get("properties"))
        self._required = schema.get("required") or ()
        self._check: _Check | None = None

    def read(self, text: str) -> Mapping[str, Any]:
        """The arguments of a call, as the model wrote them. Raises ToolError with a sentence for the model."""
        arguments = parsed(text)
        check = self._check = self._check or _Check(self._tool, self._schema)
        problems = check.problems(arguments)
        if problems and (filled := self._without_nothing(arguments)) != arguments:
            arguments, problems = filled, check.problems(filled)
        if problems:
            more = " And more." if len(problems) > _MOST_TOLD else ""
            known = f" Its arguments are: {', '.join(self._properties)}." if self._properties else ""
            raise ToolError(f"The arguments do not fit. {' '.join(problems[:_MOST_TOLD])}{more}{known}")
        return arguments

    def _without_nothing(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments without those that are null and may be left out: some models fill in everything."""
        return {name: value for name, value in arguments.items() if value is not None or name in self._required}


class _Check:
    """A compiled schema, as far as it may be trusted."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._refers = False
        self._validator: Any = None
        try:
            text = json.dumps(schema)
            if len(text) > _MOST_SCHEMA or any(f'"{word}"' in text for word in _STRANGE):
                raise ValueError("it is too large or strange")
            self._refers = '"$ref"' in text
            self._validator = _compiled(schema)
        except (ValueError, TypeError, RecursionError, jsonschema_rs.ReferencingError) as error:
            log.warning("schema_not_checked", tool=tool, reason=str(error)[:_LONGEST])
        self._steps: dict[int, int] = {}

    def problems(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the faults of the arguments, a sentence each; [] also where nothing can be checked."""
        if self._validator is None or (self._refers and self._takes_too_long(arguments)):
            return []
        try:
            return [self._sentence(error) for error in islice(self._validator.iter_errors(arguments), _MOST_TOLD + 1)]
        except UnicodeEncodeError:
            return ["A text in them ends in the middle of a character."]

    def _takes_too_long(self, arguments: Mapping[str, Any]) -> bool:
        depth = _depth(arguments)
        if depth not in self._steps:
            try:
                self._steps[depth] = _steps(self._schema, self._schema, depth, {})
            except RecursionError:
                self._steps[depth] = _MOST_STEPS
        return self._steps[depth] >= _MOST_STEPS

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
        arguments = json.loads(text or "{}")
    except RecursionError:
        raise ToolError("The arguments are nested too deeply.") from None
    except ValueError as error:
        raise ToolError(f"The arguments are not valid JSON ({error}); send one JSON object.") from None
    if not isinstance(arguments, dict):
        raise ToolError("The arguments must be one JSON object.")
    if _depth(arguments) > _DEEPEST:
        raise ToolError(f"The arguments are nested too deeply; {_DEEPEST} levels are the most.")
    return arguments


def _refuse(uri: str) -> dict[str, Any]:
    """Nothing is fetched."""
    raise ValueError(f"it refers to {uri}")


def _compiled(schema: Mapping[str, Any]) -> Any:
    """Raises ValueError, TypeError, ReferencingError."""
    options: dict[str, Any] = {"retriever": _refuse, "pattern_options": _PATTERNS, "mask": "it"}
    try:
        return jsonschema_rs.validator_for(dict(schema), **options)
    except jsonschema_rs.ValidationError:  # of a pattern that needs more than linear time, as a rule
        return jsonschema_rs.validator_for(_without_patterns(dict(schema)), **options)


def _without_patterns(part: Any) -> Any:
    if isinstance(part, Mapping):
        kept = {name: value for name, value in part.items() if not (name == "pattern" and isinstance(value, str))}
        return {name: _without_patterns(value) for name, value in kept.items()}
    return [_without_patterns(each) for each in part] if isinstance(part, list) else part


def _steps(root: Mapping[str, Any], part: Any, depth: int, seen: dict[tuple[int, int], int]) -> int:
    """Return how often a check may look at parts of a schema on its way down into arguments of this depth. Where each
    place is looked at twice and refers on twice, that is a number beyond every patience. Raises RecursionError."""
    if not isinstance(part, Mapping):
        return 1
    if (at := (id(part), depth)) in seen:
        return seen[at]
    seen[at] = 0  # a reference to itself at one place is looked at once
    steps = 1
    for name, value in part.items():
        if name == "$ref":
            steps += _steps(root, _referred(root, value), depth, seen)
        elif name not in _NO_SCHEMAS and (name in _AT_ONE_PLACE or depth):
            below = depth if name in _AT_ONE_PLACE else depth - 1
            steps += sum(_steps(root, each, below, seen) for each in _schemas_in(name, value))
    seen[at] = min(steps, _MOST_STEPS)
    return seen[at]


def _schemas_in(keyword: str, value: Any) -> Iterable[Any]:
    """A keyword's schema, its schemas, or those that it names."""
    if keyword in _NAMED:
        return _mapping(value).values()
    return value if isinstance(value, list) else [value]


def _referred(root: Mapping[str, Any], pointer: Any) -> Any:
    """The part of a schema that a reference names. Raises RecursionError where that is not plain."""
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        raise RecursionError
    part: Any = root
    for name in pointer[1:].split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(part, list) and name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        elif isinstance(part, Mapping) and name in part:
            part = part[name]
        else:
            raise RecursionError
    return part


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


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
