"""Buttons, boxes to tick and fields for words: https://docs.slack.dev/reference/block-kit/block-elements. Pure.

What is ticked or written comes with the button that is pressed then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.domain.chat import Button

LONGEST_TOKEN: Final = 150  # of a box's value; a button's may have 2,000
_MOST_ROWS: Final = 47  # blocks of one message, beside its text, its boxes and its field
_MOST_IN_ROW: Final = 25
_MOST_BOXES: Final = 10
_LONGEST_LABEL: Final = 75
_LONGEST_WORDS: Final = 3_000
_TICKS, _WORDS = "ticks", "words"  # names of blocks


def components(rows: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    """The buttons as Slack's blocks."""
    buttons = [each for row in rows for each in row]
    boxes = [{"text": _plain(each.label), "value": each.token} for each in buttons if each.kind == "tick"]
    blocks: list[dict[str, Any]] = []
    if boxes:
        element: dict[str, Any] = {"type": "checkboxes", "action_id": _TICKS, "options": boxes[:_MOST_BOXES]}
        blocks.append({"type": "actions", "block_id": _TICKS, "elements": [element]})
    if any(each.kind == "words" for each in buttons):
        element = {"type": "plain_text_input", "action_id": _WORDS, "multiline": True, "max_length": _LONGEST_WORDS}
        label = _plain("Your answer")
        blocks.append({"type": "input", "block_id": _WORDS, "optional": True, "label": label, "element": element})
    shown = [[each for each in row if each.kind != "tick"] for row in rows]
    for number, row in enumerate([row for row in shown if row][:_MOST_ROWS]):
        elements = [_button(each, f"{number} {place}") for place, each in enumerate(row[:_MOST_IN_ROW])]
        blocks.append({"type": "actions", "elements": elements})
    return blocks


def _button(button: Button, name: str) -> dict[str, Any]:
    name = f"{button.kind} {name}"
    return {"type": "button", "action_id": name, "text": _plain(button.label), "value": button.token}


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text[:_LONGEST_LABEL]}


def said(data: Mapping[str, Any]) -> str:
    """What a press says, as the text of an Inbound: after a `send` what is ticked, after `words` what is written."""
    action = data["actions"][0]
    values = (data.get("state") or {}).get("values") or {}
    lines = [str(action.get("value", ""))]
    kind = action["action_id"].partition(" ")[0]
    if kind == "send":
        lines += [each["value"] for each in values.get(_TICKS, {}).get(_TICKS, {}).get("selected_options") or ()]
    if kind == "words" and (written := values.get(_WORDS, {}).get(_WORDS, {}).get("value")):
        lines.append(written)
    return "\n".join(lines)
