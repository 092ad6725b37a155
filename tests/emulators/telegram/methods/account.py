"""The bot itself: who it is, its commands."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tests.emulators.telegram import access
from tests.emulators.telegram.cloud import Cloud
from tests.emulators.telegram.parameters import Parameters
from tests.emulators.telegram.refusals import bad

MOST_COMMANDS: Final = 100
LONGEST_COMMAND: Final = 32
LONGEST_DESCRIPTION: Final = 256
_COMMAND = re.compile(r"[a-z0-9_]+")
_WIDE_SCOPES: Final = ("default", "all_private_chats", "all_group_chats", "all_chat_administrators")
_CHAT_SCOPES: Final = ("chat", "chat_administrators", "chat_member")


def get_me(cloud: Cloud, parameters: Parameters) -> Any:
    """`getMe`."""
    return {
        **cloud.world.bot.as_json(),
        "can_join_groups": True,
        "can_read_all_group_messages": not cloud.settings.privacy,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


def set_my_commands(cloud: Cloud, parameters: Parameters) -> Any:
    """`setMyCommands`, for a scope and a language."""
    given = parameters.structure("commands", "commands")
    if not isinstance(given or [], list):
        raise bad("Expected an Array of BotCommand")
    commands = [_command(item) for item in given or ()]
    if len(commands) > MOST_COMMANDS:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    place = _place(cloud, parameters)
    if commands:
        cloud.commands[place] = commands
    else:
        cloud.commands.pop(place, None)
    return True


def get_my_commands(cloud: Cloud, parameters: Parameters) -> Any:
    """`getMyCommands`: of exactly this scope and language."""
    return cloud.commands.get(_place(cloud, parameters), [])


def _command(item: Any) -> dict[str, str]:
    if not isinstance(item, dict):
        raise bad("Can't parse BotCommand: expected an Object")
    for name in ("command", "description"):
        if not isinstance(item.get(name), str):
            raise bad(f"Can't parse BotCommand: Can't find field \"{name}\"")
    command, description = item["command"].strip().removeprefix("/"), item["description"].strip()
    if not command:
        raise bad("Command must be non-empty")
    if len(command) > LONGEST_COMMAND:
        raise bad(f"Command length must not exceed {LONGEST_COMMAND}")
    if not description:
        raise bad("Command description must be non-empty")
    if len(description) > LONGEST_DESCRIPTION:
        raise bad(f"Command description length must not exceed {LONGEST_DESCRIPTION}")
    if not _COMMAND.fullmatch(command):
        raise bad("BOT_COMMAND_INVALID")
    return {"command": command, "description": description}


def _place(cloud: Cloud, parameters: Parameters) -> tuple[str, str]:
    """Scope and language as a key."""
    language = parameters.text("language_code")
    if not re.fullmatch(r"(?:[a-z]{2})?", language):
        raise bad("Invalid language code specified")
    scope = parameters.structure("scope", "BotCommandScope")
    if scope is None:
        return "default", language
    broken = "Can't parse BotCommandScope: "
    if not isinstance(scope, dict) or scope.get("type") not in (*_WIDE_SCOPES, *_CHAT_SCOPES):
        raise bad(f"{broken}Unsupported type specified")
    if scope["type"] in _WIDE_SCOPES:
        return scope["type"], language
    if not scope.get("chat_id"):
        raise bad(f"{broken}Empty chat_id specified")
    chat = access.chat_of(cloud, Parameters({"chat_id": str(scope["chat_id"])}))
    parts = {"type": scope["type"], "chat_id": chat.id}
    if scope["type"] == "chat_member":
        parts["user_id"] = scope.get("user_id")
    return json.dumps(parts), language


def get_chat_menu_button(cloud: Cloud, parameters: Parameters) -> Any:
    """`getChatMenuButton`, of all private chats."""
    return cloud.menu_button


def set_chat_menu_button(cloud: Cloud, parameters: Parameters) -> Any:
    """`setChatMenuButton`, of all private chats."""
    button = parameters.structure("menu_button", "MenuButton") or {"type": "default"}
    if button["type"] == "web_app" and not button["web_app"]["url"].startswith("https://"):
        raise bad("BUTTON_URL_INVALID")
    cloud.menu_button = button
    return True


METHODS: Final = {
    "getMe": get_me,
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "getChatMenuButton": get_chat_menu_button,
    "setChatMenuButton": set_chat_menu_button,
}
