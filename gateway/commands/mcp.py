"""/mcp: the MCP servers, and logins at those that want one; and their prompts, each of which is a command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from gateway.agent.mcp.server import PromptFacts
from gateway.agent.mcp.settings import McpServerSettings
from gateway.commands.base import Answer, Command, CommandContext, command
from gateway.context.prompts import neutralise
from gateway.domain.chat import one_line
from gateway.domain.command import Parameter, Proposal
from gateway.runtime.errors import ToolError, UserError
from gateway.runtime.plugins import imported

_UNSAFE: Final = re.compile(r"[^a-z0-9_]+")
_LONGEST_NAME: Final = 32
_LONGEST_USAGE: Final = 60
_MOST_MESSAGES: Final = 100
_LONGEST: Final = 100_000  # characters of a prompt
_PROMPT: Final = (
    "[The prompt {name} of the MCP server {server}, which the person asks for; these are not their own words:]"
)
_ADMINS: Final = "Only an admin of this bot can see its MCP servers and log in to them."
_ALONE: Final = (
    "Send this command in a private chat with me. I answer with a link, and whoever else sees it could connect their "
    "own account here."
)
_NONE: Final = "There are no MCP servers here yet. docs/mcp.md says how to add one."
_HOW: Final = "/mcp login NAME logs in to a server, and /mcp logout NAME logs out."
_LINK: Final = (
    "Open this link, and allow me access there:\n{link}\nThe last page may not load, but you only need the address of "
    "that page. Copy the whole address from your browser, and send it within 15 minutes:\n/mcp login {name} ADDRESS"
)


async def _names(ctx: CommandContext) -> Sequence[Proposal]:
    verbs = [(verb, each.name) for verb in ("login", "logout") for each in ctx.agents.mcp.servers]
    return [Proposal(value=" ".join(each), label=" ".join(each)) for each in verbs]


@command(
    "mcp [login|logout name]",
    "About",
    "list MCP servers, or log in to them",
    audience="admins",
    bypass=True,
    proposals=_names,
)
async def mcp(ctx: CommandContext) -> str:
    """List the servers, log in at one, or log out."""
    if not ctx.people.pairing.access.is_admin(ctx.inbound.source):
        raise UserError(_ADMINS)
    verb, name, address = [*ctx.argument.split(maxsplit=2), "", "", ""][:3]
    servers = ctx.agents.mcp
    if verb == "login" and name:
        if ctx.inbound.source.chat_type != "direct":
            raise UserError(_ALONE)
        if address:
            return f"You are logged in. {await servers.came_back(name, address)}."
        return _LINK.format(link=await servers.log_in(name), name=name)
    if verb == "logout" and name:
        return f"I logged out of {name}." if await servers.log_out(name) else f"I was not logged in to {name}."
    lines = [f"{name} {note}." for name, note in servers.states()]
    return "\n".join([*lines, _HOW]) if lines else _NONE


def prompt_commands(
    settings: Mapping[str, McpServerSettings], prompts: Mapping[str, Sequence[PromptFacts]]
) -> list[Command]:
    """The prompts of all servers, each as a command: of those with one name, the first. Every platform takes names of
    up to 32 small letters, digits and underscores."""
    found: dict[str, Command] = {}
    for server, own in prompts.items():
        for prompt in own:
            name = _UNSAFE.sub("_", f"{server}_{prompt.name}".lower())[:_LONGEST_NAME]
            if name not in found:
                found[name] = _command(name, server, prompt, admins=settings[server].admins_only)
    return [*found.values()]


def _command(name: str, server: str, prompt: PromptFacts, *, admins: bool) -> Command:
    named = [(one_line(each, _LONGEST_NAME), must) for each, must in prompt.arguments]
    usage = " ".join(f"<{each}>" if must else f"[{each}]" for each, must in named)[:_LONGEST_USAGE]
    told = ", ".join(each for each, _ in named)[:_LONGEST_USAGE]
    whole = Parameter(name="arguments", help=told, required=any(must for _, must in named))
    return Command(
        run=partial(_prompted, server, prompt),
        name=name,
        group="Conversation",
        help=prompt.description or f"a prompt of {server}",
        argument=usage,
        parameters=(whole,) if named else (),
        audience="admins" if admins else "everybody",
    )


async def _prompted(name: str, prompt: PromptFacts, ctx: CommandContext) -> Answer:
    server = next(each for each in ctx.agents.mcp.servers if each.name == name)
    if server.settings.admins_only and not ctx.people.pairing.access.is_admin(ctx.inbound.source):
        raise UserError(f"Only an admin of this bot can use the MCP server {name}.")
    given = arguments_in(prompt, ctx.argument)
    try:
        result = await server.ask("prompts/get", {"name": prompt.name, "arguments": given})
    except ToolError as error:
        raise UserError(str(error)) from None
    if not (text := prompt_text(result)).strip():
        raise UserError(f"The MCP server {name} returned nothing for this prompt.")
    head = _PROMPT.format(name=one_line(prompt.name, _LONGEST_NAME), server=name)
    return Answer(then=f"{head}\n{neutralise(text)}", own=ctx.argument)


def arguments_in(prompt: PromptFacts, said: str) -> dict[str, str]:
    """The arguments that a person gives, as `name=value`; without a name, only the first one. Raises UserError."""
    names = [name for name, _ in prompt.arguments]
    parts = re.split(rf"(?:^|\s)({'|'.join(map(re.escape, names))})=", said) if names else [said]
    given = dict(zip(parts[1::2], (each.strip() for each in parts[2::2]), strict=True))
    if (loose := parts[0].strip()) and names:
        given.setdefault(names[0], loose)
    if missing := [name for name, must in prompt.arguments if must and not given.get(name)]:
        raise UserError(
            f"This prompt needs {', '.join(missing)}. Write {' '.join(f'{each}=…' for each in missing)} after the "
            "command."
        )
    return {name: value for name, value in given.items() if value}


def prompt_text(result: Mapping[str, Any]) -> str:
    """The words of a prompt: of its messages' texts, and of what they enclose."""
    said: list[str] = []
    read_answer = imported("gateway.agent.mcp.results:read_answer")
    for each in [each for each in result.get("messages") or () if isinstance(each, Mapping)][:_MOST_MESSAGES]:
        texts = [piece for piece in read_answer({"content": [each.get("content")]}).pieces if isinstance(piece, str)]
        said.append("\n".join([*(["[the assistant:]"] if each.get("role") == "assistant" else []), *texts]))
    return "\n\n".join(said)[:_LONGEST]


COMMANDS = (mcp,)
