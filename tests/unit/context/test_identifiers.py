"""Identifiers: which words count; and no text makes finding them slow."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context import identifiers
from gateway.context.identifiers import LONGEST, MOST, find, found
from gateway.context.listing import Room
from gateway.domain.message import Message
from tests.support.transcripts import COUNTER, call


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Look at src/app/main.py, then ./run.sh and ~/notes.txt.", ["src/app/main.py", "./run.sh", "~/notes.txt"]),
        ("Windows: C:\\Users\\ann\\plan.docx", ["C:\\Users\\ann\\plan.docx"]),
        (
            "请修改src/app/main.py文件，访问https://example.com/a?b=c。",
            ["src/app/main.py", "https://example.com/a?b=c"],
        ),
        ("打开/data/报告/最终版.docx并修改", ["/data/报告/最终版.docx"]),
        ("超时30秒，价格200元，端口8080", ["30秒", "200元", "端口8080"]),
        ("Стоит 500 руб за 20 мс, код 404, «Северный мост»", ["500 руб", "20 мс", "код 404", "Северный мост"]),
        ("कीमत 500 रुपये और 12 किमी", ["500 रुपये", "12 किमी"]),
        ("It takes 12.5% of 512 MB, 3.5GHz, $1,250.50 a month.", ["12.5%", "512 MB", "3.5GHz", "$1,250.50"]),
        ("order #48213 and JIRA-1234 at v1.2.3", ["order #48213", "#48213", "JIRA-1234", "v1.2.3"]),
        ("commit 9f8e7d6c5b4a on 10.0.0.12:8080", ["9f8e7d6c5b4a", "10.0.0.12:8080"]),
        ("run 123e4567-e89b-12d3-a456-426614174000", ["123e4567-e89b-12d3-a456-426614174000"]),
        ("ValueError: ENOENT, ERR_MODULE_NOT_FOUND", ["ValueError", "ENOENT", "ERR_MODULE_NOT_FOUND"]),
        ("HTTP 503, exit code 137, 0x80070005", ["HTTP 503", "exit code 137", "0x80070005"]),
        ("call `get_user` for \"Blue Falcon\" and 'x y'", ["get_user", "Blue Falcon", "x y"]),
        ("bob@example.org and @alice, db.internal:5432", ["bob@example.org", "@alice", "db.internal:5432"]),
        ("on 2026-11-21 at 10:30", ["2026-11-21", "10:30"]),
        ("The booking reference is QWXZKP, thanks.", ["QWXZKP"]),
        ("Der Buchungscode lautet FQPTDG.", ["FQPTDG"]),
        ("里加的确认号是WVBSVV。", ["WVBSVV"]),
        ("QWXZKP is my confirmation code.", ["QWXZKP"]),
        ("On May 22, or the 22 May 2027; by the 3rd of June.", ["May 22", "22 May 2027", "3rd of June"]),
        ("Since Sept. 4th, 2026 and not Mar 5", ["Sept. 4th, 2026", "Mar 5"]),
        ("am 18. Oktober, le 1er mai, el 5 de mayo de 2026", ["18. Oktober", "1er mai", "5 de mayo de 2026"]),
        ("до 3 марта; 11月11日或2027年1月2日", ["3 марта", "11月11日", "2027年1月2日"]),
        ("due 24/12/2026, am 24.12. um acht", ["24/12/2026", "24.12."]),
        (
            "+45 31 22 90 17, (555) 867-5309 or +49 (0)30 123456",
            ["+45 31 22 90 17", "(555) 867-5309", "+49 (0)30 123456"],
        ),
        ("mobil 0171 2345678, bureau 06 12 34 56 78.", ["0171 2345678", "06 12 34 56 78"]),
        ("IBAN DE44 5001 0517 5407 3249 31, car KR-AB 4417", ["DE44 5001 0517 5407 3249 31", "KR-AB 4417"]),
        ("I take 12.5 mg in 15 ml, 100% sure of it", ["12.5 mg", "15 ml"]),
        ("Invoice 2024-118-07 is open since 2026-11-21", ["2024-118-07", "2026-11-21"]),
        (
            "ModelField.get_default hands over to _resolve in BaseSettings, not HTTPClient.send",
            ["ModelField.get_default", "_resolve", "BaseSettings", "HTTPClient.send"],
        ),
    ],
)
def test_what_cannot_be_guessed_is_found(text: str, expected: list[str]) -> None:
    assert find(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "And/or he/she said that the end.The well-known thing, e.g. 1/2, was the 1st or 10th.",
        "Don't say it isn't what they're after; it's theirs.",
        "请帮我检查这个配置文件，不要修改任何东西。",
        "",
        "x" * 5_000,
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7/abc+DEF0123==",
        "IMPORTANT: the HTTP status code is nothing to me.",
        "# BOOKING CODES OVERVIEW",
        "THE CODE IS BROKEN AGAIN",
        "Your code is INVALID, your booking PENDING, the ticket URGENT.",
        "The JSON and the README of this program are NASTY.",
        "There was a booking. GOTHAM is a city.",
        "Somebody put the JavaScript on GitHub.It was on YouTube, too; see p. 3-4 and _this_.",
        "I may ask 22 people; march on, 5 of you. Section 3. May I go?",
    ],
)
def test_ordinary_words_and_encoded_data_are_none(text: str) -> None:
    assert find(text) == []


def test_fields_and_variables_of_tools_are_no_names() -> None:
    text = '{"status": "done", "user_name": "x", "path": "a/b/c.py"}'
    assert "user_name" in find(text)
    assert find(text, names=False) == ["a/b/c.py"]


def test_names_that_a_result_is_about_are_found_in_it() -> None:
    text = """  File "/srv/a.py", line 7, in load_rows
    x = compute(rows)
src/b.py:31: in merge
@@ -3,4 +3,6 @@ class RowReader:
/srv/c.py:12:    def read_row(self) -> Row:
In business class seats are wide, in addition to that."""
    names = ["/srv/a.py", "load_rows", "src/b.py:31", "merge", "RowReader", "/srv/c.py:12", "read_row"]
    assert find(text, names=False) == names


def test_short_codes_are_known_by_their_key() -> None:
    text = """{"case_id": "H97", "gate":"B7", "bookingReference": "QWXZKP", "seat_no" : "12C", "orderId": 4711,
        "code": "a-1"}"""
    assert find(text, names=False) == ["H97", "B7", "QWXZKP", "12C", "4711", "a-1"]


@pytest.mark.parametrize(
    "text",
    [
        '{"status_code": 200, "exit_code": 137, "country_code": "DEUTSC", "currency_code": "EUR"}',
        '{"size": "B7", "identity": "A12", "video": "X9", "valid": "H97", "coded": "Q12"}',
        '{"id": 7, "id": "no", "code": "OK", "reference": "see above", "booking": "PENDING", "ticket": "none"}',
        '{"note": "the code", "state": "QWXZKP"}',
    ],
)
def test_under_another_key_a_short_value_is_none(text: str) -> None:
    assert find(text, names=False) == []


def test_a_series_is_dropped_from_twelve_on() -> None:
    def rows(count: int) -> Message:
        return {"role": "tool", "content": "\n".join(f'{{"order_id": "#W{n:07}"}}' for n in range(count))}

    assert len(found(rows(11))) == 11
    assert found(rows(12)) == []


def test_what_is_a_row_does_not_depend_on_the_letters_of_a_random_id() -> None:
    codes = ("4696396d", "d5093207", "bca23734", "00e5f1aa")
    rows = "\n".join(f"order_{code[n:]}{code[:n]}" for code in codes for n in range(3))
    assert found({"role": "tool", "content": rows}) == []


def test_values_of_pasted_json_are_no_names() -> None:
    assert find('He said "blue moon". {"state": "timed out", "level":"warn"}') == ["blue moon"]


def test_arguments_of_calls_are_searched_too() -> None:
    message: Message = {"role": "assistant", "content": None, "tool_calls": [call("c1", path="src/a.py", n=5)]}  # type: ignore[list-item]
    assert found(message) == ["src/a.py"]


def test_a_message_keeps_the_first_and_the_last_of_many() -> None:
    many = found({"role": "user", "content": "\n".join(f"logs/day_{n}.txt" for n in range(300))})
    assert len(many) == MOST
    assert (many[0], many[-1]) == ("logs/day_0.txt", "logs/day_299.txt")


def test_rows_of_what_a_tool_prints_are_not_noted_but_what_stands_out_among_them_is() -> None:
    rows = [f"12:{n:02}:17 INFO req-{n:02}c1b0ff3 from 10.0.{n}.7 took {n}1 ms" for n in range(12)]
    rows.insert(4, "12:04:59 ERROR the export went to /srv/out/april-7.csv (ORD-4471)")
    assert found({"role": "tool", "content": "\n".join(rows)}) == ["/srv/out/april-7.csv", "ORD-4471"]
    few = [f"src/part{n}.py" for n in range(3)]
    assert found({"role": "tool", "content": "\n".join(few)}) == few


def test_what_the_host_noted_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    message: Message = {"role": "user", "content": "a/b.py", "_legato": {"identifiers": ["c/d.py"]}}
    assert identifiers.of(message) == ["c/d.py"]
    assert identifiers.of({"role": "user", "content": "a/b.py"}) == ["a/b.py"]


def test_keys_and_the_numbers_of_places_are_none() -> None:
    text = '{"address1": "12 Elm Road", "zip": "70016", "line": 40412, "order_id": "#W8841", "error": "40404"}'
    assert find(text, names=False) == ["#W8841", "40404"]


@settings(suppress_health_check=list(HealthCheck))
@given(st.text())
def test_any_text_has_only_what_stands_in_it(text: str) -> None:
    values = find(text)
    assert len(values) == len(set(values))
    assert all(value in text and 0 < len(value) <= LONGEST for value in values)


@pytest.mark.parametrize(
    "unit",
    [
        "a/",
        "a.",
        "a_",
        "a=",
        "1",
        "1.",
        "'\"",
        "`a",
        "“",
        "@a",
        "::",
        "a-1",
        "://",
        "#1",
        "/报",
        "5 m",
        "e.",
        "\\a",
        '":',
        '"id": "A1',
        "code ABCDEF ",
        "May 2",
        "1. ",
        "aB",
        "Ab.",
        "_a",
        "1-",
        "class a",
        "1, in a",
    ],
)
def test_a_hostile_megabyte_is_read_at_its_edges_only(unit: str) -> None:
    find(unit * (1_000_000 // len(unit)))
    found({"role": "tool", "content": unit * 500_000})


@pytest.mark.parametrize("text", ["Port\n8080 is it", "build 9\nmin", "see “a\u2028b” here", "wait 10\u2028ms"])
def test_none_goes_over_the_end_of_a_line(text: str) -> None:
    assert identifiers.find(text) == []


def test_the_number_of_a_measure_is_listed_with_its_unit_alone() -> None:
    assert find("场地费是38000元。") == ["38000元"]
    assert find("It takes 38000 ms; see 55120 there.") == ["38000 ms", "55120"]


# The room of their list: what is decided without a count is what a count would decide


LINE = st.text(st.one_of(st.sampled_from(" ·…/_-.!?'ab1"), st.characters(exclude_characters="\n\r")), max_size=60)


@given(LINE, st.integers(-2, 40))
def test_a_line_is_taken_exactly_where_its_count_fits(line: str, tokens: int) -> None:
    room, counted = Room(tokens, COUNTER), COUNTER.text(line)
    assert room.takes(line) == (counted <= tokens)
    assert room.tokens == (tokens - counted if counted <= tokens else tokens)


@given(st.lists(LINE, max_size=4), st.integers(-2, 200))
def test_lines_that_were_taken_fit(lines: list[str], tokens: int) -> None:
    room = Room(tokens, COUNTER)
    taken = [line for line in lines if room.takes(line)]
    assert sum(map(COUNTER.text, taken)) <= max(0, tokens)
    assert room.tokens == tokens - sum(map(COUNTER.text, taken))
