"""What may come to a hook over the wire: each gets a clear answer, and nothing is told to a chat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Struct, field

from adapters.api.hooks import LARGEST, routes
from adapters.api.platform import HookSettings
from adapters.api.server import Server
from gateway.domain.adapter import Event
from gateway.domain.keys import Key
from gateway.runtime.errors import StoreUnavailable, UserError
from tests.support.fakes import ManualClock
from tests.support.hooks import SECRET, signed

NOW = 1_700_000_000.0
BODY = b'{"id": "evt_1", "event_id": "Ev1", "text": "hello"}'
GITHUB, STRIPE, SLACK, BEARER, HMAC = (
    signed(kind, BODY, at=NOW) for kind in ("github", "stripe", "slack", "bearer", "hmac")
)
OLD_STRIPE, OLD_SLACK = (signed(kind, BODY, at=NOW - 301) for kind in ("stripe", "slack"))
NEW_STRIPE, NEW_SLACK = (signed(kind, BODY, at=NOW + 301) for kind in ("stripe", "slack"))
DEEP = b"[" * 200_000
SURROGATE = b'{"text": "\\ud800"}'


class NoKeys:
    async def holder(self, secret: str) -> Key | None:
        return None


class World(Struct, kw_only=True):
    """A server with a hook of each kind, and what it took."""

    server: Server
    taken: list[Event] = field(default_factory=list)
    fate: Any = "new"

    async def take(self, event: Event) -> Any:
        if isinstance(self.fate, Exception):
            raise self.fate
        self.taken.append(event)
        return self.fate

    async def asks(self, raw: bytes, *, leaves: bool = True) -> tuple[int, bytes]:
        """Send bytes; the status of the answer, 0 for none, and its text. `leaves`: nothing more can come."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.server.at.rpartition(":")[2]))
        writer.write(raw)
        if leaves:
            writer.write_eof()
        async with asyncio.timeout(30):
            answer = await reader.read()
        writer.close()
        return (int(answer.split(b" ", 2)[1]) if answer else 0), answer

    async def posts(self, name: str, body: bytes, headers: Any) -> tuple[int, bytes]:
        pairs = headers.items() if isinstance(headers, dict) else headers
        head = "".join(f"{title}: {value}\r\n" for title, value in pairs)
        first = (
            f"POST /hook/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{head}\r\n"
        )
        return await self.asks(first.encode() + body, leaves=False)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    clock = ManualClock(NOW)
    made = World(server=Server(host="127.0.0.1", port=0, clock=clock, keys=NoKeys()))
    hooks = {
        kind: HookSettings(secret=SECRET, signature=kind, chat="fake:c", per_minute=100)
        for kind in ("github", "stripe", "slack", "bearer", "hmac")
    }
    rare = HookSettings(secret=SECRET, chat="fake:c", per_minute=2)
    made.server.add(routes({**hooks, "rare": rare}, made.take, clock))
    async with made.server.listening():
        yield made


def twice(headers: dict[str, str]) -> list[tuple[str, str]]:
    return [*headers.items(), *headers.items()]


ATTACKS: list[tuple[int, str, bytes, Any]] = [
    (401, "github", BODY, {}),
    (401, "github", BODY, {"X-Hub-Signature-256": ""}),
    (401, "github", BODY, {"X-Hub-Signature-256": "sha256="}),
    (401, "github", BODY, {"X-Hub-Signature-256": "sha256=" + "0" * 64}),
    (401, "github", BODY, {"X-Hub-Signature": "sha1=" + "0" * 40}),
    (401, "github", BODY, {"X-Hub-Signature-256": GITHUB["X-Hub-Signature-256"].replace("256=", "1=")}),
    (401, "github", BODY + b" ", GITHUB),
    (401, "github", b"", GITHUB),
    (401, "github", BODY, twice(GITHUB)),
    (401, "github", BODY, BEARER),
    (401, "github", BODY, signed("github", BODY, secret="another-secret-of-some-length")),
    (401, "github", BODY, signed("github", BODY, secret="")),
    (401, "github", BODY, {**signed("github", b"{}"), "X-GitHub-Event": "ping"}),
    (401, "github", BODY, {"X-Hub-Signature-256": "sha256=" + "é" * 64}),
    (401, "github", BODY, {"X-Hub-Signature-256": "sha256=" + "f" * 8_000}),
    (401, "stripe", BODY, {}),
    (401, "stripe", BODY, OLD_STRIPE),
    (401, "stripe", BODY, NEW_STRIPE),
    (401, "stripe", BODY, {"Stripe-Signature": STRIPE["Stripe-Signature"].replace(f"t={NOW:.0f}", "t=1")}),
    (401, "stripe", BODY, {"Stripe-Signature": STRIPE["Stripe-Signature"].replace("v1=", "v0=")}),
    (401, "stripe", BODY, {"Stripe-Signature": STRIPE["Stripe-Signature"].split(",", 1)[1]}),
    (401, "stripe", BODY, {"Stripe-Signature": f"t={NOW:.0f},{OLD_STRIPE['Stripe-Signature']}"}),
    (401, "stripe", BODY, {"Stripe-Signature": f"{OLD_STRIPE['Stripe-Signature']},t={NOW:.0f}"}),
    (401, "stripe", BODY, {"Stripe-Signature": "t=,v1="}),
    (401, "stripe", BODY, {"Stripe-Signature": "," * 5_000}),
    (401, "stripe", BODY, {"Stripe-Signature": "t=99999999999999999999,v1=" + "0" * 64}),
    (401, "stripe", BODY, {"Stripe-Signature": ",".join(["v1=" + "0" * 64] * 100)}),
    (401, "stripe", BODY.replace(b"evt_1", b"evt_2"), STRIPE),
    (401, "slack", BODY, {}),
    (401, "slack", BODY, OLD_SLACK),
    (401, "slack", BODY, NEW_SLACK),
    (401, "slack", BODY, {**SLACK, "X-Slack-Request-Timestamp": f"{NOW - 1:.0f}"}),
    (401, "slack", BODY, {"X-Slack-Signature": SLACK["X-Slack-Signature"]}),
    (401, "slack", BODY, {**SLACK, "X-Slack-Request-Timestamp": "nan"}),
    (401, "slack", BODY, {**SLACK, "X-Slack-Request-Timestamp": "-1"}),
    (401, "slack", b'{"type": "url_verification", "challenge": "mine"}', SLACK),
    (401, "slack", BODY, twice(SLACK)),
    (401, "bearer", BODY, {}),
    (401, "bearer", BODY, {"Authorization": "Bearer"}),
    (401, "bearer", BODY, {"Authorization": "Bearer "}),
    (401, "bearer", BODY, {"Authorization": f"Basic {SECRET}"}),
    (401, "bearer", BODY, {"Authorization": f"Bearer {SECRET[:-1]}"}),
    (401, "bearer", BODY, {"Authorization": f"Bearer {SECRET} {SECRET}"}),
    (401, "bearer", BODY, twice(BEARER)),
    (401, "hmac", BODY, {**HMAC, "X-Signature": "sha256"}),
    (401, "hmac", BODY + b"\n", HMAC),
    (404, "nobody", BODY, BEARER),
    (404, "../bearer", BODY, BEARER),
    (404, "bearer%2f..", BODY, BEARER),
    (404, "bearer/x", BODY, BEARER),
    (404, "", BODY, BEARER),
    (400, "bearer", b"\xff\xfe\x00", BEARER),
    (400, "bearer", DEEP, BEARER),
    (400, "bearer", b"payload=" + DEEP, BEARER),
    (400, "bearer", b'{"a": ' + b"9" * 5_000 + b"}x\xff", BEARER),
    (413, "bearer", b"x" * (LARGEST + 1), BEARER),
    (413, "github", b"x" * (LARGEST + 1), {}),
    (415, "bearer", BODY, {**BEARER, "Content-Encoding": "gzip"}),
    (415, "bearer", BODY, {**BEARER, "Content-Encoding": "br, gzip"}),
]


@pytest.mark.parametrize(("status", "name", "body", "headers"), ATTACKS)
async def test_an_attack_gets_a_clear_error_and_tells_nobody_anything(
    world: World, status: int, name: str, body: bytes, headers: Any
) -> None:
    given, answer = await world.posts(name, body, headers)
    assert given == status
    told = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert len(told) > 20
    assert SECRET not in answer.decode()
    assert world.taken == []


TO = b"POST /hook/bearer HTTP/1.1\r\nHost: x\r\n"
RAW = {
    "smuggled": TO + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": TO + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
    "no such chunk": TO + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a folded header": TO + b"Authorization: Bearer\r\n a-secret-of-some-length\r\n\r\n",
    "a null": TO + b"Authorization: Bearer \x00\r\n\r\n",
    "GET": b"GET /hook/bearer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "PUT": b"PUT /hook/bearer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01",
    "a long head": TO + b"X: " + b"x" * 60_000 + b"\r\n\r\n",
    "a body that is cut off": TO + b"Content-Length: 50\r\n\r\n{",
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
async def test_what_is_no_request_is_refused_and_others_are_answered(world: World, raw: bytes) -> None:
    status, _ = await world.asks(raw)
    assert status == 0 or 400 <= status < 500
    assert world.taken == []
    assert (await world.posts("bearer", BODY, BEARER))[0] == 200
    assert len(world.taken) == 1


async def test_what_is_right_is_taken_and_odd_words_do_no_harm(world: World) -> None:
    for kind, headers in (("github", GITHUB), ("stripe", STRIPE), ("slack", SLACK), ("hmac", HMAC)):
        assert (await world.posts(kind, BODY, headers))[0] == 200
    for body in (SURROGATE, b"", b"null", b"[]", b'{"text": "\\u0000 \\u202e"}', b"NaN", b'{"id": {}}'):
        assert (await world.posts("bearer", body, BEARER))[0] == 200
        assert world.taken[-1].text
    challenge = b'{"type": "url_verification", "challenge": "c1"}'
    status, answer = await world.posts("slack", challenge, signed("slack", challenge, at=NOW))
    assert (status, json.loads(answer.partition(b"\r\n\r\n")[2])) == (200, {"challenge": "c1"})
    assert len(world.taken) == 11


async def test_floods_full_lanes_and_stores_that_are_away_make_senders_come_again(world: World) -> None:
    statuses = [await world.posts("rare", b"%d" % number, BEARER) for number in range(4)]
    assert [each for each, _ in statuses] == [200, 200, 429, 429]
    assert b"Retry-After: 60" in statuses[-1][1]
    for fate, status in (
        ("full", 429),
        (StoreUnavailable("away"), 503),
        (UserError("Nobody who may talk to the bot has written in fake:c yet."), 409),
    ):
        world.fate = fate
        assert (await world.posts("bearer", BODY, BEARER))[0] == status
