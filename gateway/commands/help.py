"""/start and /help: a welcome, and the list of commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from gateway.commands.base import Command, CommandContext, Group, command


@command("start", "About", "say hello", audience="person")
async def start(ctx: CommandContext) -> str:
    """Welcome a newcomer."""
    return (
        "Hello! Write to me as you would to a person. I remember our conversations, however long they get. "
        "/new starts a fresh session, and /help lists what else I can do."
    )


# What people use; a telephone's screen holds no more.
_DAILY: Final = ("new", "undo", "retry", "stop", "status", "remind", "reminders", "memory", "recall", "forget")


@command("help [all]", "About", "list the commands", bypass=True, elsewhere=("commands", "menu", "settings"))
async def help_(ctx: CommandContext) -> str:
    """The commands that people use; or all for this person, in groups, with what they take."""
    if ctx.argument.strip().lower() != "all":
        daily = _lines(
            [(f"/{command.name}", command.help) for command in map(ctx.program.registry.get, _DAILY) if command]
        )
        return f"Just write to me. Commands begin with a slash:\n\n{daily}\n\n/help all lists the other commands."
    admin = ctx.people.pairing.access.is_admin(ctx.inbound.source)
    known = (*ctx.program.registry.commands, *ctx.program.registry.more)
    commands = [each for each in known if admin or each.audience != "admins"]
    blocks = ["Just write to me. Commands begin with a slash:"]
    for group in get_args(Group):
        own = [(_usage(command), _text(command)) for command in commands if command.group == group]
        blocks.append("\n".join([group, _lines(own)]))
    return "\n\n".join(blocks)


def _lines(commands: Sequence[tuple[str, str]]) -> str:
    width = max((len(usage) for usage, _ in commands), default=0)  # of all groups together lines grow wide
    return "\n".join(f"{usage:<{width}}  {text}" for usage, text in commands)


def _usage(command: Command) -> str:
    return f"/{command.name} {command.argument}".strip()


def _text(command: Command) -> str:
    also = ", ".join([*(f"/{name}" for name in command.aliases), *([command.options] if command.options else [])])
    return f"{command.help} (also {also})" if also else command.help


COMMANDS = (start, help_)
