"""A server and a person in rooms with the bot, as a process of their own: as `people`. It is the emulator, or a
real Synapse, of which the rate of the server itself is told first: the same messages in the same rooms, before anybody
answers them."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from gateway.runtime.clock import SystemClock
from tests.bench.world import REPLY, said
from tests.emulators.matrix import MatrixServer, text_in
from tests.support.synapse import Person, running_synapse

_AT_ONCE = 32  # calls of the person's
_CLOCK = SystemClock()


async def _all(calls: Sequence[Any]) -> list[Any]:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Any) -> Any:
        async with room:
            return await call

    return list(await asyncio.gather(*map(one, calls)))


class _Anna:
    """The person, over connections that stay open."""

    def __init__(self, person: Person) -> None:
        limits = httpx.Limits(max_connections=_AT_ONCE + 1, max_keepalive_connections=_AT_ONCE + 1)
        self.http = httpx.AsyncClient(base_url=person.url, headers=person.headers, timeout=600, limits=limits)
        self.since, self.sent, self.answers = "", 0, 0

    async def call(self, method: str, way: str, **how: Any) -> Any:
        return (await self.http.request(method, f"/_matrix/client/v3/{way}", **how)).raise_for_status().json()

    async def say(self, room: str, text: str) -> None:
        self.sent += 1
        body = {"msgtype": "m.text", "body": text}
        await self.call("PUT", f"rooms/{quote(room)}/send/m.room.message/{self.sent}", json=body)

    async def look(self) -> None:
        filtered = json.dumps({"room": {"timeline": {"limit": 1000, "types": ["m.room.message", "m.room.member"]}}})
        query = {"timeout": "1000", "filter": filtered, **({"since": self.since} if self.since else {})}
        told = await self.call("GET", "sync", params=query)
        self.since = told["next_batch"]
        for part in told.get("rooms", {}).get("join", {}).values():
            events = part["timeline"]["events"]
            self.answers += sum(each["content"].get("body") == REPLY for each in events)


async def _talk(anna: _Anna, rooms: Sequence[str], each: int) -> float:
    """The seconds that it took."""
    start, wanted = time.perf_counter(), anna.answers
    for number in range(each):
        wanted += len(rooms)
        saying = asyncio.ensure_future(_all([anna.say(room, said(number)) for room in rooms]))
        while anna.answers < wanted:
            await anna.look()
        await saying
    return time.perf_counter() - start


async def _emulated(most: int) -> None:
    async with MatrixServer(keep=2_000) as matrix:
        world, anna = matrix.world, matrix.world.person("Anna")
        rooms = [world.room(anna, matrix.bot) for _ in range(most)]
        print(json.dumps({"base_url": matrix.url, "token": f"{matrix.bot.id} 0"}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            count, each = map(int, line.split())
            await matrix.until(lambda: matrix.connected)
            start, seen, answers = time.perf_counter(), len(world.log), 0

            def answered() -> int:
                nonlocal seen, answers
                answers += sum(text_in(event["content"]) == REPLY for _, event in world.log[seen:])
                seen = len(world.log)
                return answers

            for number in range(each):
                for room in rooms[:count]:
                    world.say(room, anna, said(number))
                wanted = (number + 1) * count
                await matrix.until(lambda wanted=wanted: answered() >= wanted)
            print(json.dumps({"seconds": time.perf_counter() - start, "refused": 0}), flush=True)


async def _serve(folder: Path, most: int) -> None:
    with running_synapse(folder) as synapse:
        bot, anna = synapse.person("Legato"), _Anna(synapse.person("Anna"))
        body = {"preset": "private_chat", "invite": [bot.id], "is_direct": True}
        made = await _all([anna.call("POST", "createRoom", json=body) for _ in range(most)])
        rooms = [each["room_id"] for each in made]
        await anna.look()
        start = time.perf_counter()
        await _all([anna.say(room, said(0)) for room in rooms])
        rate = most / (time.perf_counter() - start)
        print(json.dumps({"base_url": synapse.url, "token": f"{bot.id} {rate:.0f}"}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            count, each = map(int, line.split())
            for room in rooms:
                while len((await anna.call("GET", f"rooms/{quote(room)}/joined_members"))["joined"]) < 2:
                    await _CLOCK.sleep(0.5)
            seconds = await _talk(anna, rooms[:count], each)
            print(json.dumps({"seconds": seconds, "refused": 0}), flush=True)


if __name__ == "__main__":
    if sys.argv[2:] == ["emulated"]:
        asyncio.run(_emulated(int(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as place:
            asyncio.run(_serve(Path(place), int(sys.argv[1])))
