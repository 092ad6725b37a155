"""Private keys whose beginning was cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gateway.runtime.patterns import late
from gateway.runtime.redaction.places import Span

# A private key whose beginning was cut off, read backwards from its last line: that line is of any
# length if the one before it is long.
_KEY_END = re.compile(r"-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_KEY: Final = 16_384  # characters; RSA with 16,384 bits takes about 13,000
_BREAK = r"(?:\s|[nr]\\)"
_BODY = rf"(?:(?!{_BREAK})[A-Za-z0-9+/=])"
_BREAKS = re.compile(r"\A(?:\s|\\[nr])++")
_REVERSED_KEY = late(rf"{_BREAK}*+(?:{_BODY}++{_BREAK}++(?={_BODY}{{16}}))?+(?:{_BODY}{{16,}}+{_BREAK}*+)*+")


def cut_keys(text: str) -> Iterator[Span]:
    """Yield the spans of private keys without their beginning, up to their last line."""
    done = 0
    for end in _KEY_END.finditer(text):
        before = text[max(done, end.start() - _LONGEST_KEY) : end.start()]
        found = _REVERSED_KEY.match(before[::-1])
        key = _BREAKS.sub("", before[len(before) - found.end() :]) if found is not None else ""
        if key:
            yield end.start() - len(key), end.start()
        done = end.end()
