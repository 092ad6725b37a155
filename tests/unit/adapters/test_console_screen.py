"""The interactive console: every line once, nothing lost, nothing that moves the cursor; and the commands on offer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from adapters.console import rendering
from adapters.console.interactive import CommandCompleter
from adapters.console.rendering import LARGEST
from adapters.console.screen import ANEW, REWRITTEN, Fragment, ReplyFlow, Work, at_work, fold, heading, inline, whole
from adapters.console.wrapping import wrap
from gateway.delivery.markdown.page import Span

prose = st.text(st.sampled_from("ab \n`*#|->1.[]()"), max_size=60)
WIDTH = 80
DOCUMENT = """\
# Trip to Bern
See [the timetable](https://sbb.example/x) for $5 or 10$.

1. first
2. second
   - cheap

   still the second
3. third

| Train | Departs |
|-------|---------|
| IC 6  | 10:34   |
| RE    | **11**  |

> said somebody
> long ago

```python
def one():

    return 1  # | ** `
```
- [ ] open
- [x] done

***
Text
====
The end"""


def text_of(fragments: list[Fragment]) -> str:
    return "".join(text for _, text in fragments)


def test_what_a_turn_is_at_is_said_with_its_seconds() -> None:
    work = Work(since=100.0)
    assert at_work(work, 102.9) == "· thinking… (Ctrl-C stops)\n"
    assert at_work(work, 112.5) == "· thinking… 12 s (Ctrl-C stops)\n"
    shell = Work(doing="running `make`", since=100.0)
    assert at_work(shell, 160.0) == "· running `make`… 60 s (Ctrl-C stops)\n"
    pausing = Work(since=100.0, again_at=130.0)
    assert at_work(pausing, 110.5) == "· no answer yet after 10 s; trying again in 20 s (Ctrl-C stops)\n"
    assert at_work(pausing, 130.0) == "· thinking… 30 s (Ctrl-C stops)\n"


def advance(flow: ReplyFlow, text: str) -> str:
    return text_of(flow.advance(text, columns=WIDTH))


def finish(flow: ReplyFlow, text: str) -> str:
    return text_of(flow.finish(text, columns=WIDTH))


def streamed(text: str) -> str:
    """What is printed of a text that comes character by character."""
    flow = ReplyFlow()
    return "".join(advance(flow, text[:end]) for end in range(len(text))) + finish(flow, text)


def whole_reply(text: str) -> str:
    return finish(ReplyFlow(), text)


def words(text: str) -> str:
    return "".join(character for character in text if character in "ab")


def holds_in_order(shown: str, said: str) -> bool:
    left = iter(shown)
    return all(character in left for character in said)


class TestStreaming:
    def test_lines_are_printed_when_they_are_complete(self) -> None:
        flow = ReplyFlow()
        assert advance(flow, "one") == ""
        assert flow.unfinished("one") == "one"
        assert not flow.begun
        assert advance(flow, "one\ntw") == "one\n"
        assert flow.begun
        assert advance(flow, "one\ntwo\nthree\nfo") == "two\nthree\n"
        assert flow.unfinished("one\ntwo\nthree\nfo") == "fo"
        assert finish(flow, "one\ntwo\nthree\nfour\n\n") == "four\n"

    @given(prose, st.lists(st.integers(0, 60), max_size=6))
    def test_however_it_streams_no_word_is_lost(self, text: str, cuts: list[int]) -> None:
        flow = ReplyFlow()
        shown = "".join(advance(flow, text[:cut]) for cut in sorted(cuts)) + finish(flow, text)
        assert holds_in_order(words(shown), words(whole_reply(text)))
        assert REWRITTEN not in shown
        assert ANEW not in shown

    def test_a_reply_that_did_not_stream_is_printed_whole(self) -> None:
        assert finish(ReplyFlow(), "one\ntwo") == "one\ntwo\n"

    def test_nothing_is_left_of_a_reply_that_streamed_to_its_end(self) -> None:
        flow = ReplyFlow()
        advance(flow, "one\ntwo\n")
        assert finish(flow, "one\ntwo") == ""

    def test_an_attempt_that_begins_again_repeats_nothing(self) -> None:
        flow = ReplyFlow()
        advance(flow, "one\ntwo\n")
        assert advance(flow, "") == ""
        assert advance(flow, "one\nt") == ""
        assert advance(flow, "one\ntwo\nthree\n") == "three\n"

    def test_a_reply_that_changed_says_so_and_goes_on_from_the_difference(self) -> None:
        flow = ReplyFlow()
        advance(flow, "one\ntwo\n")
        assert advance(flow, "one\n2\nthree") == f"{REWRITTEN}2\n"
        assert finish(flow, "one\n2\nthree") == "three\n"

    def test_a_row_that_waited_is_not_lost_when_the_reply_changes(self) -> None:
        flow = ReplyFlow()
        assert advance(flow, "one\n\na | b\nc\n") == "one\n\na | b\nc\n"
        flow = ReplyFlow()
        assert advance(flow, "one\n\na | b\n") == "one\n\n"
        assert finish(flow, "one\n\na | b\nother") == "a | b\nother\n"
        flow = ReplyFlow()
        advance(flow, "a | b\n")
        assert finish(flow, "a | b, it is") == f"{ANEW}a | b, it is\n"

    def test_what_is_said_after_a_tool_ran_goes_on_below_what_was_said_before(self) -> None:
        flow = ReplyFlow()
        advance(flow, "I will look it up.\n\n")
        assert advance(flow, "other") == ""
        assert finish(flow, "other") == f"{ANEW}other\n"

    def test_escapes_do_not_reach_the_screen(self) -> None:
        flow = ReplyFlow()
        assert flow.unfinished("a\x1b[2J\x1b]0;") == "a␛]0;"
        assert finish(flow, "a\x1b[2Jb\x1bc") == "ab␛c\n"
        assert "\x1b" not in finish(ReplyFlow(), "```py\nprint('\x1b]0;x\x07')\n```")

    @pytest.mark.parametrize("unit", ["word ", "a line\n", "\x00"])
    def test_a_long_reply_that_grows_is_not_read_at_each_word(self, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
        text, read = unit * (1_000_000 // len(unit)), list[int]()
        monkeypatch.setattr("adapters.console.screen.printable", lambda said: read.append(len(said)) or said)
        flow, shown = ReplyFlow(), list[str]()
        for end in range(0, len(text), 350):
            if flow.has_grown(so_far := text[:end]):
                shown.append(advance(flow, so_far))
                flow.unfinished(so_far)
        shown.append(finish(flow, text))
        assert "".join(shown).split() == text.split()
        assert sum(read) < 300 * len(text)  # five lines at a time: 1,400

    def test_a_long_reply_that_begins_again_is_looked_at(self) -> None:
        flow = ReplyFlow()
        advance(flow, "a line\n" * LARGEST)
        assert not flow.has_grown("a line\n" * LARGEST + "more")
        assert flow.has_grown("a line\n")
        assert flow.has_grown("a line\n" * 2 * LARGEST)

    def test_a_block_too_large_to_lay_out_is_printed_as_it_was_written(self) -> None:
        text = "\n".join(f"- **item** {number}" for number in range(LARGEST // 10))
        flow = ReplyFlow()
        shown = "".join(advance(flow, text[:end]) for end in range(0, len(text), 997)) + finish(flow, text)
        numbers = [int(line.rsplit(" ", 1)[1]) for line in shown.splitlines()]
        assert numbers == list(range(LARGEST // 10))
        assert shown.startswith("• item 0\n")


class TestRendering:
    def test_a_document_is_laid_out_alike_whether_it_streams_or_comes_whole(self) -> None:
        assert streamed(DOCUMENT) == whole_reply(DOCUMENT)

    def test_headings_lists_links_and_tables_are_read_not_their_marks(self) -> None:
        shown = whole_reply(DOCUMENT)
        for line in (
            "Trip to Bern",
            "See the timetable (https://sbb.example/x) for $5 or 10$.",
            "1. first",
            "   ◦ cheap",
            "IC 6   10:34",
            "│ said somebody",
            "☑ done",
            "    return 1  # | ** `",
        ):
            assert line in shown.splitlines(), line
        assert "```" not in shown

    def test_each_mark_of_a_line_is_looked_at_a_few_times(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looks = 0

        class Watched(Span):
            def __getattribute__(self, name: str) -> Any:
                nonlocal looks
                looks += 1
                return super().__getattribute__(name)

        marks = [Watched(kind="code", start=2 * place, end=2 * place + 1) for place in range(2_000)]
        monkeypatch.setattr(rendering, "laid_out", lambda *_: ("ab" * 2_000, marks))
        (row,) = rendering.rows("of marks", columns=80)
        assert row[:2] == [("class:code", "a"), ("", "b")]
        assert looks < 20 * len(marks)

    def test_words_are_styled(self) -> None:
        fragments = ReplyFlow().finish("# T\n\na **b** *c* `d` ~~e~~", columns=WIDTH)
        assert [pair for pair in fragments if pair[0]] == [
            ("underline class:strong", "T"),
            ("class:strong", "b"),
            ("italic", "c"),
            ("class:code", "d"),
            ("strike", "e"),
        ]

    def test_code_has_colours_and_is_never_broken(self) -> None:
        line = f"x = '{'long ' * 40}'"
        fragments = ReplyFlow().finish(f"```python\n{line}\n```", columns=40)
        assert text_of(fragments) == f"{line}\n"
        assert len({style for style, _ in fragments}) > 2
        assert text_of(list(wrap(fragments, columns=40, cells=len))) == f"{line}\n"

    def test_a_fence_without_its_code_waits_for_it(self) -> None:
        flow = ReplyFlow()
        assert advance(flow, "So:\n\n```python\n") == "So:\n\n"
        assert flow.in_code
        assert advance(flow, "So:\n\n```python\nx = 1\n") == "x = 1\n"
        assert advance(flow, "So:\n\n```python\nx = 1\n```\n") == ""
        assert not flow.in_code

    def test_a_table_waits_for_its_last_row(self) -> None:
        flow = ReplyFlow()
        assert advance(flow, "| a | b |\n") == ""
        assert flow.unfinished("| a | b |\n| -") == "| a | b |\n| -"
        assert advance(flow, "| a | b |\n|---|---|\n| 1 | 2 |\n") == ""
        assert advance(flow, "| a | b |\n|---|---|\n| 1 | 2 |\n\nso\n") == "a  b\n────\n1  2\n\nso\n"


class TestLooks:
    def test_marks_stay_in_a_line_that_is_being_written(self) -> None:
        assert inline("a `b` **c** * d") == [
            ("", "a "),
            ("class:code", "`b`"),
            ("", " "),
            ("class:strong", "**c**"),
            ("", " * d"),
        ]

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
        assert fold("abcdefgh", columns=3, height=5, cells=lambda _: 1) == ["abc", "def", "gh"]
        assert fold("中文字", columns=5, height=5, cells=lambda _: 2) == ["中文", "字"]

    def test_only_the_end_is_kept(self) -> None:
        assert fold("abcdefgh", columns=3, height=2, cells=lambda _: 1) == ["def", "gh"]

    def test_a_line_of_megabytes_costs_no_more_than_its_end(self) -> None:
        seen: list[str] = []

        def cells(character: str) -> int:
            seen.append(character)
            return 1

        assert fold("x" * 1_000_000, columns=80, height=5, cells=cells) == ["x" * 80] * 5
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
