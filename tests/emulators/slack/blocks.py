"""What Slack refuses in a message: https://docs.slack.dev/reference/block-kit/blocks"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

MOST_BLOCKS: Final = 50
LONGEST_SECTION: Final = 3_000
LONGEST_TEXT: Final = 40_000  # what is behind it is cut off
LONGEST_EDIT: Final = 4_000
_STYLES: Final = {"bold", "italic", "strike", "code"}
_GROUPS: Final = ("rich_text_section", "rich_text_quote", "rich_text_preformatted")


def faults(blocks: Any) -> Iterator[str]:
    """What is wrong with these blocks."""
    if not isinstance(blocks, list) or len(blocks) > MOST_BLOCKS:
        yield f"no more than {MOST_BLOCKS} items allowed [json-pointer:/blocks]"
        return
    for number, block in enumerate(blocks):
        where = f"[json-pointer:/blocks/{number}]"
        match block.get("type"):
            case "rich_text":
                yield from (f"{each} {where}" for each in _of_rich_text(block))
            case "actions":
                yield from (f"{each} {where}" for each in _of_actions(block))
            case "input":
                yield from (f"{each} {where}" for each in _of_input(block))
            case "section":
                if not 0 < len(block.get("text", {}).get("text", "")) <= LONGEST_SECTION:
                    yield f"must be 1 to {LONGEST_SECTION} characters {where}"
            case "header" | "divider" | "context":
                pass
            case other:
                yield f"unsupported type: {other} {where}"


def view_faults(view: dict[str, Any]) -> Iterator[str]:
    """What is wrong with this modal: https://docs.slack.dev/reference/views/modal-views"""
    if view.get("type") != "modal" or len(view.get("private_metadata", "")) > 3_000:
        yield "no modal, or its private_metadata is longer than 3,000 characters"
    for name in ("title", "submit"):
        if not 1 <= len(view.get(name, {}).get("text", "")) <= 24:
            yield f"{name} must be 1 to 24 characters"
    yield from faults(view.get("blocks"))


def _of_rich_text(block: dict[str, Any]) -> Iterator[str]:
    if not block.get("elements"):
        yield "must have elements"
    for group in block.get("elements", ()):
        if group.get("type") not in _GROUPS or not group.get("elements"):
            yield f"invalid element: {group}"
            continue
        for each in group["elements"]:
            style = each.get("style", {})
            if each.get("type") not in ("text", "link") or set(style) - _STYLES:
                yield f"invalid element: {each}"
            elif each["type"] == "text" and not each.get("text"):
                yield "must be more than 0 characters"
            elif each["type"] == "link" and not str(each.get("url", "")).startswith(("http://", "https://", "mailto:")):
                yield f"invalid url: {each}"
            elif style and group["type"] == "rich_text_preformatted":
                yield f"no style in preformatted text: {each}"


def _of_actions(block: dict[str, Any]) -> Iterator[str]:
    elements = block.get("elements", [])
    if not 1 <= len(elements) <= 25:
        yield "must have 1 to 25 elements"
    if len({each.get("action_id") for each in elements}) < len(elements):
        yield "action_id already exists"
    for each in elements:
        label = each.get("text", {})
        if each.get("type") == "multi_static_select":
            yield from _of_menu(each)
        elif each.get("type") != "button" or label.get("type") != "plain_text":
            yield f"invalid element: {each}"
        elif not 1 <= len(label.get("text", "")) <= 75 or len(each.get("value", "")) > 2_000:
            yield f"too long: {each}"


def _of_menu(element: dict[str, Any]) -> Iterator[str]:
    options = element.get("options", [])
    if not 1 <= len(options) <= 100:
        yield "must have 1 to 100 options"
    if not 1 <= len(element.get("placeholder", {}).get("text", "")) <= 150:
        yield "must have a placeholder of 1 to 150 characters"
    for each in options:
        if not 1 <= len(each.get("text", {}).get("text", "")) <= 75 or not 1 <= len(each.get("value", "")) <= 150:
            yield f"too long: {each}"


def _of_input(block: dict[str, Any]) -> Iterator[str]:
    element, label = block.get("element", {}), block.get("label", {})
    if element.get("type") != "plain_text_input" or not element.get("action_id"):
        yield f"invalid element: {element}"
    if element.get("max_length", 1) > 3_000 or not 1 <= len(label.get("text", "")) <= 2_000:
        yield "too long"
