"""Notes that give orders to the assistant that reads them, which a poisoned text may make a model write.

Words of people are recorded where they wanted something, and open work stands in a list of tasks: both may be
imperatives. So an order counts only if it takes back the reader's instructions ("ignore all previous …"), tells the
reader what to do ("you must now …", "your next step is to …"), or speaks to the assistant by that name."""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.patterns import late, table

_LINE: Final = 2_000  # characters; a longer line is pasted and no order
# Quotation marks enclose somebody's words.
_QUOTED: Final = late(
    r"“[^”\n]{1,160}”|«[^»\n]{1,160}»|„[^“”\n]{1,160}[“”]|「[^」\n]{1,160}」|\"[^\"\n]{1,160}\"|`[^`\n]{1,160}`"
)
_TABLE: Final = table(__file__)
_BULLET: Final = late(_TABLE["bullet"])

# A line without any of the words of a kind is none of it: to look for words takes a fiftieth of the patterns' time.
_TAKING_BACK: Final = tuple(_TABLE["taking_back"])
_CALLING_UPON: Final = tuple(_TABLE["calling_upon"])
_SPEAKING_TO: Final = tuple(_TABLE["speaking_to"])
_ORDERS: Final = (
    ("to ignore what came before", _TAKING_BACK, late(_TABLE["takes_back"], re.IGNORECASE)),
    ("to do something now", _CALLING_UPON, late(_TABLE["calls_upon"], re.IGNORECASE)),
    ("by its name", _SPEAKING_TO, late(_TABLE["speaks_to"], re.IGNORECASE)),
)


def orders_in(notes: str, spoken: str = "") -> str:
    """Return the kind of the first order in notes, "" if there is none. `spoken`: words of people, which are no orders
    where they stand in the notes on a line of their own."""
    unquoted = _QUOTED.sub(" ", notes)
    said = unquoted.lower()
    told = [order for order in _ORDERS if any(map(said.__contains__, order[1]))]
    for line in unquoted.splitlines() if told else ():
        if len(line) > _LINE:
            continue
        lowered = line.lower()
        kind = next(
            (kind for kind, words, pattern in told if any(map(lowered.__contains__, words)) and pattern.search(line)),
            "",
        )
        if kind and _BULLET.sub("", line, count=1).strip() not in spoken:
            return kind
    return ""
