"""`legato logs`: the log of a chat, or of stdin, as a whole or of one turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.logs import coming, of_turn
from gateway.cli.main import app
from tests.support.fakes import ManualClock
from tests.support.program import legato as program

LINES = """2026-11-27T10:29:17.1Z [warning  ] model_failed                   provider=openai turn=7
2026-11-27T10:29:18.1Z [error    ] turn_broke                     turn=77
Traceback (most recent call last):
  ValueError: turn=7 is not what this is about
{"turn": "7", "event": "delivery_fails", "level": "warning"}
{"event": "about turn 7", "turn": "70"}
2026-11-27T10:29:19.1Z [error    ] turn_broke                     turn=7
Traceback (most recent call last):
  KeyError: 'x'
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEGATO_HOME", ".")
    (tmp_path / "legato-home").mkdir()
    (tmp_path / "legato-home" / "legato.log").write_text(LINES, encoding="utf-8")
    return tmp_path


def logs(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(app, ["logs", *arguments], input=given)


def test_the_last_lines_and_those_of_a_turn(home: Path) -> None:
    assert logs().stdout == LINES
    assert logs("-n", "2").stdout.splitlines() == LINES.splitlines()[-2:]
    of_seven = [LINES.splitlines()[place] for place in (0, 4, 6, 7, 8)]
    assert logs("--turn", "7").stdout.splitlines() == of_seven
    assert logs("-", "--turn", "7", given=LINES).stdout.splitlines() == of_seven
    assert logs("-", "-f", "--turn", "7", given=LINES).stdout.splitlines() == of_seven
    assert logs("--turn", ".*").stdout == ""


def test_a_log_cannot_steer_the_terminal(home: Path) -> None:
    (home / "evil.log").write_bytes(b"2026-01-01T00:00:00Z \x1b]0;x\x07 \xff\n")
    assert "\x1b" not in logs("evil.log").stdout


def test_without_a_log_it_says_where_there_may_be_one(home: Path) -> None:
    (home / "legato-home" / "legato.log").unlink()
    missing = logs()
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "journalctl -u legato" in missing.stderr


async def test_lines_that_come_are_whole_also_after_the_file_was_emptied(tmp_path: Path) -> None:
    path, clock = tmp_path / "a.log", ManualClock(0.0)
    path.write_text("", encoding="utf-8")
    with path.open(encoding="utf-8") as file, path.open("a", encoding="utf-8") as other:
        found: AsyncIterator[str] = coming(file, clock, of_turn("1"))

        async def write(text: str) -> None:
            other.write(text)
            other.flush()

        await write("2026-01-01T turn=1 first\n2026-01-01T turn=2 other\n2026-01-01T turn=1 hal")
        assert await anext(found) == "2026-01-01T turn=1 first"
        await write("f\n")
        assert await anext(found) == "2026-01-01T turn=1 half"
        waiting = asyncio.ensure_future(anext(found))
        await clock.advance(5)
        assert not waiting.done(), "nothing is read twice"
        path.write_text("", encoding="utf-8")
        await clock.advance(5)
        await write("2026-01-01T turn=1 anew\n")
        await clock.advance(5)
        assert await waiting == "2026-01-01T turn=1 anew"


async def test_the_log_of_a_real_chat(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("log: {level: info}\n", encoding="utf-8")
    await program(tmp_path, "chat", given=b"hello\n")
    status, out, err = await program(tmp_path, "logs")
    assert (status, err, "account_owned" in out) == (0, "", True)
