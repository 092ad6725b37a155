"""Bad input of every kind, given to the real program: one clear sentence each, nothing accepted is lost."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from gateway.turns.turn import EMPTY
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import (
    Answer,
    Cut,
    EmptyChoices,
    ErrorInside,
    Garbage,
    Refuse,
    Reply,
    error_body,
    last_user_text,
    rate_limited,
    server_error,
    summarising,
    unauthorized,
)
from tests.emulators.llm_replies import (
    echo as echoed,
)
from tests.support.program import KEY, Program, chatting, legato, texts, write_config
from tests.support.redis_server import free_port

MEGABYTE = 1_000_000


def clean(text: str) -> bool:
    """Say whether a text is fit for people: no traceback, no key."""
    return "Traceback" not in text and KEY not in text


def offline(folder: Path, **sections: Any) -> Path:
    path = folder / "config.yaml"
    config = {"store": {"url": f"sqlite:///{folder / 'legato.db'}"}, **sections}
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


# -- lines -------------------------------------------------------------------------------------

BAD_LINES = [
    b'{"text": "cut off',
    b"hello",
    b"[1, 2]",
    b"null",
    b'{"chat": "c"}',
    b'{"text": 5}',
    b'{"text": "hi", "surprise": 1}',
    b'{"text": "hi", "id": ""}',
    b'{"text": "\xff\xfe"}',
    b"[" * 100_000,
]


async def test_each_bad_line_is_answered_with_one_sentence_and_the_next_line_works(tmp_path: Path) -> None:
    async with chatting(tmp_path) as program:
        for number, line in enumerate(BAD_LINES):
            program.send(line, {"id": f"good-{number}", "text": f"/version {number}"})
        status, errors = await program.finish()
    assert status == 0
    assert clean(errors)
    complaints = texts(program.lines, "error")
    assert len(complaints) == len(BAD_LINES)
    for number, complaint in enumerate(complaints):
        assert complaint.startswith(f"Line {2 * number + 1} ")
        assert len(complaint) < 300
    assert len(texts(program.lines, "command")) == len(BAD_LINES)


async def test_awkward_texts_get_a_clear_answer_each(tmp_path: Path) -> None:
    asked = {
        "empty": "",
        "blank": " \n\t ",
        "spaces": " " * MEGABYTE,
        "long": "word " * (MEGABYTE // 5),
        "wide": "漢" * (MEGABYTE // 3),
        "one-word": "a" * MEGABYTE,
        "unknown": "/statuss",
    }
    strange = [
        b'{"id": "nul", "text": "before\\u0000after"}',
        b'{"id": "surrogate", "text": "before\\ud800after"}',
    ]
    async with chatting(tmp_path) as program:
        program.send(*[{"id": name, "text": text} for name, text in asked.items()], *strange)
        program.send({"id": "last", "text": "/recall before"})
        status, errors = await program.finish()
    assert status == 0
    assert clean(errors)
    answers = {row["answers"]: row for row in program.lines if row["kind"] != "notice"}
    assert answers.keys() == {*asked, "nul", "surrogate", "last"}
    for name in ("empty", "blank", "spaces"):
        assert (answers[name]["kind"], answers[name]["text"]) == ("error", EMPTY)
    for name in ("long", "wide", "one-word"):
        assert answers[name]["kind"] == "error"
        assert answers[name]["text"].startswith("Your message is too long for the model. It has about ")
        assert len(answers[name]["text"]) < 200
    assert answers["unknown"]["text"].startswith("There is no command /statuss. Did you mean /status?")
    for name in ("nul", "surrogate"):
        assert answers[name]["kind"] == "reply"
    assert "before\ufffdafter" in answers["last"]["text"]


async def test_a_redelivered_line_is_answered_once_and_over_a_restart_too(tmp_path: Path) -> None:
    line = {"id": "same", "text": "hello"}
    async with chatting(tmp_path) as program:
        program.send(line, line, line)
        await program.finish()
    assert len(texts(program.lines)) == 1
    async with chatting(tmp_path) as program:
        program.send(line, {"id": "other", "text": "/version"})
        status, _ = await program.finish()
    assert status == 0
    assert [row["answers"] for row in program.lines] == ["other"]


# -- configuration -----------------------------------------------------------------------------


async def test_a_broken_configuration_ends_with_two_and_names_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "model:\n  provder: offline\n  api_key: written-in-here\n"
        "compression: {threshold: 0.95}\nturns: {deadline: soon}\n"
    )
    for command in (("chat", "--json"), ("check",), ("sessions", "list")):
        status, out, errors = await legato(tmp_path, *command, "--config", str(path), given=b'{"text": "hi"}\n')
        assert status == 2
        assert out == ""
        assert clean(errors)
        assert "provder" in errors
        assert "provider" in errors
        assert "model.api_key" in errors
        assert "turns.deadline" in errors
        assert "written-in-here" not in errors
    assert not (tmp_path / "legato.db").exists()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("model: [unclosed", "config.yaml"),
        ("- a\n- list\n", "config.yaml"),
        ("model: {provider: openai, name: m, api_key: '${NO_SUCH_VARIABLE}'}", "NO_SUCH_VARIABLE"),
        ("model: {provider: openai}", "model.name"),
        ("context: {engine: compresor}", "compressor"),
        ("prompt: {context_files: [missing.md]}", "missing.md"),
    ],
)
async def test_other_ways_to_break_a_configuration(tmp_path: Path, content: str, named: str) -> None:
    (tmp_path / "config.yaml").write_text(content)
    status, out, errors = await legato(tmp_path, "chat", "--json")
    assert (status, out) == (2, "")
    assert named in errors
    assert clean(errors)


async def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    status, out, errors = await legato(tmp_path, "chat", "--config", "nowhere.yaml")
    assert (status, out) == (2, "")
    assert "nowhere.yaml" in errors
    assert clean(errors)


# -- the store ---------------------------------------------------------------------------------


async def test_a_store_that_cannot_be_opened_ends_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder.db").mkdir()
    for url in ("sqlite:///file/legato.db", "sqlite:///no/such/folder/legato.db", "sqlite:///folder.db"):
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"store": {"url": url}}))
        status, out, errors = await legato(tmp_path, "chat", "--json", given=b'{"text": "hi"}\n')
        assert (status, out) == (1, "")
        assert errors.startswith("legato: ")
        assert len(errors.splitlines()) == 1
        assert clean(errors)


async def test_a_file_that_is_no_store_is_named_and_left_alone(tmp_path: Path) -> None:
    config = offline(tmp_path)
    garbage = b"this is somebody's diary" * 500
    (tmp_path / "legato.db").write_bytes(garbage)
    for command in (("chat", "--json"), ("sessions", "list"), ("check",)):
        status, out, errors = await legato(tmp_path, *command, "--config", str(config), given=b'{"text": "hi"}\n')
        assert status == 1
        assert "is not a Legato store" in out + errors
        assert clean(errors)
    assert (tmp_path / "legato.db").read_bytes() == garbage


async def test_a_second_gateway_on_the_same_store_is_refused(tmp_path: Path) -> None:
    async with chatting(tmp_path) as program:
        program.send({"id": "one", "text": "hello"})
        await program.until_answered("one")
        status, out, errors = await legato(tmp_path, "chat", "--json", given=b'{"text": "hi"}\n')
        assert (status, out) == (1, "")
        assert errors.startswith("legato: ")
        assert len(errors.splitlines()) == 1
        status, out, _ = await legato(tmp_path, "sessions", "list", "--json")
        assert status == 0, "reading commands work beside it"
        assert len(json.loads(out)) == 1
        program.send({"id": "two", "text": "/version"})
        await program.until_answered("two")
        await program.finish()


def _file_limit(program: Program, size: int) -> None:
    """Let the program write files up to `size` bytes from now on, as a full disk would."""
    resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def test_a_disk_that_is_full_for_a_while_loses_and_repeats_nothing(tmp_path: Path) -> None:
    config = offline(tmp_path, log={"level": "error"})
    async with chatting(tmp_path, "--config", str(config)) as program:
        program.send({"id": "first", "text": "my cat is called Minka"})
        await program.until_answered("first")
        _file_limit(program, 4_096)
        program.send({"id": "second", "text": "hello"})
        while not texts(program.lines, "error"):
            assert await program.read_line()
        program.send({"id": "third", "text": "and hello again"})
        assert (await program.read_line_within(0.3)) is None, "one sentence is enough"
        _file_limit(program, resource.RLIM_INFINITY)
        await program.until_answered("second", "third")
        program.send({"id": "fourth", "text": "/recall Minka"})
        status, errors = await program.finish()
    assert status == 0, errors
    assert "Traceback" not in errors
    (complaint,) = texts(program.lines, "error")
    assert "cannot store your messages right now" in complaint
    answers = [row["answers"] for row in program.lines if row["kind"] in ("reply", "command")]
    assert answers == ["first", "second", "third", "fourth"]
    assert "my cat is called Minka" in program.lines[-1]["text"]


@pytest.mark.parametrize("end", ["room again", pytest.param("stopped meanwhile", marks=pytest.mark.slow)])
async def test_a_disk_that_fills_while_a_turn_runs_delays_its_reply(tmp_path: Path, end: str) -> None:
    hold = asyncio.Event()
    async with LlmServer(lambda _: Reply(text="the answer", hold=hold)) as server:
        config = write_config(tmp_path, server.url, log={"level": "error"})
        async with chatting(tmp_path, "--config", str(config)) as program:
            program.send({"id": "one", "text": "hello"})
            await server.until(lambda: server.in_flight == 1)
            _file_limit(program, 4_096)
            hold.set()
            while not texts(program.lines, "error"):
                assert await program.read_line()
            assert program.lines[-1]["text"].startswith("I cannot store my work right now")
            assert texts(program.lines) == []
            if end == "room again":
                _file_limit(program, resource.RLIM_INFINITY)
                await program.until_answered("one")
            else:
                program.process.send_signal(signal.SIGTERM)
            status, errors = await program.finish()
            said = texts(program.lines)
        assert "Traceback" not in errors
        if end == "stopped meanwhile":
            assert said == []
            async with chatting(tmp_path, "--config", str(config)) as program:
                await program.until_answered("one")
                status, errors = await program.finish()
            said = texts(program.lines)
    assert status == 0, errors
    assert said == ["the answer"]


async def test_a_damaged_store_is_named_and_not_answered_from(tmp_path: Path) -> None:
    async with chatting(tmp_path) as program:
        program.send(*[{"text": f"message {number} " + "words " * 200} for number in range(40)])
        await program.finish()
    path = tmp_path / "legato.db"
    data = bytearray(path.read_bytes())
    data[4_096 : len(data) // 2] = b"\xa5" * (len(data) // 2 - 4_096)
    path.write_bytes(data)
    status, out, errors = await legato(tmp_path, "chat", "--json", given=b'{"text": "hi"}\n')
    assert status == 1
    assert "damaged" in out + errors
    assert clean(errors)


# -- the provider ------------------------------------------------------------------------------

ANSWERS: dict[str, Answer] = {
    "garbage": Garbage(),
    "garbled": Garbage(body='{"choices": [{"message": {"cont', content_type="application/json"),
    "empty": EmptyChoices(),
    "cut": Cut(),
    "error inside": ErrorInside(error={"message": "The server is on fire.", "type": "server_error"}),
    "key": unauthorized(),
    "slow down": rate_limited(retry_after=500),
    "quota": Refuse(status=402, body=error_body("You have run out of credits.", code="insufficient_quota")),
    "unknown model": Refuse(status=404, body=error_body("The model does not exist.", code="model_not_found")),
    "broken": server_error(),
    "page": Refuse(status=502, body="<html><h1>Bad Gateway</h1></html>", content_type="text/html"),
}


async def test_every_failure_of_a_provider_is_one_sentence_and_the_next_message_works(tmp_path: Path) -> None:
    def failing(body: dict[str, Any]) -> Answer:
        return ANSWERS.get(last_user_text(body)) or echoed(body)

    async with LlmServer(summarising(failing)) as server:
        config = write_config(tmp_path, server.url)
        async with chatting(tmp_path, "--config", str(config)) as program:
            for name in ANSWERS:
                program.send({"id": f"bad {name}", "chat": name, "text": name})
                program.send({"id": f"good {name}", "chat": name, "text": f"after {name}"})
            status, errors = await program.finish()
        assert server.violations == []
    assert status == 0
    assert "Traceback" not in errors
    for name in ANSWERS:
        rows = [row for row in program.lines if row["chat"] == name and row["kind"] != "notice"]
        reply = rows[-1]
        assert (reply["kind"], reply["answers"]) == ("reply", f"good {name}")
        # Where nothing of the first answer came, its question is sent with the next one.
        assert reply["text"] in (f"echo: after {name}", f"echo: {name}\n\nafter {name}")
        (error,) = [row for row in rows if row["kind"] == "error"]
        assert error["answers"] == f"bad {name}"
        assert 10 < len(error["text"]) < 400
        assert "\n" not in error["text"]
        assert clean(error["text"])
        assert "<html>" not in error["text"]
        assert len(rows) <= 3, "the error, the reply, and what of an answer was already shown"


async def test_a_provider_that_is_down_and_comes_back(tmp_path: Path) -> None:
    port = free_port()
    config = write_config(tmp_path, f"http://127.0.0.1:{port}/v1")
    async with chatting(tmp_path, "--config", str(config)) as program:
        program.send({"id": "one", "text": "hello"})
        (error,) = await program.until_answered("one")
        assert error["kind"] == "error"
        assert clean(error["text"])
        async with LlmServer(port=port) as server:
            program.send({"id": "two", "text": "and now?"})
            (reply,) = await program.until_answered("two")
            assert reply["text"] == "echo: hello\n\nand now?"
            said = [message["content"] for message in server.requests[-1]["messages"] if message["role"] == "user"]
            assert said == ["hello\n\nand now?"]
            status, errors = await program.finish()
    assert status == 0
    assert clean(errors)


async def test_check_names_what_does_not_answer(tmp_path: Path) -> None:
    async with LlmServer(api_key="another-key-0123456789") as server:
        config = write_config(tmp_path, server.url)
        status, out, errors = await legato(tmp_path, "check", "--config", str(config))
    assert status == 1
    assert "FAIL" in out
    assert "API key" in out
    assert clean(out + errors)


async def test_reading_commands_without_a_store_or_session_say_so(tmp_path: Path) -> None:
    status, _, errors = await legato(tmp_path, "sessions", "list")
    assert status in (0, 1)
    assert clean(errors)
    async with chatting(tmp_path) as program:
        program.send({"text": "hello"})
        await program.finish()
    for command in ("show", "lineage"):
        status, out, errors = await legato(tmp_path, "sessions", command, "s_nothing")
        assert (status, out) == (1, "")
        assert len(errors.splitlines()) == 1
        assert clean(errors)
