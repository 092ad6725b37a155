"""Buttons, menus and forms: https://discord.com/developers/docs/components/reference. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.domain.chat import Button

_ROW, _BUTTON, _MENU, _INPUT = 1, 2, 3, 4
_MOST_ROWS: Final = 5
_MOST_IN_ROW: Final = 5
_MOST_OPTIONS: Final = 25
_LONGEST_LABEL: Final = 80
_LONGEST_OPTION: Final = 100
_LONGEST_WORDS: Final = 2_000
_FORM: Final = "form:"  # before the token of a button that opens one


def components(rows: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    """The buttons as Discord's JSON; none: an edit takes those away that a message has."""
    menu = list(_menu([each for row in rows for each in row]))
    left = [[each for each in row if each.kind not in ("tick", "send")] if menu else row for row in rows]
    rows, room = [row for row in left if row], _MOST_ROWS - len(menu)
    if len(rows) > room:  # those that stand alone come side by side
        single, others = [row[0] for row in rows if len(row) == 1], [row for row in rows if len(row) > 1]
        wide = -(-len(single) // max(1, room - len(others)))
        rows = [*(single[at : at + wide] for at in range(0, len(single), wide)), *others]
    return [*menu, *(_row(map(_button, row[:_MOST_IN_ROW])) for row in rows[:room])]


def _menu(buttons: Sequence[Button]) -> Iterator[dict[str, Any]]:
    """What can be ticked, as a menu in a row of its own: it sends the choice by itself."""
    ticks = [each for each in buttons if each.kind == "tick"][:_MOST_OPTIONS]
    if ticks:
        sends = next(each for each in buttons if each.kind == "send")
        options = [{"label": each.label[:_LONGEST_OPTION], "value": each.token} for each in ticks]
        limits = {"min_values": 1, "max_values": len(ticks)}
        yield _row([{"type": _MENU, "custom_id": sends.token, "options": options, **limits}])


def _button(button: Button) -> dict[str, Any]:
    name = f"{_FORM}{button.token}" if button.kind == "words" else button.token
    return {"type": _BUTTON, "style": 2, "label": button.label[:_LONGEST_LABEL], "custom_id": name}


def _row(parts: Any) -> dict[str, Any]:
    return {"type": _ROW, "components": list(parts)}


def form_for(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The form that a pressed button opens; None: it opens none."""
    name = str(data.get("custom_id", ""))
    if not name.startswith(_FORM):
        return None
    words = {"type": _INPUT, "custom_id": "words", "style": 2, "label": "Your answer", "max_length": _LONGEST_WORDS}
    return {"custom_id": name.removeprefix(_FORM), "title": "Your answer", "components": [_row([words])]}


def said(data: Mapping[str, Any]) -> str:
    """What a press says, or a menu or a form, as the text of an Inbound."""
    rows = data.get("components") or ()
    words = [str(each.get("value", "")) for row in rows for each in row.get("components") or ()]
    return "\n".join([data["custom_id"], *data.get("values", ()), *words])
