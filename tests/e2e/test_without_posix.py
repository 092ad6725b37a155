"""The program without what Windows lacks. No test of ours runs on Windows itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import environment


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "asked", "status", "told"),
    [
        ("auto", ["ask", "count to 5"], 0, "1 2 3 4 5"),
        ("auto", ["check"], 0, "run Legato in WSL"),
        ("true", ["ask", "count to 5"], 2, "tools.shell.enabled must be false or auto here: Windows has none"),
    ],
)
def test_it_answers_and_says_what_commands_need(
    tmp_path: Path, shell: str, asked: list[str], status: int, told: str
) -> None:
    (tmp_path / "config.yaml").write_text(f"model: {{provider: offline}}\ntools: {{shell: {{enabled: {shell}}}}}\n")
    command = [sys.executable, "-m", "tests.support.no_posix", *asked]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert (ended.returncode, told in ended.stdout + ended.stderr) == (status, True), ended
