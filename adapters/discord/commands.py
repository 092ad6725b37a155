"""Slash commands as Discord offers them: https://discord.com/developers/docs/interactions/application-commands

All are written in one call, and only if Discord has others: it takes two hundred writes a day. Discord knows no second
names, so each name of a command is a command there.

People may also install a bot for themselves, and use its commands where the bot is not. There it reads no messages, so
`ASK` takes one: https://discord.com/developers/docs/resources/application#installation-context
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
from discord.http import Route

from adapters.discord import failures
from adapters.discord.connection import ApiClient
from gateway.domain.adapter import MenuEntry
from gateway.domain.command import Parameter, translated
from gateway.runtime.structs import replace

log = structlog.get_logger(__name__)

_MOST: Final = 100  # commands
_MOST_OPTIONS: Final = 25
_MOST_CHOICES: Final = 25
_LONGEST_NAME: Final = 32
_LONGEST_HELP: Final = 100
_KINDS: Final = {"text": 3, "number": 4, "flag": 5}
_GUILDS, _PERSONS = 0, 1  # for whom a bot can be installed
_EVERYWHERE: Final = [0, 1]  # contexts: guilds, and chats of two with the bot
_ELSEWHERE: Final = 2  # a context: chats among people
_LOCALES: Final = {"es": "es-ES", "zh": "zh-CN"}  # https://discord.com/developers/docs/reference#locales
_NOBODY_AT_FIRST: Final = "0"  # permissions: a guild's admins see such a command, and those whom they add


ASK: Final = MenuEntry(
    name="ask",
    help="ask me something; only you see the answer",
    parameters=(Parameter(name="text", help="what you want to say", required=True),),
)


class SlashCommands:
    """The commands of the program, for Discord. `for_people`: also for those who install the bot for themselves."""

    def __init__(self, menu: Sequence[MenuEntry], *, for_people: bool = False) -> None:
        self._for_people = for_people
        if for_people and all(ASK.name not in (each.name, *each.aliases) for each in menu):
            menu = [ASK, *menu]
        named = [replace(each, name=name) for each in menu for name in (each.name, *each.aliases)]
        self._menu = {each.name: each for each in named[:_MOST]}
        self._called = {name: each.name for each in menu for name in (each.name, *each.aliases)}

    def is_private(self, name: str) -> bool:
        """Whether only the person who gave the command may see its answer."""
        entry = self._menu.get(name)
        return entry is not None and entry.audience != "everybody"

    def passes_on(self, name: str) -> bool:
        """Whether the command is a message in another form, and its answer that message's."""
        entry = self._menu.get(name)
        return entry is not None and entry.passes_on

    def typed(self, data: Mapping[str, Any]) -> str:
        """A command as a person would have typed it."""
        given = {each["name"]: each["value"] for each in data.get("options") or ()}
        entry = self._menu.get(data["name"])
        if entry == ASK:
            return str(given["text"])
        parameters = entry.parameters if entry is not None else ()
        written = [each.written(given[_named(each.name)]) for each in parameters if _named(each.name) in given]
        return " ".join([f"/{data['name']}", *(text for text in written if text)])

    def declared(self) -> list[dict[str, Any]]:
        """The commands as Discord wants them."""
        words = [(_LOCALES.get(language, language), texts) for language, texts in translated().items()]
        declared = [
            _declared(
                each, {locale: texts[name] for locale, texts in words if (name := self._called[each.name]) in texts}
            )
            for each in self._menu.values()
        ]
        if self._for_people:
            for each in declared:
                each["contexts"] = [*_EVERYWHERE, _ELSEWHERE]
                each["integration_types"] = [_PERSONS] if self._menu[each["name"]] == ASK else [_GUILDS, _PERSONS]
        return declared

    async def write(self, calls: ApiClient, application: int) -> bool:
        """Make sure that Discord offers these commands. Returns whether it had others. Logs a failure: commands can be
        typed, too."""
        declared = self.declared()
        try:
            route = Route("GET", "/applications/{application_id}/commands", application_id=application)
            present = await calls.request(route, params={"with_localizations": "true"})
            if _facts(present) == _facts(declared):
                return False
            await calls.bulk_upsert_global_commands(application, declared)
        except failures.Foreign as error:
            log.warning("commands_not_written", error=str(failures.mapped(error)))
            return False
        log.info("commands_written", count=len(declared))
        return True


def _declared(entry: MenuEntry, translations: Mapping[str, str]) -> dict[str, Any]:
    command: dict[str, Any] = {
        "name": entry.name,
        "type": 1,
        "description": _help(entry.help, entry.name),
        "description_localizations": {locale: text[:_LONGEST_HELP] for locale, text in translations.items()},
        "options": [_option(each) for each in sorted(entry.parameters, key=lambda each: not each.required)][
            :_MOST_OPTIONS
        ],
        "contexts": _EVERYWHERE,
        "integration_types": [_GUILDS],
    }
    if entry.audience == "admins":
        command["default_member_permissions"] = _NOBODY_AT_FIRST
    return command


def _option(parameter: Parameter) -> dict[str, Any]:
    option: dict[str, Any] = {
        "type": _KINDS[parameter.kind],
        "name": _named(parameter.name),
        "description": _help(parameter.help, parameter.name),
        "required": parameter.required,
    }
    if parameter.proposes:
        option["autocomplete"] = True
    elif parameter.choices:
        option["choices"] = [{"name": each, "value": each} for each in parameter.choices[:_MOST_CHOICES]]
    return option


def _named(name: str) -> str:
    return re.sub(r"[^\w-]", "_", name.lower())[:_LONGEST_NAME]


def _help(text: str, name: str) -> str:
    return (text or name)[:_LONGEST_HELP]


def _facts(commands: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the parts of commands that people see, without Discord's additions."""
    return sorted(
        [
            each["name"],
            each.get("description", ""),
            sorted((each.get("description_localizations") or {}).items()),
            [
                [
                    option["type"],
                    option["name"],
                    option["description"],
                    bool(option.get("required", False)),
                    bool(option.get("autocomplete", False)),
                    [choice["value"] for choice in option.get("choices") or ()],
                ]
                for option in each.get("options") or ()
            ],
            each.get("default_member_permissions"),
            sorted(each.get("integration_types") or [_GUILDS]),
        ]
        for each in commands
    )
