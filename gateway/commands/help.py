"""/start and /help: a welcome, and the list of commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, get_args

from gateway.commands.base import Command, CommandContext, Group, command

_MOST_USED: Final = ("new", "stop", "retry", "status", "compress", "recall", "memory", "remind", "forget", "sessions")


@command("start", "About", "say hello", audience="person")
async def start(ctx: CommandContext) -> str:
    """Welcome a newcomer."""
    return (
        "Hello! Write to me as you would to a person. I remember our conversations, however long they get. "
        "/new starts a fresh one, /help lists everything else."
    )


@command("help [all]", "About", "list the commands", bypass=True, elsewhere=("commands", "menu", "settings"))
async def help_(ctx: CommandContext) -> str:
    """The commands that people use most, which fit a telephone; with `all` every command for this person, in groups."""
    admin = ctx.people.pairing.access.is_admin(ctx.inbound.source)
    commands = [each for each in ctx.program.registry.commands if admin or each.audience != "admins"]
    if ctx.argument.strip().casefold() != "all":
        by_name = {each.name: each for each in commands}
        most = _lines((f"/{name}", by_name[name].help) for name in _MOST_USED if name in by_name)
        return f"Just write to me. Commands begin with a slash:\n\n{most}\n\n/help all lists all {len(commands)}."
    blocks = ["Just write to me. Commands begin with a slash:"]
    for group in get_args(Group):
        own = _lines((_usage(command), _text(command)) for command in commands if command.group == group)
        blocks.append(f"{group}\n{own}")
    return "\n\n".join(blocks)


def _lines(rows: Iterable[tuple[str, str]]) -> str:
    """Commands and their texts, aligned: of all groups together lines would grow wide."""
    shown = [*rows]
    width = max((len(usage) for usage, _ in shown), default=0)
    return "\n".join(f"{usage:<{width}}  {text}" for usage, text in shown)


def _usage(command: Command) -> str:
    return f"/{command.name} {command.argument}".strip()


def _text(command: Command) -> str:
    also = ", ".join([*(f"/{name}" for name in command.aliases), *([command.options] if command.options else [])])
    return f"{command.help} (also {also})" if also else command.help


COMMANDS = (start, help_)
