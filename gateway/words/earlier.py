"""Questions for a state that was changed since ("what was it before?"), and messages that announce a change.

Who asks for the old value is answered by the message that said the old value, and not by the one that replaced it. Nor
is a mistake dear: both are found, and only their order changes.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.patterns import late, table

_TABLE: Final = table(__file__)
# In this order: English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, and scripts of other kinds.
_ASKS: Final = late(_TABLE["asks"], re.IGNORECASE)
_ANNOUNCES: Final = late(_TABLE["announces"], re.IGNORECASE)


def asks_for_earlier(question: str) -> bool:
    """Whether a question is for what held before a change."""
    return _ASKS.search(question) is not None


def without_asking(question: str) -> str:
    """Return a question without the words by which it asks for the earlier state: no message of that state has them."""
    return _ASKS.sub(" ", question)


def announces(text: str) -> bool:
    """Whether a message may be the one that changed something."""
    return _ANNOUNCES.search(text) is not None
