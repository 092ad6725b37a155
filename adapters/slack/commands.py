"""Slash commands: https://docs.slack.dev/interactivity/implementing-slash-commands

Slack learns an app's commands from its manifest alone (docs/slack.md has it). Every app may bring `/legato`, and behind
that any command of ours, as some names are Slack's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from gateway.domain.adapter import MenuEntry
from gateway.domain.command import parse_command

_HELP: Final = "/help"


class SlashCommands:
    """The commands of the program, for Slack."""

    def __init__(self, menu: Sequence[MenuEntry]) -> None:
        self._menu = {name: each for each in menu for name in (each.name, *each.aliases)}

    @property
    def names(self) -> Collection[str]:
        """All names of commands."""
        return self._menu.keys()

    def typed(self, data: Mapping[str, Any]) -> str:
        """A command as a person would have typed it: `/new`, or `/legato new`; what is none, as a message."""
        name, text = data["command"].removeprefix("/"), (data.get("text") or "").strip()
        if name in self._menu:
            return f"/{name} {text}".strip()
        if text.removeprefix("/").partition(" ")[0].lower() in self._menu:
            return f"/{text.removeprefix('/')}"
        return text or _HELP

    def is_private(self, text: str) -> bool:
        """Whether only the person who gave the command may see its answer."""
        called = parse_command(text)
        entry = self._menu.get(called.name) if called is not None else None
        return entry is not None and entry.audience != "everybody"
