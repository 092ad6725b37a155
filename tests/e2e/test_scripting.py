"""`legato chat` in a script: one question, one answer, and an exit status that says whether there was one."""

from __future__ import annotations

from pathlib import Path

from tests.emulators.llm import LlmServer
from tests.support.program import legato, write_config


async def test_a_question_is_answered_and_goes_on_only_if_asked_to(tmp_path: Path) -> None:
    async with LlmServer() as server:
        write_config(tmp_path, server.url)
        status, out, errors = await legato(tmp_path, "chat", "hello", "there")
        assert (status, errors) == (0, "")
        assert out.endswith("\n")
        assert not out.endswith("\n\n")
        asked = [[each["content"] for each in body["messages"][1:]] for body in server.requests]
        assert asked == [["hello there"]]
        status, _, _ = await legato(tmp_path, "chat", "--continue", "and now?")
        assert status == 0
        assert server.requests[-1]["messages"][1]["content"] == "hello there"
        status, _, errors = await legato(tmp_path, "chat", "--continue", "--new", "hm")
        assert (status, errors) == (2, "legato: use --new or --continue, not both\n")


async def test_a_pipe_ends_with_one_when_the_model_cannot_be_reached(tmp_path: Path) -> None:
    async with LlmServer(api_key="another-key-0123456789") as server:
        write_config(tmp_path, server.url)
        status, out, errors = await legato(tmp_path, "chat", given=b"hi\n")
    assert (status, out) == (1, "")
    assert errors.startswith("! The provider refused the API key")
    assert len(errors.splitlines()) == 1
    home = tmp_path / "legato-home"
    assert "model_call_failed" in (home / "legato.log").read_text()
    assert home.stat().st_mode & 0o077 == 0


async def test_a_conversation_is_where_it_was_wherever_the_program_starts(tmp_path: Path) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    (home / ".legato").mkdir()
    async with LlmServer() as server:
        write_config(home / ".legato", server.url).chmod(0o600)
        where = {"HOME": str(home), "LEGATO_HOME": ""}
        assert (await legato(home, "chat", "hello", **where))[0] == 0
        assert (await legato(away, "chat", "--continue", "and now?", **where))[0] == 0
        assert "hello" in [each["content"] for each in server.requests[-1]["messages"]]
    assert list(away.iterdir()) == []
    assert [each.name for each in home.iterdir()] == [".legato"]


async def test_a_first_start_makes_a_folder_for_its_person_alone(tmp_path: Path) -> None:
    status, out, errors = await legato(tmp_path, "chat", "hello", HOME=str(tmp_path), LEGATO_HOME="")
    assert (status, errors) == (0, "")
    assert out
    assert (tmp_path / ".legato").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".legato/legato.db").stat().st_mode & 0o777 == 0o600


async def test_ask_prints_the_answer_alone_and_needs_no_set_up(tmp_path: Path) -> None:
    assert await legato(tmp_path, "ask", "What is", "2 + 3?") == (0, "2 + 3 = 5\n", "")


async def test_ask_reads_a_file_behind_the_question(tmp_path: Path) -> None:
    async with LlmServer() as server:
        write_config(tmp_path, server.url)
        assert (await legato(tmp_path, "ask", "Summarise", "this", "-", given=b"one\n\ntwo\n"))[0] == 0
        assert (await legato(tmp_path, "ask", "-", given="\ufeffwhat - now?".encode()))[0] == 0
        assert (await legato(tmp_path, "ask", "what is 5 - 3"))[0] == 0
    asked = [[each["content"] for each in body["messages"][1:]] for body in server.requests]
    assert asked == [["Summarise this\n\none\n\ntwo"], ["what - now?"], ["what is 5 - 3"]]


async def test_a_named_session_goes_on_and_a_question_without_one_stands_alone(tmp_path: Path) -> None:
    for _ in range(2):
        await legato(tmp_path, "ask", "--session", "tea/1", "My favourite tea is Assam")
    status, out, _ = await legato(tmp_path, "ask", "--session", "tea/1", "What is my favourite tea?")
    assert (status, out) == (0, "Your favourite tea is Assam: you told me so.\n")
    assert "Assam" not in (await legato(tmp_path, "ask", "What is my favourite tea?"))[1]


async def test_ask_fails_with_one_sentence(tmp_path: Path) -> None:
    nothing = "legato: there is no question: write one after `legato ask`, or `-` to read it from stdin\n"
    assert await legato(tmp_path, "ask", " ") == (2, "", nothing)
    assert await legato(tmp_path, "ask", "-", given=b" \n") == (2, "", nothing)
    status, out, errors = await legato(tmp_path, "ask", "-", given=b"\xff")
    assert (status, out, errors) == (2, "", "legato: stdin is not UTF-8 text (byte 1): send it as UTF-8\n")
    async with LlmServer(api_key="another-key-0123456789") as server:
        write_config(tmp_path, server.url)
        status, out, errors = await legato(tmp_path, "ask", "hi")
    assert (status, out) == (1, "")
    assert errors.startswith("! The provider refused the API key")
    assert len(errors.splitlines()) == 1


async def test_a_shell_can_complete_the_commands(tmp_path: Path) -> None:
    said = await legato(tmp_path, _LEGATO_COMPLETE="complete_bash", COMP_WORDS="legato as", COMP_CWORD="1")
    assert said[1].split() == ["ask"]
    assert (await legato(tmp_path, "-V", fresh=True))[1].startswith("legato ")


async def test_a_damaged_store_ends_the_program(tmp_path: Path) -> None:
    """The damage is met when something is written: nobody waits for a file to mend."""
    home = {"HOME": str(tmp_path), "LEGATO_HOME": ""}
    assert (await legato(tmp_path, "ask", "hello", **home))[0] == 0
    with (tmp_path / ".legato/legato.db").open("r+b") as file:
        file.seek(20_000)
        file.write(b"\xff" * 30_000)
    for form in (("ask", "hello"), ("chat",)):
        status, out, errors = await legato(tmp_path, *form, given=b"hello\n", **home)
        assert (status, out) == (1, "")
        assert "is damaged" in errors
        assert "Restore the last backup" in errors
        assert "Traceback" not in errors
