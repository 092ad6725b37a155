"""From a file and the environment to a `Config`, or to every reason why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from gateway.app.config.environment import interpolate, override, refuse_literal_secrets
from gateway.app.config.models import Config
from gateway.app.config.rules import contradictions, unavailable
from gateway.app.config.sentences import sentence
from gateway.app.config.source import KeyPath, Tree, read_file
from gateway.runtime.errors import ConfigError

DEFAULT_PATH: Final = Path("config.yaml")


def find_config(given: Path | None) -> Path | None:
    """The file to load: the one that was given, else `./config.yaml` if there is one, else none."""
    if given is not None:
        return given
    return DEFAULT_PATH if DEFAULT_PATH.exists() else None


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The configuration of `path` (None: the defaults) with `environ`'s overrides and variables.

    Raises ConfigError with one line per problem, such as
    `config.yaml:12: compression.treshold is not a known key; did you mean threshold?`.
    """
    tree = read_file(path) if path is not None else Tree(name="configuration")
    if any(where == () for where, _ in tree.problems):
        raise ConfigError(_lines(tree))
    refuse_literal_secrets(tree)
    _forget_empty_sections(tree)
    override(tree, environ)
    interpolate(tree, environ)
    config = _validated(tree)
    wrong = {where for where, _ in tree.problems}
    tree.problems.extend((where, text) for where, text in unavailable(config) if where not in wrong)
    wrong = {where for where, _ in tree.problems}
    for keys, text in contradictions(config):
        if not _touches(wrong, keys):
            tree.problems.append((next((key for key in keys if key in tree.origins), keys[0]), text))
    if tree.problems:
        raise ConfigError(_lines(tree))
    return config


def _forget_empty_sections(tree: Tree) -> None:
    """`hygiene:` with every key commented out is YAML's null, and means the defaults."""
    for path, value in tree.leaves():
        if value is None and path in _SECTIONS:
            tree.drop(path)


_SECTIONS: Final[frozenset[KeyPath]] = frozenset(
    [(name,) for name in Config.model_fields if name != "fallback_models"]
    + [("sessions", "expiry"), ("tools", "shell"), ("tools", "mcp")]
    + [("adapters", name) for name in ("web", "telegram", "discord")]
)


def _validated(tree: Tree) -> Config:
    """The typed configuration, with defaults in place of whatever is wrong; problems go to the tree.

    Going on after an error is what lets all problems be told at once.
    """
    while True:
        try:
            return Config.model_validate(tree.values)
        except ValidationError as error:
            dropped = False
            for detail in error.errors(include_url=False):
                where = detail["loc"]
                if where not in {known for known, _ in tree.problems}:
                    tree.problems.append((where, sentence(detail)))
                dropped |= tree.drop(where[:-1] if detail["type"] == "missing" else where)
            if not dropped:  # nothing left to take away: tell what is known
                raise ConfigError(_lines(tree)) from None


def _touches(wrong: set[KeyPath], keys: tuple[KeyPath, ...]) -> bool:
    return any(one[: len(other)] == other or other[: len(one)] == one for one in wrong for other in keys)


def _lines(tree: Tree) -> list[str]:
    """The problems in the order of the file, then those of the environment."""
    lines = [
        f"{tree.origin(where) if where else tree.origins.get((), tree.name)}: {text}" for where, text in tree.problems
    ]
    return sorted(dict.fromkeys(lines), key=_place)


def _place(line: str) -> tuple[int, int]:
    found = re.match(r".*?:(\d+): ", line)
    return (0, int(found[1])) if found else (1, 0)
