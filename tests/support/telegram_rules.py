"""Telegram's rules for a message, written from the Bot API's documentation and not from Legato's messages.

https://core.telegram.org/bots/api#formatting-options, #messageentity and #sendmessage; what happens to
more than a hundred entities and to links without a host is known from Telegram's own clients.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

Entity = dict[str, Any]  # as Telegram's JSON has it

STYLES = {"bold", "italic", "underline", "strikethrough", "spoiler"}
CODE = {"code", "pre"}
QUOTES = {"blockquote", "expandable_blockquote"}
FIELDS = {"text_link": {"url"}, "pre": {"language"}}


def in_units(text: str) -> bytes:
    """`text` in UTF-16, two bytes a unit; fails for half a character."""
    return text.encode("utf-16-le")


def marked(text: str, entity: Entity) -> str:
    """Return the text that an entity marks; fails if it tears a character or reaches out of the text."""
    data = in_units(text)
    start, end = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
    assert 0 <= start < end <= len(data), f"{entity} is not within {len(data) // 2} units"
    return data[start:end].decode("utf-16-le")


def faults(text: str, entities: list[Entity]) -> list[str]:
    """Everything for which Telegram would refuse a message, or show it otherwise than it was sent."""
    found = []
    if not text.strip():
        found.append("the text is empty")
    if len(in_units(text)) > 2 * 4096:
        found.append("the text is too long")
    if len(entities) > 100:
        found.append(f"{len(entities)} entities: all after the hundredth are ignored")
    if sum(16 + len(str(entity.get("url", "")).encode()) for entity in entities) > 9_500:
        found.append("ENTITIES_TOO_LONG")
    for number, entity in enumerate(entities):
        found += _faults_of_one(text, entity)
        found += [fault for other in entities[:number] for fault in _faults_of_two(other, entity)]
    return found


def _faults_of_one(text: str, entity: Entity) -> list[str]:
    found = []
    kind = entity["type"]
    if kind not in STYLES | CODE | QUOTES | {"text_link"}:
        found.append(f"{kind} is not an entity that bots send")
    if not marked(text, entity).strip():
        found.append(f"{entity} marks nothing but white space")
    if set(entity) - {"type", "offset", "length"} - FIELDS.get(kind, set()):
        found.append(f"{entity} has fields that are not its own")
    if kind == "text_link":
        url = urlsplit(entity["url"])
        if url.scheme.lower() not in ("http", "https") or "." not in (url.hostname or "") or " " in entity["url"]:
            found.append(f"the link {entity['url']!r} is invalid")
    return found


def _faults_of_two(one: Entity, other: Entity) -> list[str]:
    """Two that share characters: one holds the other, and is allowed to."""
    first, second = ((entity["offset"], entity["offset"] + entity["length"]) for entity in (one, other))
    if first[1] <= second[0] or second[1] <= first[0]:
        return []
    if first[0] <= second[0] and second[1] <= first[1]:
        outer, inner = one["type"], other["type"]
    elif second[0] <= first[0] and first[1] <= second[1]:
        outer, inner = other["type"], one["type"]
    else:
        return [f"{one} and {other} overlap in part"]
    if first == second and {outer, inner} & QUOTES:
        outer, inner = sorted((outer, inner), key=lambda kind: kind not in QUOTES)
    allowed = (
        outer != inner
        and outer not in CODE
        and not {outer, inner} <= QUOTES
        and (inner in STYLES or outer in QUOTES or (outer in STYLES and inner not in CODE))
    )
    return [] if allowed else [f"{inner} in {outer}: {one}, {other}"]
