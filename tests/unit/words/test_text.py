"""Search terms: words of spaced scripts, pairs of dense ones."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store.shared.ranking import Sought
from gateway.words.languages import stems
from gateway.words.text import (
    MAX_TERM,
    Holds,
    Occurrences,
    asks,
    holds_phrases,
    normalised,
    parts_of,
    passage,
    question,
    terms,
)

TEXT = st.text(alphabet="ab Z_-上下文窗口タ가ไ。,\n1é", max_size=30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, hello world", ["hello", "world"]),
        ("上下文", ["上下", "下文", "文"]),
        ("上", ["上"]),
        ("用GPT-5写", ["用", "gpt", "5", "写"]),
        ("snake_case", ["snake", "case"]),
        ("ＦＵＬＬ", ["full"]),
        ("cafe\u0301", ["cafe"]),
        ("running runs", ["run"]),
        ("Мы купили билеты", ["мы", "куп", "билет"]),
        ("İ 9A-x1", ["i", "9a", "x1"]),
        ("... 。！ \ud83d", []),
        ("x" * 100, ["x" * MAX_TERM]),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_word_of_another_language_is_entered_by_both_stems() -> None:
    assert {"haus", "hauser"} <= set(terms("Wir haben die Häuser nicht gesehen"))
    assert "hauser" in question("Häuser").terms


@given(TEXT, TEXT)
def test_what_an_index_would_find_is_held(asked: str, said: str) -> None:
    wanted, entered = question(asked), terms(said)
    found = {
        place
        for place, alternatives in enumerate(wanted.wanted)
        for each in alternatives
        if each in entered or (each.startswith("^") and any(term.startswith(each[1:]) for term in entered))
    }
    if holds_phrases(said, wanted):
        assert found <= Holds(asked).held(said)


@pytest.mark.parametrize(
    ("said", "places"),
    [("my red car stands there", {0, 1}), ("a red and a car", set()), ("a car", set()), ("nothing", set())],
)
def test_a_text_without_a_phrase_that_is_asked_for_holds_nothing(said: str, places: set[int]) -> None:
    assert Holds('"red car"').held(said) == places


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("zurich", "nach ZÜRICH"),
        ("dying", "he may die"),
        ("die", "he lies dying"),
        ("user details", "call getUserDetails()"),
        ("tickets", "a ticket " + "and so on " * 20_000),
        ("tickets", "and so on " * 20_000 + "a ticket"),
        ("窗", "上下文窗口"),
        ('"two words"', "these are two  words"),
    ],
)
def test_a_text_holds_the_words_in_other_forms(asked: str, said: str) -> None:
    sought = Holds(asked)
    assert sought.held(said) == sought.every
    assert not sought.held("something else")


def test_accents_go_from_latin_letters_alone() -> None:
    assert stems("\u024f\u0301b", "english") == ("\u024fb",)  # the last Latin letter
    assert stems("\u0250\u0301b", "english") == ("\u0250\u0301b",)


def test_a_question_asks_for_stems_pairs_and_single_characters() -> None:
    wanted = question('What was said about the "second plan" 窗口 上下文 大?')
    assert wanted.terms == ("second", "plan", "窗口", "上下", "下文", "^大")
    assert wanted.phrases == ("second plan",)
    assert wanted.runs == ("上下文",)
    assert question("who are you").terms == ("who", "are", "you")  # nothing else was asked
    assert question(" ?!").terms == ()
    assert len(question(" ".join(f"word{n}" for n in range(80_000))).terms) <= 400
    asked = question("x " * 9_000 + "who has the blue key?")
    assert {"blue", "key"} <= set(asked.terms)


def test_the_sentence_that_asks_counts_more_than_what_stands_beside_it() -> None:
    wanted = question("I was at the lake with Ann. Where is the blue key? It rained.")
    beside = {wanted.wanted[place][0] for place in wanted.beside}
    assert beside == {"lake", "ann", "rain"}
    assert question("Where is the blue key?").beside == frozenset()
    assert question("the blue key and the lake").beside == frozenset()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("Where does Mia live?", {"mia", "live"}),
        ("When did Lei Garcia call?", {"lei", "garcia", "call"}),
        ("dov'è la mia macchina", {"macchina"}),
        ("Dove abita la Mia sorella?", {"abit", "sorell"}),  # it says nothing in the language of the question
    ],
)
def test_a_name_is_asked_for_though_it_says_nothing_in_another_language(asked: str, told: set[str]) -> None:
    assert told <= set(question(asked).terms)
    assert ("mia" in question(asked).terms) is ("mia" in told)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("Wo wohnt Mia?", {"wohnt", "mia"}),
        ("Где живёт Аня?", {"живет", "ан"}),
        ("¿Dónde vive Ana?", {"vive", "ana"}),
        ("I forgot it. Wo lebt Otto?", {"forgot", "lebt", "otto"}),
        ("Mia allergies", {"mia", "allergi"}),
    ],
)
def test_the_first_word_of_a_question_is_no_name_for_its_capital(asked: str, told: set[str]) -> None:
    assert set(question(asked).terms) == told


def test_a_pair_that_is_half_of_a_word_without_meaning_counts_less_but_is_asked_for() -> None:
    asked = question("报税表是怎么回事")
    assert asked.terms == ("报税", "税表", "表是", "是怎", "么回", "回事")
    assert {asked.terms[place] for place in asked.beside} == {"是怎", "么回"}
    assert question("我的车在哪").terms == ("的车", "车在", "在哪")  # all that is said of the car may follow it
    assert question("什么").terms == ("什么",)  # nothing else is asked for


@pytest.mark.parametrize("unit", ["界面密码 ", '"second plan" ', "«a b»"])
def test_of_a_question_without_an_end_only_its_ends_are_asked(unit: str) -> None:
    wanted = question("".join(f"{unit}{chr(0x4E00 + number)}{unit[:2]}大 " for number in range(5_000)))
    assert sum(map(len, (*wanted.runs, *wanted.phrases))) <= 2_010


def test_the_days_of_a_question_stand_at_its_ends() -> None:
    assert Sought.by("what did I say yesterday? " + "x " * 1_000, 0.0).when
    assert Sought.by("x " * 1_000 + "what did I say yesterday?", 0.0).when
    assert not Sought.by("x " * 1_000 + "yesterday " + "x " * 1_000, 0.0).when


def test_the_words_of_a_question_are_counted_in_any_form() -> None:
    occurrences = Occurrences(question("Which invoices were paid? 构建"))
    assert occurrences.counts("Invoice A, invoices B: we pay both. 构建 构建") == [2, 0, 2]
    assert occurrences.counts("The preinvoice 构 建") == [0, 0, 0]


def test_words_are_counted_from_their_beginning_to_their_end() -> None:
    occurrences = Occurrences(question("x run a1", stops=True))
    assert occurrences.counts("x_x prune runs, rerun run") == [2, 2, 0]
    assert occurrences.counts("xx A1 a10 ba1") == [0, 0, 1]


@given(TEXT, st.data())
def test_any_part_of_a_dense_run_is_found_in_its_text(text: str, data: st.DataObject) -> None:
    dense = [character for character in normalised(text) if character in "上下文窗口タ가ไ"]
    if not dense:
        return
    plain = normalised(text)
    start = data.draw(st.sampled_from([i for i, c in enumerate(plain) if c in dense]))
    end = start
    while end < len(plain) and plain[end] in dense:
        end += 1
    part = plain[start : data.draw(st.integers(start + 1, end))]
    wanted, held = question(part), terms(text)
    assert {term for term in wanted.terms if not term.startswith("^")} <= set(held)
    starts = [term[1:] for term in wanted.terms if term.startswith("^")]
    assert all(any(term.startswith(start) for term in held) for start in starts)
    assert holds_phrases(text, question(f"「{part}」"))


@given(TEXT)
def test_a_text_holds_its_own_question(text: str) -> None:
    assert {term for term in question(text).terms if not term.startswith("^")} <= set(terms(text))


@given(st.text(max_size=200))
def test_terms_hold_nothing_that_a_query_language_could_misread(text: str) -> None:
    assert all(not set(term) & set(" \"'*():^+-\x00\n") for term in terms(text))


def test_a_passage_is_sought_by_the_first_of_very_many_words() -> None:
    text = f"{'x ' * 2_000}needle {'x ' * 2_000}"
    assert "needle" in passage(text, " ".join(["needle", *(f"missing{number}" for number in range(64))]), 100)


def test_a_name_with_humps_is_entered_whole_and_by_its_parts() -> None:
    assert set(terms("getUserDetails of MyHTTPServer")) >= {"getuserdetail", "user", "detail", "myhttpserv", "http"}
    assert set(terms("Details, NATO, iX3 and плюсСеть")) == {"detail", "nato", "ix3", "and", "плюссет"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When does the train leave?", True),
        ("Hi, it is me again. When does the train to Lisbon leave?", True),
        ("你好。火车几点开？", True),
        ("The train leaves at nine, from platform four, and it is never late. Fine?", False),
        ("The train leaves at nine.", False),
        ("It left at 9. Did it?\nIt did.", False),
        ("?", True),
        ("", False),
    ],
)
def test_a_text_asks_if_most_of_it_is_a_question(text: str, expected: bool) -> None:
    assert asks(text) is expected


def test_texts_are_compared_by_words_and_pairs() -> None:
    assert parts_of("Set MAX to 3, 夜间构建") == {"set", "max", "to", "3", "夜", "夜间", "间构", "构建"}
    assert parts_of("") == set()


@given(text=st.text(alphabet="aÅ ①ﬁ\u0301\u0323가힣\n　。", min_size=500, max_size=3_000))
def test_a_long_text_is_normalised_like_a_short_one(text: str) -> None:
    words = " ".join(text[first : first + 40] for first in range(0, len(text), 40))
    assert normalised(words) == unicodedata.normalize("NFKC", words).casefold()


def test_marks_are_put_in_order_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def normalize(form: str, part: str) -> str:
        lengths.append(len(part))
        return part

    monkeypatch.setattr(unicodedata, "normalize", normalize)
    normalised("a" + "\u0301\u0323" * 50_000)  # put in order at once, ten billion steps
    assert sum(size * size for size in lengths) < 100_000_000


def test_a_word_that_is_said_often_is_stemmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stemmed: list[str] = []
    monkeypatch.setattr("gateway.words.text.stems", lambda word, _: stemmed.append(word) or (word,))
    assert terms("tea or milk. " * 1_000) == ["tea", "or", "milk"]
    assert stemmed == ["tea", "or", "milk"]
