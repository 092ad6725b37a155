"""The variables that a configuration may name: the process's own, and those of files `.env`.

So a token can be given once, for `legato run` as for `legato access` in another shell, without standing in
a file of settings. What the process's environment says counts for more. Nothing is read for anybody else: programs that
Legato starts see none of it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from dotenv.parser import Binding, parse_stream

from gateway.domain.wording import reason_of
from gateway.runtime.errors import ConfigError

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
            yield f"{path}:{line}: this is no NAME=value; correct it, or put a # in front"
