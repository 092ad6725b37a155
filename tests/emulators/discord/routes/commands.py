"""The bot's slash commands: what they may look like, and how often they may be made.

Source: https://discord.com/developers/docs/interactions/application-commands. The error of too many creates is a 429
with the time until the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import regex

from tests.emulators.discord.access import guild_of
from tests.emulators.discord.asked import Asked
from tests.emulators.discord.cloud import Cloud, Registered
from tests.emulators.discord.refusals import Refusal, bad_length, forbidden, invalid, missing, not_found

DAY: Final = 86_400.0
MOST: Final = {1: 100, 2: 15, 3: 15}
MOST_OPTIONS: Final = 25
LONGEST_NAME: Final = 32
LONGEST_DESCRIPTION: Final = 100
LARGEST: Final = 8000  # characters of all names, descriptions and values of a command
GROUPS: Final = (1, 2)  # options that hold options: subcommands and groups of them
_NAME: Final = regex.compile(r"[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}")


def read(cloud: Cloud, asked: Asked) -> Any:
    """`GET /applications/{application}/commands`."""
    commands = list(_scope(cloud, asked).commands.values())
    if asked.query.get("with_localizations") == "true":
        return commands
    return [{key: value for key, value in each.items() if not key.endswith("_localizations")} for each in commands]


def overwrite(cloud: Cloud, asked: Asked) -> Any:
    """`PUT /applications/{application}/commands`: all at once, or nothing."""
    scope = _scope(cloud, asked)
    if not isinstance(asked.body, list):
        raise invalid("_", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
    for place, command in enumerate(asked.body):
        _check_command(command, str(place))
    _check_numbers(asked.body)
    known = {(command["name"], command["type"]): command for command in scope.commands.values()}
    fresh = [command for command in asked.body if (command["name"], command.get("type", 1)) not in known]
    _count(cloud, scope, len(fresh))
    made = [_made(cloud, asked, command, known) for command in asked.body]
    scope.commands = {int(command["id"]): command for command in made}
    return made


def create(cloud: Cloud, asked: Asked) -> Any:
    """`POST /applications/{application}/commands`. A command of the same name and type is replaced."""
    scope = _scope(cloud, asked)
    _check_command(asked.form, "")
    known = {(command["name"], command["type"]): command for command in scope.commands.values()}
    fresh = (asked.form["name"], asked.form.get("type", 1)) not in known
    if fresh:
        _check_numbers([*scope.commands.values(), asked.form])
        _count(cloud, scope, 1)
    command = _made(cloud, asked, asked.form, known)
    scope.commands[int(command["id"])] = command
    return command


def delete(cloud: Cloud, asked: Asked) -> Any:
    """`DELETE /applications/{application}/commands/{command}`."""
    if _scope(cloud, asked).commands.pop(asked.identity("command"), None) is None:
        raise not_found(10063)
    return None


def _scope(cloud: Cloud, asked: Asked) -> Registered:
    if asked.identity("application") != cloud.application:
        raise forbidden(20012)
    guild = guild_of(cloud, asked.identity("guild")).id if "guild" in asked.path else 0
    return cloud.commands.setdefault(guild, Registered())


def _count(cloud: Cloud, scope: Registered, fresh: int) -> None:
    now = cloud.clock.now()
    while scope.made and scope.made[0] <= now - DAY:
        scope.made.popleft()
    if len(scope.made) + fresh > cloud.settings.creates_a_day:
        wait = scope.made[0] + DAY - now if scope.made else DAY
        raise Refusal(429, 30034, more={"retry_after": round(wait, 3), "global": False})
    scope.made.extend([now] * fresh)


def _made(
    cloud: Cloud, asked: Asked, given: dict[str, Any], known: Mapping[tuple[str, int], dict[str, Any]]
) -> dict[str, Any]:
    kind = given.get("type", 1)
    before = known.get((given["name"], kind))
    body = {
        "default_member_permissions": None,
        "name_localizations": None,
        "description_localizations": None,
        "description": "",
        "nsfw": False,
        "integration_types": [0],
        "contexts": None,
        "dm_permission": True,
        **given,
        "type": kind,
        "id": before["id"] if before else str(cloud.ids.new()),
        "application_id": str(cloud.application),
        "version": str(cloud.ids.new()),
    }
    return {**body, "guild_id": asked.path["guild"]} if "guild" in asked.path else body


# -- what is refused ------------------------------------------------------------------------------------


def _check_numbers(commands: list[dict[str, Any]]) -> None:
    names = set()
    for command in commands:
        name = (command["name"], command.get("type", 1))
        if name in names:
            raise invalid("_", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
        names.add(name)
    for kind, most in MOST.items():
        if sum(command.get("type", 1) == kind for command in commands) > most:
            raise Refusal(400, 30032, f"Maximum number of application commands reached ({most}).")


def _check_command(command: dict[str, Any], path: str) -> None:
    where = f"{path}." if path else ""
    kind = command.get("type", 1)
    name = command.get("name")
    if not name:
        raise missing(f"{where}name")
    if kind == 1:
        _check_name(name, f"{where}name")
        _check_description(command, where)
        _check_options(command.get("options") or [], where)
    elif not 1 <= len(name) <= LONGEST_NAME:
        raise bad_length(f"{where}name", 1, LONGEST_NAME)
    if _size(command) > LARGEST:
        raise invalid(path or "_", "APPLICATION_COMMAND_TOO_LARGE", f"Command exceeds maximum size ({LARGEST})")


def _check_name(name: Any, path: str) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise bad_length(path, 1, LONGEST_NAME)
    if not _NAME.fullmatch(name) or name != name.lower():
        raise invalid(path, "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")


def _check_description(described: dict[str, Any], where: str) -> None:
    text = described.get("description")
    if not text:
        raise missing(f"{where}description")
    if len(text) > LONGEST_DESCRIPTION:
        raise bad_length(f"{where}description", 1, LONGEST_DESCRIPTION)


def _check_options(options: list[dict[str, Any]], where: str) -> None:
    if len(options) > MOST_OPTIONS:
        raise bad_length(f"{where}options", 0, MOST_OPTIONS)
    names = set()
    optional = False
    for place, option in enumerate(options):
        path = f"{where}options.{place}."
        if not isinstance(option.get("type"), int) or not 1 <= option["type"] <= 11:
            raise invalid(f"{path}type", "BASE_TYPE_CHOICES", "Value must be one of 1 to 11.")
        _check_name(option.get("name"), f"{path}name")
        _check_description(option, path)
        if option["name"] in names:
            text = "Option names must be unique"
            raise invalid(f"{where}options", "APPLICATION_COMMAND_OPTIONS_NAME_INVALID", text)
        names.add(option["name"])
        if option.get("required") and optional:
            text = "Required options must be placed before non-required options"
            raise invalid(path.rstrip("."), "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", text)
        optional = optional or not option.get("required")
        _check_choices(option, path)
        if option["type"] in GROUPS:
            _check_options(option.get("options") or [], path)


def _check_choices(option: dict[str, Any], path: str) -> None:
    choices = option.get("choices") or []
    if choices and option.get("autocomplete"):
        text = "autocomplete may not be set to true if choices are present"
        raise invalid(f"{path}autocomplete", "APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE_INVALID", text)
    if len(choices) > MOST_OPTIONS:
        raise bad_length(f"{path}choices", 0, MOST_OPTIONS)
    for place, choice in enumerate(choices):
        if not 1 <= len(choice.get("name", "")) <= LONGEST_DESCRIPTION:
            raise bad_length(f"{path}choices.{place}.name", 1, LONGEST_DESCRIPTION)
        if isinstance(choice.get("value"), str) and not 1 <= len(choice["value"]) <= LONGEST_DESCRIPTION:
            raise bad_length(f"{path}choices.{place}.value", 1, LONGEST_DESCRIPTION)


def _size(command: dict[str, Any]) -> int:
    own = len(command.get("name") or "") + len(command.get("description") or "")
    choices = command.get("choices") or ()
    own += sum(len(choice.get("name", "")) + len(str(choice.get("value", ""))) for choice in choices)
    return own + sum(_size(option) for option in command.get("options") or ())


ROUTES: Final[Mapping[str, Callable[[Cloud, Asked], Any]]] = {
    "GET /applications/{application}/commands": read,
    "PUT /applications/{application}/commands": overwrite,
    "POST /applications/{application}/commands": create,
    "DELETE /applications/{application}/commands/{command}": delete,
    "GET /applications/{application}/guilds/{guild}/commands": read,
    "PUT /applications/{application}/guilds/{guild}/commands": overwrite,
    "POST /applications/{application}/guilds/{guild}/commands": create,
    "DELETE /applications/{application}/guilds/{guild}/commands/{command}": delete,
}
