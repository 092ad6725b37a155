"""The bodies of messages: https://developers.facebook.com/documentation/business-messaging/whatsapp/messages. Pure.

Up to three short answers are buttons; more, or longer ones, are the rows of a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.delivery.markdown.characters import last_boundary, length
from gateway.domain.chat import Button

LONGEST_TOKEN: Final = 200  # bytes of a row's id; a button's may have 256
_BUTTONS: Final = 3
_BUTTON_TITLE: Final = 20
_BUTTONS_BODY: Final = 1_024
_ROWS: Final = 10
_ROW_TITLE: Final = 24
_ROW_MORE: Final = 72  # the second line of a row
_CHOOSE: Final = "Choose"
_LONGEST_PARAMETER: Final = 900  # of the 1,024 characters that a template has with its own words
REST: Final = "… (write to me, and /last shows the rest)"

Json = dict[str, Any]


def addressed(person: str, content: Mapping[str, Any], *, row: str = "", quotes: str = "") -> Json:
    """A message to somebody. `row`: what its statuses are to name; `quotes`: the message that it answers."""
    whom = {"to": person} if person.isdecimal() else {"recipient": person}
    body: Json = {"messaging_product": "whatsapp", "recipient_type": "individual", **whom, **content}
    if row:
        body["biz_opaque_callback_data"] = row
    if quotes:
        body["context"] = {"message_id": quotes}
    return body


def text(words: str) -> Json:
    """Only words."""
    return {"type": "text", "text": {"body": words, "preview_url": False}}


def reaction(message: str, emoji: str) -> Json:
    """A reaction to a message, in place of the one before."""
    return {"type": "reaction", "reaction": {"message_id": message, "emoji": emoji}}


def with_buttons(words: str, rows: Sequence[Sequence[Button]]) -> Json:
    """Words with the buttons that are pressed; what is written instead comes as the next message."""
    buttons = [each for row in rows for each in row if each.kind != "words"][:_ROWS]
    if not buttons:
        return text(words)
    short = all(_size(each.label) <= _BUTTON_TITLE for each in buttons)
    body: Json = {"text": words}
    if short and len(buttons) <= _BUTTONS and _size(words) <= _BUTTONS_BODY:
        titles = _different([each.label for each in buttons], _BUTTON_TITLE)
        replies = [{"id": each.token, "title": title} for each, title in zip(buttons, titles, strict=True)]
        action: Json = {"buttons": [{"type": "reply", "reply": each} for each in replies]}
        return {"type": "interactive", "interactive": {"type": "button", "body": body, "action": action}}
    titles = _different([each.label for each in buttons], _ROW_TITLE)
    listed = [_row(each, title) for each, title in zip(buttons, titles, strict=True)]
    action = {"button": _CHOOSE, "sections": [{"title": _CHOOSE, "rows": listed}]}
    return {"type": "interactive", "interactive": {"type": "list", "body": body, "action": action}}


def spelled_out(words: str, rows: Sequence[Sequence[Button]]) -> Json:
    """Only words, including what could be pressed: for a message with buttons that is not accepted."""
    labels = [each.label for row in rows for each in row if each.kind != "words"]
    return text("\n".join([words, *(f"- {each}" for each in labels)]))


def template(name: str, language: str, words: str) -> Json:
    """An approved message with the words as its only parameter, which may have no line ends."""
    flat = " · ".join(" ".join(line.split()) for line in words.splitlines() if line.strip())
    if len(flat) > _LONGEST_PARAMETER:
        flat = flat[: last_boundary(flat, _LONGEST_PARAMETER - len(REST))] + REST
    said = {"type": "body", "parameters": [{"type": "text", "text": flat}]}
    return {"type": "template", "template": {"name": name, "language": {"code": language}, "components": [said]}}


def _row(button: Button, title: str) -> Json:
    row, more = {"id": button.token, "title": title}, _cut(button.label, _ROW_MORE)
    return {**row, "description": more} if more not in ("", title) else row


def _different(labels: Sequence[str], most: int) -> list[str]:
    """Titles of at most so many characters, no two alike."""
    titles: list[str] = []
    for label in labels:
        title, number = _cut(label.strip() or "–", most), 2
        while title in titles:
            title, number = f"{_cut(label, most - 3)} {number}", number + 1
        titles.append(title)
    return titles


def _cut(label: str, most: int) -> str:
    label = " ".join(label.split())
    if _size(label) <= most:
        return label
    end = most - 1
    while _size(label[:end]) >= most:
        end -= 1
    return label[: last_boundary(label, end)].rstrip() + "…"


def _size(words: str) -> int:
    return length(words, "utf16")
