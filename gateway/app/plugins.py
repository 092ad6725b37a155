"""What is installed: platforms, wire formats, tools and slash commands, Legato's own and those of other packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import get_args

import gateway.agent.tools
import gateway.commands
from gateway.agent.tools.base import Tool, ToolHost
from gateway.commands.base import Command, CommandRegistry, Group
from gateway.domain import platform
from gateway.domain.platform import Platform
from gateway.providers import plugin
from gateway.providers.plugin import ModelSettings, ProviderPlugin
from gateway.runtime.errors import ConfigError
from gateway.runtime.plugins import loaded, offered


@cache
def platforms() -> Mapping[str, Platform]:
    """All platforms, by name. Raises ConfigError."""
    return loaded(platform.GROUP, Platform)


@cache
def providers() -> Mapping[str, ProviderPlugin]:
    """All wire formats, by name. Raises ConfigError."""
    found = loaded(plugin.GROUP, ProviderPlugin)
    if ModelSettings().provider not in found:
        raise ConfigError(["Legato's own plug-ins are not registered: install Legato again, with `make` or pip"])
    return found


def configured_tools(host: ToolHost) -> list[Tool]:
    """The tools that are switched on: what the factories in `TOOLS` of each module make. Raises ConfigError."""
    made: list[tuple[str, Tool]] = []
    for origin, factories in offered("TOOLS", package=gateway.agent.tools, group="legato.tools"):
        made += [(origin, tool) for make in factories if (tool := make(host)) is not None]
    _refuse_twins("tool", ((tool.name, origin) for origin, tool in made))
    return [tool for _, tool in made]


@cache
def all_commands() -> CommandRegistry:
    """The commands in `COMMANDS` of each module, in the order of /help. Raises ConfigError."""
    found: list[tuple[str, Command]] = []
    for origin, commands in offered("COMMANDS", package=gateway.commands, group="legato.commands"):
        found += [(origin, command) for command in commands]
    _refuse_twins("command", ((f"/{name}", origin) for origin, each in found for name in (each.name, *each.aliases)))
    groups = get_args(Group)
    return CommandRegistry(sorted((command for _, command in found), key=lambda each: groups.index(each.group)))


def _refuse_twins(what: str, named: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigError if two of them have one name."""
    first: dict[str, str] = {}
    for name, origin in named:
        if first.setdefault(name, origin) != origin:
            raise ConfigError([f"two {what}s are named {name}, of {first[name]} and {origin}: remove one"])
