"""`legato plugins`: what other packages and folders bring, beside Legato's own parts of the same kinds.

Fields of a row: kind, name, source ("Legato", a package with its version, or a folder), used (true or false; null where
the settings do not say), problem ("", or why it cannot be loaded).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from gateway.agent.plugged import made
from gateway.agent.search.plugin import GROUP as SEARCHES
from gateway.agent.search.plugin import OWN as OWN_SEARCHES
from gateway.agent.skills.skill import GROUP as SKILLS
from gateway.app.config import Config
from gateway.app.plugins import HOOKS, platforms, providers
from gateway.context.compressor import Compressor
from gateway.context.registry import GROUP as ENGINES
from gateway.context.registry import EngineRegistry
from gateway.context.window import Window
from gateway.domain.platform import GROUP as PLATFORMS
from gateway.providers.plugin import GROUP as WIRE_FORMATS
from gateway.providers.vendors import GROUP as VENDORS
from gateway.providers.vendors import USUAL_API
from gateway.runtime.errors import ConfigError
from gateway.runtime.plugins import installed, load, origin

Row = dict[str, Any]

_KINDS: Final = {
    PLATFORMS: "platform",
    WIRE_FORMATS: "wire format",
    VENDORS: "vendors",
    SEARCHES: "web search",
    "legato.tools": "tools",
    "legato.commands": "commands",
    SKILLS: "skills",
    HOOKS: "hooks",
}


def plugin_rows(config: Config | None) -> list[Row]:
    """All plug-ins, in the order of their kinds. `config` None: the settings cannot be read, so nothing says what is
    used."""
    rows = [row for group, kind in _KINDS.items() for row in _of_group(group, kind, _used(group, config))]
    rows += [_row("web search", each.name, used=_used(SEARCHES, config)) for each in OWN_SEARCHES]
    rows += _engines(config)
    return sorted(rows, key=lambda row: ([*_KINDS.values(), "context engine"].index(row["kind"]), row["name"]))


def _row(kind: str, name: str, *, used: set[str] | None, source: str = "Legato", problem: str = "") -> Row:
    at_work = None if used is None else name in used and not problem
    return {"kind": kind, "name": name, "source": source, "used": at_work, "problem": problem}


def _of_group(group: str, kind: str, used: set[str] | None) -> Iterator[Row]:
    try:
        points = installed(group)
    except ConfigError as error:
        yield _row(kind, "", used=used, source="two packages", problem=str(error))
        return
    for name, point in points.items():
        source = origin(point).partition(" of ")[2]
        own = point.dist is not None and point.dist.name == "legato"
        problem = ""
        try:
            (made if group == HOOKS else load)(point)
        except ConfigError as error:
            problem = str(error)
        yield _row(kind, name, used=used, source="Legato" if own else source, problem=problem)


def _used(group: str, config: Config | None) -> set[str] | None:
    """The names of a group that the settings use; None where they do not say. Tools, commands, vendors and skills are
    there for who asks for them."""
    if config is None:
        return None
    if group == PLATFORMS:
        always = (name for name, each in platforms().items() if not each.settings)
        return {*always, *(name for name, settings in config.adapters.items() if settings.enabled)}
    if group == WIRE_FORMATS:
        known = providers()
        asked = [known[each.provider] for each in (config.model, *config.fallbacks())]
        return {(each.vendor.api or USUAL_API) if each.vendor else each.name for each in asked}
    if group == SEARCHES:
        return {config.tools.search.provider} if config.tools.search.provider else set()
    return set(installed(HOOKS)) if group == HOOKS else None


def _engines(config: Config | None) -> Iterator[Row]:
    used = {config.context.engine} if config else None
    own = (Compressor.name, Window.name)
    yield from (_row("context engine", name, used=used) for name in own)
    if config is None:
        yield from _of_group(ENGINES, "context engine", used)
        return
    registry = EngineRegistry({}, config.at(config.plugins.dir), config.home / "engines")
    packages = installed(ENGINES)
    for name in registry.names():
        problem = ""
        try:
            registry.factory(name)
        except ConfigError as error:
            problem = str(error)
        source = origin(packages[name]).partition(" of ")[2] if name in packages else f"{config.at(config.plugins.dir)}"
        yield _row("context engine", name, used=used, source=source, problem=problem)


def plugins_text(rows: list[Row]) -> str:
    """The rows by kind, those of others with their source, those at work with a mark."""
    lines: list[str] = []
    for kind, each in groupby(rows, key=lambda row: str(row["kind"])):
        lines.append(f"{kind}:")
        for row in each:
            mark, source = "*" if row["used"] else " ", "" if row["source"] == "Legato" else f"  from {row['source']}"
            lines.append(f"  {mark} {row['name']}{source}")
            if row["problem"]:
                lines.append(f"      FAIL  {row['problem']}")
    return "\n".join([*lines, "", "* marks what your settings use. docs/adding.md says how to add a plug-in."])
