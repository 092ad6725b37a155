"""The steps before the program is imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from gateway.__main__ import main
from gateway.cli.main import app, program


def test_a_program_without_standard_streams_reads_nothing_and_is_seen_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["legato", "--version"])
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    main()
    with sys.stdin, sys.stdout, sys.stderr:
        assert sys.stdin.read() == ""
        assert all(stream.fileno() >= 0 for stream in (sys.stdin, sys.stdout, sys.stderr))


def test_a_reader_that_has_seen_enough_ends_the_program_as_it_ends_others() -> None:
    out, into = os.pipe()
    os.close(out)
    try:
        ended = subprocess.run([sys.executable, "-m", "gateway", "--version"], stdout=into, stderr=subprocess.PIPE)
    finally:
        os.close(into)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize("asked", ["--version", "--help"])
def test_an_output_whose_disk_is_full_is_told_in_a_sentence(asked: str) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([sys.executable, "-m", "gateway", asked], stdout=full, stderr=subprocess.PIPE)
    said = b"legato: the output cannot be written (No space left on device)\n"
    assert (ended.returncode, ended.stderr) == (1, said)


@pytest.mark.parametrize("name", ["ask", "import", "run"])
def test_a_command_that_is_read_alone_explains_itself_as_among_the_others(name: str) -> None:
    alone, among = (CliRunner().invoke(each, [name, "--help"], prog_name="legato") for each in (program([name]), app))
    assert alone.exit_code == 0
    assert (alone.output, len(program([name]).registered_commands)) == (among.output, 1)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["sessions", "list"], ["aks", "hello"]])
def test_all_commands_are_there_where_none_is_named(arguments: list[str]) -> None:
    assert program(arguments).registered_commands == app.registered_commands
    assert "skills" in [each.name for each in program(arguments).registered_groups]
