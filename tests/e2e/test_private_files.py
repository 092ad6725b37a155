"""Whatever the umask is, nobody else on the machine reads what Legato writes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.support.program import environment


async def legato(home: Path, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments, env=environment(LEGATO_HOME=str(home)), umask=0
    )
    assert await process.wait() == 0


async def test_every_file_and_folder_is_its_owners_alone(tmp_path: Path) -> None:
    home = tmp_path / "new/legato"
    await legato(home, "ask", "hello")
    await legato(home, "config", "set", "log.level", "debug")
    await legato(home, "backup", str(home / "x.tar"))
    open_to_others = [str(each) for each in (tmp_path / "new", *home.rglob("*")) if each.stat().st_mode & 0o077]
    assert (open_to_others, (home / "legato.db").exists()) == ([], True)
