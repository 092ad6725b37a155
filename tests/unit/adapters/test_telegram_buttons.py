"""What Telegram is asked about the button beside the text field and the menus, which are set only where they differ."""

from __future__ import annotations

from typing import Any, cast

import pytest
from telegram import Bot, BotCommand, MenuButtonDefault, MenuButtonWebApp, WebAppInfo
from telegram.error import BadRequest

from adapters.telegram.buttons import menus, show, show_page
from gateway.domain.adapter import MenuEntry


class Account:
    """A bot's own settings at Telegram, and what was changed of them."""

    def __init__(self, button: Any = None) -> None:
        self.button, self.changed = button, list[Any]()
        self.menus: dict[tuple[str, str | None], tuple[BotCommand, ...]] = {}
        self.strangers: list[int] = []

    async def get_chat_menu_button(self) -> Any:
        return self.button

    async def set_chat_menu_button(self, menu_button: Any) -> None:
        self.changed.append(menu_button)

    async def get_my_commands(self, scope: Any, language_code: str | None) -> tuple[BotCommand, ...]:
        return self.menus.get((scope.type, language_code), ())

    async def set_my_commands(self, told: tuple[BotCommand, ...], scope: Any, language_code: str | None) -> None:
        if getattr(scope, "chat_id", None) in self.strangers:
            raise BadRequest("chat not found")
        self.changed.append((scope.type, language_code))
        self.menus[scope.type, language_code] = told


def ours(page: str, text: str = "Legato") -> MenuButtonWebApp:
    return MenuButtonWebApp(text, WebAppInfo(page))


@pytest.mark.parametrize(
    ("shown", "page", "changed"),
    [
        (MenuButtonDefault(), "https://a", [ours("https://a")]),
        (ours("https://a"), "https://a", []),
        (ours("https://b"), "https://a", [ours("https://a")]),
        (ours("https://a", "Shop"), "https://a", [ours("https://a")]),
        (ours("https://a"), None, [MenuButtonDefault()]),
        (ours("https://a", "Shop"), None, []),
        (MenuButtonDefault(), None, []),
    ],
)
async def test_the_button_of_the_page_is_set_or_removed_only_if_it_is_ours(
    shown: Any, page: str | None, changed: list[Any]
) -> None:
    account = Account(shown)
    await show_page(cast(Bot, account), page)
    assert account.changed == changed


ENTRIES = [
    MenuEntry(name="new", help="start anew"),
    MenuEntry(name="usage", help="what it cost", audience="person"),
    MenuEntry(name="access", help="who may talk", audience="admins"),
]


def test_each_audience_has_its_menu() -> None:
    found = {scope.type: [each.command for each in menu] for scope, menu in menus(ENTRIES, ["5"])}
    assert found == {
        "all_private_chats": ["new", "usage"],
        "all_group_chats": ["new"],
        "chat": ["new", "usage", "access"],
    }
    assert len([*menus(ENTRIES[:2], ["5"])]) == 2, "without commands of admins theirs is everybody's"


async def test_menus_are_written_once_in_every_language_and_a_stranger_stops_none() -> None:
    account = Account()
    account.strangers = [5]
    await show(cast(Bot, account), ENTRIES, ["5", "6"])
    written = set(account.changed)
    assert ("all_private_chats", None) in written
    assert len({language for _, language in written}) > 1
    assert "chat" in {scope for scope, _ in written}
    account.changed.clear()
    await show(cast(Bot, account), ENTRIES, ["6"])
    assert account.changed == []
