"""Buttons, menus and forms: https://docs.slack.dev/reference/block-kit/block-elements. Pure.

What is chosen in a menu comes with the button that is pressed then. What is written in a form comes as if the button
that opened it had been pressed with these words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.domain.chat import Button

LONGEST_TOKEN: Final = 150  # of an option's value; a button's may have 2,000
_MOST_ROWS: Final = 48  # blocks of one message, beside its text and its menu
_MOST_IN_ROW: Final = 25
_MOST_OPTIONS: Final = 100
_LONGEST_LABEL: Final = 75
_LONGEST_WORDS: Final = 3_000
_TICKS, _WORDS = "ticks", "words"  # names of blocks


def components(rows: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    """The buttons as Slack's blocks."""
    buttons = [each for row in rows for each in row]
    options = [{"text": _plain(each.label), "value": each.token} for each in buttons if each.kind == "tick"]
    blocks: list[dict[str, Any]] = []
    if options:
        menu = {"type": "multi_static_select", "action_id": _TICKS, "placeholder": _plain("Choose …")}
        blocks.append(
            {"type": "actions", "block_id": _TICKS, "elements": [{**menu, "options": options[:_MOST_OPTIONS]}]}
        )
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


def form_for(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The call of views.open for a press of a button that asks for words; None for any other. The form keeps the
    press."""
    action = data["actions"][0] if data.get("actions") else {}
    if not str(action.get("action_id", "")).startswith(_WORDS):
        return None
    thread = (data.get("message") or {}).get("thread_ts")
    press = {"actions": [action], "container": data["container"], "message": {"thread_ts": thread}}
    element = {"type": "plain_text_input", "action_id": _WORDS, "multiline": True, "max_length": _LONGEST_WORDS}
    view = {
        "type": "modal",
        "title": _plain("Your answer"),
        "submit": _plain("Send"),
        "private_metadata": json.dumps(press),
        "blocks": [{"type": "input", "block_id": _WORDS, "label": _plain("In other words"), "element": element}],
    }
    return {"trigger_id": data["trigger_id"], "view": view}


def pressed(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent with a form, as the press that opened it."""
    if data.get("type") != "view_submission":
        return {**data}
    view = data["view"]
    return {**data, **json.loads(view["private_metadata"]), "type": "block_actions", "state": view["state"]}


def said(data: Mapping[str, Any]) -> str:
    """What a press says, as the text of an Inbound: after a `send` what is chosen, after `words` what is written."""
    action = data["actions"][0]
    values = (data.get("state") or {}).get("values") or {}
    lines = [str(action.get("value", ""))]
    kind = action["action_id"].partition(" ")[0]
    if kind == "send":
        lines += [each["value"] for each in values.get(_TICKS, {}).get(_TICKS, {}).get("selected_options") or ()]
    if kind == "words" and (written := values.get(_WORDS, {}).get(_WORDS, {}).get("value")):
        lines.append(written)
    return "\n".join(lines)
