"""The interactive console: every line once, nothing lost, nothing that moves the cursor; and the commands on offer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from adapters.console.interactive import CommandCompleter
from adapters.console.screen import ANEW, REWRITTEN, Fragment, ReplyFlow, Work, at_work, fold, heading, inline, whole

prose = st.text(st.sampled_from("ab \n`*#"), max_size=40)


def text_of(fragments: list[Fragment]) -> str:
    return "".join(text for _, text in fragments)


def test_what_a_turn_is_at_is_said_with_its_seconds() -> None:
    work = Work(since=100.0)
    assert at_work(work, 102.9) == "· thinking… (Ctrl-C stops)\n"
    assert at_work(work, 112.5) == "· thinking… 12 s (Ctrl-C stops)\n"
    shell = Work(doing="running tools (shell)", since=100.0)
    assert at_work(shell, 160.0) == "· running tools (shell)… 60 s (Ctrl-C stops)\n"
    pausing = Work(since=100.0, again_at=130.0)
    assert at_work(pausing, 110.5) == "· no answer yet after 10 s; trying again in 20 s (Ctrl-C stops)\n"
    assert at_work(pausing, 130.0) == "· thinking… 30 s (Ctrl-C stops)\n"


class TestStreaming:
    def test_lines_are_printed_when_they_are_complete(self) -> None:
        flow = ReplyFlow()
        assert text_of(flow.advance("one")) == ""
        assert flow.unfinished("one") == "one"
        assert not flow.begun
        assert text_of(flow.advance("one\ntw")) == "one\n"
        assert flow.begun
        assert text_of(flow.advance("one\ntwo\nthree\nfo")) == "two\nthree\n"
        assert flow.unfinished("one\ntwo\nthree\nfo") == "fo"
        assert text_of(flow.finish("one\ntwo\nthree\nfour\n\n")) == "four\n"

    @given(prose, st.lists(st.integers(0, 40), max_size=6))
    def test_however_it_streams_the_whole_text_is_printed_once(self, text: str, cuts: list[int]) -> None:
        flow = ReplyFlow()
        shown = "".join(text_of(flow.advance(text[:cut])) for cut in sorted(cuts))
        shown += text_of(flow.finish(text))
        assert shown.rstrip() == text.rstrip()
        assert REWRITTEN not in shown
        assert ANEW not in shown

    def test_a_reply_that_did_not_stream_is_printed_whole(self) -> None:
        assert text_of(ReplyFlow().finish("one\ntwo")) == "one\ntwo\n"

    def test_nothing_is_left_of_a_reply_that_streamed_to_its_end(self) -> None:
        flow = ReplyFlow()
        flow.advance("one\ntwo\n")
        assert flow.finish("one\ntwo") == []

    def test_an_attempt_that_begins_again_repeats_nothing(self) -> None:
        flow = ReplyFlow()
        flow.advance("one\ntwo\n")
        assert flow.advance("") == []
        assert flow.advance("one\nt") == []
        assert text_of(flow.advance("one\ntwo\nthree\n")) == "three\n"

    def test_a_reply_that_changed_says_so_and_goes_on_from_the_difference(self) -> None:
        flow = ReplyFlow()
        flow.advance("one\ntwo\n")
        assert text_of(flow.advance("one\n2\nthree")) == f"{REWRITTEN}2\n"
        assert text_of(flow.finish("one\n2\nthree")) == "three\n"

    def test_what_is_said_after_a_tool_ran_goes_on_below_what_was_said_before(self) -> None:
        flow = ReplyFlow()
        flow.advance("I will look it up.\n\n")
        assert flow.advance("other") == []
        assert text_of(flow.finish("other")) == f"{ANEW}other\n"

    def test_escapes_do_not_reach_the_screen(self) -> None:
        flow = ReplyFlow()
        assert flow.unfinished("a\x1b[2J\x1b]0;") == "a␛]0;"
        assert text_of(flow.finish("a\x1b[2Jb\x1bc")) == "ab␛c\n"


class TestLooks:
    def test_marks_stay_in_the_text_and_get_a_style(self) -> None:
        assert inline("a `b` **c** * d") == [
            ("", "a "),
            ("class:code", "`b`"),
            ("", " "),
            ("class:strong", "**c**"),
            ("", " * d"),
        ]

    def test_a_code_block_is_code_even_when_it_looks_like_prose(self) -> None:
        flow = ReplyFlow()
        flow.advance("# Title\n```py\n# no title\n")
        assert flow.finish("# Title\n```py\n# no title\n**x**\n```\ny") == [
            ("class:block", "**x**\n"),
            ("class:block", "```\n"),
            ("", "y\n"),
        ]
        assert ReplyFlow().finish("# Title") == [("class:heading", "# Title\n")]

    def test_a_rewritten_reply_knows_whether_it_is_in_a_code_block(self) -> None:
        flow = ReplyFlow()
        flow.advance("```\na\n```\nb\n")
        assert flow.finish("```\na\nc") == [("class:aside", REWRITTEN), ("class:block", "c\n")]

    def test_a_heading_says_who_goes_on_and_where(self) -> None:
        assert text_of(heading("Legato", again=False, place=None)) == "Legato\n"
        assert text_of(heading("Legato", again=True, place="ops\x1b")) == "Legato goes on in ops␛\n"

    def test_asides_are_marked_and_answers_are_not(self) -> None:
        assert text_of(whole("notice", "a\nb\n")) == "· a\n  b\n"
        assert text_of(whole("error", "a")) == "! a\n\n"
        assert text_of(whole("command", "a\nb")) == "a\nb\n\n"
        assert text_of(whole("notice", "a", place="ops")) == "· [ops] a\n"


class TestFolding:
    def test_it_cuts_where_the_terminal_would(self) -> None:
        assert fold("abcdefgh", columns=3, rows=5, cells=lambda _: 1) == ["abc", "def", "gh"]
        assert fold("中文字", columns=5, rows=5, cells=lambda _: 2) == ["中文", "字"]

    def test_only_the_end_is_kept(self) -> None:
        assert fold("abcdefgh", columns=3, rows=2, cells=lambda _: 1) == ["def", "gh"]

    def test_a_line_of_megabytes_costs_no_more_than_its_end(self) -> None:
        seen: list[str] = []

        def cells(character: str) -> int:
            seen.append(character)
            return 1

        assert fold("x" * 1_000_000, columns=80, rows=5, cells=cells) == ["x" * 80] * 5
        assert len(seen) <= 6 * 80


def test_commands_complete_at_the_start_of_a_message_only() -> None:
    completer = CommandCompleter([("status", "how it goes"), ("/stop", "end the turn")])

    def complete(text: str) -> list[str]:
        return [found.text for found in completer.get_completions(Document(text), CompleteEvent())]

    assert complete("/") == ["/quit", "/status", "/stop"]
    assert complete("/ST") == ["/status", "/stop"]
    assert complete("/stop now") == []
    assert complete("see /st") == []
    assert complete("") == []
