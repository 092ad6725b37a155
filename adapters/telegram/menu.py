"""The menus of commands. Telegram shows the menu of the narrowest scope that has one:
https://core.telegram.org/bots/api#determining-list-of-commands"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import structlog
from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
)
from telegram.error import TelegramError

from gateway.domain.adapter import MenuEntry

log = structlog.get_logger(__name__)

_MOST: Final = 100  # commands of one menu
_IN_GROUPS: Final = ("everybody",)
_BETWEEN_TWO: Final = ("everybody", "person")


async def show(bot: Bot, entries: Sequence[MenuEntry], admins: Sequence[str]) -> None:
    """Set the menus that are not as they should be. `admins`: user ids."""
    for scope, menu in menus(entries, admins):
        try:
            if tuple(menu) != await bot.get_my_commands(scope=scope):
                await bot.set_my_commands(menu, scope=scope)
        except TelegramError as error:  # of an admin's own: they never wrote to the bot
            log.info("menu_not_set", scope=scope.type, error=error.message)


def menus(
    entries: Sequence[MenuEntry], admins: Sequence[str]
) -> Iterator[tuple[BotCommandScope, Sequence[BotCommand]]]:
    """The menu of each scope that has one."""

    def listed(*audiences: str) -> list[BotCommand]:
        return [BotCommand(each.name, each.help) for each in entries if each.audience in audiences][:_MOST]

    yield BotCommandScopeAllPrivateChats(), listed(*_BETWEEN_TWO)
    yield BotCommandScopeAllGroupChats(), listed(*_IN_GROUPS)
    if any(each.audience == "admins" for each in entries):
        for admin in admins:
            yield BotCommandScopeChat(chat_id=int(admin)), listed(*_BETWEEN_TWO, "admins")
