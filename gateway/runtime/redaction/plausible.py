"""Signs that a value is a secret: made by a machine or chosen by a person, and no name, reference or state."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from gateway.runtime.patterns import late
from gateway.runtime.redaction.places import MARK

# What stands where a secret would: references, types, states, forms to fill in, and marks of an earlier redaction.
_PLACEHOLDER: Final = late(
    r"(?i)\$\{?[a-z_][a-z0-9_]*+(?::?-[^}]*+)?\}?|[<{(\[].*|\*+|x{3,}|\.{2,}|none|null|nil|true|false|str|string|bytes"
    r"|secretstr|optional|required|missing|invalid|unset|empty|changed?|change-?me|wrong|expired|your[_-].*"
    r"|undefined|todo|pass|password|passwd|integer|boolean|text|hidden|protected|redacted|masked|[^%{]*%(?:\(\w*+\))?[sdr].*|[^{]*\{\w*+\}.*"
)
_CODE: Final = late(r"(?i)(?:os\.|process\.env|env\.|getenv).*|[\w.]++\(.*|[a-z_][a-z_.]*+\[\w*+")
_PATH: Final = re.compile(r"(?:~|\.{1,2})?/(?:\w[\w.@-]*+/)*+(?:\w[\w.@-]*+)?|[A-Za-z]:\\.*|(?:~|\.{1,2})/.*")
_DATE: Final = re.compile(r"(?i)20\d\d[01]\d[0-3]\d(?:t?\d{4,6}z?)?")
_COMMIT: Final = re.compile(r"(?:live|prod)-[0-9a-f]{40}")  # in the tags of images
_HEAD: Final = re.compile(r"\A[A-Za-z0-9]+[._-]")
_GROUP: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LENGTH: Final = 2.7  # characters of a group in a name, on average; a machine's have 1.9 to 2.5
_HASH: Final = re.compile(r"(?=[a-f]{0,64}\d)[0-9a-f]{16,}")
_LOOKED_AT: Final = 400  # characters of a name
_FEWEST_PAIRS: Final = 8
# The 200 pairs of letters that words have most often: the first, and all that follow it. Counted over the words of the
# standard library's source and of docs/, they are 86 of 100 pairs.
_FOLLOW: Final = {
    "a": "abcdgilmnprstu", "b": "aeilou", "c": "aehiklortu", "d": "adeilorsu", "e": "acdefglmnpqrstvwx",
    "f": "aefilor", "g": "eirs", "h": "aeio", "i": "abcdefglmnoprstvxz", "k": "e", "l": "adeilostuy", "m": "aeimops",
    "n": "acdefginostu", "o": "bcdglmnoprstuw", "p": "aeiloprsty", "q": "u", "r": "acdegimnorstuy", "s": "acehiopstu",
    "t": "acdehiloprstuy", "u": "belmnprst", "v": "aei", "w": "ai", "x": "t", "y": "pt", "z": "e",
}  # fmt: skip
_NAME: Final = re.compile(r"[a-z][a-z0-9]*+(?:_[a-z0-9]++){2,}")
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z_.]*+")


def is_placeholder(value: str) -> bool:
    """Whether `value` only stands in for a secret."""
    return MARK in value or bool(_PLACEHOLDER.fullmatch(value))


def is_code(value: str) -> bool:
    """Whether `value` is an expression: a call, an item, a variable of the environment."""
    return bool(_CODE.fullmatch(value))


def is_plain(value: str) -> bool:
    """Whether `value` may be an ordinary word or a dotted name."""
    return bool(_PLAIN.fullmatch(value))


def is_path(value: str) -> bool:
    """Whether `value` is the path of a file or folder; random base64 that begins with a slash is none."""
    return bool(_PATH.fullmatch(value)) and not (len(value) >= 24 and value.count("/") < 3 and looks_mixed(value[1:]))


def looks_random(value: str) -> bool:
    """Whether a machine may have made this value: at least 12 characters, letters and digits."""
    if len(value) < 12 or "://" in value or value.startswith(("/", "./", "~/")) or " " in value:
        return False
    return _has_both(value) and not _NAME.fullmatch(value)


def looks_mixed(value: str) -> bool:
    """Whether `value` has letters and digits and is no placeholder: no word, no number."""
    return _has_both(value) and not is_placeholder(value) and not is_code(value)


def looks_chosen(value: str) -> bool:
    """Whether a person may have chosen `value`: no reference, no state, no name in capitals as of a manual."""
    return not (is_placeholder(value) or is_code(value) or is_path(value) or value.isupper())


def holds_mixed(match: re.Match[str]) -> bool:
    """Whether group 1 looks mixed."""
    return looks_mixed(match[1])


def ends_mixed(match: re.Match[str]) -> bool:
    """Whether the last part of group 1 has digits, capitals and small letters, as only a machine mixes them."""
    part = re.split(r"[._-]", match[1])[-1]
    digits = sum(map(str.isdigit, part))
    return digits > 1 and part != part.lower() and part != part.upper()


def ends_random(match: re.Match[str]) -> bool:
    """Whether the last part of group 1 has letters and numbers as only a machine mixes them."""
    part = match[1].rpartition(".")[2]
    return _has_both(part) and not is_worded(part)


def is_worded(text: str) -> bool:
    """Whether `text` is a name of words and numbers, such as `live-stream2024session1080p`: its letters and
    digits stand in groups, and two thirds of the letters follow each other as they do in words. Of a machine's less
    than a third do. Hexadecimal is no word."""
    text = text[:_LOOKED_AT]
    groups = _GROUP.findall(text)
    letters = [group for group in groups if group.isalpha()]  # long numbers make no words of the rest
    pairs = [pair for group in letters for pair in pairwise(group.lower())]
    usual = sum(second in _FOLLOW.get(first, "") for first, second in pairs)
    in_groups = all(sum(map(len, each)) >= _LENGTH * len(each) for each in (groups, letters))
    return in_groups and len(pairs) >= _FEWEST_PAIRS and usual * 3 >= len(pairs) * 2 and not _HASH.search(text)


def names_nothing(match: re.Match[str]) -> bool:
    """Whether group 1, without its prefix, is no name of words and numbers."""
    return not is_worded(_HEAD.sub("", match[1], count=1))


def is_strewn(match: re.Match[str]) -> bool:
    """Whether the longest part of group 1 has letters and numbers as only a machine mixes them: no words, no date,
    no hash of a commit behind `prod-`."""
    part = max(re.split(r"[_-]", match[1]), key=len)
    rest = _DATE.sub("", part)
    return len(rest) >= 12 and _has_both(rest) and not is_worded(part) and not _COMMIT.fullmatch(match[1])


def is_mixed_twice(match: re.Match[str]) -> bool:
    """Whether group 1 has a long part with digits, capitals and small letters, and another that is no word."""
    long, *others = sorted(match[1].split("_"), key=len, reverse=True)
    digits = sum(map(str.isdigit, long))
    mixed = len(long) >= 20 and digits > 1 and long != long.lower() and long != long.upper()
    return mixed and any(len(part) >= 6 and not part.islower() and not part.isupper() for part in others)


def holds_chosen(match: re.Match[str]) -> bool:
    """Whether group 1 looks chosen."""
    return looks_chosen(match[1])


def holds_cookies(match: re.Match[str]) -> bool:
    """Whether one of the cookies of group 1 may sign somebody in. Most cookies hold a mere preference."""
    held = (piece.partition("=")[2] for piece in match[1].split(";"))
    return any(len(cookie) >= 16 and looks_mixed(cookie) for cookie in held)


def _has_both(value: str) -> bool:
    return any(character.isdigit() for character in value) and any(character.isalpha() for character in value)
