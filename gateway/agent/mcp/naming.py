"""The names under which the model calls the tools of servers. Pure.

A full name is the server's name, an underscore and the tool's own name. No server's name holds an underscore, so a
full name tells its server, also while that is away. APIs take letters, digits, `_` and `-`, 64 at most.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from hashlib import blake2s
from typing import Final

_LONGEST: Final = 64
_DIGITS: Final = 6  # of a digest
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


def full_names(server: str, tools: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Full names by the server's own names. A name that is changed, because it has other signs, is too long or is in
    `taken`, gets digits that only the own name makes: so it does not depend on the other tools."""
    names: dict[str, str] = {}
    used = set(taken)
    for own in sorted(set(tools)):
        plain = f"{server}_{_UNSAFE.sub('_', own)}"
        if plain != f"{server}_{own}" or len(plain) > _LONGEST or plain in used:
            mark = blake2s(own.encode("utf-8", "replace"), digest_size=_DIGITS // 2).hexdigest()
            plain = f"{plain[: _LONGEST - _DIGITS - 1]}_{mark}"
        if plain not in used:  # two own names with one digest: the second is left out
            names[own] = plain
            used.add(plain)
    return names
