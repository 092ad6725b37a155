"""Credentials beside a name such as `password`: in elements, tables, options and declarations.

A match begins where `assignments.assigned` says that a name may begin.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.redaction.kind import Kind
from gateway.runtime.redaction.plausible import holds_chosen, holds_mixed

_SECRET_NAME = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[_-]?key|private[_-]?key|access[_-]?key|credentials?)"
)
_DASHES: Final = re.compile(r"(?:\A|[\s\"'=])--(?:[A-Za-z0-9]{1,16}-){0,3}\Z")
_LONGEST_NAME: Final = 60  # characters of an option before its last word


def _is_option(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - _LONGEST_NAME) : match.start()]
    return holds_chosen(match) and _DASHES.search(before) is not None


NAMED: Final[tuple[Kind, ...]] = (
    Kind(
        "element",
        "",
        rf"(?i){_SECRET_NAME}[\w.:-]{{0,20}}+>\s{{0,3}}([^<>{{}}\s][^<>{{}}\n]{{3,200}}+)</",
        plausible=holds_chosen,
        needs="</",
    ),
    Kind(
        "attribute",
        "",
        rf"(?i){_SECRET_NAME}[\w.-]{{0,20}}+\"\s{{1,3}}value=\"([^\"<>{{}}\n]{{4,200}}+)\"",
        plausible=holds_chosen,
        needs='value="',
    ),
    Kind(
        "property",
        "",
        rf"(?i){_SECRET_NAME}[\w.-]{{0,20}}+\">\s{{0,3}}([^<>{{}}\s]{{4,200}}+)\s{{0,3}}</",
        plausible=holds_mixed,
        needs="</",
    ),
    Kind(
        "cell of a table",
        "",
        rf"(?i){_SECRET_NAME}[`*\"]{{0,2}}(?:\s{{0,20}}(?:[|│┃]|</t[dh]>\s{{0,9}}<td>)[ `\t]{{0,20}}|\t{{1,3}})"
        r"([^\s|│┃()`<>]{4,200}+)[ `\t]{0,20}(?=[|│┃\n<]|\Z)",
        plausible=holds_mixed,
    ),
    Kind(
        "default of a variable",
        "",
        rf"(?i){_SECRET_NAME}[\w-]{{0,20}}+\"\s{{0,3}}\{{(?:(?!default)[^}}]){{0,200}}+default\s{{0,20}}=\s{{0,20}}\"([^\"\n]{{4,200}}+)\"",
        plausible=holds_chosen,
        needs="default",
    ),
    Kind(
        "option",
        "",
        rf"(?i){_SECRET_NAME}(?:[\"'],?\s{{1,3}}|\s{{1,3}}|=)[\"']?((?![-<$\[{{(])[^\s\"'<>\[\]]{{4,200}}+)",
        plausible=_is_option,
    ),
    Kind(
        "passphrase of words",
        "",
        r"(?im)passphrase\\?[\"']?\s{0,3}[:=]\s{0,3}((?:[a-z]{3,12}[ -]){3,9}+[a-z]{3,12})(?=\s{0,3}$|\\[nr])",
        needs="passphrase",
    ),
)
