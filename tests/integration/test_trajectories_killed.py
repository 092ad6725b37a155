"""`legato trajectories compress` killed, and started again: no line is lost, none is doubled."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.trajectories import run as running
from gateway.trajectories.run import compress_files
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.examples import one_of
from tests.support.program import KEY, PATIENCE, legato, started, write_config
from tests.support.trajectory_files import left_behind, many, metrics_of, order, written
from tests.support.trajectory_runs import NOTES, SMALL, FakeSummariser, compressor, line_of, worked


class Killed(BaseException):
    """The stand-in for SIGKILL inside a test: nobody catches it."""


async def killed_at_call(folder: Path, call: int, *, concurrency: int = 3) -> bool:
    """Run until the summariser is asked for the n-th time; False if it came to its end before."""

    def answer(number: int) -> str:
        if number >= call:  # nothing goes on after a kill
            raise Killed
        return NOTES

    try:
        told = compressor(summarise=FakeSummariser(answer))
        await compress_files(order(folder, concurrency=concurrency), told)
    except BaseExceptionGroup as group:
        if group.split(Killed)[1] is not None:
            raise
        return True
    return False


async def finished(folder: Path) -> tuple[bytes, dict[str, Any], int]:
    """Run to the end: output, metrics, summary calls that this took."""
    summarise = FakeSummariser()
    report = await compress_files(order(folder), compressor(summarise=summarise))
    assert left_behind(folder) == []
    return (folder / "out.jsonl").read_bytes(), metrics_of(report), len(summarise.requests)


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_killed_again_and_again_it_ends_as_if_it_had_never_been(tmp_path: Path, concurrency: int) -> None:
    lines = many(60, seed=2)
    whole = tmp_path / "whole"
    whole.mkdir()
    written(whole, lines)
    wanted, figures, calls = await finished(whole)
    written(tmp_path, lines)
    kills = 0
    while await killed_at_call(tmp_path, 3 + concurrency, concurrency=concurrency):
        kills += 1
        assert not (tmp_path / "out.jsonl").exists()
        assert kills < 100
    assert kills > 3
    assert (tmp_path / "out.jsonl").read_bytes() == wanted
    again = json.loads((tmp_path / "out.jsonl.metrics.json").read_text())
    assert again["totals"] == figures["totals"]
    assert again["trajectories"] == figures["trajectories"]
    assert left_behind(tmp_path) == []
    assert calls == figures["totals"]["summary_calls"]


@one_of(2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_of_its_files_a_kill_leaves_nothing_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A kill between two writes leaves the end of the file unwritten, in the middle of a line as well."""
    folder = tmp_path_factory.mktemp("cut")
    lines = many(16, seed=3)
    written(folder, lines)
    wanted = [line if not line.strip() else asyncio.run(compressor().compress_line(line)).data for line in lines]
    assert asyncio.run(killed_at_call(folder, 5))
    progress = folder / "out.jsonl.progress"
    os.truncate(progress, data.draw(st.integers(0, progress.stat().st_size)))
    out, figures, _ = asyncio.run(finished(folder))
    assert out == b"".join(wanted)
    assert figures["totals"]["trajectories"] == sum(bool(line.strip()) for line in lines)


async def test_killed_once_all_lines_are_written_it_still_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Killed

    for number, (where, name) in enumerate([(os, "fsync"), (Path, "replace"), (running, "_write_metrics")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = [line_of(worked(12)), line_of(worked(2))]
        written(folder, lines)
        with monkeypatch.context() as patched:
            patched.setattr(where, name, die)
            with pytest.raises(Killed):
                await compress_files(order(folder), compressor())
        _, figures, calls = await finished(folder)
        assert calls == 0
        assert figures["totals"]["trajectories"] == 2
        assert len((folder / "out.jsonl").read_bytes().splitlines()) == 2


async def test_the_program_is_killed_and_goes_on_where_it_was(tmp_path: Path) -> None:
    lines = many(40, seed=4)
    written(tmp_path, lines)
    arguments = ["trajectories", "compress", "in.jsonl", "out.jsonl", "--target", "300", "--summary-target", "100"]
    answered = 0

    def reply(_: dict[str, Any]) -> Reply:
        nonlocal answered
        answered += 1
        return Reply(text=NOTES) if answered <= 9 else Reply(text=NOTES, hold=asyncio.Event())

    async with LlmServer(reply, api_key=KEY) as server:
        config = write_config(tmp_path, server.url)
        process = await started(tmp_path, *arguments, "--config", str(config), "--concurrency", "3")
        async with asyncio.timeout(PATIENCE):
            await server.until(lambda: server.in_flight == 3 and server.calls == 12)
            process.send_signal(signal.SIGKILL)
            await process.communicate()
            assert process.returncode == -signal.SIGKILL
        assert left_behind(tmp_path) == ["out.jsonl.progress"]
        server.reply = lambda _: Reply(text=NOTES)
        server.calls = 0
        status, out, err = await legato(tmp_path, *arguments)
        assert (status, err) == (0, "")
        assert not server.violations
        figures = json.loads((tmp_path / "out.jsonl.metrics.json").read_text())
        assert server.calls == figures["totals"]["summary_calls"] - 9
    assert "an earlier run was finished" in out
    made = (tmp_path / "out.jsonl").read_bytes()
    assert made == b"".join(
        [line if not line.strip() else (await compressor().compress_line(line)).data for line in lines]
    )
    assert left_behind(tmp_path) == []
    assert figures["summariser"] == "test-model"


async def test_a_source_that_was_changed_in_between_is_compressed_as_it_is_now(tmp_path: Path) -> None:
    lines = many(20, seed=5)
    written(tmp_path, lines)
    assert await killed_at_call(tmp_path, 4)
    with pytest.raises(UserError, match=r"made with other options \(version 1, target 300.*delete"):
        await compress_files(order(tmp_path), compressor(replace(SMALL, target=400)))
    written(tmp_path, lines[1:])
    out, _, _ = await finished(tmp_path)
    assert len(out.splitlines()) == len(lines) - 1


async def test_a_damaged_progress_file_is_said_to_be_one(tmp_path: Path) -> None:
    written(tmp_path, many(20, seed=5))
    assert await killed_at_call(tmp_path, 4)
    progress = tmp_path / "out.jsonl.progress"
    rows = progress.read_bytes().splitlines(keepends=True)
    progress.write_bytes(b"".join([*rows[:2], b'{"file": 3}\n', *rows[2:]]))
    with pytest.raises(UserError, match="is damaged: delete it"):
        await compress_files(order(tmp_path), compressor())
