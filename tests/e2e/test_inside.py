"""What a gateway starts gives none of Legato's own commands."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_approvals_program import question
from tests.support.program import Program, chatting, legato

LEGATO = f"LEGATO_HOME={{home}} {shlex.quote(sys.executable)} -m gateway"
REFUSED = "a running Legato started this command"


def configure(folder: Path, **more: Any) -> str:
    config = {
        "store": {"url": f"sqlite:///{folder / 'legato.db'}"},
        "tools": {"shell": {"enabled": True, "sandbox": "never"}},
        **more,
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    return (folder / "config.yaml").read_text(encoding="utf-8")


async def run(program: Program, number: int, command: str) -> str:
    """What a command printed that was approved, as the model repeats it."""
    program.send({"id": f"e{number}", "text": f"run {command}"})
    await question(program, number)
    program.send({"id": f"y{number}", "text": "/approve"})
    (done,) = await program.until_answered(f"e{number}")
    return str(done["text"])


@pytest.fixture
def own(tmp_path: Path) -> str:
    """How a command of the model would give one of Legato's."""
    return LEGATO.format(home=shlex.quote(str(tmp_path)))


async def test_an_approved_command_gives_no_command_of_legato(tmp_path: Path, own: str) -> None:
    before = configure(tmp_path)
    async with chatting(tmp_path) as program:
        for number, command in enumerate(
            (
                f"{own} config set access.allow telegram:1",
                f"env -u LEGATO_CHILD {own} config set access.allow telegram:1",
                f"env -i {own} access list",
                f"(unset LEGATO_CHILD; {own} sessions list; true)",
                f"env -u LEGATO_CHILD setsid -w sh -c {shlex.quote(own + ' send console:main hello')}",
                f"{own} backup --json --daily there",
            ),
            1,
        ):
            assert REFUSED in await run(program, number, command), command
    assert (tmp_path / "config.yaml").read_text(encoding="utf-8") == before
    status, _, errors = await legato(tmp_path, "config", "show")
    assert (status, errors) == (0, ""), "outside it can be given"


@pytest.mark.parametrize("arguments", [("status",), ("access", "link"), ("config",), ("chat", "hello"), ("reload",)])
async def test_a_marked_process_gives_none_of_them(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    configure(tmp_path)
    status, out, errors = await legato(tmp_path, *arguments, LEGATO_CHILD="1")
    assert (status, out) == (1, "")
    assert REFUSED in errors
