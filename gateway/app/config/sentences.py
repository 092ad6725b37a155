"""The findings of pydantic as sentences that help a person."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from datetime import date
from typing import Any, Literal, get_args, get_origin

from pydantic_core import ErrorDetails

from gateway.app.config.shape import Shape, alternatives
from gateway.app.config.source import UNSPACED, KeyPath, dotted, is_unspaced

_WANTED = {
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "dict_type": "must hold keys of its own, indented below it",
    "model_type": "must hold keys of its own, indented below it",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "finite_number": "must be a finite number",
    "missing": "is missing",
}
_BOUNDS = {
    "greater_than": ("gt", "must be greater than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}
_MANY = 12  # names, which are listed only where none is like the one that was written
_SHOWN = 40  # characters of a wrong value that are repeated in the sentence


def sentence(error: ErrorDetails, shape: Shape) -> str:
    """One problem as one sentence that starts with the key; what may be a secret is never repeated."""
    path: KeyPath = error["loc"]
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"{dotted(path)} is not a known key{_suggestion(path, shape)}"
    shown = kind != "missing" and shape.may_show(path, error["input"])
    if kind == "value_error":
        said, value = str(context["error"]), error["input"]
        return f"{dotted(path)} {said if shown else said.replace(f', not {value!r}', '')}"
    but_is = _but_is(error["input"]) if shown else ""
    names = words_at(path, shape)
    if kind == "literal_error":
        return f"{dotted(path)} {choice(names, error['input'], shown=shown)}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{dotted(path)} {words} {context[name]:g}{but_is}"
    but_is = f", or {' or '.join(names)}{but_is}" if names else but_is
    if kind in ("model_type", "dict_type") and is_unspaced(str(error["input"])):
        but_is += UNSPACED
    return f"{dotted(path)} {_WANTED.get(kind, error['msg'][:1].lower() + error['msg'][1:])}{but_is}"


def words_at(path: KeyPath, shape: Shape) -> list[str]:
    """The words that the key at `path` allows."""
    literals = (each for each in alternatives(shape.kind(path)) if get_origin(each) is Literal)
    return [str(name) for each in literals for name in get_args(each)]


def unquoted(path: KeyPath, value: Any, written: str, shape: Shape) -> str:
    """The sentence about a word without quotes that YAML takes for something else than a person does; "" where both are
    of one mind."""
    kinds, shown = [*alternatives(shape.kind(path))], shape.may_show(path, written)
    names = [name for each in kinds if get_origin(each) is Literal for name in get_args(each)]
    is_number = type(value) in (int, float)
    if is_number and {int, float}.intersection(kinds) and re.search(r"^[-+]?0[\d_]|:", written):
        return f"{dotted(path)} must have neither a zero in front nor a colon: YAML reads {value:g}" if shown else ""
    if type(value) in (*kinds, *map(type, names)) or (is_number and str(value) == written):  # an id may be a number
        return ""
    if names and written not in names and str not in kinds:
        return f"{dotted(path)} {choice(names, written, shown=shown)}"
    if value is None and not names:
        return f"{dotted(path)} is empty: leave the key out, or write {written} in quotes" if str in kinds else ""
    if not (names or str in kinds):
        return ""
    as_text = f', as "{written}": without them YAML reads ' if shown else ": without them YAML reads "
    read = "something else" if not shown else "a date" if isinstance(value, date) else _but_is(value)[len(", not ") :]
    return f"{dotted(path)} must be written in quotes{as_text}{read}"


def _but_is(value: Any) -> str:
    if value is None:
        return ", not empty"
    if isinstance(value, dict | list):
        return ", not a list" if isinstance(value, list) else ", not a section"
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return f", not {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"


def choice(names: Iterable[object], value: object, *, shown: bool = True) -> str:
    """Return a sentence with the allowed values, and the one of them that was probably meant."""
    *others, last = [str(name) for name in names]
    near, but = did_you_mean(value, [*others, last]), _but_is(value) if shown else ""
    listed = " or ".join([", ".join(others), last]) if others else last
    if len(others) >= _MANY:  # nobody reads past so many
        return f"has no such name{f': {value!r}' if shown else ''}{near or f'; the names are {listed}'}"
    return f"must be {listed}{but}{near}"


def did_you_mean(word: object, names: Iterable[str]) -> str:
    """The end of a sentence about an unknown word; nothing if no name is similar."""
    near = difflib.get_close_matches(str(word).lower(), list(names), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _suggestion(path: KeyPath, shape: Shape) -> str:
    """The nearest key of the same section; else where a key of this name does exist; else what there is."""
    section = shape.section(path[:-1])
    here = list(section.model_fields) if section else []
    if near := did_you_mean(path[-1], here):
        return near
    elsewhere = [dotted(known) for known in shape.paths() if known[-1] == str(path[-1]).lower()]
    if len(elsewhere) == 1:
        return f"; did you mean {elsewhere[0]}?"
    return f"; known here: {', '.join(here)}" if here else ""
