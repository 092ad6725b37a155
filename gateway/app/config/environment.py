"""The environment's part of a configuration: `${NAME}` inside values, and overrides.

`LEGATO__COMPRESSION__THRESHOLD=0.6` sets `compression.threshold`. Variables hold text only, so a
text that came from one is read as the type its key wants.
"""

from __future__ import annotations

import io
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import yaml
from dotenv.parser import Binding, parse_stream
from pydantic import SecretStr

from gateway.app.config.shape import Shape, alternatives
from gateway.app.config.source import KeyPath, Tree, dotted
from gateway.domain.wording import reason_of
from gateway.runtime.errors import ConfigError

PREFIX: Final = "LEGATO__"
HOME_VARIABLE: Final = "LEGATO_HOME"  # names Legato's folder

_REFERENCE = re.compile(r"\$?\$\{([^}]*)\}")
_ONLY_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_LITERAL_PASSWORD = re.compile(r"://[^/:@\s]*:(?!\$\{)[^/@\s]+@")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]*")
_HOST = re.compile(r"[^/?#\s]*@")
_DELIMITER = re.compile(r"[/?#@\[\]\s]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def refuse_literal_secrets(tree: Tree, shape: Shape) -> None:
    """Note every key, token or password that is written in the file itself, and forget it."""
    for path, value in tree.leaves():
        name = dotted(path)
        if value is None or is_reference(value):
            continue
        if shape.is_secret(path) or (shape.sounds_secret(path) and "${" not in str(value)):
            variable = shape.variable(path)
            text = f'{name} must not be written into the file: put it into a variable and write "${{{variable}}}"'
        elif isinstance(value, str) and _LITERAL_PASSWORD.search(value):
            text = f"{name} must not hold a password: put it into a variable and write ${{NAME}} in its place"
        else:
            continue
        tree.problems.append((path, text))
        tree.drop(path)


def is_reference(value: object) -> bool:
    """Say whether a value is one variable's and nothing more: ${NAME}."""
    return isinstance(value, str) and _ONLY_REFERENCE.fullmatch(value) is not None


def override(tree: Tree, shape: Shape, environ: Mapping[str, str]) -> None:
    """Lay `LEGATO__…` variables over the tree; those that name nothing are left for the type check."""
    # What a model's other keys are depends on its provider.
    for name in sorted(environ, key=lambda each: (not each.endswith("__PROVIDER"), each)):
        if not name.startswith(PREFIX):
            continue
        path: KeyPath = tuple(name.removeprefix(PREFIX).lower().split("__"))
        if shape.section(path) and not shape.may_be_null(path):
            tree.origins.setdefault((*path, name), name)
            tree.problems.append(((*path, name), f"{dotted(path)} is a section: name one of its keys, as {name}__KEY"))
            continue
        holder = _section_for(tree, path, name)
        if holder is not None:
            holder[str(path[-1])] = typed(shape.kind(path), environ[name])
            for known in [known for known in tree.origins if known[: len(path)] == path]:
                del tree.origins[known]
            tree.origins[path] = name
            tree.from_environment.add(path)


def overlooked(environ: Mapping[str, str]) -> list[str]:
    """Variables that seem to be meant as overrides and are none, for their underscores."""
    return sorted(
        name for name in environ if name.startswith("LEGATO_") and not name.startswith(PREFIX) and name != HOME_VARIABLE
    )


def _section_for(tree: Tree, path: KeyPath, name: str) -> dict[str, Any] | None:
    """The mapping that holds the last key of `path`, made where it is missing; None if a value is in its way."""
    holder: Any = tree.values
    for index, part in enumerate(path[:-1], start=1):
        inner = holder.get(part)
        if inner is None:
            inner = holder[part] = {}
            tree.origins[path[:index]] = name
        holder = inner
        if not isinstance(holder, dict):
            return None
    return typing.cast("dict[str, Any]", holder)


def interpolate(tree: Tree, shape: Shape, environ: Mapping[str, str]) -> None:
    """Put the values of variables in place of `${NAME}`; `$${NAME}` stays as a literal `${NAME}`.

    A section that is switched off may name a variable that is not set: the value is forgotten.
    """
    for path, value in tree.leaves():
        overridden = any(path[:length] in tree.from_environment for length in range(1, len(path) + 1))
        if not isinstance(value, str) or "${" not in value or overridden:
            continue
        missing: list[str] = []
        text = _filled_in(value, environ, missing)
        if missing:
            if shape.is_used(path):
                tree.problems.extend((path, f"{dotted(path)} {reason}") for reason in missing)
            tree.drop(path)
            continue
        tree.from_environment.add(path)
        tree.referred.add(path)
        holder = tree.at(path[:-1])
        if holder is not None:  # a list goes as a whole when one of its items could not be filled in
            holder[path[-1]] = typed(shape.kind(path), text)


def _filled_in(value: str, environ: Mapping[str, str], missing: list[str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        name = match[1]
        if not _VARIABLE.fullmatch(name):
            missing.append(f"holds ${{{name}}}, which is not the name of a variable; for a literal, write $${{{name}}}")
        elif name not in environ:
            missing.append(f"needs the variable {name}, which is set neither in the environment nor in .env")
        held = environ.get(name, "")
        # A name or a password in an address that was not encoded for it would end the address in its middle.
        in_address = _ADDRESS.fullmatch(value[: match.start()]) and _HOST.match(value, match.end())
        return quote(held, safe=":") if in_address and _DELIMITER.search(held) else held

    return _REFERENCE.sub(replacement, value)


def typed(kind: Any, text: str) -> Any:
    """A variable's text as a key of this declared type wants it; unchanged where it cannot be read that way."""
    kinds = tuple(alternatives(kind))
    if SecretStr in kinds:
        return text
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
    if any(typing.get_origin(kind) is tuple for kind in kinds):
        if isinstance(value, list):
            return value
        return [part.strip() for part in text.split(",") if part.strip()]
    if float in kinds and type(value) in (int, float):
        return value
    wants_text = str in kinds or any(typing.get_origin(kind) is Literal for kind in kinds)
    if isinstance(value, str) or (wants_text and not (value is None and types.NoneType in kinds)):
        return text
    return value


# -- files .env ----------------------------------------------------------------------------------------


FILE: Final = ".env"


def variables(folders: Iterable[Path], environ: Mapping[str, str]) -> Mapping[str, str]:
    """`environ`, and what the files in these folders add to it; of two folders the later counts more.

    Values are taken to the letter: a `$` in them means nothing. Raises ConfigError with one line per problem.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        found |= _read(folder / FILE)
    return {**found, **environ}


def _read(path: Path) -> dict[str, str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: the file is not UTF-8 text (byte {error.start}); save it as UTF-8"]) from None
    except OSError as error:
        reason = reason_of(error)
        raise ConfigError([f"{path}: the file cannot be read ({reason}): correct it, or move it away"]) from None
    bindings = list(parse_stream(io.StringIO(text)))
    if problems := list(_problems(path, bindings)):
        raise ConfigError(problems)
    return {each.key: each.value for each in bindings if each.key and each.value is not None}


def _problems(path: Path, bindings: list[Binding]) -> Iterator[str]:
    for each in bindings:
        if each.error or (each.key is not None and each.value is None):
            written = each.original.string
            line = each.original.line + len(written) - len(written.lstrip("\n"))
            yield f"{path}:{line}: this is not NAME=value; correct it, or put a # in front"
