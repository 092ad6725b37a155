"""`legato trajectories compress` with real files: line for line, strange lines, broken files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.domain.message import Message
from gateway.runtime.errors import UserError
from gateway.trajectories.run import Order, Progress, compress_files
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Refuse, Reply
from tests.support.program import KEY, legato, write_config
from tests.support.trajectory_files import HOSTILE, left_behind, many, metrics_of, order, written
from tests.support.trajectory_runs import NOTES, SECRET, FakeSummariser, compressor, line_of, worked

# -- line for line --------------------------------------------------------------------------------


async def test_a_thousand_lines_come_out_line_for_line(tmp_path: Path) -> None:
    lines = many(1_000)
    written(tmp_path, lines)
    seen: list[Progress] = []
    report = await compress_files(order(tmp_path), compressor(), summariser="fake", tell=seen.append)
    out = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    alone = compressor()
    assert len(out) == len(lines)
    for before, after in zip(lines, out, strict=True):
        assert after == (before if not before.strip() else (await alone.compress_line(before)).data)
    figures = metrics_of(report)
    totals, rows = figures["totals"], figures["trajectories"]
    assert [row["line"] for row in rows] == [number for number, line in enumerate(lines, start=1) if line.strip()]
    runs = [row for row in rows if "fault" not in row]
    assert totals["trajectories"] == len(rows)
    assert totals["not_understood"] == len(rows) - len(runs) > 0
    assert totals["compressed"] == sum(row["region"] is not None for row in runs) > 0
    assert totals["skipped_under_target"] == sum(row["skipped_under_target"] for row in runs) > 0
    for name in ("turns_before", "turns_after", "turns_removed", "tokens_before", "tokens_after", "tokens_saved"):
        assert totals[name] == sum(row[name] for row in runs) > 0
    assert totals["summary_calls"] == totals["compressed"]
    assert (figures["target"], figures["summary"], figures["summariser"]) == (300, 100, "fake")
    assert [each.read for each in seen] == sorted(each.read for each in seen)
    assert seen[-1].read == seen[-1].size == (tmp_path / "in.jsonl").stat().st_size
    assert left_behind(tmp_path) == []


async def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, many(3))
    out, synced = tmp_path / "out.jsonl", list[tuple[int, bool]]()
    monkeypatch.setattr("os.fsync", lambda file: synced.append((os.fstat(file).st_size, out.exists())))
    await compress_files(order(tmp_path), compressor())
    assert (out.stat().st_size, False) in synced


async def test_strange_lines_pass_through_and_say_where_and_why(tmp_path: Path) -> None:
    last = b'{"conversations": []}'  # without a line end
    written(tmp_path, [*HOSTILE, line_of(worked(12)), last])
    report = await compress_files(order(tmp_path), compressor())
    out = (tmp_path / "out.jsonl").read_bytes()
    assert out.startswith(b"".join(HOSTILE))
    assert out.endswith(last)
    rows = metrics_of(report)["trajectories"]
    faults = {row["line"]: row["fault"] for row in rows if "fault" in row}
    assert sorted(faults) == list(range(1, len(HOSTILE) + 1))
    assert faults[3] == "The 'value' of turn 1 is not a text"
    assert report.totals.compressed == 1
    assert report.failed == {}


# -- files and folders ------------------------------------------------------------------------------


async def test_a_file_that_fails_does_not_stop_the_others_and_can_be_mended(tmp_path: Path) -> None:
    folder, output = tmp_path / "runs", tmp_path / "made"
    folder.mkdir()
    for name in ("a", "c"):
        written(folder, [line_of(worked(12))], f"{name}.jsonl")
    (folder / "b.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    (folder / "notes.txt").write_text("no run")
    (folder / "d.jsonl").mkdir()
    told = Order(source=folder, output=output)
    report = await compress_files(told, compressor())
    assert report.failed == {"b.jsonl": "No such file or directory"}
    assert sorted(path.name for path in output.iterdir()) == ["a.jsonl", "c.jsonl"]
    assert metrics_of(report)["failed_files"] == report.failed
    written(tmp_path, [line_of(worked(3))], "elsewhere.jsonl")
    summarise = FakeSummariser()
    report = await compress_files(told, compressor(summarise=summarise))
    assert report.failed == {}
    assert summarise.requests == []
    assert (output / "b.jsonl").read_bytes() == line_of(worked(3))
    assert report.totals.trajectories == 3
    assert left_behind(tmp_path) == []


async def test_two_at_once_do_not_write_the_same(tmp_path: Path) -> None:
    written(tmp_path, [line_of(worked(12))])

    class Second:
        """A summariser that meanwhile tries to start another run."""

        async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
            with pytest.raises(UserError, match="another run is writing there"):
                await compress_files(order(tmp_path), compressor())
            return NOTES

    report = await compress_files(order(tmp_path), compressor(summarise=Second()))
    assert report.totals.compressed == 1


def contents(folder: Path) -> dict[Path, bytes | None]:
    """All files and folders below it."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


async def test_nothing_is_overwritten(tmp_path: Path) -> None:
    source = written(tmp_path, [line_of(worked(1))])
    folder = tmp_path / "runs"
    folder.mkdir()
    written(folder, [line_of(worked(1))], "a.jsonl")
    (tmp_path / "there.jsonl").write_text("mine")
    refused = [
        (Order(source=source, output=tmp_path / "there.jsonl"), "exists already"),
        (Order(source=source, output=source), "is what is to be compressed"),
        (Order(source=source, output=folder), "is a folder: name the file to write"),
        (Order(source=folder, output=source), "is a file, and"),
        (Order(source=folder, output=folder), "is what is to be compressed"),
        (Order(source=tmp_path / "gone", output=tmp_path / "x"), "does not exist"),
        (Order(source=source, output=source / "x"), "cannot be used"),
        (Order(source=tmp_path / ("x" * 300), output=tmp_path / "x"), "cannot be used (File name too long)"),
    ]
    before = contents(tmp_path)
    for told, why in refused:
        with pytest.raises(UserError) as caught:
            await compress_files(told, compressor())
        assert why in str(caught.value)
    assert contents(tmp_path) == before


async def test_a_folder_may_be_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, made = tmp_path / "runs", tmp_path / "made"
    runs.mkdir()
    made.mkdir()
    written(runs, [], "empty.jsonl")
    written(runs, [line_of(worked(1))], "one.jsonl")
    monkeypatch.chdir(made)
    report = await compress_files(Order(source=Path("../runs"), output=Path(".")), compressor())
    assert contents(made) == {made / "empty.jsonl": b"", made / "one.jsonl": line_of(worked(1))}
    assert report.metrics == tmp_path / "made.metrics.json"
    assert metrics_of(report)["totals"]["trajectories"] == 1


async def test_who_may_not_read_the_source_may_not_read_the_output(tmp_path: Path) -> None:
    source = written(tmp_path, [line_of(worked(1))])
    source.chmod(0o640)
    await compress_files(order(tmp_path), compressor())
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o640


# -- the program ------------------------------------------------------------------------------------


async def test_the_program_needs_no_model_and_answers_the_same_twice(tmp_path: Path) -> None:
    written(tmp_path, [line_of(worked(n)) for n in (2, 12, 14)] + [b"nonsense\n"])
    made = []
    for name in ("one", "zwölf"):
        options = ["--target", "300", "--summary-target", "120", "--notice"]
        told = ["trajectories", "compress", "in.jsonl", f"{name}.jsonl", *options]
        status, out, err = await legato(tmp_path, *told, PYTHONIOENCODING="ascii")
        assert (status, err) == (0, "")
        assert "4 trajectories\n  2 compressed" in out
        assert "1 lines hold no trajectory" in out
        assert json.loads((tmp_path / f"{name}.jsonl.metrics.json").read_text())["totals"]["compressed"] == 2
        made.append((tmp_path / f"{name}.jsonl").read_bytes())
    assert made[0] == made[1]
    run = json.loads(made[0].splitlines()[1])["conversations"]
    assert "terminal" in run[4]["value"]
    assert "replaced by notes" in run[0]["value"]
    assert left_behind(tmp_path) == []


async def test_the_program_tells_of_a_summariser_that_failed(tmp_path: Path) -> None:
    lines = [line_of(worked(12)), line_of(worked(2))]
    written(tmp_path, lines)
    arguments = ["trajectories", "compress", "in.jsonl", "out.jsonl", "--target", "300", "--summary-target", "100"]
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})
    async with LlmServer(lambda _: Refuse(status=401, body=body)) as server:
        config = write_config(
            tmp_path, server.url, budgets={"daily_usd": 1}, model={"prices": {"input": 1, "output": 1}}
        )
        status, out, err = await legato(tmp_path, *arguments, "--config", str(config))
        again = await legato(tmp_path, *arguments, "--config", str(config))
    assert status == 1
    assert "1 could not be compressed and are as they were, 1 of them because the summariser failed" in out
    assert "legato: the spend caps in the configuration do not apply to trajectories" in err
    assert "compress out.jsonl once more" in err
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(lines)
    told = (tmp_path / "out.jsonl.metrics.json").read_text()
    assert KEY not in told + out + err
    assert again[0] == 1
    assert again[2].endswith("legato: out.jsonl exists already: delete it, or name another place to write to\n")


async def test_the_program_says_what_its_summaries_cost(tmp_path: Path) -> None:
    written(tmp_path, [line_of(worked(12))])
    arguments = ["trajectories", "compress", "in.jsonl", "out.jsonl", "--target", "300", "--summary-target", "100"]
    usage = {"prompt_tokens": 2_000_000, "completion_tokens": 1_000_000}
    async with LlmServer(lambda _: Reply(text=f"{NOTES}\n{SECRET}", usage=usage)) as server:
        write_config(tmp_path, server.url, model={"prices": {"input": 1, "output": 4}})
        status, out, _ = await legato(tmp_path, *arguments)
    assert status == 0
    assert out.endswith("Summaries took 2,000,000 tokens read and 1,000,000 written, for $6.00\n")
