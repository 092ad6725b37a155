"""`legato upgrade` in a clone, with stand-ins for git and make."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.forks import ROOT
from tests.support.program import legato


async def test_it_says_what_it_would_do_and_does_it_after_a_yes(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, status in (("git", 0), ("make", 0)):
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/ran"\nexit {status}\n')
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"

    status, out, err = await legato(tmp_path, "upgrade", PATH=path)
    assert status == 1
    assert f"runs from the clone {ROOT}. An upgrade runs:\n  git -C" in out
    assert "Nothing has changed" in err
    assert not (tmp_path / "ran").exists()

    status, out, err = await legato(tmp_path, "upgrade", "--yes", PATH=path)
    assert status == 0, err
    assert "The store is up to date for this version of Legato." in out
    assert (tmp_path / "ran").read_text().splitlines() == [
        f"git -C {ROOT} pull --ff-only",
        f"make -C {ROOT} .venv/.installed",
    ]

    (tools / "git").write_text("#!/bin/sh\nexit 1\n")
    status, out, err = await legato(tmp_path, "upgrade", "--yes", PATH=path)
    assert status == 1
    assert "This command failed: git -C" in err
