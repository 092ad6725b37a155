"""The shell tool, MCP servers and files work under the system calls that the unit of systemd leaves them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.support.source_tree import ROOT

UNIT = ROOT / "deploy/systemd/legato.service"
IN = [sys.executable, "-m", "tests.support.sandbox", str(UNIT), sys.executable]
ATTEMPTS = """
import os, socket
for attempt in (
    lambda: os.nice(5),
    lambda: os.chown(".", 0, 0),
    lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    lambda: socket.socket(socket.AF_INET).close(),
):
    try:
        print(attempt() or "may")
    except PermissionError:
        print("may not")
"""
TRIED = (
    "tests/integration/test_shell.py",
    "tests/integration/test_mcp_processes.py",
    "tests/integration/test_aside.py",
    "tests/e2e/test_mcp.py",
    "tests/e2e/test_files.py",
    "tests/e2e/test_approvals_program.py",
)

pytestmark = pytest.mark.slow
# Only systemd knows the groups of system calls; without it nothing can be tried.
with_systemd = pytest.mark.parametrize("systemd", [path for path in [shutil.which("systemd-analyze")] if path])


@with_systemd
def test_the_filter_refuses_what_the_unit_does_not_leave(systemd: str) -> None:
    done = subprocess.run([*IN, "-c", ATTEMPTS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["may not", "may not", "may not", "may"]


@with_systemd
@pytest.mark.parametrize("path", TRIED)
def test_all_works_under_the_filter(systemd: str, path: str) -> None:
    done = subprocess.run([*IN, "-m", "pytest", path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3_000:]
