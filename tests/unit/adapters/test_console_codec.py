"""The console's line protocols: every line gets an answer, no text breaks a line."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.console import codec
from adapters.console.codec import Complaint, InputLine, LineSplitter, Request
from gateway.domain.chat import ChatAddress, Outbound, OutboundKind, SessionKey
from gateway.domain.wording import printable, printable_json
from gateway.runtime.structs import replace

any_text = st.text(st.characters(exclude_categories=()), max_size=60)


def line(text: str | bytes, number: int = 1) -> InputLine:
    return InputLine(number=number, data=text if isinstance(text, bytes) else text.encode())


def outbound(text: str, kind: OutboundKind = "reply", thread: str | None = None) -> Outbound:
    return Outbound(
        id="o_1",
        key=SessionKey(platform="console", chat="main", thread=thread),
        to=ChatAddress(platform="console", chat="main", thread=thread),
        kind=kind,
        text=text,
        session_id="s_1",
        answers="line_1",
    )


class TestSplitting:
    @given(st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.integers(1, 7))
    def test_lines_come_out_as_they_went_in_however_they_are_chunked(self, lines: list[bytes], step: int) -> None:
        stream = b"".join(part + b"\n" for part in lines) + b"tail"
        splitter = LineSplitter()
        out = [got for at in range(0, len(stream), step) for got in splitter.feed(stream[at : at + step])]
        out += splitter.end()
        assert [got.data for got in out] == [*lines, b"tail"]
        assert [got.number for got in out] == list(range(1, len(lines) + 2))

    def test_nothing_follows_the_last_line_end(self) -> None:
        splitter = LineSplitter()
        assert len(splitter.feed(b"a\n")) == 1
        assert splitter.end() == []

    def test_a_line_over_the_limit_is_dropped_and_the_next_is_whole(self) -> None:
        splitter = LineSplitter(limit=4)
        out = [*splitter.feed(b"abcd\nabc"), *splitter.feed(b"de"), *splitter.feed(b"fg\nok\n"), *splitter.end()]
        assert [got.data for got in out] == [b"abcd", None, b"ok"]
        assert not splitter._parts

    def test_an_endless_line_is_not_kept(self) -> None:
        splitter = LineSplitter(limit=1000)
        for _ in range(100):
            splitter.feed(b"x" * 300)
        assert sum(map(len, splitter._parts)) <= 1000
        assert [got.data for got in splitter.end()] == [None]


class TestJsonIn:
    def test_text_alone_is_enough(self) -> None:
        assert codec.decode_json(line('{"text": "hi"}')) == Request(text="hi")

    def test_all_fields(self) -> None:
        got = codec.decode_json(line('{"text": "hi", "chat": "c", "user": "u", "thread": "t", "id": "7"}'))
        assert got == Request(text="hi", chat="c", user="u", thread="t", id="7")

    def test_null_means_absent_except_for_text(self) -> None:
        assert codec.decode_json(line('{"text": "hi", "chat": null, "id": null}')) == Request(text="hi")
        assert isinstance(codec.decode_json(line('{"text": null}')), Complaint)

    @pytest.mark.parametrize("text", ["", "  ", "\\n"])
    def test_blank_text_is_passed_on(self, text: str) -> None:
        got = codec.decode_json(line(f'{{"text": "{text}"}}'))
        assert isinstance(got, Request)
        assert not got.text.strip()

    @pytest.mark.parametrize("raw", [b"", b"   ", b"\t\r", b"\xef\xbb\xbf"])
    def test_blank_lines_are_ignored(self, raw: bytes) -> None:
        assert codec.decode_json(line(raw)) is None

    def test_windows_line_ends_and_byte_order_marks_are_tolerated(self) -> None:
        assert codec.decode_json(line(b'\xef\xbb\xbf{"text": "hi"}\r')) == Request(text="hi")

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            ("hello", "Line 3 is not valid JSON (Expecting value at column 1)"),
            ('{"text": "hi"', "Line 3 is not valid JSON ("),
            ('{"text": "hi"} {"text": "ho"}', "Line 3 is not valid JSON (Extra data"),
            ('["hi"]', "Line 3 is not a message (Expected `object`, got `array`)"),
            ('"hi"', "Line 3 is not a message (Expected `object`, got `str`)"),
            ("12", "Line 3 is not a message (Expected `object`, got `int`)"),
            ("true", "Line 3 is not a message (Expected `object`, got `bool`)"),
            ("null", "Line 3 is not a message (Expected `object`, got `null`)"),
            ("{}", "Line 3 is not a message (Object missing required field `text`)"),
            ('{"text": null}', "Line 3 is not a message (Object missing required field `text`)"),
            ('{"text": 5}', "Line 3 is not a message (Expected `str`, got `int` - at `$.text`)"),
            ('{"text": ["hi"]}', "Line 3 is not a message (Expected `str`, got `array` - at `$.text`)"),
            ('{"text": "hi", "chat": 5}', "Line 3 is not a message (Expected `str | null`, got `int` - at `$.chat`)"),
            (
                '{"text": "hi", "thread": {}}',
                "Line 3 is not a message (Expected `str | null`, got `object` - at `$.thread`)",
            ),
            ('{"text": "hi", "id": true}', "Line 3 is not a message (Expected `str | null`, got `bool` - at `$.id`)"),
            ('{"text": "hi", "chat": ""}', 'Line 3 has a "chat" that is empty, or holds'),
            ('{"text": "hi", "user": "\\ud800"}', 'Line 3 has a "user" that is empty, or holds'),
            ('{"text": "hi", "stream": 1}', "Line 3 is not a message (Expected `bool`, got `int` - at `$.stream`)"),
            ('{"text": "hi", "txt": "ho"}', "Line 3 is not a message (Object contains unknown field `txt`)"),
            ('{"text": "hi", "\\ud800": "ho"}', "Line 3 is not a message ("),
            ("[" * 100_000, "Line 3 is not valid JSON (a number or the nesting is too large)"),
            ('{"text": ' + "9" * 5000 + "}", "Line 3 is not valid JSON (a number or the nesting is too large)"),
        ],
    )
    def test_a_bad_line_is_answered_with_what_is_wrong_and_an_example(self, raw: str, says: str) -> None:
        got = codec.decode_json(line(raw, 3))
        assert isinstance(got, Complaint)
        assert got.id == "line-3"
        assert got.text.startswith(says)
        assert got.text.endswith(': send one object per line, e.g. {"text": "hi"}.')

    def test_invalid_utf8(self) -> None:
        got = codec.decode_json(line(b'{"text": "\xff"}', 2))
        assert isinstance(got, Complaint)
        assert got.text == "Line 2 is not valid UTF-8 (byte 11) and was skipped: send it as UTF-8."

    def test_a_line_that_was_too_long(self) -> None:
        got = codec.decode_json(InputLine(number=4, data=None))
        assert isinstance(got, Complaint)
        assert got.text == "Line 4 is longer than 16 MB and was skipped: send less text in one line."

    def test_a_complaint_is_addressed_as_well_as_the_line_allows(self) -> None:
        got = codec.decode_json(line('{"text": 5, "chat": "c", "id": "7"}'))
        assert isinstance(got, Complaint)
        assert (got.chat, got.answers) == ("c", "7")
        got = codec.decode_json(line('{"text": 5, "chat": 1, "id": "\\u0000"}'))
        assert isinstance(got, Complaint)
        assert (got.chat, got.answers) == (None, None)

    def test_what_cannot_be_stored_is_replaced_and_nothing_else(self) -> None:
        got = codec.decode_json(line(b'{"text": " a\\u0000b\\ud800c\\u001b\\ud83d\\ude00\\r "}'))
        assert got == Request(text=" a\ufffdb\ufffdc\x1b😀\r ")

    @given(any_text)
    def test_text_that_can_be_stored_arrives_unchanged(self, text: str) -> None:
        got = codec.decode_json(line(json.dumps({"text": text})))
        # Escaped halves that happen to be neighbours are one character to any JSON reader.
        expected = json.loads(json.dumps(text))
        assert got == Request(text=codec.storable(expected))
        got.text.encode()

    @given(st.binary(max_size=40))
    def test_no_bytes_are_too_strange(self, raw: bytes) -> None:
        for decode in (codec.decode_json, codec.decode_plain):
            got = decode(line(raw))
            assert got is None or isinstance(got, Complaint | Request)


class TestInbound:
    @pytest.mark.parametrize(
        ("request_", "chat_type"),
        [
            (Request(text="hi"), "direct"),
            (Request(text="hi", chat="c"), "direct"),
            (Request(text="hi", user="u"), "group"),
            (Request(text="hi", thread="t"), "thread"),
            (Request(text="hi", thread="t", user="u"), "thread"),
        ],
    )
    def test_who_names_a_user_is_one_of_several(self, request_: Request, chat_type: str) -> None:
        got = codec.inbound(request_, event_id="line_1", sent_at=5.0)
        assert got.source.chat_type == chat_type
        assert got.source.thread == request_.thread
        assert got.source.chat == (request_.chat or "main")
        assert (got.source.user, got.source.user_name) == (request_.user or "local", request_.user or "")
        assert (got.event_id, got.sent_at, got.source.platform) == ("line_1", 5.0, "console")

    def test_an_id_of_its_own_is_the_event_id_as_it_is(self) -> None:
        assert codec.inbound(Request(text="hi", id=" 7"), event_id="line_1", sent_at=0).event_id == " 7"


class TestJsonOut:
    def test_the_fields(self) -> None:
        expected = '{"kind": "reply", "id": "o_1", "chat": "main", "text": "Grüße", "session": "s_1", "answers": "e"}\n'
        assert codec.encode_json(replace(outbound("Grüße"), answers="e")) == expected.encode()

    def test_a_thread_is_named_where_there_is_one(self) -> None:
        assert json.loads(codec.encode_json(outbound("a", thread="t")))["thread"] == "t"

    def test_a_complaint_has_the_same_fields(self) -> None:
        got = json.loads(codec.encode_json_complaint(Complaint(id="line-1", text="No.")))
        assert got == {
            "kind": "error",
            "id": "line-1",
            "chat": None,
            "text": "No.",
            "session": None,
            "answers": None,
        }

    @given(any_text)
    def test_any_text_is_one_line_and_comes_back(self, text: str) -> None:
        raw = codec.encode_json(outbound(text))
        assert len(raw.decode("utf-8").splitlines()) == 1
        assert json.loads(raw)["text"] == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)

    def test_line_ends_that_only_some_readers_know_are_escaped(self) -> None:
        raw = codec.encode_json(outbound("a\u2028b\u2029c\x85d\ne"))
        assert len(raw.decode().splitlines()) == 1
        assert json.loads(raw)["text"] == "a\u2028b\u2029c\x85d\ne"


class TestPlain:
    def test_a_line_is_a_message(self) -> None:
        assert codec.decode_plain(line(b" hi \r")) == Request(text=" hi ")

    @pytest.mark.parametrize("raw", [b"", b"  ", b"\r", b"\t"])
    def test_blank_lines_are_ignored(self, raw: bytes) -> None:
        assert codec.decode_plain(line(raw)) is None

    def test_only_the_first_line_can_have_a_byte_order_mark(self) -> None:
        assert codec.decode_plain(line("\ufeffhi")) == Request(text="hi")
        assert codec.decode_plain(line("\ufeffhi", 2)) == Request(text="\ufeffhi")

    def test_answers_end_with_an_empty_line(self) -> None:
        assert codec.encode_plain(outbound("a\nb")) == b"a\nb\n\n"
        assert codec.encode_plain(outbound("a", "command")) == b"a\n\n"

    def test_asides_are_marked_and_indented(self) -> None:
        assert codec.encode_plain(outbound("a\nb", "notice")).decode() == "· a\n  b\n"
        assert codec.encode_plain(outbound("a", "error")) == b"! a\n"


class TestPrintable:
    def test_colours_vanish_and_other_escapes_become_visible(self) -> None:
        assert printable("\x1b[1;31mred\x1b[0m") == "red"
        assert printable("\x1b]0;title\x07") == "␛]0;title␇"
        assert printable("a\x7fb\x9b2Jc\ud800") == "a␡b\ufffd2Jc\ufffd"

    def test_line_ends_become_newlines_and_tabs_stay(self) -> None:
        assert printable("a\r\nb\rc\td\n") == "a\nb\nc\td\n"

    @given(any_text)
    def test_no_control_character_is_left(self, text: str) -> None:
        for character in printable(text):
            assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")

    @given(st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=60))
    def test_ordinary_text_is_untouched(self, text: str) -> None:
        assert printable(text) == text


def test_no_sign_turns_the_direction_of_a_line() -> None:
    assert printable("safe\u202eexe.txt \u2066x\u2069") == "safeexe.txt x"
    assert printable("שלום \u200f!") == "שלום \u200f!"


def test_a_document_of_json_steers_no_terminal() -> None:
    said = "\x1b[2J\x9b2J\x7f\u202eexe \ud800"
    shown = printable_json(json.dumps({"said": said}, ensure_ascii=False))
    assert json.loads(shown) == {"said": said}
    assert shown.isascii()
    assert shown.isprintable()
