"""The arguments of tool calls are held against the tool's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.agent.tools.arguments import Arguments
from gateway.runtime.errors import ToolError

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string", "minLength": 1}, "status": {"enum": ["open", "done"]}},
                "required": ["text"],
                "additionalProperties": False,
            },
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 20},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "nothing": {"type": ["string", "null"]},
    },
    "required": ["items"],
    "additionalProperties": False,
}


def problem(arguments: object, schema: Mapping[str, Any] = SCHEMA) -> str:
    with pytest.raises(ToolError) as refused:
        Arguments("t", schema).read(arguments if isinstance(arguments, str) else json.dumps(arguments))
    return str(refused.value)


def passes(arguments: object, schema: Mapping[str, Any]) -> bool:
    return Arguments("t", schema).read(json.dumps(arguments)) == arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "`items` is missing."),
        ({"items": 5}, '`items` must fit {"type": "array"}.'),
        ({"items": [{"text": 1}]}, '`items[0].text` must fit {"type": "string"}.'),
        ({"items": [{"status": "open"}]}, "`items[0].text` is missing."),
        ({"items": [{"text": "a", "status": "opn"}]}, '`items[0].status` must fit {"enum": ["open", "done"]}.'),
        ({"items": [{"text": "a", "more": 1}]}, "There is no argument `items[0].more`."),
        ({"items": [], "limit": 21}, '`limit` must fit {"maximum": 20}.'),
        ({"items": [], "limit": True}, '`limit` must fit {"type": "integer"}.'),
        ({"items": [], "either": 1.5}, '`either` must fit {"anyOf": [{"type": "string"}, {"type": "integer"}]}.'),
        ({"items": [], "nix": 1}, "There is no argument `nix`. Its arguments are: items, limit, either, nothing."),
    ],
)
def test_an_error_says_what_is_wrong_and_what_would_be_right(arguments: dict[str, Any], said: str) -> None:
    assert problem(arguments).startswith(f"The arguments do not fit. {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("[1]", "must be one JSON object"),
        ('"x"', "must be one JSON object"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"items":' + "[" * 65 + "]" * 65 + "}", "nested too deeply"),
        ('{"items": [], "either": NaN}', "not valid JSON (NaN is no number)"),
        ('{"items": [], "either": -Infinity}', "not valid JSON (-Infinity is no number)"),
        ('{"items": [], "either": 1e999}', "not valid JSON (1e999 is no number)"),
        ('{"items": [], "limit": ' + "9" * 5_000 + "}", "not valid JSON"),
        ('{"items": [], "limit": ' + "9" * 500 + "}", 'must fit {"maximum": 20}'),
    ],
)
def test_what_is_no_object_or_nothing_for_a_model_to_have_written(text: str, said: str) -> None:
    refusal = problem(text)
    assert said in refusal
    assert len(refusal) < 1_500


def test_only_a_few_of_many_problems_are_told() -> None:
    many = problem({f"a{n}": n for n in range(5_000)} | {"items": 1, "limit": 0, "nothing": 1, "either": []})
    assert len(many) < 1_500
    assert "And more." in many


def test_what_may_be_left_out_may_be_null() -> None:
    assert Arguments("t", SCHEMA).read('{"items": [], "limit": null, "nothing": "x"}') == {"items": [], "nothing": "x"}
    assert passes({"items": [], "nothing": None}, SCHEMA), "a schema that knows null gets it"
    assert "`items`" in problem({"items": None})


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_schema_that_asks_for_nothing_takes_everything(schema: dict[str, Any]) -> None:
    assert passes({"a": 1}, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:1/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"type": "objekt"},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"$schema": ["x"], "required": ["b"]},
        {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"b": {"required": True}}},
        {"patternProperties": {"(": {}}, "unevaluatedProperties": False},
    ],
)
def test_a_schema_that_cannot_be_compiled_checks_nothing(schema: dict[str, Any]) -> None:
    assert passes({"a": "b"}, schema)


def test_references_inside_a_schema_are_followed() -> None:
    node: dict[str, Any] = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}, "name": {"type": "string"}},
    }
    schema = {"$defs": {"node": node}, "type": "object", "properties": {"list": {"$ref": "#/$defs/node"}}}
    chain: dict[str, Any] = {"name": "z"}
    for _ in range(60):
        chain = {"next": chain}
    assert passes({"list": chain}, schema)
    assert "`list.name`" in problem({"list": {"name": 5}}, schema)
    assert "`list.next`" in problem({"list": {"next": {"name": 5}}}, schema)


def test_a_pattern_takes_no_longer_for_a_long_text() -> None:
    for pattern in ("^(a+)+$", "^(?=a)(a+)+$"):
        schema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
        assert passes({"a": "a" * 1_000}, schema)
        assert "`a`" in problem({"a": "a" * 100_000 + "!"}, schema)


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", "^(?<word>[a-zß]+)$"])
def test_a_pattern_of_another_language_is_read_and_the_rest_is_checked(pattern: str) -> None:
    schema = {"properties": {"a": {"pattern": pattern}}, "required": ["b"]}
    assert passes({"a": "maß", "b": 1}, schema)
    assert "`a` must fit" in problem({"a": "a-b", "b": 1}, schema)
    assert "`b` is missing" in problem({"a": "maß"}, schema)
    assert "`b` is missing" in problem({"a": "maß"}, schema | {"properties": {"a": {"pattern": "("}}})


def test_names_are_held_against_patterns_that_take_no_longer_for_a_long_name() -> None:
    schema = {"patternProperties": {r"^\p{Lu}": {"type": "string"}, "^(a+)+$": {}}, "additionalProperties": False}
    assert passes({"Ä": "x", "aa": 1}, schema)
    assert "`Ä` must fit" in problem({"Ä": 1}, schema)
    assert "additionalProperties" in problem({"b": 1}, schema)
    assert "too much to be checked" in problem({"a" * 100_000 + "!": 1}, schema)


def test_equal_items_are_found_among_many() -> None:
    schema = {"properties": {"a": {"uniqueItems": True}}}
    assert passes({"a": [{"n": n, "of": [n]} for n in range(20_000)]}, schema)
    assert passes({"a": [1, True, "1", [1], [True], {"1": 1}, {"1": True}, {}, [], None, 0, False, ""]}, schema)
    items: list[Any] = [1, "x", [1, {"a": None, "b": 2}], {"a": {}, "b": []}, None, 0, False]
    for again in [1.0, [1, {"b": 2.0, "a": None}], *items]:
        assert "uniqueItems" in problem({"a": [*items, again]}, schema)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"anyOf": [{"const": n} for n in range(180)]}}, [179] * 10_000),
        ({"items": {"enum": [*range(200)]}}, [199] * 10_000),
        ({"multipleOf": 0.5}, 10**400),
        ({"$ref": "#/properties/a"}, 1),
    ],
)
def test_what_is_too_much_to_check_is_refused(schema: dict[str, Any], value: object) -> None:
    assert "too much to be checked" in problem({"a": value}, {"properties": {"a": schema}})


def test_a_schema_that_names_its_draft_and_refers_to_itself_is_checked_within_bounds() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"items": {"$ref": "#"}}, "b": {"pattern": r"^\p{Lu}"}},
    }
    assert "`a[0].b` must fit" in problem({"a": [{"b": "x"}]}, schema)


def test_half_a_character_is_told() -> None:
    assert "in the middle of a character" in problem('{"a": "\\ud800"}', {"properties": {"a": {"pattern": "^a"}}})


def test_an_older_draft_is_read_as_its_own() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"s": {"type": "string"}},
        "properties": {"a": {"type": "array", "items": [{"$ref": "#/definitions/s"}], "additionalItems": False}},
    }
    assert passes({"a": ["x"]}, schema)
    assert "`a`" in problem({"a": ["x", 1]}, schema)
    assert "`a[0]`" in problem({"a": [1]}, schema)


@pytest.mark.parametrize("text", ["", " ", "\n", "null", " null "])
def test_a_call_without_arguments_has_none(text: str) -> None:
    assert Arguments("t", {"type": "object", "properties": {}}).read(text) == {}
