"""What is started for a command in a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.runtime import sandbox
from gateway.runtime.sandbox import Lent, Limits, Sandbox, argv
from tests.support.syscall_filter import ARCHITECTURES, FOLDER, program

COMMAND = ["make", "the tea; now"]


def started(**how: object) -> str:
    return " ".join(argv(Sandbox(folder=Path("/home/w"), **how), COMMAND))  # type: ignore[arg-type]


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_filters_are_those_of_their_source(machine: str) -> None:
    assert FOLDER.joinpath(f"{machine}.bpf").read_bytes() == program(machine)


def test_the_command_stands_last_and_as_it_is() -> None:
    assert argv(Sandbox(folder=Path("/w")), COMMAND)[-2:] == COMMAND


def test_the_workspace_and_lent_folders_alone_are_of_the_host() -> None:
    lent = (Lent(name="a", path=Path("/srv/a")), Lent(name="b", path=Path("/srv/b"), write=True))
    words = started(lent=lent, shown=(Lent(name="s", path=Path("/srv/s"), write=True),), proxy=Path("/srv/proxy"))
    for each in (
        " --bind /home/w /workspace ",
        " --ro-bind-try /srv/a /folders/a ",
        " --bind-try /srv/b /folders/b ",
        " --ro-bind-try /srv/s /skills/s ",
        " --ro-bind /srv/proxy /run/proxy ",
    ):
        assert each in words
    assert words.count(" --bind ") == 1
    assert words.index(" --remount-ro / ") > words.index(" /run/proxy ")


def test_every_network_has_a_name_space_of_its_own() -> None:
    assert "--unshare-net" in started(network="public", proxy=Path("/srv/proxy"))


def test_limits_are_the_kernels() -> None:
    words = started(limits=Limits(memory=1, processes=2, file=3, cpu=4, scratch=5, shared=6, open_files=7))
    assert " prlimit --data=1 --nproc=2 --fsize=3 --cpu=4 --nofile=7 --core=0 -- " in words
    assert " --size 6 --perms 1777 --tmpfs /dev/shm " in words
    assert " --size 5 --perms 1777 --tmpfs /tmp " in words


def test_elsewhere_than_on_linux_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.sys, "platform", "darwin")  # type: ignore[attr-defined]
    assert "only Linux has one" in sandbox.why_not.__wrapped__()


@pytest.mark.parametrize(
    ("said", "setting", "cure"),
    [
        ("sh: 1: exec: bwrap: not found", "", "apt-get install bubblewrap"),
        ("bwrap: execvp prlimit: No such file or directory", "", "apt-get install util-linux"),
        ("bwrap: Unknown option --disable-userns", "", "older than 0.8"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "", "systempaths=unconfined"),
        ("bwrap: loopback: Failed to create NETLINK_ROUTE socket", "", "RestrictAddressFamilies"),
        ("bwrap: No permissions to create a new namespace", "kernel/unprivileged_userns_clone", "userns_clone=1"),
        ("bwrap: setting up uid map: Permission denied", "kernel/apparmor_restrict_unprivileged_userns", "a profile"),
        ("bwrap: Creating new namespace failed: No space left", "user/max_user_namespaces", "=10000"),
        ("bwrap: Creating new namespace failed: Operation not permitted", "", "a container or a service keeps"),
        ("something new", "", "bubblewrap does not work here (something new)"),
        ("", "", "it says nothing"),
    ],
)
def test_each_failure_says_what_to_do(said: str, setting: str, cure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_setting", lambda key: sandbox._SWITCHES[key][0] if key == setting else "")
    assert cure in sandbox._explained(said)


def test_a_workspace_counts_what_lies_in_it_and_not_where_its_links_lead(tmp_path: Path) -> None:
    folder, beside = tmp_path / "work", tmp_path / "beside"
    (folder / "inner").mkdir(parents=True)
    beside.write_bytes(b"x" * 1_000_000)
    (folder / "inner" / "link").symlink_to(beside)
    (folder / "inner" / "file").write_bytes(b"x" * 10_000)
    taken, files = sandbox._taken(folder, 1e9, 1e9)
    assert files == 3
    assert 10_000 <= taken < 100_000
    assert sandbox._taken(folder, 1e9, 1)[1] == 2, "what is more than enough is not counted to its end"
    assert sandbox._taken(folder, 0, 1e9)[1] <= 3
