"""From a file and the environment to a `Config`, or to every reason why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from pathlib import Path

from pydantic import ValidationError

from gateway.app.config.environment import interpolate, override, refuse_literal_secrets
from gateway.app.config.models import Config
from gateway.app.config.rules import contradictions, nobody, nowhere, unsearchable
from gateway.app.config.sentences import choice, sentence, unquoted, words_at
from gateway.app.config.shape import Shape
from gateway.app.config.source import KeyPath, Tree, dotted, read_file
from gateway.app.config.vendors import complete_models, complete_platforms, complete_search
from gateway.app.plugins import platforms, providers
from gateway.runtime.errors import ConfigError


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The configuration of `path` (None: the defaults) with `environ`'s overrides and variables.

    Raises ConfigError with one line per problem, such as
    `config.yaml:12: compression.treshold is not a known key; did you mean threshold?`.
    """
    return load_with_origins(path, environ)[0]


def load_with_origins(path: Path | None, environ: Mapping[str, str]) -> tuple[Config, Shape, Tree]:
    """The same, with the declared keys, and the values that somebody wrote, each with its place. Raises ConfigError."""
    tree = Tree(name="configuration") if path is None else read_file(path)
    if any(where == () for where, _ in tree.problems):
        raise ConfigError(_lines(tree))
    shape = Shape(tree, platforms(), providers())
    refuse_literal_secrets(tree, shape)
    _forget_empty_sections(tree, shape)
    _refuse_unquoted(tree, shape)
    override(tree, shape, environ)
    interpolate(tree, shape, environ)
    _check_providers(tree, shape)
    missing = complete_models(tree, shape, environ)
    complete_platforms(tree, shape, environ)
    complete_search(tree, environ)
    config = _validated(tree, shape)
    wrong = {where for where, _ in tree.problems}
    for keys, text in (
        *missing,
        *contradictions((), config),
        *nobody(config, shape.platforms),
        *nowhere(config, shape.platforms),
        *unsearchable(config),
    ):
        if not _touches(wrong, keys):
            held = [tree.at(key) for key in keys if key in tree.referred]  # what a variable holds is not repeated
            for value in held:
                text = text.replace(f", not {value!r}", "")
            tree.problems.append((next((key for key in keys if key in tree.origins), keys[0]), text))
    if tree.problems:
        raise ConfigError(_lines(tree))
    return config, shape, tree


def _forget_empty_sections(tree: Tree, shape: Shape) -> None:
    """`hygiene:` with every key commented out is YAML's null, and means the defaults."""
    for path, value in tree.leaves():
        if value is None and (shape.section(path) or shape.is_mapping(path)) and not shape.may_be_null(path):
            tree.drop(path)


def _refuse_unquoted(tree: Tree, shape: Shape) -> None:
    """Note each text that YAML took for a number, a date, a yes or a no, and forget it."""
    for path, value in tree.leaves():
        written = tree.written.get(path, "")
        if not isinstance(value, str) and written and (text := unquoted(path, value, written, shape)):
            tree.problems.append((path, text))
            tree.drop(path)


def _check_providers(tree: Tree, shape: Shape) -> None:
    """Check the providers, whose choice decides the keys of a model. A model with an unknown provider is reported and
    taken out, because its other keys cannot be checked."""
    for model in list(shape.models()):
        path = (*model, "provider")
        named = tree.at(path)
        if isinstance(named, str) and named not in shape.providers:
            known = choice(shape.providers, named, shown=shape.may_show(path, named))
            tree.problems.append((path, f"{dotted(path)} {known}"))
            tree.drop(model)


def _validated(tree: Tree, shape: Shape) -> Config:
    """The typed configuration, with defaults in place of whatever is wrong; problems go to the tree.

    Going on after an error is what lets all problems be told at once.
    """
    while True:
        try:
            return Config.model_validate(tree.values, context=shape)
        except ValidationError as error:
            dropped = False
            for detail in error.errors(include_url=False):
                where = detail["loc"]
                if words_at(where[:-1], shape):  # behind the key stands which of its types it is not
                    where = detail["loc"] = where[:-1]
                if where not in {known for known, _ in tree.problems}:
                    tree.problems.append((where, sentence(detail, shape)))
                dropped |= tree.drop(where[:-1] if detail["type"] == "missing" else where)
            if not dropped:  # nothing left to take away: tell what is known
                raise ConfigError(_lines(tree)) from None


def _touches(wrong: set[KeyPath], keys: tuple[KeyPath, ...]) -> bool:
    return any(one[: len(other)] == other or other[: len(one)] == one for one in wrong for other in keys)


def _lines(tree: Tree) -> list[str]:
    """The problems in the order of the file's lines, then those of the environment."""
    lines = [
        f"{tree.origin(where) if where else tree.origins.get((), tree.name)}: {text}" for where, text in tree.problems
    ]

    def number(line: str) -> float:
        found = re.match(rf"{re.escape(tree.name)}:(\d+): ", line)
        return int(found[1]) if found else inf

    return sorted(dict.fromkeys(lines), key=number)
