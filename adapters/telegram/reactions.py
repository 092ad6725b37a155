"""Reactions: the bot's signs, of which a message has one at most, and people's.

A bot is told of reactions between two and, as an admin, in groups; never of a topic
(https://core.telegram.org/bots/api#messagereactionupdated).
"""

from __future__ import annotations

from typing import Final

from adapters.telegram.updates import Reacted
from gateway.domain.adapter import Sign

# Of those that bots may use: https://core.telegram.org/bots/api#reactiontypeemoji
SIGNS: Final[dict[Sign, str]] = {"taken": "👀", "done": "👌", "failed": "💔"}
_OTHERS: Final = {"custom_emoji": "❔", "paid": "⭐"}


def changes(reacted: Reacted) -> str:
    """The signs that were put and taken away, as an Inbound of kind `reaction` has them."""
    before, now = (
        dict.fromkeys(_OTHERS.get(each["type"]) or each["emoji"] for each in side)
        for side in (reacted.old_reaction, reacted.new_reaction)
    )
    gone, came = (each for each in before if each not in now), (each for each in now if each not in before)
    return " ".join([*(f"-{each}" for each in gone), *(f"+{each}" for each in came)])
