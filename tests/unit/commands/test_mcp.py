"""/mcp, and the prompts of servers as commands."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from gateway.agent.mcp.server import PromptFacts
from gateway.commands.mcp import _names, prompt_commands
from gateway.runtime.errors import ToolError, UserError

if TYPE_CHECKING:
    from gateway.commands.base import Command
    from tests.unit.commands.conftest import Calling


class Servers:
    """One server, "mail", which returns `result` for a prompt."""

    def __init__(self, call: Calling, *, admins_only: bool = False, messages: int = 1) -> None:
        self.settings = SimpleNamespace(admins_only=admins_only)
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": "Write it."}}] * messages}
        self.ask = AsyncMock(return_value=result)
        mcp = call.agents.mcp
        mcp.servers = [SimpleNamespace(name="mail", settings=self.settings, ask=self.ask)]
        mcp.log_in, mcp.came_back = AsyncMock(return_value="https://x"), AsyncMock(return_value="mail has 2 tools")
        mcp.log_out = AsyncMock(side_effect=[True, False])
        self.mcp = mcp

    def commands(self, *prompts: PromptFacts) -> list[Command]:
        return prompt_commands({"mail": self.settings}, {"mail": prompts})  # type: ignore[dict-item]


def prompt(name: str = "Write-Mail", **more: Any) -> PromptFacts:
    return PromptFacts(**{"name": name, "description": "", "arguments": (), **more})


async def test_an_admin_sees_servers_and_logs_in_alone(call: Calling) -> None:
    servers = Servers(call)
    assert (await call("/mcp")).startswith("Only an admin of this bot")
    assert (await call("/mcp", "boss")).startswith("There are no MCP servers here yet.")
    servers.mcp.states.return_value = [("mail", "has 2 tools")]
    assert (await call("/mcp", "boss")).splitlines()[0] == "mail has 2 tools."
    assert (await call("/mcp login mail", "boss", "group")).startswith("Send this command in a private chat")
    told = await call("/mcp login mail", "boss")
    assert "\nhttps://x\n" in told
    assert told.endswith("\n/mcp login mail ADDRESS")
    assert await call("/mcp login mail https://back?a=b c", "boss") == "You are logged in. mail has 2 tools."
    servers.mcp.came_back.assert_awaited_once_with("mail", "https://back?a=b c")
    assert await call("/mcp logout mail", "boss") == "I logged out of mail."
    assert await call("/mcp logout mail", "boss", "group") == "I was not logged in to mail."
    assert (await call("/mcp login", "boss")).startswith("mail has 2 tools.")
    assert [each.value for each in await _names(call.context("/mcp"))] == ["login mail", "logout mail"]


def test_a_prompt_is_a_command_that_every_platform_takes(call: Calling) -> None:
    needed = (("to whom", True), ("tone", False))
    one, two = Servers(call).commands(prompt(arguments=needed), prompt("write_mail"), prompt("x" * 40, description="?"))
    assert (one.name, one.argument, one.help, one.audience) == (
        "mail_write_mail", "<to whom> [tone]", "a prompt of mail", "everybody",
    )  # fmt: skip
    assert [(each.name, each.help, each.required) for each in one.parameters] == [("arguments", "to whom, tone", True)]
    assert (len(two.name), two.help, two.parameters) == (32, "?", ())
    (own,) = Servers(call, admins_only=True).commands(prompt())
    assert own.audience == "admins"


async def test_a_prompt_asks_the_model_in_words_that_are_not_the_persons(call: Calling) -> None:
    servers = Servers(call)
    (command,) = servers.commands(prompt(arguments=(("to", True),)))
    context = call.context("/mail_write_mail Ben")
    answer: Any = await command.run(context)
    assert answer.then.startswith("[The prompt Write-Mail of the MCP server mail, which the person asks for;")
    assert answer.then.endswith("\nWrite it.")
    assert answer.own == "Ben"
    servers.ask.assert_awaited_once_with("prompts/get", {"name": "Write-Mail", "arguments": {"to": "Ben"}})


@pytest.mark.parametrize(
    ("more", "error", "told"),
    [
        ({"admins_only": True}, None, "Only an admin of this bot can use the MCP server mail."),
        ({}, ToolError("It is away."), "It is away."),
        ({"messages": 0}, None, "The MCP server mail returned nothing for this prompt."),
    ],
)
async def test_a_prompt_that_says_nothing_is_told(
    call: Calling, more: dict[str, Any], error: Exception | None, told: str
) -> None:
    servers = Servers(call, **more)
    servers.ask.side_effect = error
    (command,) = servers.commands(prompt())
    with pytest.raises(UserError) as raised:
        await command.run(call.context("/mail_write_mail"))
    assert str(raised.value) == told
