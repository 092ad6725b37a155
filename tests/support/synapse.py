"""A real Matrix server for tests: Synapse, whose limits are lifted unless a test asks for them, and people on it."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest

from gateway.runtime.clock import SystemClock
from tests.support.model import PATIENCE
from tests.support.programs import SYNAPSE
from tests.support.redis_server import free_port, until

SERVER: Final = "example.org"
_CLOCK: Final = SystemClock()
_START_SECONDS: Final = 180.0  # on a busy machine; alone it takes one
_FREE: Final = {"per_second": 10_000, "burst_count": 10_000}
_RATES: Final[Mapping[str, Any]] = {
    "rc_message": _FREE,
    "rc_registration": _FREE,
    "rc_login": {"address": _FREE, "account": _FREE, "failed_attempts": _FREE},
    "rc_joins": {"local": _FREE, "remote": _FREE},
    "rc_joins_per_room": _FREE,
    "rc_invites": {"per_room": _FREE, "per_user": _FREE, "per_issuer": _FREE},
    "rc_room_creation": _FREE,
}


class Synapse:
    """One server. `rates`: sections of its configuration that take the place of unlimited ones."""

    def __init__(self, folder: Path, **rates: Any) -> None:
        self.port = free_port()
        self._folder = folder
        self._names = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        resources = [{"names": ["client"], "compress": False}]
        listener = {"port": self.port, "bind_addresses": ["127.0.0.1"], "type": "http", "resources": resources}
        config = {
            "server_name": SERVER,
            "listeners": [listener],
            "database": {"name": "sqlite3", "args": {"database": str(folder / "synapse.db")}},
            "media_store_path": str(folder / "media"),
            "signing_key_path": str(folder / "signing.key"),
            "pid_file": str(folder / "pid"),
            "log_config": str(folder / "log.yaml"),
            "report_stats": False,
            "macaroon_secret_key": "a",
            "form_secret": "b",
            "enable_registration": True,
            "enable_registration_without_verification": True,
            "trusted_key_servers": [],
            "federation_domain_whitelist": [],
            "bcrypt_rounds": 4,
            "allow_public_rooms_without_auth": False,
            **_RATES,
            **rates,
        }
        (folder / "homeserver.yaml").write_text(json.dumps(config))
        (folder / "signing.key").write_text(f"ed25519 a_test {'A' * 43}\n")
        log = {"version": 1, "disable_existing_loggers": True, "root": {"level": "ERROR"}}
        (folder / "log.yaml").write_text(json.dumps(log))

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it on its folder, and wait until it answers."""
        command = [str(SYNAPSE), "-W", "ignore", "-m", "synapse.app.homeserver"]
        command += ["-c", str(self._folder / "homeserver.yaml")]
        with (self._folder / "server.log").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self._folder)
        until(self._is_up, "Synapse to start", _START_SECONDS)

    def _is_up(self) -> bool:
        assert self._process is not None, "nobody started it"
        assert self._process.poll() is None, (self._folder / "server.log").read_text()
        try:
            return httpx.get(f"{self.url}/_matrix/client/versions", timeout=5).is_success
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def person(self, name: str) -> Person:
        """Somebody new, whose id nobody else has: all tests share the server."""
        body = {
            "username": f"{name.lower()}{next(self._names)}",
            "password": "secret",
            "auth": {"type": "m.login.dummy"},
        }
        with httpx.Client(base_url=self.url) as client:
            told = client.post("/_matrix/client/v3/register", json=body).raise_for_status().json()
            person = Person(self.url, told["user_id"], told["access_token"], name)
            way = f"/_matrix/client/v3/profile/{quote(person.id)}/displayname"
            client.put(way, json={"displayname": name}, headers=person.headers).raise_for_status()
        return person


@dataclass
class Person:
    """Somebody at their program: what they do, and what they see."""

    url: str
    id: str
    token: str
    name: str
    since: str = ""
    seen: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # events by room
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def headers(self) -> dict[str, str]:
        """Those of each call."""
        return {"Authorization": f"Bearer {self.token}"}

    async def call(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """A call of the server, again when it says so. It is on loopback: to load certificates takes longer than the
        call."""
        async with httpx.AsyncClient(base_url=self.url, verify=False, timeout=PATIENCE, headers=self.headers) as client:
            while True:
                response = await client.request(method, f"/_matrix/client/v3/{path}", json=body, params=query)
                if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
                    return response.raise_for_status().json()
                await _CLOCK.sleep(response.json()["retry_after_ms"] / 1000.0)

    async def opens(self, *invited: str, direct: bool = False, **how: Any) -> str:
        """Make a room, with these people in it."""
        body = {"preset": "private_chat", "invite": list(invited), "is_direct": direct, **how}
        return str((await self.call("POST", "createRoom", body))["room_id"])

    async def joins(self, room: str) -> None:
        """Come in."""
        await self.call("POST", f"join/{quote(room)}", {})

    async def sends(self, room: str, content: Mapping[str, Any], kind: str = "m.room.message") -> str:
        """Send any event."""
        number = f"{self.id}{next(self._numbers)}"
        told = await self.call("PUT", f"rooms/{quote(room)}/send/{kind}/{quote(number)}", dict(content))
        return str(told["event_id"])

    async def says(self, room: str, text: str, **content: Any) -> str:
        """Write a message."""
        return await self.sends(room, {"msgtype": "m.text", "body": text, **content})

    async def rewords(self, room: str, event: str, text: str) -> str:
        """Edit a message."""
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": event}
        return await self.says(room, f"* {text}", **{"m.new_content": new, "m.relates_to": relation})

    async def reacts(self, room: str, event: str, key: str) -> str:
        """React to a message."""
        relation = {"rel_type": "m.annotation", "event_id": event, "key": key}
        return await self.sends(room, {"m.relates_to": relation}, "m.reaction")

    async def redacts(self, room: str, event: str) -> None:
        """Take a message away."""
        number = f"{self.id}{next(self._numbers)}"
        await self.call("PUT", f"rooms/{quote(room)}/redact/{quote(event)}/{quote(number)}", {})

    async def uploads(self, name: str, content: bytes, mime: str) -> str:
        """Store a file on the server; returns its address."""
        headers = {**self.headers, "Content-Type": mime}
        async with httpx.AsyncClient(base_url=self.url, verify=False, timeout=PATIENCE, headers=headers) as client:
            response = await client.post("/_matrix/media/v3/upload", content=content, params={"filename": name})
            return str(response.raise_for_status().json()["content_uri"])

    async def downloads(self, address: str) -> bytes:
        """The content of a file."""
        way = f"/_matrix/client/v1/media/download/{address.removeprefix('mxc://')}"
        async with httpx.AsyncClient(base_url=self.url, verify=False, timeout=PATIENCE, headers=self.headers) as client:
            return (await client.get(way)).raise_for_status().content

    async def looks(self, seconds: float = 2.0) -> None:
        """See what is new; wait for it at most so long."""
        query = {"timeout": str(int(seconds * 1000)), **({"since": self.since} if self.since else {})}
        told = await self.call("GET", "sync", **query)
        self.since = told["next_batch"]
        for room, part in told.get("rooms", {}).get("join", {}).items():
            self.seen.setdefault(room, []).extend(part["timeline"]["events"])
            self.seen[room].extend(part["ephemeral"]["events"])

    async def until(self, condition: Callable[[], Any]) -> Any:
        """What the condition returns, once that is something."""
        async with asyncio.timeout(PATIENCE):
            while not (found := condition()):
                await self.looks()
        return found

    def events(self, room: str, by: str, kind: str = "m.room.message") -> list[dict[str, Any]]:
        """What somebody sent to a room, in order, without edits."""
        found = [each for each in self.seen.get(room, ()) if each.get("sender") == by and each["type"] == kind]
        return [each for each in found if each["content"].get("m.relates_to", {}).get("rel_type") != "m.replace"]

    def shown(self, room: str, by: str) -> list[str]:
        """The present texts of somebody's messages."""
        texts = {each["event_id"]: each["content"].get("body", "") for each in self.events(room, by)}
        for each in self.seen.get(room, ()):
            relation = each["content"].get("m.relates_to", {})
            if each.get("sender") == by and relation.get("rel_type") == "m.replace":
                texts[relation["event_id"]] = each["content"]["m.new_content"]["body"]
        return [text for text in texts.values() if text]


@contextmanager
def running_synapse(folder: Path, **rates: Any) -> Iterator[Synapse]:
    """A server of one's own."""
    server = Synapse(folder, **rates)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    """One server for all tests: each has people and rooms of its own."""
    with running_synapse(tmp_path_factory.mktemp("synapse")) as server:
        yield server
