"""The interactive mode, driven by keys, watched through what a terminal would be sent."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input

from adapters.console import interactive
from adapters.console.interactive import InteractiveConsole, QuietHistory
from adapters.console.wrapping import Fragment, wrap
from gateway.domain.adapter import Adapter, CanStream, CanType, Doing, MenuEntry
from gateway.domain.chat import ChatAddress, Source
from gateway.runtime.structs import replace
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply, last_user_text
from tests.support.console_person import Person, Screen
from tests.support.console_pipes import outbound
from tests.support.console_terminal import chatting
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.hosts import host
from tests.support.program import KEY, write_config
from tests.support.waiting import eventually

MAIN = ChatAddress(platform="console", chat="main")
ENTER, ALT_ENTER, CTRL_C, CTRL_D, CTRL_R = "\r", "\x1b\r", "\x03", "\x04", "\x12"


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as keys:
        yield keys


async def greeting(source: Source) -> str:
    return f"Going on in {source.chat}."


async def farewell(source: Source) -> str:
    return f"Said in {source.chat}: enough."


@pytest.fixture
async def newcomer(keys: PipeInput, screen: Screen, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Person]:
    menu = [MenuEntry(name="help", help="what it can do"), MenuEntry(name="status", help="how it goes")]
    says = {"greeting": greeting, "farewell": farewell, "menu": menu, "model_in_full": "test-model"}
    console = InteractiveConsole(
        host(clock, ids=SequentialIds(), home=tmp_path / "deep", **says), input=keys, output=screen.output
    )
    person = Person(console, keys, screen)
    yield person
    keys.send_text(CTRL_C + CTRL_D)
    await console.aclose()
    person.cancel()
    await asyncio.gather(person._run, return_exceptions=True)  # type: ignore[arg-type]


@pytest.fixture
async def person(newcomer: Person) -> Person:
    newcomer.start()
    return newcomer


class TestTalking:
    async def test_a_line_is_a_message_of_a_direct_chat(self, person: Person) -> None:
        said = await person.says("grüß dich" + ENTER)
        assert (said.text, said.source.chat, said.source.chat_type) == ("grüß dich", "main", "direct")
        assert (said.event_id, said.sent_at) == ("line_000001", 1_700_000_000.0)

    async def test_an_earlier_line_is_found_with_ctrl_r_and_sent(self, person: Person) -> None:
        await person.says("the train to Bern" + ENTER)
        await person.says("thank you" + ENTER)
        assert (await person.says(CTRL_R + "train" + ENTER + ENTER)).text == "the train to Bern"

    async def test_ctrl_c_leaves_the_search(self, person: Person) -> None:
        await person.says("the train to Bern" + ENTER)
        assert (await person.says(CTRL_R + "train" + CTRL_C + "hello" + ENTER)).text == "hello"

    async def test_who_answers_is_asked_again_after_a_command(self, person: Person) -> None:
        looked = []

        async def model_of(source: Source) -> str:
            looked.append(source.chat)
            return "another"

        person.console._host = replace(person.console._host, model_of=model_of)
        await person.console.send(outbound("a reply"))
        await person.console.send(outbound("now another model", "command"))
        assert (looked, person.console._model) == (["main"], "another")

    async def test_the_help_says_how_to_leave(self, person: Person) -> None:
        said = await person.says("/help" + ENTER)
        await person.console.send(outbound("  /new  start fresh", "command", answers=said.event_id))
        await person.sees("/quit, /exit or Ctrl-D leaves")

    async def test_the_banner_names_the_model_and_the_way_out(self, person: Person) -> None:
        await person.sees("chatting with test-model")
        await person.sees("/help lists the commands")
        await person.sees("· Going on in main.")

    async def test_an_answer_to_an_earlier_run_is_announced_and_one_to_this_run_is_not(self, person: Person) -> None:
        await person.sees("/help lists the commands")
        await person.console.typing(MAIN, True)
        await person.sees("· I am still answering your earlier message.")
        await person.console.typing(MAIN, False)
        await person.says("and now?" + ENTER)
        await person.console.typing(MAIN, True)
        await person.sees("thinking…")
        assert person.screen.text.count("still answering") == 1

    async def test_nobody_waits_while_a_long_answer_is_printed(
        self, person: Person, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await person.sees("/help lists the commands")
        readers: list[int] = []

        def read(fragments: Sequence[Fragment], **screen: Any) -> list[Fragment]:
            readers.append(threading.get_ident())
            return wrap(fragments, **screen)

        monkeypatch.setattr(interactive, "wrap", read)
        for kind in ("reply", "command"):
            await person.console.send(outbound("a long story\n" * 2_000, kind, id_=kind))
        assert len(readers) == 2
        assert threading.get_ident() not in readers
        await eventually(lambda: person.screen.text.count("a long story") == 4_000)

    async def test_no_prompt_is_drawn_into_a_long_answer_that_came_before_it(
        self, newcomer: Person, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held, go, loop = threading.Event(), threading.Event(), threading.get_ident()

        def read(fragments: Sequence[Fragment], **screen: Any) -> list[Fragment]:
            if threading.get_ident() != loop:
                held.set()
                assert go.wait(60)
            return wrap(fragments, **screen)

        monkeypatch.setattr(interactive, "wrap", read)
        answer = asyncio.create_task(newcomer.console.send(outbound("a long story\n" * 2_000)))
        await eventually(held.is_set)
        newcomer.start()
        for _ in range(200):
            await asyncio.sleep(0)
        drawn = newcomer.screen.text
        go.set()
        await answer
        assert drawn == ""
        await newcomer.sees("› ")
        assert newcomer.screen.text.count("a long story\n") == 2_000

    async def test_alt_enter_begins_a_line(self, person: Person) -> None:
        assert (await person.says(f"one{ALT_ENTER}two{ENTER}")).text == "one\ntwo"

    async def test_a_paste_is_one_message(self, person: Person) -> None:
        said = await person.says(f"\x1b[200~one\ntwo\r\nthree\n\x1b[201~{ENTER}")
        assert said.text == "one\ntwo\nthree"

    async def test_blank_input_is_not_a_message(self, person: Person) -> None:
        assert (await person.says(f"{ENTER}  {ENTER}hi{ENTER}")).text == "hi"

    @pytest.mark.parametrize("leave", ["/quit" + ENTER, " /EXIT" + ENTER, "exit" + ENTER, CTRL_D])
    async def test_leaving_ends_the_run(self, person: Person, leave: str) -> None:
        await person.says("hi" + ENTER)
        person.keys.send_text(leave)
        await person.left()
        assert person.said.empty()

    async def test_who_leaves_during_an_answer_is_told_what_is_waited_for(self, person: Person) -> None:
        await person.says("hi" + ENTER)
        person.keys.send_text(CTRL_D)
        await person.sees("· Finishing the answer first. Press Ctrl-C to leave")
        await person.left()
        assert "Said in main" not in person.screen.text

    async def test_who_was_answered_and_leaves_reads_what_it_came_to(self, person: Person) -> None:
        said = await person.says("hi" + ENTER)
        await person.console.send(outbound("hello", answers=said.event_id))
        person.keys.send_text(CTRL_D)
        await person.sees("· Said in main: enough.")
        await person.left()

    async def test_what_was_typed_before_leaving_is_handed_over(self, person: Person) -> None:
        person.keys.send_text(f"one{ENTER}")
        person.keys.send_text(f"two{ENTER}{CTRL_D}")
        await person.left()
        assert [person.said.get_nowait().text for _ in range(2)] == ["one", "two"]

    async def test_closing_ends_the_run(self, person: Person) -> None:
        await person.sees("› ")
        await person.console.aclose()
        await person.left()

    async def test_cancelling_ends_the_run(self, person: Person) -> None:
        await person.sees("› ")
        person.cancel()
        with pytest.raises(asyncio.CancelledError):
            await person.left()

    async def test_the_history_is_kept_for_its_owner_only(self, person: Person, tmp_path: Path) -> None:
        await person.says("remember me" + ENTER)
        path = tmp_path / "deep" / "history"
        assert "remember me" in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600
        assert (await person.says("\x1b[A" + ENTER)).text == "remember me"

    async def test_an_outage_of_the_store_is_told_and_nothing_is_lost(self, person: Person, clock: ManualClock) -> None:
        person.down = True
        person.keys.send_text("hi" + ENTER)
        await clock.until_pending()
        assert person.screen.text.count("! I cannot store your messages right now (the disk is full)") == 1
        person.down = False
        await clock.advance(1)
        assert (await person.said.get()).text == "hi"

    async def test_who_leaves_during_an_outage_is_told_what_was_not_sent(
        self, person: Person, clock: ManualClock
    ) -> None:
        person.down = True
        person.keys.send_text("hi" + ENTER)
        await clock.until_pending()
        person.keys.send_text(CTRL_D)
        await person.left()
        assert "! Legato could not store 1 of your messages" in person.screen.text


class TestCtrlC:
    async def test_it_stops_a_turn_and_keeps_what_is_being_typed(self, person: Person) -> None:
        await person.says("hi" + ENTER)
        assert (await person.says("half" + CTRL_C)).text == "/stop"
        assert (await person.says(" done" + ENTER)).text == "half done"

    async def test_it_stops_what_the_gateway_says_is_running(self, person: Person) -> None:
        await person.sees("› ")
        await person.console.typing(MAIN, True)
        assert (await person.says(CTRL_C)).text == "/stop"

    async def test_without_a_turn_it_clears_the_line_and_then_says_how_to_leave(self, person: Person) -> None:
        said = await person.says("hi" + ENTER)
        await person.console.send(outbound("hello", answers=said.event_id))
        person.keys.send_text("half" + CTRL_C + CTRL_C)
        await person.sees("Nothing is running. Ctrl-D or /quit leaves.")
        assert (await person.says("whole" + ENTER)).text == "whole"

    async def test_a_reply_answers_all_that_came_before_it(self, person: Person) -> None:
        await person.says("one" + ENTER)
        said = await person.says("two" + ENTER)
        await person.console.send(outbound("both", answers=said.event_id))
        person.keys.send_text(CTRL_C)
        await person.sees("Nothing is running.")

    async def test_a_notice_and_a_command_do_not_end_the_turn(self, person: Person) -> None:
        first = await person.says("one" + ENTER)
        status = await person.says("/status" + ENTER)
        await person.console.send(outbound("slow today", "notice", answers=first.event_id))
        await person.console.send(outbound("busy", "command", answers=status.event_id))
        assert (await person.says(CTRL_C)).text == "/stop"

    async def test_the_answer_to_its_stop_settles_everything(self, person: Person) -> None:
        await person.says("one" + ENTER)
        stop = await person.says(CTRL_C)
        await person.console.send(outbound("Stopped.", "command", answers=stop.event_id))
        person.keys.send_text(CTRL_C)
        await person.sees("Nothing is running.")


class TestShowing:
    async def test_a_streamed_reply_is_printed_once(self, person: Person) -> None:
        await person.sees("› ")
        for end in range(1, 22):
            await person.console.show_partial(outbound("alpha\nbravo\ncharlie!!"[:end]))
        await person.sees("charlie!")  # the line being written, above the prompt
        assert await person.console.send(outbound("alpha\nbravo\ncharlie!!")) == "o_1"
        assert person.screen.text.count("Legato\nalpha\n") == 1
        assert person.screen.text.count("alpha\n") == 1
        assert person.screen.text.count("bravo\n") == 1
        assert "charlie!!\n\n" in person.screen.text

    async def test_a_partial_that_comes_late_is_ignored(self, person: Person) -> None:
        await person.sees("› ")
        await person.console.send(outbound("alpha\nbravo"))
        await person.console.show_partial(outbound("alpha\nbra"))
        assert person.screen.text.count("alpha") == 1

    async def test_a_reply_that_was_interrupted_says_that_it_goes_on(self, person: Person) -> None:
        await person.sees("› ")
        await person.console.show_partial(outbound("alpha\nbra"))
        await person.console.send(outbound("75% full", "notice", id_="n_1"))
        await person.console.send(outbound("alpha\nbravo"))
        text = person.screen.text
        assert text.index("alpha\n") < text.index("· 75% full\n") < text.index("Legato goes on\nbravo\n")

    async def test_what_is_typed_survives_what_arrives(self, person: Person) -> None:
        person.keys.send_text("half")
        await person.sees("half")
        await person.console.send(outbound("hello"))
        assert (await person.says(" whole" + ENTER)).text == "half whole"

    async def test_thinking_shows_until_the_reply_comes(self, person: Person) -> None:
        said = await person.says("hi" + ENTER)
        await person.sees("thinking… (Ctrl-C stops)")
        await person.console.send(outbound("hello", answers=said.event_id))
        await person.console.typing(MAIN, False)
        before = len(person.screen.text)
        await person.says("ok" + ENTER)
        await person.console.typing(MAIN, False)
        assert "hello" in person.screen.text[:before]

    async def test_a_pause_of_the_model_is_counted_down(self, person: Person) -> None:
        await person.says("hi" + ENTER)
        await person.console.typing(MAIN, True)
        person.console.working(MAIN, Doing("thinking", asks=True), 20.0)
        await person.sees("in 20 s (Ctrl-C stops)")  # the rest of the line is drawn over what stood there
        await person.console.typing(MAIN, False)  # as while a question waits
        person.console.working(MAIN, Doing("running `make`"), 0.0)
        await person.console.typing(MAIN, True)
        await person.sees("`make`…")
        await person.console.typing(MAIN, False)

    async def test_escapes_of_a_model_do_not_reach_the_terminal(self, person: Person) -> None:
        await person.sees("› ")
        await person.console.send(outbound("a\x1b]0;owned\x07b\x1b[2Jc\x9b1m\ud800"))
        await person.console.send(outbound("x\x1b]52;c;QQ==\x07", "error", id_="e_1"))
        sent = person.screen.file.getvalue()
        assert "a␛]0;owned␇bc\ufffd1m\ufffd" in sent
        assert "\x1b]" not in sent
        assert "\x07" not in sent
        assert "\x1b[2J" not in sent

    async def test_a_message_of_another_chat_is_shown_with_its_place(self, person: Person) -> None:
        await person.sees("› ")
        await person.console.send(outbound("left over", chat="ops"))
        assert "Legato in ops\nleft over\n" in person.screen.text

    async def test_what_comes_after_leaving_is_shown_too(self, person: Person) -> None:
        await person.says("hi" + ENTER)
        person.keys.send_text(CTRL_D)
        await person.left()
        await person.console.send(outbound("late answer"))
        assert "Legato\nlate answer\n" in person.screen.text

    async def test_sends_that_are_cancelled_do_not_stop_later_ones(self, person: Person) -> None:
        await person.sees("› ")
        sends = [asyncio.create_task(person.console.send(outbound(str(n), id_=f"o_{n}"))) for n in range(3)]
        await asyncio.sleep(0)
        for send in sends:
            send.cancel()
        await person.console.send(outbound("last", id_="o_9"))
        assert "last\n" in person.screen.text


async def test_a_terminal_that_goes_away_ends_the_run(clock: ManualClock, tmp_path: Path) -> None:
    with create_pipe_input() as keys:
        console = InteractiveConsole(host(clock, home=tmp_path), input=keys, output=Screen().output)
        person = Person(console, keys, Screen())
        person.start()
        await asyncio.sleep(0)
        keys.close()
        await person.left()
        await console.aclose()


@pytest.mark.parametrize(("turns", "state"), [(0, "ready"), (1, "working")])
async def test_the_line_at_the_bottom_says_who_answers_and_whether_something_is_under_way(
    turns: int, state: str, clock: ManualClock, tmp_path: Path
) -> None:
    async def model_of(_: Source) -> str:
        return "odd\x1b[1m name\nof it"

    screen, given = Screen(answers=True), host(clock, home=tmp_path, turns_running=lambda: turns, model_of=model_of)
    with create_pipe_input() as keys:
        console = InteractiveConsole(given, input=keys, output=screen.output)
        person = Person(console, keys, screen)
        person.start()
        await person.sees("› ")
        keys.send_text("\x1b[3;1R")  # the terminal: the cursor is in row 3
        await person.sees(f"odd name of it  ·  {state}  ·")
        keys.send_text(CTRL_D)
        await person.left()


def test_what_is_forgotten_is_not_offered_again(tmp_path: Path) -> None:
    history = QuietHistory(tmp_path / "history")
    for text in ("one secret", "two\nlines", "three"):
        history.append_string(text)
    history.forget(lambda text: "secret" in text)
    assert history.get_strings() == ["two\nlines", "three"]
    assert list(QuietHistory(tmp_path / "history").load_history_strings()) == ["three", "two\nlines"]
    assert "secret" not in (tmp_path / "history").read_text(encoding="utf-8")
    QuietHistory(Path(os.devnull) / "x").forget(lambda _: True)


async def test_an_unusable_history_file_does_not_matter(clock: ManualClock, screen: Screen) -> None:
    with create_pipe_input() as keys:
        console = InteractiveConsole(host(clock, home=Path(os.devnull)), input=keys, output=screen.output)
        person = Person(console, keys, screen)
        person.start()
        assert (await person.says("hi" + ENTER)).text == "hi"
        keys.send_text(CTRL_D)
        await person.left()


def test_it_is_an_adapter_that_streams_and_types(clock: ManualClock, tmp_path: Path) -> None:
    with create_pipe_input() as keys:
        adapter: Adapter = InteractiveConsole(host(clock, home=tmp_path), input=keys, output=Screen().output)
    assert isinstance(adapter, CanStream)
    assert isinstance(adapter, CanType)
    assert adapter.name == "console"


def beginning(body: dict[str, Any]) -> Reply:
    """A long answer that comes to no end while anybody looks; others are short. Its first words come as one: what is
    added to a row is drawn by itself, with what moves the cursor in between."""
    if last_user_text(body) != "Count to 400":
        return Reply(text="You are welcome!")
    return Reply(text=f"1-2-3-4 {' '.join(map(str, range(5, 401)))}", hold=asyncio.Event(), hold_after=9)


async def test_who_comes_back_sees_where_they_are_and_that_their_answer_is_still_being_made(tmp_path: Path) -> None:
    async with LlmServer(beginning) as server:
        write_config(tmp_path, server.url)
        async with chatting(tmp_path) as first:
            await first.sees("› ")
            first.types("thank you" + ENTER)
            await first.sees("You are welcome!")
            first.types("Count to 400" + ENTER)
            await first.sees("1-2-3-4")
            first.types(CTRL_D)
            await first.sees("Finishing the answer first.")
            first.interrupts()
            assert await first.left() == 0
        assert "We go on with" not in first.text
        assert "still answering" not in first.text

        async with chatting(tmp_path) as second:
            await second.sees("· We go on with “thank you”. /new starts a fresh session.")
            await second.sees("· I am still answering your earlier message.")
            await second.sees("1-2-3-4")
            second.types(CTRL_C)
            await second.sees("Stopped")
            second.types(CTRL_D)
            assert await second.left() == 0


async def test_ctrl_c_that_comes_as_a_signal_stops_the_answer_and_not_the_program(tmp_path: Path) -> None:
    """While the prompt lets go of the terminal to print, the terminal makes a signal of the key."""
    async with LlmServer(beginning) as server:
        write_config(tmp_path, server.url)
        async with chatting(tmp_path) as terminal:
            await terminal.sees("› ")
            terminal.types("Count to 400" + ENTER)
            await terminal.sees("1-2-3-4")
            terminal.interrupts()
            await terminal.sees("Stopped before the answer was finished.")
            terminal.interrupts()
            await terminal.sees("Nothing is running. Ctrl-D or /quit leaves.")
            terminal.types("thank you" + ENTER)
            await terminal.sees("You are welcome!")
            terminal.types(CTRL_D)
            assert await terminal.left() == 0


async def test_ctrl_c_ends_a_turn_that_waits_for_an_answer(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("tools: {shell: {enabled: true, sandbox: never}}\n", encoding="utf-8")
    async with chatting(tmp_path) as terminal:
        await terminal.sees("›")
        terminal.types("run date" + ENTER)
        assert (tmp_path / "legato-home").stat().st_mode & 0o777 == 0o700
        await terminal.sees("? Run this command? date")
        terminal.types(CTRL_C)
        await terminal.sees("Stopped before the answer was finished.")
        terminal.types(CTRL_D)
        assert await terminal.left() == 0


async def test_who_leaves_with_a_question_open_is_asked_again_when_they_are_back(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("tools: {shell: {enabled: true, sandbox: never}}\n", encoding="utf-8")
    async with chatting(tmp_path) as terminal:
        await terminal.sees("›")
        terminal.types("run echo sa''id" + ENTER)
        await terminal.sees("? Run this command? echo sa''id")
        terminal.types(CTRL_D)  # nobody is left who could answer: there is nothing to wait for
        assert await terminal.left() == 0
    async with chatting(tmp_path) as terminal:
        await terminal.sees("I am still waiting for your /approve or /deny:")
        await terminal.sees("1. Run this command? echo sa''id")
        terminal.types("/approve" + ENTER)
        await terminal.sees("exit code 0")
        await terminal.sees("said")
        terminal.types(CTRL_D)
        assert await terminal.left() == 0


async def test_it_begins_with_how_prompts_are_cached_and_ends_with_what_was_spent(tmp_path: Path) -> None:
    async with LlmServer(beginning, api_key=KEY) as server:
        write_config(tmp_path, server.url, model={"provider": "anthropic", "name": "claude-sonnet-4-5"})
        async with chatting(tmp_path, columns=200) as terminal:
            await terminal.sees("chatting with claude-sonnet-4-5 (anthropic, prompts cached 5m or 1h).")
            terminal.types("thank you" + ENTER)
            await terminal.sees("You are welcome!")
            terminal.types(CTRL_D)
            assert await terminal.left() == 0
    last = (
        r"“thank you”: 2 messages, [\d,]+ tokens.*?`legato chat`\s+to go on from here\..*?"
        r"/resume\s+s_\w+\s+to\s+come\s+back\s+to\s+this\s+session\."
    )
    assert re.search(last, terminal.text, re.DOTALL)
