"""The Lua scripts, each put together from the parts that its first line names.

A script is sent whole the first time a connection uses it and by its hash from then on, so processes of different
versions, with different scripts, can share a server.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha1
from importlib.resources import files

from msgspec import Struct

_NEEDS = re.compile(r"-- needs: ([a-z ]+)\n")


class Script(Struct, frozen=True):
    """A script's text and the hash that the server knows it by."""

    name: str
    text: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script `scripts/<name>.lua` with its parts in front."""
    body = _read("scripts", name)
    needs = _NEEDS.match(body)
    parts = ["base", *(needs[1].split() if needs else ())]
    text = "\n".join([*(_read("parts", part) for part in parts), body])
    return Script(name=name, text=text, sha=sha1(text.encode(), usedforsecurity=False).hexdigest())


def _read(folder: str, name: str) -> str:
    return files(__package__).joinpath(folder, f"{name}.lua").read_text(encoding="utf-8")
