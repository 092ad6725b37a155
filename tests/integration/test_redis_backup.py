"""Backups of a Redis store: made beside its gateways, put back into either kind of store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.transfer import export, redis_database
from tests.support.migration_kit import fill, shown
from tests.support.program import PATIENCE, legato
from tests.support.store_kit import put

if TYPE_CHECKING:  # at run time they are plugins, which nobody may import first
    from tests.support.migration_places import Places
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.migration_places"]

ACCOUNTS = [f"account:{number}" for number in range(8)]  # in several partitions


async def test_an_export_beside_a_gateway_holds_what_the_gateway_shows(places: Places) -> None:
    running = await places.open(places.redis[0])
    await fill(running)
    await export(places.redis[0], places.folder / "copy.db", SystemClock())
    copy = await places.open(places.sqlite("copy.db"))
    there, here = await shown(copy), await shown(running)
    assert {**there, "waiting": None} == {**here, "waiting": None}
    assert sum(map(len, there["waiting"].values())) > 0, "what a turn runs for here waits in a copy"
    await put(running, "e-later", "97")  # which goes on undisturbed


async def test_an_export_of_a_cluster(places: Places, redis_cluster: list[RedisServer]) -> None:
    for server in redis_cluster:
        server.empty()
    running = await places.open(redis_cluster[0].url)
    await fill(running)
    await export(redis_cluster[0].url, places.folder / "copy.db", SystemClock())
    assert (await shown(await places.open(places.sqlite("copy.db"))))["found"] == (await shown(running))["found"]


async def test_an_export_is_of_one_moment_and_nobody_loses_a_write(places: Places) -> None:
    running = await places.open(places.redis[0])
    await fill(running)
    ended, rounds = asyncio.Event(), 0

    async def write() -> None:
        nonlocal rounds
        while not ended.is_set():
            rounds += 1
            for account in ACCOUNTS:  # one after the other: no moment has a later one ahead
                await running.set_notes(account, {"round": str(rounds)})

    writing = asyncio.get_running_loop().create_task(write())
    for number in range(3):
        await export(places.redis[0], places.folder / f"{number}.db", SystemClock())
    ended.set()
    await writing
    for number in range(3):
        copy = await places.open(places.sqlite(f"{number}.db"))
        seen = [int((await copy.notes(account)).get("round", "0")) for account in ACCOUNTS]
        assert seen == sorted(seen, reverse=True)
        assert seen[0] - seen[-1] <= 1
    assert {(await running.notes(account))["round"] for account in ACCOUNTS} == {str(rounds)}


async def test_a_store_that_takes_too_long_is_said_to_and_its_gateways_go_on(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await places.open(places.redis[0])
    await fill(running)
    monkeypatch.setattr(redis_database, "_PAUSE_SECONDS", 0.001)
    with pytest.raises(StoreUnavailable, match="Stop them, or back up the files of the server"):
        await export(places.redis[0], places.folder / "copy.db", SystemClock())
    async with asyncio.timeout(PATIENCE):
        await put(running, "e-later", "97")
    await places.leave(running)
    await export(places.redis[0], places.folder / "copy2.db", SystemClock())  # nobody has to wait
    copy = await places.open(places.sqlite("copy2.db"))
    assert (await copy.status()).waiting > 0


async def test_the_program_backs_up_a_redis_store_and_restores_it_into_either(places: Places, tmp_path: Path) -> None:
    def configure(url: str) -> None:
        (tmp_path / "config.yaml").write_text(json.dumps({"store": {"url": url}}), encoding="utf-8")

    async def done(*arguments: str) -> Any:
        status, out, errors = await legato(tmp_path, *arguments)
        assert status == 0, errors
        return json.loads(out)

    url = await places.filled(places.redis[0])
    before = await shown(await places.open(url))
    (tmp_path / "legato-home").mkdir()
    (tmp_path / "legato-home" / "history").write_text("typed")
    configure(url)
    await done("backup", "one.tar", "--json")
    assert (await done("backup", "--verify", "one.tar", "--json"))["same"] == 8
    status, _, errors = await legato(tmp_path, "restore", "one.tar")
    assert (status, len(errors.splitlines())) == (1, 1)
    assert "is not empty" in errors or "gateway" in errors
    (tmp_path / "legato-home" / "history").write_text("later")
    configure(places.redis[1])
    restored = await done("restore", "one.tar", "--json")
    assert (Path(tmp_path, restored["aside"]) / "legato-home" / "history").read_text() == "later"
    assert (tmp_path / "legato-home" / "history").read_text() == "typed"
    assert await shown(await places.open(places.redis[1])) == before
    assert not (tmp_path / "legato.db").exists()
    configure("sqlite:///other.db")
    await done("restore", "one.tar", "--json")
    assert await shown(await places.open(places.sqlite("other.db"))) == before
