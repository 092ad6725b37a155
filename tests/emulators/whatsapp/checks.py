"""What Meta refuses in a message (https://developers.facebook.com/documentation/business-messaging/whatsapp/messages),
and what people see of a text (https://faq.whatsapp.com/539178204879377)."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.emulators.whatsapp.world import Json

_MEDIA: Final = ("image", "audio", "video", "document", "sticker")


class Refusal(Exception):
    """An error of the Graph API."""

    def __init__(self, code: int, message: str, details: str, *, status: int = 400, wrong: bool = True) -> None:
        super().__init__(f"{code} {message}: {details}")
        self.code, self.message, self.details, self.status, self.wrong = code, message, details, status, wrong

    @property
    def body(self) -> Json:
        """The answer."""
        data = {"messaging_product": "whatsapp", "details": self.details}
        told = {"message": f"(#{self.code}) {self.message}", "type": "OAuthException", "code": self.code}
        return {"error": {**told, "error_data": data, "fbtrace_id": "AbCdEf"}}


def check(body: Json) -> None:
    """Raise Refusal for a message that Meta would not take."""
    if body.get("messaging_product") != "whatsapp":
        raise Refusal(100, "Invalid parameter", "messaging_product must be whatsapp")
    kind = body.get("type", "text")
    part = body.get(kind)
    if not isinstance(part, dict):
        raise Refusal(131008, "Required parameter is missing", f"Parameter '{kind}' is mandatory")
    if kind == "text":
        _sized("text['body']", part.get("body"), 4_096)
    elif kind in _MEDIA:
        if not part.get("id") and not part.get("link"):
            raise Refusal(131008, "Required parameter is missing", f"{kind} needs an id or a link")
        if "caption" in part and kind in ("audio", "sticker"):
            raise Refusal(100, "Invalid parameter", f"Unexpected key caption on param {kind}")
        if "caption" in part:
            _sized("caption", part["caption"], 1_024)
    elif kind == "interactive":
        _check_interactive(part)
    elif kind == "template":
        for component in part.get("components", ()):
            for each in component["parameters"]:
                _check_parameter(each["text"])
    elif kind != "reaction":
        raise Refusal(100, "Invalid parameter", f"Param type must be one of {{TEXT, IMAGE, …}}, not {kind}")


def _check_parameter(text: str) -> None:
    if re.search(r"[\n\t]| {5,}", text):
        raise Refusal(100, "Invalid parameter", "Param text cannot have new-line/tab or more than 4 consecutive spaces")
    if len(text) > 1_024:
        raise Refusal(132005, "Template hydrated text too long", "The translated text is too long")


def _check_interactive(part: Json) -> None:
    action, kind = part["action"], part["type"]
    if kind == "button":
        _sized("body['text']", part["body"]["text"], 1_024)
        replies = [each["reply"] for each in action["buttons"]]
        if not 1 <= len(replies) <= 3:
            raise Refusal(
                131009, "Parameter value is not valid", "Invalid buttons count. Min allowed buttons: 1, Max: 3"
            )
        _check_titles(replies, "Button title", 20, 256)
    elif kind == "list":
        _sized("body['text']", part["body"]["text"], 4_096)
        _sized("action['button']", action["button"], 20)
        rows = [row for section in action["sections"] for row in section["rows"]]
        if not 1 <= len(rows) <= 10:
            raise Refusal(131009, "Parameter value is not valid", "Total row count exceed max allowed count: 10")
        for section in action["sections"]:
            _sized("Section title", section["title"], 24)
        _check_titles(rows, "Row title", 24, 200)
        for row in rows:
            if "description" in row:
                _sized("Row description", row["description"], 72)
    else:
        raise Refusal(131009, "Parameter value is not valid", f"interactive type {kind} is not known")


def _check_titles(given: list[Json], what: str, most: int, longest_id: int) -> None:
    for each in given:
        _sized(what, each["title"], most)
        _sized(f"{what}: id", each["id"], longest_id)
    if len({each["title"] for each in given}) < len(given) or len({each["id"] for each in given}) < len(given):
        raise Refusal(131009, "Parameter value is not valid", "Duplicated title or id")


def _sized(what: str, text: Any, most: int) -> None:
    size = len(text.encode("utf-16-le")) // 2 if isinstance(text, str) else 0
    if not 1 <= size <= most or not text.strip():
        raise Refusal(
            131009, "Parameter value is not valid", f"{what} length invalid. Min length: 1, Max length: {most}"
        )


# -- what people see -----------------------------------------------------------------------------------

_BLOCK: Final = re.compile(r"```(.+?)```", re.DOTALL)
_CODE: Final = re.compile(r"(?<![^\W_])`(\S|\S[^`\n]*\S)`(?![^\W_])")
_PAIR: Final = re.compile(r"(?<![^\W_])([*_~])(\S|\S[^\n]*?\S)\1(?![^\W_])")
_HELD: Final = re.compile("\ue000(\\d+)\ue001")


def visible(text: str) -> str:
    """The words of a message without the signs that mark them."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[1])
        return f"\ue000{len(held) - 1}\ue001"

    text = _CODE.sub(hold, _BLOCK.sub(hold, text))
    text = re.sub(r"^> ", "", text, flags=re.MULTILINE)
    while (marked := _PAIR.sub(r"\2", text)) != text:
        text = marked
    return _HELD.sub(lambda found: held[int(found[1])], text).replace("\u200a", "")
