"""The attacks of `tests/support/sandbox_attacks.py`: none succeeds in the sandbox, and none leaves a trace outside.

Those of a family run in one sandbox, one after the other. Each is judged by its exit status; then the world outside is
looked at: what listens there was asked by nobody, the files are as they were, the process lives.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import gateway
from gateway.runtime import sandbox
from gateway.runtime.sandbox import Lent, Sandbox, argv
from tests.support.sandbox_attacks import ATTACKS, DRIVER, KIT, Attack
from tests.support.source_tree import ROOT
from tests.support.syscall_filter import ARCHITECTURES, REFUSED

CANARY = "canary-9c1f"
CODE = Path(gateway.__file__).parent
KERNEL = ("kernel/core_pattern", "kernel/randomize_va_space", "user/max_user_namespaces")
SOMEBODY = 4242  # a user without an account
SECONDS = 10.0  # of one attack
PYTHON = "python3"

# Listens everywhere, and writes down who comes. Its third descriptor, its environment and its folder hold secrets.
VICTIM = """
import os, selectors, socket, sys
home, path, abstract, contacts, *more = sys.argv[2:]
held = os.open(home + "/.env", os.O_RDONLY); os.dup2(held, 3)
def listening(family, address, kind=socket.SOCK_STREAM):
    each = socket.socket(family, kind); each.bind(address)
    if kind == socket.SOCK_STREAM: each.listen()
    return each
tcp = listening(socket.AF_INET, ("0.0.0.0", 0))
tcp6 = listening(socket.AF_INET6, ("::1", 0)) if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6") else tcp
udp = listening(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
locals = [listening(socket.AF_UNIX, each) for each in (path, *more)]
for each in (path, *more): os.chmod(each, 0o666)
unseen = listening(socket.AF_UNIX, "\\0" + abstract)
looks = selectors.DefaultSelector()
for each in {tcp, tcp6, udp, *locals, unseen}: looks.register(each, selectors.EVENT_READ)
print(tcp.getsockname()[1], tcp6.getsockname()[1], udp.getsockname()[1], flush=True)
while True:
    for key, _ in looks.select():
        with open(contacts, "a") as log: log.write(f"{key.fileobj}\\n")
        if key.fileobj is udp: udp.sendto(b"x", udp.recvfrom(9)[1])
        else: key.fileobj.accept()[0].close()
"""


@dataclass
class World:
    """What is outside. `user`: whose it is, and who runs the sandbox."""

    root: Path
    user: int
    victim: subprocess.Popen[str]
    ports: Sequence[str]
    abstract: str
    bus: Path
    agent: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def own(self) -> Path:
        return self.home / "legato-home/workspaces/own"

    @property
    def contacts(self) -> str:
        return self.root.joinpath("contacts").read_text()

    def filled(self, attack: Attack) -> str:
        """The command with the places of this world."""
        tcp, tcp6, udp = self.ports
        places = {
            "home": self.home,
            "other": self.own.with_name("other"),
            "tmp": self.root / "tmp",
            "code": CODE,
            "pid": self.victim.pid,
            "tcp": tcp,
            "tcp6": tcp6,
            "udp": udp,
            "socket": self.root / "socket",
            "abstract": self.abstract,
            "bus": self.bus,
            "agent": self.agent,
            "address": address(),
            "uid": self.user,
        }
        return re.sub(rf"{{({'|'.join(places)})}}", lambda found: str(places[found[1]]), attack.command)

    def facts(self) -> dict[str, object]:
        """What no attack may change."""
        files = [path for path in sorted(self.root.rglob("*")) if not path.is_relative_to(self.own)]
        return {
            **{str(each): (each.lstat().st_mode, each.lstat().st_uid) for each in files},
            **{str(each): each.read_bytes() for each in (*files, *CODE.glob("*.py")) if each.is_file()},
            **{str(each): each.read_bytes() for each in (CODE / "runtime/sandbox_files").iterdir()},
            **{each: Path("/proc/sys", each).read_text() for each in KERNEL},
            "code": sorted(map(str, CODE.iterdir())),
        }

    def run(self, attacks: Sequence[Attack], *, outside: bool = False) -> dict[str, tuple[int, str]]:
        """Let them run. Returns the exit status of each, and the end of its output."""
        seconds = len(attacks) * SECONDS
        (self.own / "attacks").write_text(json.dumps([(each.name, self.filled(each)) for each in attacks]))
        (self.own / "driver.py").write_text(DRIVER)
        (self.own / "attacks_kit.py").write_text(KIT)
        for name in ("attacks", "driver.py", "attacks_kit.py"):
            (self.own / name).chmod(0o644)
        command = [PYTHON, "driver.py", "attacks", "seen", str(SECONDS), "1" if outside else "4"]
        if not outside:
            shown = [Lent(name="shown", path=self.root / "shown")]
            lent = [Lent(name="read", path=self.root / "read")]
            command = argv(Sandbox(folder=self.own, lent=lent, shown=shown), command)
        subprocess.run(
            [*as_user(self.user), *command],
            cwd=self.own if outside else "/",
            env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=True,
        )
        seen: dict[str, tuple[int, str]] = json.loads((self.own / "seen").read_text())
        return seen


def address() -> str:
    """The address of this machine in its network; one that nobody has, where there is no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        try:
            each.connect(("192.0.2.1", 9))
        except OSError:
            return "192.0.2.2"
        return str(each.getsockname()[0])


def as_user(user: int) -> list[str]:
    if user == os.geteuid():
        return []
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]


def others_read_us() -> bool:
    """Say whether a user without rights could start our sandbox: a strict umask keeps the checkout from them."""
    files = [*(CODE / "runtime/sandbox_files").iterdir(), CODE / "__init__.py"]
    return all(each.stat().st_mode & 0o004 for each in files) and all(
        each.stat().st_mode & 0o001 for each in CODE.parents
    )


@pytest.fixture(params=["this user", *(["another user"] if os.geteuid() == 0 and others_read_us() else [])])
def world(request: pytest.FixtureRequest, bwrap: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world of whoever runs the tests, and one of a user without rights, where the tests run as root."""
    user = os.geteuid()
    if request.param == "another user":
        user = SOMEBODY
        monkeypatch.setattr(sandbox, "_group", lambda: None)  # the kernel counts that user's processes
    root = Path(tempfile.mkdtemp(dir=place()))
    root.chmod(0o755)
    with_files(root, user)
    abstract = f"legato-{uuid.uuid4().hex}"
    keep_key()
    # Where Docker, containerd and D-Bus have theirs, and where agents for keys and screens do.
    runs = next(each for each in (Path("/run"), Path(f"/run/user/{user}"), root) if os.access(each, os.W_OK))
    folders = [Path(tempfile.mkdtemp(prefix="legato-", dir=each)) for each in (runs, "/tmp")]
    for each in folders:
        each.chmod(0o755)
        os.chown(each, user, -1)
    bus, agent = folders[0] / "bus", folders[1] / "agent.1"
    places = [str(root / "home"), str(root / "socket"), abstract, str(root / "contacts"), str(bus), str(agent)]
    victim = subprocess.Popen(
        [*as_user(user), PYTHON, "-c", VICTIM, "canary-process", *places],
        cwd=root / "home",
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "SECRET": CANARY},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert victim.stdout is not None
    try:
        yield World(root, user, victim, victim.stdout.readline().split(), abstract, bus, agent)
    finally:
        victim.kill()
        victim.communicate()
        for each in (root, *folders):
            shutil.rmtree(each, ignore_errors=True)


def place() -> Path:
    """Where a world can be: not below a folder that the sandbox has one of its own of, so that a write there tells."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    places = [Path("/srv"), build, Path.home()] if os.geteuid() == 0 else [build, Path.home()]
    own = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
    return next(each for each in places if each.is_dir() and not any(map(each.is_relative_to, own)))


def keep_key() -> None:
    """Put a secret into the keyring of this session, which all that is started here inherits."""
    number = REFUSED["add_key"][list(ARCHITECTURES).index(os.uname().machine)]
    ctypes.CDLL(None).syscall(number, b"user", b"legato-canary", CANARY.encode(), len(CANARY), -3)


def with_files(root: Path, user: int) -> None:
    """Legato's folder, another one, and the workspaces."""
    for name in ("config.yaml", ".env", "legato.db", "legato-home/page-link", "legato-home/approvals"):
        path = root / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{CANARY} {name}\n")
    for folder in ("home/legato-home/workspaces/own", "home/legato-home/workspaces/other", "tmp", "read", "shown"):
        (root / folder).mkdir(parents=True)
    (root / "home/legato-home/workspaces/other/note").write_text(CANARY)
    (root / "tmp/loot").write_text(CANARY)
    (root / "read/kept").write_text("lent")
    (root / "shown/SKILL.md").write_text("shown")
    (root / "contacts").touch()
    if user != os.geteuid():
        for each in (root, *root.rglob("*")):
            os.chown(each, user, user, follow_symlinks=False)


def test_there_are_enough() -> None:
    named = [each.name for family in ATTACKS.values() for each in family]
    assert len(named) >= 150


@pytest.mark.parametrize("family", ATTACKS)
def test_no_attack_succeeds(world: World, family: str) -> None:
    before = world.facts()
    seen = world.run(ATTACKS[family])
    assert {name: seen[name] for name, (code, said) in seen.items() if code == 0 or CANARY in said} == {}
    assert seen.keys() == {each.name for each in ATTACKS[family]}
    assert world.facts() == before
    assert world.contacts == ""
    assert world.victim.poll() is None


@pytest.mark.slow
def test_they_are_real_attempts(world: World) -> None:
    """Those that need no more than the rights of the gateway's user succeed where there is no sandbox."""
    for family in ATTACKS.values():
        attacks = [each for each in family if each.outside]
        seen = world.run(attacks, outside=True) if attacks else {}
        assert {name: said for name, (code, said) in seen.items() if code != 0} == {}
        for each in world.root.iterdir():
            if each.is_dir():
                shutil.rmtree(each)
        with_files(world.root, world.user)
