"""Commands that root types in the folder of a service: what they make is the service's to read."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.program import legato

SERVICE = os.geteuid() or 64_321  # a user that nobody is; who is not root can give nothing away, and need not


def roots(folder: Path) -> list[str]:
    return [str(each.relative_to(folder)) for each in folder.rglob("*") if each.lstat().st_uid != SERVICE]


async def test_what_root_does_in_the_folder_of_a_service_is_the_services(tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    backups.mkdir()
    for each in (tmp_path, backups):
        os.chown(each, SERVICE, -1)
    for command in (
        ["config", "set", "log.level", "info"],
        ["init", "--provider", "offline", "--yes"],
        ["ask", "my code is quizzaciously"],
        ["backup", "--keep", "7d", str(backups)],
        ["upgrade", "--store"],
    ):
        status, out, err = await legato(tmp_path, *command, LEGATO_HOME=str(tmp_path))
        assert status == 0, (command, out, err)
    (archive,) = backups.glob("*.tar")
    assert roots(tmp_path) == []
    status, out, err = await legato(tmp_path, "restore", str(archive), LEGATO_HOME=str(tmp_path))
    assert status == 0, err
    assert roots(tmp_path) == []
