"""The block that stands in a transcript for a tool result that was too long for it.

All of the result is kept as a file of the conversation; the block says where, how large it is and how to read it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gateway.context.prompts import neutralise

_BLOCK: Final = """\
<persisted-output>
This result has {size:,} characters in {lines:,} lines. All of it is kept as {name}, and only its beginning stands \
here. read_file(file="{name}", offset={shown}) reads on, and with `pattern` it finds lines.

{preview}
</persisted-output>"""
_HEAD: Final = re.compile(
    r"<persisted-output>\nThis result has ([\d,]{1,20}) characters in [^\n]{0,60}? kept as (\S+),"
)


class Persisted(NamedTuple):
    """A block's description of its result."""

    name: str
    size: int  # characters


def block(text: str, name: str, shown: int) -> str:
    """Return the block for a result that is kept as `name`, with its first `shown` characters."""
    preview = neutralise(text[:shown])
    return _BLOCK.format(
        size=len(text), lines=text.count("\n") + 1, name=name, shown=min(shown, len(text)), preview=preview
    )


def persisted(text: str) -> Persisted | None:
    """Return the facts in a tool result that is such a block. No tool can imitate one: see `neutralise`."""
    found = _HEAD.match(text)
    return Persisted(name=found[2], size=int(found[1].replace(",", ""))) if found else None
