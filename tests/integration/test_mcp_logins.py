"""Logins by the real client library at an authorization server that has, or lacks, every manner."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from gateway.agent.mcp import login as logins
from gateway.agent.mcp.address import AddressClient
from gateway.agent.mcp.login import Attempt, Login
from gateway.agent.mcp.server import LoginFailed, ServerFailed
from gateway.agent.mcp.settings import McpServerSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import UserError
from tests.emulators.authorization import AuthorizationServer

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class World:
    """An authorization server with its resource, and a login's file."""

    def __init__(self, folder: Path, issuer: AuthorizationServer, **settings: str) -> None:
        self.file, self.issuer = folder / "mcp" / "demo.login", issuer
        self.settings = McpServerSettings(url=f"{issuer.url}/mcp", **settings)
        self.learned: list[str] = []

    def attempt(self) -> Attempt:
        """One that has not begun."""
        return Attempt(path=self.file, settings=self.settings, clock=SystemClock(), learn=self.learned.extend)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[Attempt]:
        """One that runs until the block ends."""
        attempt = self.attempt()
        task = asyncio.create_task(attempt.run())
        try:
            yield attempt
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def log_in(self, changed: str = "") -> None:
        """Log in as a person does."""
        async with self.begun() as attempt:
            address = await self.issuer.agree(await attempt.given())
            await attempt.came_back(changed or address)

    async def asked(self) -> int:
        """The status of a request by a connection's client, which asks nobody."""
        login = Login(self.file, self.settings, SystemClock(), self.learned.extend)
        async with AddressClient("demo", self.settings, login) as client:
            return (await client.post(self.settings.url or "", json=PING)).status_code


@asynccontextmanager
async def world(folder: Path, *habits: str, **settings: str) -> AsyncIterator[World]:
    """A world with these habits."""
    async with AuthorizationServer(habits=set(habits)) as issuer:
        yield World(folder, issuer, **settings)


@pytest.mark.parametrize(
    ("habit", "said"),
    [
        ("other-issuer", "issuer mismatch"),
        ("wrong-iss", "iss mismatch"),
        ("no-iss", "missing iss"),
        ("wrong-state", "does not belong to this login"),
        ("refuses", "The server refused the login: The person said no."),
        ("no-registration", "Registration failed: 400"),
        ("registration-fails", "Registration failed: 400"),
        ("token-hangs", "nothing answers at its login address"),
        ("token-fails", "Token exchange failed (503)"),
        ("token-html", "The login failed"),
        ("token-endless", "more than 8 MB"),
        ("metadata-endless", "more than 8 MB"),
        ("deep-metadata", "The login failed"),
        ("token-elsewhere", "not followed"),
        ("other-resource", "does not match"),
        ("no-login", "the server asks for no login"),
        ("never-satisfied", "it does not let anyone in with these headers (HTTP 401)"),
    ],
)
async def test_a_login_that_cannot_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, habit: str, said: str
) -> None:
    monkeypatch.setattr(logins, "_STEP", 0.5)
    async with world(tmp_path, habit) as it:
        with pytest.raises(UserError) as failure:
            await it.log_in()
        assert said in str(failure.value)
        assert len(str(failure.value)) < 500
        assert "\n" not in str(failure.value)
        if habit != "never-satisfied":
            assert not it.file.exists()
        assert "/stolen" not in it.issuer.asked


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "hello",
        "http://127.0.0.1:33418/",
        "http://127.0.0.1:33418/?code=x",
        "http://x/?code=x&state=",
        "//[",
        "\x00",
    ],
)
async def test_an_address_that_is_not_the_end_of_the_login(tmp_path: Path, pasted: str) -> None:
    async with world(tmp_path) as it, it.begun() as attempt:
        address = await it.issuer.agree(await attempt.given())
        with pytest.raises(UserError, match="does not belong to this login"):
            await attempt.came_back(pasted)
        await attempt.came_back(f"  <{address}>  ")
        assert it.file.exists(), "a wrong one spoils nothing"
        assert it.issuer.violations == []


async def test_an_app_that_somebody_registered(tmp_path: Path) -> None:
    async with world(tmp_path, "no-registration", client_id="mine", client_secret="sk-of-the-app") as it:
        it.issuer.clients["mine"] = {"redirect_uris": [it.settings.redirect], "secret": "sk-of-the-app"}
        await it.log_in()
        it.issuer.expire()
        assert await it.asked() == 200
        assert it.issuer.violations == []
        assert "sk-of-the-app" in it.learned


@pytest.mark.parametrize(
    ("what", "said", "is_kept"),
    [
        ("expired", 200, True),
        ("token-fails", "its login cannot be renewed now (HTTP 503)", True),
        ("token-hangs", "nothing answers at its login address (127.0.0.1)", True),
        ("token-endless", "more than 8 MB", True),
        ("token-elsewhere", "its login cannot be renewed now (HTTP 307)", True),
        ("token-html", "it wants a login; an admin of this bot sends /mcp login demo", True),
        ("revoked", "its login is no longer valid; an admin of this bot sends /mcp login demo", False),
        ("damaged", "it wants a login; an admin of this bot sends /mcp login demo", True),
        ("of another address", "it wants a login; an admin of this bot sends /mcp login demo", True),
        ("never-satisfied", "it wants a login; an admin of this bot sends /mcp login demo", True),
    ],
)
async def test_a_login_that_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, said: str | int, is_kept: bool
) -> None:
    monkeypatch.setattr(logins, "_STEP", 0.5)
    async with world(tmp_path) as it:
        await it.log_in()
        assert await it.asked() == 200
        it.issuer.expire()
        it.issuer.habits.add(what)
        if what == "revoked":
            it.issuer.revoke()
        elif what == "damaged":
            it.file.write_text('{"place": "ht')
        elif what == "of another address":
            kept = json.loads(it.file.read_text())
            it.file.write_text(json.dumps({**kept, "place": "http://127.0.0.1:9/mcp"}))
        try:
            found: str | int = await it.asked()
        except (ServerFailed, httpx2.StreamError) as error:
            found = str(error)
        assert found == said if isinstance(said, int) else said in str(found)
        assert it.file.exists() == is_kept
        assert len(it.issuer.clients) == 1, "a connection registers nobody"
        assert {*it.issuer.secrets} <= {*it.learned} or what not in ("expired", "revoked")


async def test_two_processes_use_one_login(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.log_in()
        both = [Login(it.file, it.settings, SystemClock(), it.learned.extend) for _ in range(2)]

        async def ask(login: Login) -> int:
            async with AddressClient("demo", it.settings, login) as client:
                return (await client.post(it.settings.url or "", json=PING)).status_code

        for _ in range(3):
            assert [await ask(login) for login in both] == [200, 200]
            assert await asyncio.gather(*(ask(login) for login in (*both, *both))) == 4 * [200]
            it.issuer.expire()
            for login in both:
                login.context.token_expiry_time = 1.0
            kept = json.loads(it.file.read_text())
            it.file.write_text(json.dumps({**kept, "until": 1.0}))
        assert it.issuer.violations == [], "no token is used for a second renewal"


@pytest.mark.parametrize(
    ("server", "to", "said"),
    [
        ("https://8.8.8.8/mcp", "https://1.1.1.1/token", ""),
        ("https://8.8.8.8/mcp", "http://1.1.1.1/token", "without encryption"),
        ("https://8.8.8.8/mcp", "https://10.0.0.1/token", "not on the public internet"),
        ("https://8.8.8.8/mcp", "https://169.254.169.254/latest", "not on the public internet"),
        ("https://8.8.8.8/mcp", "https://[::1]/token", "not on the public internet"),
        ("https://8.8.8.8/mcp", "https://localhost/token", "not on the public internet"),
        ("https://10.0.0.1/mcp", "https://10.0.0.2/token", ""),
        ("http://127.0.0.1/mcp", "http://127.0.0.2/token", ""),
    ],
)
async def test_where_a_login_may_lead(tmp_path: Path, server: str, to: str, said: str) -> None:
    login = Login(tmp_path / "demo.login", McpServerSettings(url=server), SystemClock(), lambda _: None)
    try:
        await login._allowed(httpx2.Request("POST", to))
        found = ""
    except LoginFailed as error:
        found = str(error)
    assert said in found
    assert bool(said) == bool(found)
