"""/start and /help: a welcome, and the list of commands."""

from __future__ import annotations

from typing import get_args

from gateway.commands.base import Command, CommandContext, Group, command


@command("start", "About", "say hello", audience="person")
async def start(ctx: CommandContext) -> str:
    """Welcome a newcomer."""
    return (
        "Hello! Write to me as you would to a person. I remember our conversations, however long they get. "
        "/new starts a fresh one, /help lists everything else."
    )


@command("help", "About", "list the commands", bypass=True, elsewhere=("commands", "menu", "settings"))
async def help_(ctx: CommandContext) -> str:
    """The commands for this person, one line each, in groups."""
    admin = ctx.people.pairing.access.is_admin(ctx.inbound.source)
    commands = [each for each in ctx.program.registry.commands if admin or each.audience != "admins"]
    blocks = ["Just write to me. Commands begin with a slash:"]
    for group in get_args(Group):
        own = [(_usage(command), _text(command)) for command in commands if command.group == group]
        width = max((len(usage) for usage, _ in own), default=0)  # of all groups together lines grow wide
        blocks.append("\n".join([group, *(f"{usage:<{width}}  {text}" for usage, text in own)]))
    return "\n\n".join(blocks)


def _usage(command: Command) -> str:
    return f"/{command.name} {command.argument}".strip()


def _text(command: Command) -> str:
    also = ", ".join([*(f"/{name}" for name in command.aliases), *([command.options] if command.options else [])])
    return f"{command.help} (also {also})" if also else command.help


COMMANDS = (start, help_)
