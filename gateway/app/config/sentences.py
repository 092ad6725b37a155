"""What pydantic found, said so that a person can act on it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic_core import ErrorDetails

from gateway.app.config.environment import alternatives, annotation, is_secret, is_section
from gateway.app.config.models import Config
from gateway.app.config.source import KeyPath, dotted

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
_SHOWN = 40  # characters of a wrong value that are repeated in the sentence


def sentence(error: ErrorDetails) -> str:
    """One problem as one sentence that starts with the key; a secret's value is never repeated."""
    path: KeyPath = error["loc"]
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"{dotted(path)} is not a known key{_suggestion(path)}"
    if kind == "value_error":
        return f"{dotted(path)} {context['error']}"
    if kind == "literal_error":
        return f"{dotted(path)} {_choice(path, error['input'])}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{dotted(path)} {words} {context[name]:g}{_but_is(path, error['input'])}"
    wanted = _WANTED.get(kind, error["msg"][:1].lower() + error["msg"][1:])
    return f"{dotted(path)} {wanted}{'' if kind == 'missing' else _but_is(path, error['input'])}"


def _but_is(path: KeyPath, value: Any) -> str:
    if is_secret(path):
        return ""
    if value is None:
        return ", not empty"
    if isinstance(value, dict | list):
        return ", not a list" if isinstance(value, list) else ", not a section"
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return f", not {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"


def _choice(path: KeyPath, value: Any) -> str:
    names = [
        str(name) for kind in alternatives(annotation(path)) if get_origin(kind) is Literal for name in get_args(kind)
    ]
    listed = " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    near = difflib.get_close_matches(str(value).lower(), names, n=1, cutoff=0.6)
    return f"must be {listed}{_but_is(path, value)}" + (f"; did you mean {near[0]}?" if near else "")


def _suggestion(path: KeyPath) -> str:
    """The nearest key of the same section; else where a key of this name does exist; else what there is."""
    word = str(path[-1]).lower()
    section = next((kind for kind in alternatives(annotation(path[:-1])) if is_section(kind)), None)
    here = list(section.model_fields) if section else []
    near = difflib.get_close_matches(word, here, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]}?"
    elsewhere = [known for known in _known_paths((), Config) if known.rpartition(".")[2] == word]
    if len(elsewhere) == 1:
        return f"; did you mean {elsewhere[0]}?"
    return f"; known here: {', '.join(here)}" if here else ""


def _known_paths(path: KeyPath, kind: Any) -> Iterator[str]:
    for section in alternatives(kind):
        if is_section(section):
            for name, field in section.model_fields.items():
                yield dotted((*path, name))
                yield from _known_paths((*path, name), field.annotation)
