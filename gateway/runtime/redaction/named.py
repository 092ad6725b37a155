"""Credentials beside a name such as `password`: in elements, tables, options and declarations.

A match begins where `assignments.assigned` says that a name may begin.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.patterns import table
from gateway.runtime.redaction.kinds import kinds
from gateway.runtime.redaction.plausible import holds_chosen

_DASHES: Final = re.compile(r"(?:\A|[\s\"'=])--(?:[A-Za-z0-9]{1,16}-){0,3}\Z")
_LONGEST_NAME: Final = 60  # characters of an option before its last word


def _is_option(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - _LONGEST_NAME) : match.start()]
    return holds_chosen(match) and _DASHES.search(before) is not None


DASH: Final = "-"
PASS: Final = "pass:"  # with which the one kind begins that has no option of its own
# In a text without any of these options are none of the others.
OPTION: Final = re.compile(r"-(?<=\s-)(?:[abpuwPU]|-(?:user|proxy-user|cookie))")
_KINDS: Final = kinds(table(__file__), is_option=_is_option)
NAMED: Final = tuple(kind for kind in _KINDS if not kind.starts)
COMMANDS: Final = tuple(kind for kind in _KINDS if kind.starts)  # up to their options, over lines that end in "\\"
