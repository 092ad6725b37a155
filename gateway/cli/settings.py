"""`legato config show`, `get` and `set`: what is in force, where it was written, and one value changed.

Fields of a row: key, value (of a secret only whether it is set), origin (a file and line, or a variable).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from gateway.app.config import Setup
from gateway.app.config.editing import with_value, without
from gateway.app.config.environment import is_reference, typed
from gateway.app.config.loading import load_config, load_with_origins
from gateway.app.config.sentences import did_you_mean
from gateway.app.config.setup import FILE
from gateway.app.config.shape import Shape
from gateway.app.config.shown import SECRET, is_for_a_server, public
from gateway.app.config.source import KeyPath, dotted
from gateway.app.plugins import providers
from gateway.runtime.errors import ConfigError, UserError
from gateway.runtime.owners import leave_to_owner, make_private
from gateway.runtime.redaction import Redact, Redactor

Row = dict[str, Any]
REMOVED: Final = object()
"""In the place of a value: the key goes, and its default holds."""


def rows_in_force(setup: Setup, environ: Mapping[str, str]) -> list[Row]:
    """Every value that somebody wrote, in the order of the sections. Raises ConfigError."""
    _, shape, tree = load_with_origins(setup.file, setup.variables(environ))
    redact = Redactor(setup.config.secrets())
    return [
        {
            "key": dotted(path),
            "value": SECRET if shape.is_secret(path) or shape.sounds_secret(path) else _readable(value, path, redact),
            "origin": tree.origins.get(path) or ("the vendor's row" if path[0] == "model" else tree.origin(path)),
        }
        for path, value in tree.leaves()
    ]


def in_force_text(rows: Sequence[Row]) -> str:
    """A line for each value."""
    if not rows:
        return "You have set nothing. All settings have their defaults, which `legato config` prints."
    lines = [f"{row['key']}: {_as_yaml(row['value'])}" for row in rows]
    wide = min(60, max(map(len, lines)))
    return "\n".join(f"{line.ljust(wide)}  # {row['origin']}" for line, row in zip(lines, rows, strict=True))


def _as_yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def value_of(setup: Setup, key: str) -> str:
    """The value in force of a key, without credentials. Raises UserError."""
    value: Any = setup.config
    path = tuple(key.split("."))
    for name in path:
        inner = _inner(value)
        if name not in inner:
            raise UserError(f"{key} is not a known key{did_you_mean(name, list(inner))}")
        value = inner[name]
    return _as_yaml(_readable(value, path, Redactor(setup.config.secrets())))


def _readable(value: Any, path: KeyPath, redact: Redact) -> Any:
    """The value, as JSON has it, with no credential in it."""
    if isinstance(value, BaseModel | dict):
        return {name: _readable(inner, (*path, name), redact) for name, inner in _inner(value).items()}
    if isinstance(value, list | tuple):
        return [_readable(each, path, redact) for each in value]
    if isinstance(value, SecretStr) or is_for_a_server(path):
        return SECRET
    return redact(value) if isinstance(value, str) else value


def _inner(value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        return public(value)
    return value if isinstance(value, dict) else {}


def change(setup: Setup, environ: Mapping[str, str], changes: Mapping[str | KeyPath, Any]) -> Path:
    """Write values into the person's own file, made where it is missing, and return its path. The values are Python's,
    or texts that are read as their keys want them, or REMOVED. Raises ConfigError if the file would not load with them,
    and UserError if its text cannot be changed."""
    path = setup.file or setup.folder / FILE
    text = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    known = setup.variables(environ)
    _, shape, _ = load_with_origins(setup.file, known)
    for key, value in changes.items():
        where: KeyPath = tuple(key.split(".")) if isinstance(key, str) else key
        names = [str(part) for part in where]
        if value is REMOVED:
            text = without(text, names)
            continue
        if not is_reference(value):
            _refuse_secret(shape, where, setup.config.model.provider)
        text = with_value(text, names, typed(shape.kind(where), value) if isinstance(value, str) else value)

    def check(tried: Path) -> None:
        try:
            load_config(tried, known)
        except ConfigError as error:
            raise ConfigError([problem.replace(str(tried), str(path)) for problem in error.problems]) from None

    put(path, text, check, newline)
    return path


def _refuse_secret(shape: Shape, path: KeyPath, provider: str) -> None:
    if shape.is_secret(path):
        vendor = providers()[provider].vendor if path == ("model", "api_key") else None
        variable = (vendor and vendor.key) or shape.variable(path)
        raise UserError(f"Keys and tokens do not belong in {FILE}. Put {variable}=… into the file .env.")


def put(path: Path, text: str, check: Callable[[Path], None] | None = None, newline: str = "\n") -> None:
    """Put the text into the file's place in one step, if `check` lets a file with it pass. The file keeps its owner and
    its rights; a new one is for its folder's owner alone. Raises UserError, and what `check` raises."""
    place = path.resolve()
    try:
        make_private(place.parent)
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".config-", suffix=place.suffix)
        tried = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline=newline) as file:
                leave_to_owner(place if place.exists() else place.parent, handle)
                file.write(text)
            if check is not None:
                check(tried)
            if place.exists():
                tried.chmod(place.stat().st_mode & 0o777)
            tried.replace(place)
        finally:
            tried.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"Legato cannot write {path} ({error.strerror}). Nothing has changed.") from error
