"""Encryption between two devices by a server of ours: what is read, and what must not be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from vodozemac import Account

from adapters.matrix import encryption, sealing
from adapters.matrix.codec import Room
from adapters.matrix.encryption import Encryption
from adapters.matrix.homeserver import Homeserver, Refusal
from adapters.matrix.keys import KeyFile
from gateway.runtime.clock import SystemClock

ANNA, BEN, ROOM = "@anna:example.org", "@ben:example.org", "!r:example.org"
SAID = {"msgtype": "m.text", "body": "The choir meets on Monday."}


class Server:
    """The keys and letters of all devices: those of https://spec.matrix.org/v1.15/client-server-api/#key-management-api.
    `signed`: devices that bear the signature of their account."""

    def __init__(self) -> None:
        self.devices: dict[str, dict[str, Any]] = {}
        self.one_time: dict[tuple[str, str], dict[str, Any]] = {}
        self.letters: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.masters: dict[str, Any] = {}
        self.signed: set[tuple[str, str]] = set()
        self.asked: list[str] = []

    def login(self, user: str, device: str) -> Login:
        """Somebody's program."""
        return Login(self, user, device)


class Login:
    """The calls of one device, as `Homeserver` makes them."""

    def __init__(self, server: Server, user: str, device: str) -> None:
        self.server, self.user, self.device = server, user, device

    async def call(self, method: str, *path: str, body: Any = None, query: Mapping[str, str] | None = None) -> Any:
        server, me = self.server, (self.user, self.device)
        server.asked.append("/".join(path[:2]))
        match path:
            case "account", "whoami":
                return {"user_id": self.user, "device_id": self.device}
            case ("sync",):
                counts = {"signed_curve25519": len(server.one_time.get(me, {}))}
                return {
                    "next_batch": "s",
                    "device_one_time_keys_count": counts,
                    "to_device": {"events": server.letters.pop(me, [])},
                }
            case "keys", "upload":
                server.devices.setdefault(self.user, {})[self.device] = body["device_keys"]
                server.one_time.setdefault(me, {}).update(body["one_time_keys"])
            case "keys", "query":
                people = body["device_keys"]
                return {
                    "device_keys": {each: server.devices.get(each, {}) for each in people},
                    "master_keys": {each: server.masters[each] for each in people if each in server.masters},
                }
            case "keys", "claim":
                found: dict[str, Any] = {}
                for user, devices in body["one_time_keys"].items():
                    for device in devices:
                        name, key = server.one_time[user, device].popitem()
                        found.setdefault(user, {})[device] = {name: key}
                return {"one_time_keys": found}
            case "keys", "signatures", "upload":
                server.signed |= {(user, device) for user, devices in body.items() for device in devices}
            case "sendToDevice", kind, _:
                for user, devices in body["messages"].items():
                    for device, content in devices.items():
                        for each in server.devices.get(user, {}) if device == "*" else (device,):
                            letter = {"type": kind, "sender": self.user, "content": content}
                            server.letters.setdefault((user, each), []).append(letter)
            case _:
                raise Refusal(404, {})
        return {}

    async def confirmed(self, *path: str, body: Mapping[str, Any]) -> Any:
        self.server.masters[self.user] = body["master_key"]


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files of keys are closed: Python 3.13 warns of those that are not, in whatever test runs then."""
    opened: list[KeyFile] = []

    def opens(*given: Any) -> KeyFile:
        opened.append(KeyFile(*given))
        return opened[-1]

    monkeypatch.setattr(encryption, "KeyFile", opens)
    yield
    for each in opened:
        each.close()


async def device(server: Server, user: str, home: Path, name: str) -> Encryption:
    """Somebody's device, which the server knows."""
    found = Encryption(cast(Homeserver, server.login(user, name)), home, SystemClock())
    await found.begin()
    return found


def room(*people: str) -> Room:
    """An encrypted room."""
    return Room(id=ROOM, first=ROOM, people=dict.fromkeys(people, ""), sealing={"rotation_period_msgs": 3})


def event(content: Any, by: str = ANNA, name: str = "$1") -> dict[str, Any]:
    """What the server shows of a message."""
    return {"type": "m.room.encrypted", "event_id": name, "sender": by, "content": content}


async def news(of: Encryption, login: Login) -> None:
    """Take what was sent to a device."""
    await of.hear(await login.call("GET", "sync"))


async def test_a_message_is_read_by_who_was_there_and_nobody_passes_for_its_writer(tmp_path: Path) -> None:
    server = Server()
    anna = await device(server, ANNA, tmp_path / "a", "A")
    ben = await device(server, BEN, tmp_path / "b", "B")
    relation = {"m.relates_to": {"rel_type": "m.thread", "event_id": "$0"}}
    shut = await anna.sealed(room(ANNA, BEN), "m.room.message", {**SAID, **relation})
    assert shut is not None
    assert "choir" not in str(shut)
    await news(ben, server.login(BEN, "B"))
    read = await ben.opened(ROOM, event(shut), waits=False)
    assert read is not None
    assert (read["type"], read["content"]) == ("m.room.message", {**SAID, **relation})
    for forged in (event(shut, by=BEN), event(shut, name="$2"), event({**shut, "ciphertext": "AwgA"})):
        assert await ben.opened(ROOM, forged, waits=False) is forged
    assert await ben.opened("!other", event(shut), waits=False) is not None
    own = await anna.opened(ROOM, event(shut), waits=False)  # its buttons' tokens are in it
    assert own is not None
    assert own["content"]["body"] == SAID["body"]
    assert server.signed == {(ANNA, "A"), (BEN, "B")}


async def test_the_room_key_changes_when_somebody_leaves_and_after_so_many_messages(tmp_path: Path) -> None:
    server = Server()
    anna = await device(server, ANNA, tmp_path / "a", "A")
    ben = await device(server, BEN, tmp_path / "b", "B")

    async def key(*people: str) -> str:
        shut = await anna.sealed(room(*people), "m.room.message", SAID)
        assert shut is not None
        await news(ben, server.login(BEN, "B"))
        read = await ben.opened(ROOM, event(shut, name=f"${len(server.asked)}"), waits=False)
        assert (read is not None and read["type"] == "m.room.message") is (BEN in people), "by the newest key, too"
        return str(shut["session_id"])

    first = [await key(ANNA, BEN) for _ in range(3)]
    second = await key(ANNA, BEN)
    assert len({*first, second}) == 2
    assert sum("claim" in each for each in server.asked) == 1, "the session with a device is kept"
    assert await key(ANNA) != second
    plain = Room(id=ROOM, first=ROOM, people={ANNA: ""})
    assert await anna.sealed(plain, "m.room.message", SAID), "the server took the encryption of a room away"


async def test_keys_and_sessions_outlive_the_process_and_nobody_else_may_read_them(tmp_path: Path) -> None:
    server = Server()
    anna = await device(server, ANNA, tmp_path / "a", "A")
    ben = await device(server, BEN, tmp_path / "b", "B")
    before = await anna.sealed(room(ANNA, BEN), "m.room.message", SAID)
    await news(ben, server.login(BEN, "B"))
    ben.keys.close()
    ben = await device(server, BEN, tmp_path / "b", "B")
    again = await anna.sealed(room(ANNA, BEN), "m.room.message", SAID)
    for number, shut in enumerate((before, again)):
        read = await ben.opened(ROOM, event(shut, name=f"${number}"), waits=False)
        assert read is not None
        assert read["type"] == "m.room.message"
    await ben.keys.write({"a": "1", "b": "2"})
    await ben.keys.write({"a": None})
    assert await ben.keys.read() == {"b": "2"}
    files = [*(tmp_path / "b" / "matrix").iterdir()]
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
    assert len(server.devices[BEN]) == 1


async def test_a_key_that_is_missing_is_told_of_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.matrix.encryption._KEY_SECONDS", 0.0)
    server = Server()
    anna = await device(server, ANNA, tmp_path / "a", "A")
    ben = await device(server, BEN, tmp_path / "b", "B")
    shut = await anna.sealed(room(ANNA), "m.room.message", SAID)
    unread = event(shut)
    assert await ben.opened(ROOM, unread, waits=True) is unread, "the person is told so"
    assert await ben.opened(ROOM, event(shut, name="$2"), waits=True) is None, "and once is enough"


def test_a_file_is_opened_by_its_address_alone() -> None:
    shut, told = sealing.sealed_file(b"The choir meets on Monday.")
    secret = f"{told['key']['k']}.{told['iv']}.{told['hashes']['sha256']}"
    assert sealing.opened_file(shut, secret) == b"The choir meets on Monday."
    with pytest.raises(ValueError, match="not the one"):
        sealing.opened_file(shut[:-1], secret)


def test_what_is_off_loads_nothing_of_it() -> None:
    program = (
        "import sys, adapters.matrix.adapter; print(*sorted({'vodozemac', 'cryptography', 'sqlite3'} & {*sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


async def test_what_a_member_makes_up_neither_ends_the_reading_nor_passes_for_the_servers_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server()
    anna = await device(server, ANNA, tmp_path / "a", "A")
    ben = await device(server, BEN, tmp_path / "b", "B")

    async def read(kind: str, content: Any) -> str | None:
        shut = await anna.sealed(room(ANNA, BEN), kind, content)
        await news(ben, server.login(BEN, "B"))
        found = await ben.opened(ROOM, event(shut, name=f"${content}"), waits=False)
        return None if found is None else str(found["type"])

    assert await read("m.room.message", SAID) == "m.room.message"
    assert await read("m.room.tombstone", {"replacement_room": "!elsewhere"}) is None  # the bot would go there
    monkeypatch.setattr("adapters.matrix.encryption.json", SimpleNamespace(dumps=lambda *_, **__: "[" * 50_000))
    monkeypatch.setattr("adapters.matrix.encryption.json.loads", json.loads, raising=False)
    assert await read("m.room.message", SAID) == "m.room.encrypted", "nobody reads so deep"
    assert await read("m.room.message", SAID) == "m.room.encrypted", "its new key is in a letter of the same kind"


def test_a_signature_holds_for_one_thing_of_one_person_by_one_key() -> None:
    mine, other = Account(), Account()
    signs = mine.ed25519_key.to_base64()
    thing = sealing.signed({"key": "a", "unsigned": {"age": 1}}, ANNA, "A", mine)
    assert sealing.is_signed(thing, ANNA, "A", signs)
    assert sealing.is_signed({**thing, "unsigned": {"age": 2}}, ANNA, "A", signs), "the server may add to that"
    for forged, user, key, by in (
        ({**thing, "key": "b"}, ANNA, "A", signs),
        (thing, BEN, "A", signs),
        (thing, ANNA, "B", signs),
        (thing, ANNA, "A", other.ed25519_key.to_base64()),
        (sealing.signed(thing, ANNA, "A", other), ANNA, "A", signs),
        ({"key": "a"}, ANNA, "A", signs),
    ):
        assert not sealing.is_signed(forged, user, key, by)
