"""The Lua scripts, each put together from the parts that its first line names.

States and numbers that Python knows, too, have names in Lua such as ROW_PENDING, which get their values here. A
script is sent whole the first time a connection uses it and by its hash from then on, so processes of different
versions, with different scripts, can share a server.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final, get_args

from msgspec import Struct

from gateway.domain.chat import (
    KEPT,
    MOST_DOUBTS,
    MOST_IN_ROUND,
    MOST_PLACE,
    PLACED,
    SCHEDULED,
    UNSENT,
    WAITING,
    OutboundState,
)
from gateway.domain.session import EndReason, HookState
from gateway.store.records import MOST_ATTEMPTS, MOST_HEARD, SUSPECT_ATTEMPTS, ItemOutcome

_NEEDS = re.compile(r"-- needs: ([a-z ]+)\n")
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "ROW": tuple(OutboundState),
    "ITEM": get_args(ItemOutcome),
    "HOOK": get_args(HookState),
    "END": get_args(EndReason),
}
_CONSTANTS: Final = {
    "SUSPECT_ATTEMPTS": str(SUSPECT_ATTEMPTS),
    "MOST_ATTEMPTS": str(MOST_ATTEMPTS),
    "MOST_HEARD": str(MOST_HEARD),
    "MOST_DOUBTS": str(MOST_DOUBTS),
    "MOST_PLACE": str(MOST_PLACE),
    "MOST_IN_ROUND": str(MOST_IN_ROUND),
    "EVENT_SCHEDULED": f"'{SCHEDULED}'",
    "ROW_KEPT": f"'/{'/'.join(KEPT)}/'",
    **{
        f"ROW_{group}": f"'/{'/'.join(states)}/'"
        for group, states in (("WAITING", WAITING), ("PLACED", PLACED), ("UNSENT", UNSENT))
    },
    **{f"{of}_{word.upper()}": f"'{word}'" for of, words in _WORDS.items() for word in words},
}
_NAMED = re.compile(rf"\b(?:SUSPECT|MOST|EVENT|{'|'.join(_WORDS)})_[A-Z_]+\b")


class Script(Struct, frozen=True):
    """A script's text and the hash that the server knows it by."""

    name: str
    text: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script `scripts/<name>.lua` with its parts in front. Raises KeyError for a name without a value."""
    body = _read("scripts", name)
    needs = _NEEDS.match(body)
    parts = ["base", *(needs[1].split() if needs else ())]
    text = "\n".join([*(_read("parts", part) for part in parts), body])
    constants = "".join(f"local {each} = {_CONSTANTS[each]}\n" for each in sorted(set(_NAMED.findall(text))))
    text = constants + text
    return Script(name=name, text=text, sha=sha1(text.encode(), usedforsecurity=False).hexdigest())


def _read(folder: str, name: str) -> str:
    return files(__package__).joinpath(folder, f"{name}.lua").read_text(encoding="utf-8")
