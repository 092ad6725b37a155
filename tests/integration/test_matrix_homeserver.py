"""Calls of a Matrix server over loopback HTTP: the login, and what becomes of answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from adapters.matrix.homeserver import Homeserver, Refusal, SignedOut
from adapters.matrix.platform import MatrixSettings
from gateway.runtime import errors

ME = "@legato:example.org"


class Notes:
    """A notebook in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def read(self) -> Mapping[str, str]:
        return dict(self.kept)

    async def write(self, changes: Mapping[str, str | None]) -> None:
        self.kept |= {name: value for name, value in changes.items() if value is not None}


class Scripted:
    """A server that gives these answers, and knows the newest token alone. `soft`: it still knows the device."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.logins: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self.soft = True
        self.port = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.paths.append(request.path)
        if request.path.endswith("/login"):
            body = json.loads(await request.read())
            if body["password"] != "secret":
                return web.json_response({"errcode": "M_FORBIDDEN", "error": "Invalid password"}, status=403)
            self.logins.append(body)
            token = {"access_token": str(len(self.logins)), "device_id": body.get("device_id", "NEW")}
            return web.json_response(token)
        if request.headers["Authorization"] != f"Bearer {len(self.logins)}":
            told = {"errcode": "M_UNKNOWN_TOKEN", "error": "?", "soft_logout": self.soft}
            return web.json_response(told, status=401)
        if request.content_type == "application/json" and request.can_read_body:
            self.bodies.append(await request.json())
        status, told = self.answers.pop(0) if self.answers else (200, {"event_id": "$1"})
        if status == 0:
            request.transport.close()  # type: ignore[union-attr]
        text = told if isinstance(told, str) else json.dumps(told)
        return web.Response(status=status or 200, text=text)

    def client(self, notes: Notes | None = None, password: str = "secret") -> Homeserver:
        url = f"http://127.0.0.1:{self.port}"
        settings = MatrixSettings(user=ME, password=SecretStr(password), homeserver=url)
        made = Homeserver(settings, patience=5.0)
        made.notebook = notes
        return made


@asynccontextmanager
async def scripted() -> AsyncIterator[Scripted]:
    server = Scripted()
    runner = web.ServerRunner(web.Server(server.answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


async def test_processes_share_a_login_and_renew_it_as_the_same_device() -> None:
    async with scripted() as server:
        notes = Notes()
        one, two = server.client(notes), server.client(notes)
        for each in (one, two):
            await each.show("!r", "m.room.message", "row", {})
        assert [each.get("device_id") for each in server.logins] == [None]
        server.logins.append({})  # the server ends it
        for each in (one, two):
            await each.show("!r", "m.room.message", "row", {})
        assert [each.get("device_id") for each in server.logins] == [None, None, "NEW"]
        server.logins.append({})
        server.soft = False  # and the device with it
        await one.show("!r", "m.room.message", "row", {})
        assert server.logins[-1].get("device_id") is None
        three = server.client(password="wrong")
        with pytest.raises(SignedOut, match="Check user and password"):
            await three.show("!r", "m.room.message", "row", {})
        for each in (one, two, three):
            await each.aclose()


async def test_a_token_needs_no_address_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted() as server:
        server.logins.append({})
        server.answers = [(200, {"user_id": ME})] * 2

        async def found(_: Homeserver) -> str:
            return f"http://127.0.0.1:{server.port}"

        monkeypatch.setattr(Homeserver, "_found", found)
        client = Homeserver(MatrixSettings(user=ME, token=SecretStr("1")), patience=5.0)
        calls = [client.call("GET", "account", "whoami") for _ in range(2)]
        assert await asyncio.gather(*calls) == [{"user_id": ME}] * 2
        await client.aclose()


@pytest.mark.parametrize(
    ("status", "told", "error"),
    [
        (429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 2_500}, errors.RateLimited),
        (403, {"errcode": "M_FORBIDDEN", "error": "not in room"}, errors.ChatGone),
        (413, {"errcode": "M_TOO_LARGE"}, errors.DeliveryRefused),
        (502, "<html>", errors.Ambiguous),
        (403, "<html>a firm's proxy", errors.AdapterError),
        (0, {}, errors.Ambiguous),
    ],
)
async def test_what_becomes_of_an_answer(status: int, told: Any, error: type[errors.AdapterError]) -> None:
    async with scripted() as server:
        client = server.client()
        server.answers = [(status, told)] * 3  # a call that may be repeated is, where a kept connection has ended
        with pytest.raises(error) as raised:
            await client.show("!r", "m.room.message", "row", {})
        assert type(raised.value) in (error, *error.__subclasses__())
        assert getattr(raised.value, "retry_after", 2.5) == 2.5
        await client.aclose()
    lost = server.client()
    with pytest.raises(errors.Disconnected, match="and homeserver in"):
        await lost.call("GET", "sync")
    await lost.aclose()


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, errors.FileRefused), (410, errors.FileRefused), (403, errors.FileRefused), (502, errors.AdapterError)],
)
async def test_a_file_that_is_gone_is_refused_and_one_that_fails_now_is_not(
    status: int, error: type[errors.AdapterError]
) -> None:
    async with scripted() as server:
        client = server.client()
        server.answers = [(200, {"content_uri": "mxc://a/1"}), (200, "the file")]
        assert await client.upload("a.txt", "", b"the file") == "mxc://a/1"
        assert await client.download("mxc://a/1") == b"the file"
        server.answers = [(status, "<html>")] * 3
        with pytest.raises(error) as raised:
            await client.download("mxc://a/1")
        assert isinstance(raised.value, errors.FileRefused) == (error is errors.FileRefused)
        await client.aclose()


async def test_what_needs_the_password_once_more_is_asked_with_it() -> None:
    async with scripted() as server:
        client = server.client()
        wanted = (401, {"session": "s", "flows": [{"stages": ["m.login.password"]}]})
        server.answers = [wanted, (200, {"done": True})]
        assert await client.confirmed("keys", "device_signing", "upload", body={"key": "k"}) == {"done": True}
        assert server.bodies[-2:] == [
            {"key": "k"},
            {
                "key": "k",
                "auth": {
                    "type": "m.login.password",
                    "identifier": {"type": "m.id.user", "user": ME},
                    "password": "secret",
                    "session": "s",
                },
            },
        ]
        for answer in (wanted, (403, {"errcode": "M_FORBIDDEN", "error": "no"})):
            server.answers = [answer, (403, {"errcode": "M_FORBIDDEN", "error": "no"})]
            with pytest.raises(Refusal, match="no"):
                await client.confirmed("keys", "device_signing", "upload", body={})
        await client.aclose()


@pytest.mark.parametrize("noted", [True, False])
async def test_only_a_login_that_nobody_noted_is_ended(noted: bool) -> None:
    async with scripted() as server:
        client = server.client(Notes() if noted else None)
        await client.call("GET", "account", "whoami")
        await client.leave()
        assert [path.rpartition("/")[2] for path in server.paths] == ["login", "whoami", *([] if noted else ["logout"])]
        await client.aclose()


async def test_the_address_of_the_server_is_that_which_the_id_names(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = [{"m.homeserver": {"base_url": "https://matrix.example.org/"}}, {}, {"m.homeserver": None}]
    asked = list[tuple[str, dict[str, Any]]]()
    client = Homeserver(MatrixSettings(user=ME, token=SecretStr("1")), patience=5.0)

    async def found(_: str, way: str, **how: Any) -> Any:
        asked.append((way, how))
        return SimpleNamespace(told=told.pop(0))

    monkeypatch.setattr(client, "_asked", found)
    addresses = [await client._found() for _ in range(3)]
    assert addresses == ["https://matrix.example.org", "https://example.org", "https://example.org"]
    way = "https://example.org/.well-known/matrix/client"
    assert asked == [(way, {"token": "", "follow_redirects": True})] * 3
