"""Buttons under a message. They carry their token themselves, so they work for whichever process reads next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gateway.domain.chat import Button

_MOST_ROWS: Final = 5  # https://discord.com/developers/docs/components/reference#action-row
_MOST_IN_ROW: Final = 5
_LONGEST_LABEL: Final = 80


def components(rows: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    """The buttons as Discord's JSON; none: an edit takes those away that a message has."""
    return [
        {
            "type": 1,
            "components": [
                {"type": 2, "style": 2, "label": button.label[:_LONGEST_LABEL], "custom_id": button.token}
                for button in row[:_MOST_IN_ROW]
            ],
        }
        for row in rows[:_MOST_ROWS]
    ]
