"""Whether a process was started by something that a gateway runs, as the system's own tables say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.runtime import inside, posix
from gateway.runtime.inside import _NAME, MARK, comes_from_inside

HEAD = "  sl  local_address rem_address st tx rx tr tm retrnsmt uid timeout inode\n"


class Processes:
    """A folder like /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "net").mkdir()
        self.connected(user=posix.user())

    def connected(self, user: int | None, state: str = "01", port: int = 5_000) -> None:
        """A connection from `port` to 80, and one the other way around."""
        lines = [f" 0: 0100007F:{0x50:04X} 0100007F:{port:04X} {state} 0 0 0 {user} 0 11"]
        lines.append(f" 1: 0100007F:{port:04X} 0100007F:{0x50:04X} {state} 0 0 0 {user} 0 22")
        (self.folder / "net" / "tcp").write_text(HEAD + "".join(f"{line}\n" for line in lines if user is not None))

    def add(self, pid: int, parent: int, *, name: str = "a) b", environment: str = "", socket: int = 0) -> None:
        """A process."""
        process = self.folder / str(pid)
        (process / "fd").mkdir(parents=True)
        (process / "comm").write_text(f"{name}\n")
        (process / "stat").write_text(f"{pid} ({name}) S {parent} 1 1")
        (process / "environ").write_text(f"HOME=/\0{environment}\0")
        os.symlink(f"socket:[{socket}]", process / "fd" / "3")


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Processes:
    monkeypatch.setattr(inside, "_PROCESSES", tmp_path)
    return Processes(tmp_path)


@pytest.mark.parametrize(
    ("of_parent", "expected"),
    [
        ({}, False),
        ({"environment": f"{MARK}=1"}, True),
        ({"environment": f"NOT_{MARK}=1"}, False),
        ({"name": _NAME.decode()}, True),
    ],
)
def test_who_asks_is_inside_if_a_process_above_it_is(
    processes: Processes, of_parent: dict[str, str], expected: bool
) -> None:
    processes.add(1, 0)
    processes.add(5, 1, **of_parent)  # type: ignore[arg-type]
    processes.add(9, 5, socket=22)
    processes.add(7, 1, socket=11)
    assert comes_from_inside(5_000, 80) is expected


def test_who_holds_the_other_end_does_not_count(processes: Processes) -> None:
    processes.add(1, 0)
    processes.add(5, 1, environment=f"{MARK}=1", socket=11)
    processes.add(9, 1, socket=22)
    assert not comes_from_inside(5_000, 80)
    assert comes_from_inside(80, 5_000)


def test_another_users_process_is_outside_and_one_that_cannot_be_found_may_be_inside(processes: Processes) -> None:
    processes.add(1, 0)
    assert comes_from_inside(5_000, 80), "nobody holds the socket any more"
    processes.connected(user=posix.user() + 1)
    assert not comes_from_inside(5_000, 80)
    processes.connected(user=posix.user(), state="06")
    assert comes_from_inside(5_000, 80), "the connection is over"
    processes.connected(user=None)
    assert comes_from_inside(5_000, 80)


def test_a_system_without_such_tables_has_nobody_inside(processes: Processes) -> None:
    (processes.folder / "net" / "tcp").unlink()
    assert not comes_from_inside(5_000, 80)
