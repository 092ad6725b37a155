"""Questions for a state that was changed since ("what was it before?"), and messages that announce a change.

Who asks for the old value is answered by the message that said the old value, and not by the one that replaced it. Nor
is a mistake dear: both are found, and only their order changes.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.patterns import late

# In this order: English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, and scripts of other kinds.
_ASKS: Final = late(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|original(?:ly)?|earlier|initial(?:ly)?|at first|used? to"
    r"|from (?:what|which)|(?:chang|mov|switch|rais|increas|bump|renam|lower|reduc)\w* from"
    r"|prior|the old|back then|in the past"
    r"|vorher\w*|frühere?[mnrs]?|früher|ursprünglich\w*|zuvor|davor|ehemalig\w*|bisher\w*|damals|anfangs"
    r"|avant|auparavant|précédent\w*|ancien\w*|à l.origine|initial\w*|autrefois"
    r"|antes|anterior\w*|originalmente|antigu[oa]s?|previamente|al principio"
    r"|prima|precedent\w*|originari\w*|vecchi[oa]|in origine|all.inizio"
    r"|antig[oa]s?|inicial\w*"
    r"|vroeger\w*|eerder\w*|voorheen|oorspronkelijk\w*"
    r"|раньше|прежде|прежн\w+|до этого|сначала|изначально|первоначальн\w+"
    r")\b|原来|原先|原本|以前|之前|最初|起初|本来|曾经|元々|もともと|前は|元の|変更前|이전|원래|예전|سابق|من قبل"
    r"|في البداية",
    re.IGNORECASE,
)
_ANNOUNCES: Final = late(
    r"\b(?:chang|mov|switch|migrat|rais|increas|bump|renam|replac|cancel|postpon|reschedul|updat|lower|reduc|upgrad)\w*"
    r"|\b(?:now|instead|from now on|as of|no longer|any ?more|new|sold|since|actually|after all"
    r"|jetzt|nun|ab sofort|geändert|umgezogen|verschoben|verlegt|steigt|gestiegen|stattdessen|neue[mnrs]?|nicht mehr"
    r"|umgestellt|gewechselt|inzwischen"
    r"|maintenant|désormais|changé\w*|déplacé\w*|reporté\w*|passe à|au lieu|nouve\w+"
    r"|ahora|cambi\w+|en lugar|nuev[oa]s?|ya no|a partir de"
    r"|adesso|ora|spostat[oa]|nuov[oa]|invece|non più|agora|mud(?:ou|ei|amos)|nov[oa]s?|nu|voortaan|nieuwe?|verzet"
    r"|теперь|перен\w+|измен\w+|вместо|нов\w+|больше не"
    r")\b|改到|改成|改为|换成|换了|搬到|现在|变成|调到|不再|推迟|涨到|変更|変わ|今は|新しい|代わりに|이제|바꿨|变更|الآن|تغير",
    re.IGNORECASE,
)


def asks_for_earlier(question: str) -> bool:
    """Say whether a question is for what held before a change."""
    return _ASKS.search(question) is not None


def without_asking(question: str) -> str:
    """Return a question without the words by which it asks for the earlier state: no message of that state has them."""
    return _ASKS.sub(" ", question)


def announces(text: str) -> bool:
    """Say whether a message may be the one that changed something."""
    return _ANNOUNCES.search(text) is not None
