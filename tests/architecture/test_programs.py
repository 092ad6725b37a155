"""What a machine without the programs of `tests/programs.txt` runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import programs
from tests.support.source_tree import ROOT

ASKING = ["tests/e2e/test_page_words_kept.py", "tests/e2e/test_page_browser.py"]


def collected(path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Pytest's list of two files, on a machine whose programs are in a folder."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "PATH")}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-o", f"cache_dir={path}", *ASKING]
    return subprocess.run(
        command, cwd=ROOT, env={**environment, "PATH": str(path), **more}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_without_a_program_the_tests_that_ask_for_it_are_left_out(tmp_path: Path) -> None:
    ended = collected(tmp_path)
    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ended.stdout
    assert "Tests that need chromium" in ended.stdout
    assert "apt-get install chromium" in ended.stdout


@pytest.mark.slow
def test_in_ci_nothing_is_left_out(tmp_path: Path) -> None:
    ended = collected(tmp_path, CI="true")
    assert ended.returncode == pytest.ExitCode.OK, ended.stdout
    assert all(path in ended.stdout for path in ASKING)
    assert "Tests that need" not in ended.stdout


@pytest.mark.parametrize("name", programs())
def test_a_program_that_is_there_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs()[name].path is None
    stand_in = tmp_path / programs()[name].names[-1]
    stand_in.touch(mode=0o755)
    assert programs()[name].path == str(stand_in)
