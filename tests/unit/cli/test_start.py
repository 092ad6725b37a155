"""The steps before the program is imported."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("asked", [["ask"], ["send"], ["run"], ["keys", "add"], ["skills", "add"]])
def test_help_names_what_a_person_writes_and_no_type_of_python(asked: list[str]) -> None:
    said = CliRunner().invoke(program([]), [*asked, "--help"]).output
    assert "Options:" in said
    assert not re.search(r"<\w+(\[\w+\]| range)?>", said)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["sessions", "list"], ["aks", "hello"]])
def test_all_commands_are_there_where_none_is_named(arguments: list[str]) -> None:
    assert program(arguments).registered_commands == app.registered_commands
    assert "skills" in [each.name for each in program(arguments).registered_groups]


@pytest.mark.parametrize(
    ("store", "workers", "refused"),
    [
        ({}, 2, True),
        ({}, 1, False),
        ({"store": {"url": "redis://127.0.0.1:1/0"}}, 2, False),
        ({"store": {"url": "redis://127.0.0.1:1/0"}}, 1, False),
    ],
)
def test_several_workers_are_refused_where_the_store_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: dict[str, Any], workers: int, refused: bool
) -> None:
    served: list[object] = []

    def guarded(serve: object, settings: object) -> int:
        served.append(serve)
        return 0

    monkeypatch.setattr("gateway.cli.main.guarded", guarded)
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    given = {"model": {"provider": "offline"}, "adapters": {"web": {"enabled": True}}, **store}
    (tmp_path / "config.yaml").write_text(json.dumps(given))
    monkeypatch.setattr("gateway.cli.main.name_gateway", lambda: None)  # this process goes on with other tests
    ran = CliRunner().invoke(app, ["run", "--workers", str(workers), "--config", str(tmp_path / "config.yaml")])
    assert ("several workers need a Redis or PostgreSQL server" in ran.stderr) is refused, ran.output
    assert (ran.exit_code, len(served)) == ((2, 0) if refused else (0, 1))
