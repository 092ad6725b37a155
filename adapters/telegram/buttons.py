"""Buttons: how they are shown, and the answer to a press; and the menu of commands.

Telegram shows a press as under way until the bot answers it (https://core.telegram.org/bots/api#callbackquery), so
each is answered, also one that means nothing here, and as soon as its update is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import structlog
from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MenuButtonDefault,
    MenuButtonWebApp,
    WebAppInfo,
)
from telegram.error import TelegramError

from adapters.telegram.codec import press_id
from adapters.telegram.updates import Update
from gateway.domain.adapter import Accepted, MenuEntry
from gateway.domain.chat import Button
from gateway.domain.command import translated
from gateway.runtime.tasks import Background

log = structlog.get_logger(__name__)

LONGEST_TOKEN: Final = 64  # bytes of `callback_data`: https://core.telegram.org/bots/api#inlinekeyboardbutton
_LONGEST_ANSWER: Final = 200  # characters: https://core.telegram.org/bots/api#answercallbackquery


def keyboard(rows: Sequence[Sequence[Button]]) -> InlineKeyboardMarkup | None:
    """Return the buttons under a message; None: an edit takes the present ones away."""
    if not rows:
        return None
    shown = [[each for each in row if each.kind != "words"] for row in rows]  # the next message has the words
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(each.label, callback_data=each.token) for each in row] for row in shown if row]
    )


class ButtonAnswers:
    """Answers presses. Reading updates does not wait for these answers."""

    def __init__(self) -> None:
        self._answering = Background()

    def answer(self, bot: Bot, updates: Iterable[Update], accepted: Sequence[Accepted]) -> None:
        """Answer the presses of these updates, which are stored now."""
        for update in updates:
            if (query := update.callback_query) is not None:
                event = press_id(bot.id, query.id)
                text = next((each.told for each in accepted if each.event_id == event), "")
                self._answering.start(self._answer(bot, query.id, text), name="press")

    async def _answer(self, bot: Bot, query: str, text: str) -> None:
        try:
            await bot.answer_callback_query(query, text[:_LONGEST_ANSWER] or None)
        except TelegramError as error:  # too late, or answered before; the decision stands under the question
            log.info("press_not_answered", error=error.message)

    async def aclose(self) -> None:
        await self._answering.aclose()


# -- the menu of commands ------------------------------------------------------------------------------


_MOST: Final = 100  # commands of one menu
_PAGE: Final = "Legato"  # what the button of the page says
_IN_GROUPS: Final = ("everybody",)
_BETWEEN_TWO: Final = ("everybody", "person")


async def show(bot: Bot, entries: Sequence[MenuEntry], admins: Sequence[str]) -> None:
    """Set the menus that are not as they should be, in every language. `admins`: user ids."""
    translations = translated()
    for scope, menu in menus(entries, admins):
        try:
            for language in (None, *translations):
                known = translations.get(language or "", {})
                told = tuple(BotCommand(each.command, known.get(each.command, each.description)) for each in menu)
                if told != await bot.get_my_commands(scope=scope, language_code=language):
                    await bot.set_my_commands(told, scope=scope, language_code=language)
        except TelegramError as error:  # of an admin's own: they never wrote to the bot
            log.info("menu_not_set", scope=scope.type, error=error.message)


async def show_page(bot: Bot, page: str | None) -> None:
    """Let the button beside the text field open the page; None: remove it, if it is ours."""
    shown = await bot.get_chat_menu_button()
    ours = isinstance(shown, MenuButtonWebApp) and shown.text == _PAGE
    if page is not None and not (ours and shown.web_app.url == page):  # type: ignore[attr-defined]
        await bot.set_chat_menu_button(menu_button=MenuButtonWebApp(_PAGE, WebAppInfo(page)))
    elif page is None and ours:
        await bot.set_chat_menu_button(menu_button=MenuButtonDefault())


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
