"""The installed platforms, wire formats, tools, slash commands and hooks, Legato's own and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, get_args

import gateway.agent.tools
import gateway.commands
from gateway.agent.tools.base import Tool, ToolHost
from gateway.commands.base import Command, CommandRegistry, Group
from gateway.domain import platform
from gateway.domain.platform import Platform
from gateway.providers import plugin
from gateway.providers.plugin import ModelSettings, ProviderPlugin, Vendor
from gateway.providers.vendors import GROUP, USUAL_API, VENDORS, as_provider
from gateway.runtime import plugins as runtime_plugins
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ConfigError
from gateway.runtime.plugins import contained, imported, installed, loaded, offered, refuse_misfit

if TYPE_CHECKING:
    from gateway.agent.plugged import Plugged

HOOKS: Final = "legato.hooks"


@cache
def platforms() -> Mapping[str, Platform]:
    """All platforms, by name. Raises ConfigError."""
    return loaded(platform.GROUP, Platform)


def keyed_platform() -> str:
    """The name of the platform that people reach by keys of ours."""
    return next(each.name for each in platforms().values() if each.limits is not None and each.limits.keyed)


@cache
def providers() -> Mapping[str, ProviderPlugin]:
    """All wire formats, and the vendors that speak them, by name. Raises ConfigError."""
    found = loaded(plugin.GROUP, ProviderPlugin)
    if ModelSettings().provider not in found:
        raise ConfigError(["Legato's own plug-ins are not registered: install Legato again, with `make` or pip"])
    named: list[tuple[str, str]] = [(name, plugin.GROUP) for name in found]
    rows: dict[str, ProviderPlugin] = {}
    for source, vendors in [("Legato", VENDORS), *_brought(GROUP)]:
        for vendor in _tuple_of(Vendor, vendors, f"{source} must be a tuple of vendors"):
            api = found.get(vendor.api or USUAL_API)
            if api is None:
                raise ConfigError([f"{source}: {vendor.name} speaks {vendor.api!r}, which is not a wire format"])
            rows[vendor.name] = as_provider(vendor, api)
            named.append((vendor.name, source))
    _refuse_twins("provider", named)
    return dict(sorted((found | rows).items()))


def _brought(group: str) -> list[tuple[str, Any]]:
    return [(runtime_plugins.origin(each), runtime_plugins.load(each)) for each in installed(group).values()]


def configured_tools(host: ToolHost) -> list[Tool]:
    """The tools that are switched on: what the factories in `TOOLS` of each module make. Raises ConfigError."""
    made: list[tuple[str, Tool]] = []
    for origin, factories in offered("TOOLS", package=gateway.agent.tools, group="legato.tools"):
        for make in _tuple_of(Callable, factories, f"{origin}: TOOLS must be a tuple of functions"):
            if (tool := contained(origin, partial(make, host))) is not None:
                refuse_misfit(f"{origin}: a tool", tool, Tool)
                made.append((origin, tool))
    _refuse_twins("tool", ((tool.name, origin) for origin, tool in made))
    return [tool for _, tool in made]


@cache
def all_commands() -> CommandRegistry:
    """The commands in `COMMANDS` of each module, in the order of /help. Raises ConfigError."""
    found: list[tuple[str, Command]] = []
    groups = get_args(Group)
    for origin, commands in offered("COMMANDS", package=gateway.commands, group="legato.commands"):
        for command in _tuple_of(Command, commands, f"{origin}: COMMANDS must be a tuple of commands"):
            if command.group not in groups:
                known = f"{', '.join(groups[:-1])} or {groups[-1]}"
                raise ConfigError([f"{origin}: group must be {known}, not {command.group!r}"])
            found.append((origin, command))
    _refuse_twins("command", ((f"/{name}", origin) for origin, each in found for name in (each.name, *each.aliases)))
    return CommandRegistry(sorted((command for _, command in found), key=lambda each: groups.index(each.group)))


def plugged(clock: Clock) -> Plugged | None:
    """The hooks of plug-ins; None where none is installed. Raises ConfigError."""
    points = installed(HOOKS)
    made: Plugged | None = imported("gateway.agent.plugged:plugged_in")(points, clock) if points else None
    return made


def _tuple_of(kind: Any, given: Any, otherwise: str) -> Sequence[Any]:
    """Return a plug-in's offers, if all of them are of one kind. Raises ConfigError, with the sentence `otherwise`."""
    if not isinstance(given, tuple | list) or not all(isinstance(each, kind) for each in given):
        raise ConfigError([otherwise])
    return given


def _refuse_twins(what: str, named: Iterable[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for name, origin in named:
        if first.setdefault(name, origin) != origin:
            raise ConfigError([f"two {what}s are named {name}, of {first[name]} and {origin}: remove one"])
