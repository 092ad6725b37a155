"""Credentials that are given away by the name of what they are assigned to."""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.redaction.places import MARK, places_of, spliced

_NAME = (
    r"(?P<strong>pass(?:word|wd|phrase|code)|pwd|secret|credential)"
    r"|(?P<weak>(?:api|access|private|signing|encryption|auth|master|client)[_-]?key|apikey|token"
    r"|(?<![a-z0-9])(?-i:KEY))"
)
_VALUE = (
    r"\\{1,7}\"(?P<nested>[^\"\\\n]++)\\{1,7}\""  # JSON in JSON, three deep
    r"|\"(?P<double>(?:[^\"\\\n]|\\.)++)\""
    r"|'(?P<single>(?:[^'\\\n]|\\.)++)'"
    r"|(?P<bare>[^\s\"'`\\,;&]++)"
)
# `max_tokens: 4096` is no assignment of a token: after a name comes nothing, or a `_suffix`.
ASSIGNMENT: Final = re.compile(
    rf"(?i)(?:{_NAME})(?:[_-][a-z0-9]{{1,16}}){{0,3}}\\{{0,7}}[\"']?(?P<sign>\s{{0,3}}(?:[:=]|=>|:=)\s{{0,3}})(?:{_VALUE})"
)
NAMES: Final = ("pass", "pwd", "secret", "credential", "token")  # with which a name begins
KEY: Final = "key"
_BEFORE_KEY: Final = ("api", "access", "private", "signing", "encryption", "auth", "master", "client")
_LONGEST_BEFORE_KEY: Final = max(map(len, _BEFORE_KEY)) + 1

# What stands where a secret would: references, types, states, and marks of an earlier redaction.
_PLACEHOLDER = re.compile(
    r"(?i)\$\{?[a-z_][a-z0-9_]*+(?::?-[^}]*+)?\}?|[<{(\[].*|\*+|x{3,}|\.{2,}|none|null|nil|true|false|str|string|bytes"
    r"|secretstr|optional|required|missing|invalid|unset|empty|changed?|change-?me|wrong|expired|your[_-].*"
)
_CODE = re.compile(r"(?i)(?:os\.|process\.env|env\.|getenv).*|[\w.]++\(.*")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z_.]*+")
_CLOSERS: Final = ")]}>"


def assigned(folded: str) -> list[int]:
    """Where in a folded text (`places.folded`) a name may begin that something is assigned to, in order."""
    places = {place for name in NAMES for place in places_of(name, folded)}
    for place in places_of(KEY, folded):
        places.add(place)
        before = folded[max(0, place - _LONGEST_BEFORE_KEY) : place]
        joint = before[-1:] in ("_", "-")
        for name in _BEFORE_KEY:
            if before.endswith(name, 0, len(before) - joint):
                places.add(place - joint - len(name))
    return sorted(places)


def replace_value(match: re.Match[str]) -> str:
    """Replace an assigned value that is plausibly a secret."""
    group = next(name for name in ("nested", "double", "single", "bare") if match[name] is not None)
    value, start = match[group], match.start(group)
    if group == "bare" and MARK not in value:
        value = value.rstrip(_CLOSERS)
    if MARK in value or _PLACEHOLDER.fullmatch(value) or (group == "bare" and _CODE.fullmatch(value)):
        return match[0]
    quoted = group != "bare"
    secret = _plausible_password(value, match, quoted=quoted) if match["strong"] else _looks_random(value)
    return spliced(match, start, start + len(value)) if secret else match[0]


def _plausible_password(value: str, match: re.Match[str], *, quoted: bool) -> bool:
    """A password may be any word, so prose and code are told by what surrounds the word."""
    if len(value) < 4:
        return False
    if quoted or not _PLAIN.fullmatch(value):
        return True
    if "=" in match["sign"]:
        return match["sign"].strip() == match["sign"]  # `PASSWORD=word`, but not the code `password = word`
    return match.string[match.end() : match.end() + 1] in ("", "\n", "\r")  # `password: word` and no sentence


def _looks_random(value: str) -> bool:
    """Whether a value is what a machine would make up, rather than a name, a path or a number."""
    if len(value) < 12 or "://" in value or value.startswith(("/", "./", "~/")) or " " in value:
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
