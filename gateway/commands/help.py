"""/start and /help: what this is and what it can be told."""

from __future__ import annotations

from gateway.commands.base import Answer, Command, Scene


async def start(scene: Scene) -> Answer:
    """Welcome a newcomer."""
    return Answer(
        text="Hello! Write to me as you would to a person. I remember our conversations, however long they get. "
        "/new starts a fresh one, /help lists everything else."
    )


async def help_(scene: Scene) -> Answer:
    """All commands, one line each."""
    width = max(len(_usage(command)) for command in scene.registry.commands)
    lines = [f"{_usage(command):<{width}}  {command.help}" for command in scene.registry.commands]
    return Answer(text="\n".join(lines))


def _usage(command: Command) -> str:
    names = " ".join(f"/{name}" for name in (command.name, *command.aliases))
    return f"{names} {command.argument}".strip()


COMMANDS = (
    Command(name="start", help="say hello", run=start),
    Command(name="help", help="list the commands", run=help_, bypass=True),
)
