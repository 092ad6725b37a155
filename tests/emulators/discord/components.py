"""Buttons and menus under a message, and what Discord refuses among them.

Source: https://discord.com/developers/docs/components/reference.
"""

from __future__ import annotations

from typing import Any, Final

from tests.emulators.discord.refusals import bad_length, invalid, missing, too_long

ROW, BUTTON, STRING_SELECT, TEXT_INPUT = 1, 2, 3, 4
SELECTS: Final = (3, 5, 6, 7, 8)
LAYOUTS: Final = (9, 10, 12, 13, 14, 17)  # only with the flag IS_COMPONENTS_V2
MOST_ROWS: Final = 5
MOST_BUTTONS: Final = 5
LONGEST_ID: Final = 100
LONGEST_LABEL: Final = 80
MOST_OPTIONS: Final = 25


def check_components(components: Any, *, v2: bool) -> None:
    """Raise the refusal of components that break a limit. `v2`: the message has the flag of the newer kinds."""
    if not isinstance(components, list):
        raise invalid("components", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
    if not v2 and len(components) > MOST_ROWS:
        raise bad_length("components", 1, MOST_ROWS)
    seen: set[str] = set()
    for place, component in enumerate(components):
        path = f"components.{place}"
        kind = component.get("type")
        if kind == ROW:
            _check_row(component, path, seen)
        elif not v2 or kind not in LAYOUTS:
            raise invalid(f"{path}.type", "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (1,).')


def _check_row(row: dict[str, Any], path: str, seen: set[str]) -> None:
    children = row.get("components")
    if not isinstance(children, list) or not 1 <= len(children) <= MOST_BUTTONS:
        raise bad_length(f"{path}.components", 1, MOST_BUTTONS)
    selects = [child for child in children if child.get("type") in SELECTS]
    if selects and len(children) > 1:
        raise invalid(path, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "Width of the row exceeds 5")
    for place, child in enumerate(children):
        where = f"{path}.components.{place}"
        if child.get("type") == BUTTON:
            _check_button(child, where, seen)
        elif child.get("type") in SELECTS:
            _check_id(child, where, seen)
            if child["type"] == STRING_SELECT:
                _check_options(child, where)
        else:
            raise invalid(
                f"{where}.type", "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (2, 3, 5, 6, 7, 8).'
            )


def _check_button(button: dict[str, Any], path: str, seen: set[str]) -> None:
    style = button.get("style")
    if not isinstance(style, int) or not 1 <= style <= 6:
        raise invalid(f"{path}.style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
    if not button.get("label") and not button.get("emoji"):
        raise invalid(path, "BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED", "A button must have a label or emoji")
    if len(button.get("label") or "") > LONGEST_LABEL:
        raise too_long(f"{path}.label", LONGEST_LABEL)
    if style == 5:
        if not button.get("url"):
            raise invalid(path, "BUTTON_COMPONENT_URL_REQUIRED", "A url is required")
        if button.get("custom_id"):
            raise invalid(
                path,
                "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                "A custom id and url cannot both be specified",
            )
        return
    if button.get("url"):
        raise invalid(path, "BUTTON_COMPONENT_INVALID_URL", "A url cannot be specified for this style")
    _check_id(button, path, seen)


def _check_id(component: dict[str, Any], path: str, seen: set[str]) -> None:
    identity = component.get("custom_id")
    if not identity:
        raise missing(f"{path}.custom_id")
    if len(identity) > LONGEST_ID:
        raise bad_length(f"{path}.custom_id", 1, LONGEST_ID)
    if identity in seen:
        raise invalid(f"{path}.custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
    seen.add(identity)


def _check_options(select: dict[str, Any], path: str) -> None:
    options = select.get("options") or ()
    if not 1 <= len(options) <= MOST_OPTIONS:
        raise bad_length(f"{path}.options", 1, MOST_OPTIONS)
    for place, option in enumerate(options):
        for name in ("label", "value"):
            if not 1 <= len(str(option.get(name, ""))) <= 100:
                raise bad_length(f"{path}.options.{place}.{name}", 1, 100)
