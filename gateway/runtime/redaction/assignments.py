"""Credentials that are given away by the name they are assigned to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gateway.runtime.redaction.places import Span, places_of
from gateway.runtime.redaction.plausible import is_code, is_path, is_placeholder, is_plain, looks_mixed, looks_random

_BEFORE_KEY: Final = (
    *("api", "access", "private", "signing", "encryption", "auth", "master", "client", "shared", "preshared"),
    *("account", "service", "application", "app", "db", "database", "storage", "deploy", "priv"),
)
_NAME = (
    r"(?P<strong>pass(?:word|wd|phrase|code|wort)|pwd|secret|credential|kennwort|senha|(?<=mot de )passe"
    r"|(?:(?<![a-z])|(?<=(?-i:[a-z]))(?-i:(?=P)))pass(?![a-z]))"
    rf"|(?P<weak>(?:{'|'.join(_BEFORE_KEY)})[_-]?key|apikey|token|(?<![a-z0-9])(?-i:KEY))"
)
_VALUE = (
    r"\\{1,7}\"(?P<nested>[^\"\\\n]++)\\{1,7}\""  # JSON in JSON, three deep
    r"|\"(?P<double>(?:[^\"\\\n]|\\.)++)\""
    r"|'(?P<single>(?:[^'\\\n]|\\.)++)'"
    r"|(?P<bare>[^\s\"'`\\,;&]++)"
)
# `max_tokens: 4096` is no assignment of a token: after a name comes nothing, or a `_suffix`.
ASSIGNMENT: Final = re.compile(
    rf"(?i)(?:{_NAME})(?P<suffix>(?:[_-][a-z0-9]{{1,16}}){{0,3}})\\{{0,7}}[\"'`*_]{{0,3}}"
    rf"(?P<sign>\s{{0,3}}(?::\s?[a-z]{{3,10}}\s?=(?=\s?[\"'])|=>|:=|={{1,3}}|:(?!:)[*_]{{0,2}})\s{{0,3}}`?)(?:{_VALUE})"
)
# With which a name begins.
NAMES: Final = ("pass", "pwd", "secret", "credential", "token", "kennwort", "senha")
KEY: Final = "key"
_LONGEST_BEFORE_KEY: Final = max(map(len, _BEFORE_KEY)) + 1
_CLOSERS: Final = ")]}>"
_OF_A_PLACE: Final = ("_file", "_path", "_dir", "_url", "_uri", "-file", "-path")
_SECTION: Final = re.compile(r"\[[\w .:@/-]{1,80}\]\s*\Z")
_SETTING: Final = re.compile(r"\s*(?:[#;].*|[\w.-]{1,60}\s*[=:].*)?\Z")
_PROSE: Final = 6  # blanks of a sentence; a passphrase is of fewer words
_TEST: Final = re.compile(r"(?i)\Atest|\Atests?/|::|/|\A:\w+:")
_FARTHEST: Final = 600  # characters before a line in which the heading of its section is looked for


def assigned(folded: str, names: Iterable[str] = NAMES) -> list[int]:
    """Return the places in a folded text (`places.folded`) where an assigned name may begin, in order. `names`: those
    of `NAMES` that the text holds, if that is known."""
    places = {place for name in names for place in places_of(name, folded)}
    for place in places_of(KEY, folded):
        places.add(place)
        before = folded[max(0, place - _LONGEST_BEFORE_KEY) : place]
        joint = before[-1:] in ("_", "-")
        if before.endswith(_BEFORE_KEY, 0, len(before) - joint):
            befores = (name for name in _BEFORE_KEY if before.endswith(name, 0, len(before) - joint))
            places.update(place - joint - len(name) for name in befores)
    return sorted(places)


def value_of(match: re.Match[str]) -> Span | None:
    """Return the span of the assigned value, if it is plausibly a secret."""
    group = next(name for name in ("nested", "double", "single", "bare") if match[name] is not None)
    value, start = match[group], match.start(group)
    bare = group == "bare"
    if bare:
        before = value.removesuffix(":").rstrip(_CLOSERS)
        value = before if before != value.removesuffix(":") else value
    if is_placeholder(value) or (bare and is_code(value)) or _is_place(value, match):
        return None
    secret = _plausible_password(value, match, quoted=not bare) if match["strong"] else looks_random(value)
    return (start, start + len(value)) if secret else None


def _is_place(value: str, match: re.Match[str]) -> bool:
    """Whether the value names a file: `PWD=/home/x`, `password_file: /run/secrets/x`."""
    return (is_path(value) and not value.isalnum()) or match["suffix"].lower().endswith(_OF_A_PLACE)


def _plausible_password(value: str, match: re.Match[str], *, quoted: bool) -> bool:
    """A password may be any word, so prose and code are told by what surrounds the word."""
    if len(value) < 4:
        return False
    if match["strong"].lower() == "pass" and (
        " " in value or match["suffix"] or not looks_mixed(value) or _TEST.search(value)
    ):
        return False  # `pass: 1024, fail: 3`, or the name of a test that passed
    if value.count(" ") >= _PROSE:
        return False
    if quoted or not is_plain(value):
        return quoted or not value.startswith(("self.", "this."))
    following = match.string[match.end("bare") : match.end("bare") + 1]
    if "=" in match["sign"]:
        if match["sign"].strip() != match["sign"]:  # the code `password = word`, or a line of a section of settings
            return following in ("", "\n", "\r") and _in_section(match)
        return following != "," and match.end("bare") == match.start("bare") + len(value)  # and no argument of a call
    return following in ("", "\n", "\r")  # `password: word` and no sentence


def _in_section(match: re.Match[str]) -> bool:
    """Whether only settings stand between the match and the `[heading]` of a section above it."""
    text, start = match.string, match.start()
    lines = text[max(0, start - _FARTHEST) : start].split("\n")
    for line in reversed(lines[:-1]):
        if _SECTION.search(line):
            return True
        if not _SETTING.match(line):
            return False
    return False
