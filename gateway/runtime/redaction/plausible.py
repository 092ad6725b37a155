"""Signs that a value is a secret: made by a machine or chosen by a person, and no name, reference or state."""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.redaction.places import MARK

# What stands where a secret would: references, types, states, forms to fill in, and marks of an earlier redaction.
_PLACEHOLDER: Final = re.compile(
    r"(?i)\$\{?[a-z_][a-z0-9_]*+(?::?-[^}]*+)?\}?|[<{(\[].*|\*+|x{3,}|\.{2,}|none|null|nil|true|false|str|string|bytes"
    r"|secretstr|optional|required|missing|invalid|unset|empty|changed?|change-?me|wrong|expired|your[_-].*"
    r"|undefined|todo|pass|password|passwd|integer|boolean|text|hidden|protected|redacted|masked|[^%{]*%(?:\(\w*+\))?[sdr].*|[^{]*\{\w*+\}.*"
)
_CODE: Final = re.compile(r"(?i)(?:os\.|process\.env|env\.|getenv).*|[\w.]++\(.*|[a-z_][a-z_.]*+\[\w*+")
_PATH: Final = re.compile(r"(?:~|\.{1,2})?/(?:\w[\w.@-]*+/)*+(?:\w[\w.@-]*+)?|[A-Za-z]:\\.*|(?:~|\.{1,2})/.*")
_DIGITS: Final = re.compile(r"\d+")
_HEX: Final = re.compile(r"[0-9a-f]+")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*+(?:_[a-z0-9]++){2,}")
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z_.]*+")


def is_placeholder(value: str) -> bool:
    """Say whether `value` stands in a secret's place."""
    return MARK in value or bool(_PLACEHOLDER.fullmatch(value))


def is_code(value: str) -> bool:
    """Say whether `value` is an expression: a call, an item, a variable of the environment."""
    return bool(_CODE.fullmatch(value))


def is_plain(value: str) -> bool:
    """Say whether `value` may be an ordinary word or a dotted name."""
    return bool(_PLAIN.fullmatch(value))


def is_path(value: str) -> bool:
    """Say whether `value` is the path of a file or folder; random base64 that begins with a slash is none."""
    return bool(_PATH.fullmatch(value)) and not (len(value) >= 24 and value.count("/") < 3 and looks_mixed(value[1:]))


def looks_random(value: str) -> bool:
    """Say whether a machine may have made this value: at least 12 characters, letters and digits."""
    if len(value) < 12 or "://" in value or value.startswith(("/", "./", "~/")) or " " in value:
        return False
    return _has_both(value) and not _NAME.fullmatch(value)


def looks_mixed(value: str) -> bool:
    """Say whether `value` has letters and digits and is no placeholder: no word, no number."""
    return _has_both(value) and not is_placeholder(value) and not is_code(value)


def looks_chosen(value: str) -> bool:
    """Say whether a person may have chosen `value`: no reference and no state, and no name in capitals as of a
    manual."""
    return not (is_placeholder(value) or is_code(value) or is_path(value) or value.isupper())


def holds_mixed(match: re.Match[str]) -> bool:
    """Say whether group 1 looks mixed."""
    return looks_mixed(match[1])


def ends_mixed(match: re.Match[str]) -> bool:
    """Say whether the last part of group 1 has digits, capitals and small letters, as only a machine mixes them."""
    part = re.split(r"[._-]", match[1])[-1]
    digits = sum(map(str.isdigit, part))
    return digits > 1 and part != part.lower() and part != part.upper()


def ends_random(match: re.Match[str]) -> bool:
    """Say whether the last part of group 1 is mixed by a machine, or plain hexadecimal."""
    part = match[1].rpartition(".")[2]
    return ends_mixed(match) or (bool(_HEX.fullmatch(part)) and _has_both(part))


def is_numbered(match: re.Match[str]) -> bool:
    """Say whether the longest part of group 1 has letters and three digits or more, in several places."""
    part = max(re.split(r"[_-]", match[1]), key=len)
    return sum(map(str.isdigit, part)) > 2 and len(_DIGITS.findall(part)) > 1


def is_mixed_twice(match: re.Match[str]) -> bool:
    """Say whether group 1 has a long part with digits, capitals and small letters, and another that is no word."""
    long, *others = sorted(match[1].split("_"), key=len, reverse=True)
    digits = sum(map(str.isdigit, long))
    mixed = len(long) >= 20 and digits > 1 and long != long.lower() and long != long.upper()
    return mixed and any(len(part) >= 6 and not part.islower() and not part.isupper() for part in others)


def holds_chosen(match: re.Match[str]) -> bool:
    """Say whether group 1 looks chosen."""
    return looks_chosen(match[1])


def holds_cookies(match: re.Match[str]) -> bool:
    """Say whether one of the cookies of group 1 may sign somebody in. Most cookies hold a mere preference."""
    held = (piece.partition("=")[2] for piece in match[1].split(";"))
    return any(len(cookie) >= 16 and looks_mixed(cookie) for cookie in held)


def _has_both(value: str) -> bool:
    return any(character.isdigit() for character in value) and any(character.isalpha() for character in value)
