"""A question in the real program: `legato chat --json` with the embedded model and the shell tool."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from gateway.people.approvals import NOBODY, WITHDRAWN
from tests.support.console_terminal import chatting as terminal
from tests.support.program import Program, Row, chatting, legato
from tests.support.waiting import written

UNHEARD = NOBODY.format(where="`tools.shell.allow`")
NO = "All right, I did not do that."


def configure(folder: Path, **tools: Any) -> None:
    config = {
        "store": {"url": f"sqlite:///{folder / 'legato.db'}"},
        "tools": {"shell": {"enabled": True, "sandbox": "never", "allow": ["ls"]}, **tools},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")


async def question(program: Program, number: int = 1) -> Row:
    """The `number`th question, once it is asked."""
    while True:
        found = [row for row in program.lines if row["kind"] == "question"]
        if len(found) >= number:
            return found[number - 1]
        assert await program.read_line(), "the program ended without asking"


async def test_it_is_asked_answered_and_done(tmp_path: Path) -> None:
    configure(tmp_path)
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run echo said > it; cat it"})
        row = await question(program)
        assert row["text"].startswith("Run this command? echo said > it; cat it\n\nAnswer y or n.")
        program.send({"id": "y1", "text": "/approve"})
        approved, done = await program.until_answered("y1", "e1")
        assert (approved["text"], "exit code 0\nsaid" in done["text"]) == ("Approved.", True)
        program.send({"id": "e2", "text": "run rm it"})
        await question(program, 2)
        program.send({"id": "n2", "text": "/deny"})
        (refused,) = await program.until_answered("e2")
        assert refused["text"] == NO
        program.send({"id": "e3", "text": "run ls"})  # needs no yes
        (listed,) = await program.until_answered("e3")
        assert "exit code 0\nit" in listed["text"]
        assert len([row for row in program.lines if row["kind"] == "question"]) == 2
        status, errors = await program.finish()
        assert status == 0, errors


async def test_the_end_of_input_is_a_no_at_once(tmp_path: Path) -> None:
    configure(tmp_path)
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run rm it"})
        await question(program)
        status, errors = await program.finish()
        assert status == 0, errors
    assert [row["text"] for row in program.lines if row["kind"] == "reply"] == [f"{NO}\n\n{UNHEARD}"]


@pytest.mark.parametrize("form", [(), ("--json",)])
async def test_a_question_of_a_script_is_a_no_at_once(tmp_path: Path, form: tuple[str, ...]) -> None:
    configure(tmp_path)
    status, out, errors = await legato(tmp_path, "chat", *form, "run touch it", given=b"y\n")
    assert status == 0, errors
    assert (NO in out, UNHEARD in out, (tmp_path / "it").exists()) == (True, True, False)
    asked = out if form else errors
    assert "Run this command? touch it" in asked
    assert "Without an answer within" not in asked


async def test_words_that_stand_behind_a_message_in_a_pipe_answer_its_question(tmp_path: Path) -> None:
    configure(tmp_path)
    given = b"run touch it\nY\nrun touch that\nno\nrun touch more\nrun touch last\ny\n"
    status, out, errors = await legato(tmp_path, "chat", given=given)
    assert status == 0, errors
    done = "```\nexit code 0, and it printed nothing\n```"
    said = ["Approved.", done, "Denied.", NO, NO, UNHEARD, "Approved.", done]
    assert out == "".join(f"{each}\n\n" for each in said)


async def test_a_line_of_json_behind_a_message_answers_its_question(tmp_path: Path) -> None:
    configure(tmp_path)
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run echo said"}, {"id": "y1", "text": "y"})
        status, errors = await program.finish()
        assert status == 0, errors
        approved, done = await program.until_answered("y1", "e1")
    assert (approved["kind"], approved["text"], "exit code 0\nsaid" in done["text"]) == ("command", "Approved.", True)


async def test_a_no_that_was_written_before_the_question_does_not_wait_behind_it(tmp_path: Path) -> None:
    configure(tmp_path)
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run touch it"}, {"id": "n1", "text": "n"})
        told, done = await program.until_answered("n1", "e1")
        assert (told["text"], done["text"]) == ("Denied.", NO)
        program.send({"id": "e2", "text": "run touch it"}, {"id": "y2", "text": "y"})  # may have meant anything
        await question(program, 2)
        program.send({"id": "n2", "text": "/deny"})
        await program.until_answered("n2", "e2", "y2")
        status, errors = await program.finish()
        assert (status, (tmp_path / "it").exists()) == (0, False), errors


@pytest.mark.parametrize(
    ("command", "says"), [("/reset", "fresh session"), ("/new", "fresh"), ("/compress", "compress")]
)
async def test_a_command_that_begins_anew_does_not_wait_behind_a_question(
    tmp_path: Path, command: str, says: str
) -> None:
    configure(tmp_path)
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run touch it"})
        await question(program)
        program.send({"id": "c1", "text": command})
        (said,) = await program.until_answered("c1")
        assert says in said["text"]
        status, errors = await program.finish()
        assert (status, (tmp_path / "it").exists()) == (0, False), errors


async def test_a_question_of_another_chat_is_left_for_the_next_start(tmp_path: Path) -> None:
    configure(tmp_path)
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run echo said"})
        await question(program)
        program.process.kill()
        await program.process.wait()
    status, out, errors = await legato(tmp_path, "chat", "run ls")
    assert (status, "exit code 0" in out) == (0, True), errors
    async with chatting(tmp_path) as program:
        program.send({"id": "y1", "text": "/approve"})
        (done,) = await program.until_answered("e1")
        assert "exit code 0\nsaid" in done["text"]


@pytest.mark.parametrize("form", [(), ("--json",)])
async def test_a_person_at_the_terminal_answers_the_question_of_a_script(tmp_path: Path, form: tuple[str, ...]) -> None:
    configure(tmp_path)
    async with terminal(tmp_path, *form, "run echo said") as screen:
        await screen.sees("Answer y or n")
        screen.types("well\n")
        await screen.sees("Type y or n")
        screen.types("y\n")
        await screen.sees("exit code 0")
        assert await screen.left() == 0


async def test_the_end_of_a_terminal_is_a_no(tmp_path: Path) -> None:
    configure(tmp_path)
    async with terminal(tmp_path, "run touch it") as screen:
        await screen.sees("Answer y or n")
        screen.types("\x04")
        assert await screen.left() == 0
        assert UNHEARD.replace("`", "") in " ".join(screen.text.split())  # laid out for the screen


@pytest.mark.parametrize("command", ["/last", "/export"])
async def test_a_command_of_a_script_ends_at_a_terminal(tmp_path: Path, command: str) -> None:
    """Its answer may be a row of an earlier message, or a file."""
    configure(tmp_path)
    await legato(tmp_path, "chat", "hello")
    async with terminal(tmp_path, "--continue", command) as screen:
        assert await screen.left() == 0


async def test_a_stop_ends_the_wait(tmp_path: Path) -> None:
    configure(tmp_path)
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run touch it"})
        await question(program)
        program.send({"id": "s1", "text": "/status"}, {"id": "x1", "text": "/stop"}, {"id": "e2", "text": "run ls"})
        status_, stopped, listed = await program.until_answered("s1", "x1", "e2")
        assert "waiting for your yes or no" in status_["text"]
        assert stopped["text"].startswith("Stopping.")
        assert listed["text"].endswith("exit code 0, and it printed nothing\n```")
        assert WITHDRAWN not in [row["text"] for row in program.lines]  # nothing here can be edited
        program.send({"id": "y1", "text": "/approve"})
        (late,) = await program.until_answered("y1")
        assert late["text"] == "Nothing here is waiting for your yes or no."


async def test_killed_while_it_waits_it_goes_on_waiting(tmp_path: Path) -> None:
    configure(tmp_path)
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run echo said > it; cat it"})
        first = await question(program)
        program.process.kill()
        await program.process.wait()
    async with chatting(tmp_path) as program:
        program.send({"id": "s1", "text": "/status"}, {"id": "y1", "text": "/approve"})
        waiting, done = await program.until_answered("s1", "e1")
        assert "Run this command? echo said" in waiting["text"]
        assert "exit code 0\nsaid" in done["text"]
        # What may have been shown when it was killed may be shown again, under the id that it had.
        assert {row["id"] for row in program.lines if row["kind"] == "question"} <= {first["id"]}


async def test_killed_while_the_command_runs_it_is_not_run_again(tmp_path: Path) -> None:
    configure(tmp_path)
    started = tmp_path / "started"
    async with chatting(tmp_path) as program:
        command = f"echo $$ >> '{tmp_path}/runs'; echo $$ > new; mv new '{started}'; sleep 300"
        program.send({"id": "e1", "text": f"run {command}"})
        await question(program)
        program.send({"id": "y1", "text": "/approve"})
        pid = int(await written(started))
        program.process.kill()
        await program.process.wait()
    os.killpg(pid, signal.SIGKILL)
    async with chatting(tmp_path) as program:
        (done,) = await program.until_answered("e1")
        assert "its outcome is unknown" in done["text"]
    assert await written(tmp_path / "runs") == f"{pid}\n"


async def test_a_terminal_that_is_closed_leaves_no_command_alive(tmp_path: Path) -> None:
    """Python by itself dies of SIGHUP at once, and what it started goes on."""
    configure(tmp_path)
    started, go = tmp_path / "started", tmp_path / "go"
    async with chatting(tmp_path) as program:
        command = f"echo $$ > new; mv new '{started}'; while [ ! -e '{go}' ]; do sleep 0.02; done; echo over"
        program.send({"id": "e1", "text": f"run {command}"})
        await question(program)
        program.send({"id": "y1", "text": "/approve"})
        pid = int(await written(started))
        program.process.send_signal(signal.SIGHUP)
        go.touch()
        (done,) = await program.until_answered("e1")
        assert "exit code 0\nover" in done["text"]
        status, errors = await program.finish()
        assert status == 0, errors
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)
