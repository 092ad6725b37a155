"""A hosted MCP server that wants a login, as an admin and the model meet it: through the whole gateway."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from gateway.agent.mcp.settings import McpServerSettings
from gateway.app.config import Config
from gateway.app.config.models import ToolSettings
from gateway.domain.adapter import Limits
from gateway.people.access import AccessSettings
from tests.e2e.test_mcp import results, wants
from tests.emulators.authorization import AuthorizationServer
from tests.support.gateway import FakeAdapter, FakeModel, Live, Say, config_in, in_turn, running
from tests.support.mcp_running import real_server
from tests.support.redis_server import free_port
from tests.support.waiting import eventually


def hosted(folder: Path, port: int) -> Config:
    """One hosted server; `u` is an admin."""
    server = McpServerSettings(url=f"http://127.0.0.1:{port}/mcp")
    return config_in(
        folder, tools=ToolSettings(mcp={"demo": server}), access=AccessSettings(allow=("fake:*",), admins=("fake:u",))
    )


async def link_of(live: Live) -> str:
    """The link that the admin gets."""
    said = await live.ask("/mcp login demo")
    return next(line for line in said.splitlines() if line.startswith("http"))


async def test_an_admin_logs_in_and_a_restart_keeps_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    settings = hosted(tmp_path, port)
    async with AuthorizationServer() as issuer, real_server(port, issuer.url):
        async with running(tmp_path, config=settings, adapter=FakeAdapter(limits=Limits())) as live:
            server = live.gateway.agents.mcp.servers[0]
            await server.settled.wait()
            assert server.failure == "it wants a login; an admin of this bot sends /mcp login demo"
            assert "Only an admin" in await live.ask("/mcp login demo", user="somebody")
            assert issuer.clients == {}, "a connection registers nobody, and nobody else begins a login"
            assert "private chat" in await live.ask("/mcp login demo", chat="g", chat_type="group")

            address = await issuer.agree(await link_of(live))
            assert "does not belong to this login" in await live.ask(
                f"/mcp login demo {address.replace('state=', 'state=x')}"
            )
            said = await live.ask(f"/mcp login demo {address}")
            assert said.startswith("You are logged in. demo: "), said
            assert "demo_add" in said
            assert said.endswith("; logged in."), "as legato check says it"
            assert "There is no open login at demo" in await live.ask(f"/mcp login demo {address}")
        file = settings.home / "mcp" / "demo.login"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

        issuer.expire()  # while the program is down
        model = FakeModel(in_turn(*3 * [wants("demo_add", a=2, b=40), Say(text="done")]))
        async with running(tmp_path, config=settings, model=model) as live:
            await eventually(lambda: live.gateway.agents.mcp.servers[0].ready)
            assert await live.ask("add") == "done"
            assert results(model) == ["42"]
            issuer.expire()  # while it runs
            assert await live.ask("add") == "done"
            assert "logged in" in await live.ask("/mcp")
            assert issuer.violations == []
            assert len(issuer.clients) == 1
            shown = json.dumps([each.text for each in live.adapter.sent])
            assert not any(secret in shown for secret in issuer.secrets)

            issuer.revoke()
            issuer.expire()
            assert await live.ask("add") == "done"
            lost = "it wants a login; an admin of this bot sends /mcp login demo"
            assert f"The server demo cannot be used now; {lost}." in results(model)[-1]
            assert lost in await live.ask("/mcp")
            assert not file.exists()
        told = "".join(capsys.readouterr())
        assert "mcp_server_ready" in told
        assert not any(secret in told for secret in issuer.secrets)
