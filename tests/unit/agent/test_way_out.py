"""Which hosts of a call are in reach, and which a person is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.agent.tools.shell import SandboxedShell, WayOut
from gateway.runtime.errors import ToolError
from tests.support.fakes import ManualClock

NOTHING: Any = None


def way(**how: Any) -> WayOut:
    return WayOut(clock=ManualClock(), **how)


@pytest.mark.parametrize(
    ("out", "hosts", "asked"),
    [
        (way(), [], []),
        (way(), ["A.example"], ["a.example"]),
        (way(network="listed", hosts=("a.example",)), ["a.example", "b.example"], ["b.example"]),
        (way(network="listed", hosts=("a.example",)), ["a.example:8443"], ["a.example:8443"]),
        (
            way(network="listed", hosts=("*.a.example",)),
            ["b.a.example", "ba.example", "a.example"],
            ["ba.example", "a.example"],
        ),
        (way(network="public"), ["a.example", "a.example:22"], ["a.example:22"]),
    ],
)
def test_a_person_is_asked_for_hosts_beyond_those_in_reach(out: WayOut, hosts: list[str], asked: list[str]) -> None:
    assert out.beyond(hosts) == asked


@pytest.mark.parametrize("hosts", [["http://a.example/"], ["a b"], [""], ["*"], ["a.example"] * 21, ["127.0.0.1/8"]])
def test_what_names_no_host_is_refused(hosts: list[str]) -> None:
    with pytest.raises(ToolError):
        way().beyond(hosts)


def test_the_question_shows_the_command_and_the_hosts() -> None:
    shell = SandboxedShell(
        workspaces=NOTHING, reach=way(), background=NOTHING, admins_only=True, seconds=60.0, clock=NOTHING, redact=str
    )
    assert shell.question({"command": "curl x"}) is None
    assert shell.question({"command": "read", "job": 1, "hosts": ["a.example"]}) is None
    for more in ({}, {"background": True}, {"job": None}):
        asked = shell.question({"command": "curl x", "hosts": ["a.example", "b.example:22"], **more})
        assert asked == ("Run this command, which may reach a.example, b.example:22?", "curl x")
    assert "without network (further `hosts` are asked for)" in shell.description
