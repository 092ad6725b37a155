"""Backups, restores and upgrades that are killed at any step: nothing is lost, and the next try does it."""

from __future__ import annotations

import asyncio
import lzma
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.runtime.clock import SystemClock
from gateway.store.sqlite import SqliteStore
from tests.support.forks import ROOT, forks
from tests.support.migration_kit import AT_ONCE, fill, shown
from tests.support.program import environment

EARLIER: Final = ROOT / "tests" / "fixtures" / "stores" / "04-1d4c5121.db.xz"


async def legato(folder: Path, step: int, *command: str) -> tuple[int, str]:
    """A command in Legato's folder that is killed before a step (0: never); its status and errors."""
    variables = environment(LEGATO_HOME=str(folder))
    arguments = [str(folder), str(step), *command]
    process = await forks().program("tests.support.killed_step", *arguments, cwd=ROOT, environment=variables)
    _, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, errors.decode()


async def steps_of(folder: Path, *command: str) -> int:
    """How many steps the command has. They are done to a copy of the folder."""
    copy = folder.with_name("counted")
    await asyncio.to_thread(shutil.copytree, folder, copy)
    status, errors = await legato(copy, 0, *(each.replace(str(folder), str(copy)) for each in command))
    assert status == 0, errors
    await asyncio.to_thread(shutil.rmtree, copy)
    return int(errors.splitlines()[-1])


async def everything(path: Path) -> dict[str, Any]:
    """All that the store shows. It is opened as a start does."""
    store = SqliteStore(path, clock=SystemClock())
    await store.open()
    try:
        return await shown(store)
    finally:
        await store.aclose()


def chosen(steps: int, *, all_of_them: bool) -> Iterator[int]:
    """The steps to be killed at: all, or some of them, the last ones among these: there things change places."""
    if all_of_them:
        yield from range(1, steps + 1)
    else:
        yield from sorted(random.Random(33).sample(range(1, steps - 12), 1))
        yield from range(steps - 12, steps + 1, 6)


some_and_all: Final = pytest.mark.parametrize(
    "all_of_them", [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.slow)]
)


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """Legato's folder with a store that has everything, a backup of it, and a newer store in its place."""
    folder = tmp_path / "legato"
    (folder / "b").mkdir(parents=True)
    (folder / "legato-home").mkdir()
    (folder / "legato-home" / "history").write_text("backed up")
    store = SqliteStore(folder / "legato.db", clock=SystemClock(), attempt_pauses=AT_ONCE)
    await store.open()
    await fill(store)
    await store.aclose()
    status, errors = await legato(folder, 0, "backup", str(folder / "b" / "one.tar"))
    assert status == 0, errors
    await store_later(folder)
    return folder


async def store_later(folder: Path) -> None:
    store = SqliteStore(folder / "legato.db", clock=SystemClock())
    await store.open()
    await store.set_notes("x:1", {"later": "1"})
    await store.aclose()
    (folder / "legato-home" / "history").write_text("later")


def fresh(folder: Path, step: int) -> Path:
    """A copy of the folder, for one step."""
    copy = folder.with_name(f"killed-{step}")
    shutil.copytree(folder, copy)
    return copy


@some_and_all
async def test_a_restore_that_is_killed_leaves_the_old_store_or_the_new_one(folder: Path, all_of_them: bool) -> None:
    old = await everything(folder / "legato.db")
    steps = await steps_of(folder, "restore", str(folder / "b" / "one.tar"))
    done = fresh(folder, 0)
    assert (await legato(done, 0, "restore", str(done / "b" / "one.tar")))[0] == 0
    new = await everything(done / "legato.db")
    assert new != old
    fates = []
    for step in chosen(steps, all_of_them=all_of_them):
        copy = fresh(folder, step)
        archive = str(copy / "b" / "one.tar")
        status, errors = await legato(copy, step, "restore", archive)
        assert status == -signal.SIGKILL, (step, errors)
        found = await everything(copy / "legato.db")  # a start finishes what was begun
        assert found in (old, new), step
        history = (copy / "legato-home" / "history").read_text()
        assert history == ("later" if found == old else "backed up"), step
        if found == new:
            (aside,) = copy.glob("legato.db.before-*")
            assert await everything(aside / "legato.db") == old, step
        fates.append(found == new)
        status, errors = await legato(copy, 0, "restore", archive)
        assert status == 0, (step, errors)
        assert await everything(copy / "legato.db") == new, step
        assert not (copy / "legato.db.unpacked").exists()
        assert not (copy / "legato.db.restored").exists()
        shutil.rmtree(copy)
    assert fates == sorted(fates), "there is one moment at which the new store takes the old one's place"
    assert set(fates) == {False, True}


@some_and_all
async def test_a_backup_that_is_killed_leaves_none_or_a_whole_one(folder: Path, all_of_them: bool) -> None:
    old = await everything(folder / "legato.db")
    for step in chosen(await steps_of(folder, "backup", str(folder / "b")), all_of_them=all_of_them):
        copy = fresh(folder, step)
        status, errors = await legato(copy, step, "backup", str(copy / "b"))
        assert status == -signal.SIGKILL, (step, errors)
        for whole in (copy / "b").glob("legato-*.tar"):
            assert (await legato(copy, 0, "backup", "--verify", str(whole)))[0] == 0, step
        assert await everything(copy / "legato.db") == old, step
        assert (await legato(copy, 0, "backup", str(copy / "b" / "again.tar")))[0] == 0, step
        shutil.rmtree(copy)


@some_and_all
async def test_an_upgrade_that_is_killed_is_made_by_the_next_start(tmp_path: Path, all_of_them: bool) -> None:
    folder = tmp_path / "legato"
    folder.mkdir()
    (folder / "legato.db").write_bytes(lzma.decompress(EARLIER.read_bytes()))
    done = fresh(folder, 0)
    assert (await legato(done, 0, "upgrade", "--store"))[0] == 0
    new = await everything(done / "legato.db")
    for step in chosen(await steps_of(folder, "upgrade", "--store"), all_of_them=all_of_them):
        copy = fresh(folder, step)
        status, errors = await legato(copy, step, "upgrade", "--store")
        # What the file is freed of beside the gateway has a few steps more or less, as time has it.
        assert status == -signal.SIGKILL or int(errors.splitlines()[-1]) < step, (step, errors)
        assert await everything(copy / "legato.db") == new, step
        shutil.rmtree(copy)
