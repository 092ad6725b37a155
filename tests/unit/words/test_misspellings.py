"""Which words of an index may be meant by a word that no message holds."""

from __future__ import annotations

import pytest

from gateway.words.misspellings import Vocabulary, distance, may_slip

_SOME = ["allergi", "apart", "department", "haftpflichtversicher", "holiday", "oboe", "shellfish", "suitcas"]
WORDS = sorted([*_SOME, "versicher", "schlussel", "مدرسة", "الطبيب", "key", "车站"])


@pytest.mark.parametrize(
    ("one", "other", "slips"),
    [("oboe", "oboe", 0), ("obeo", "oboe", 1), ("obo", "oboe", 1), ("xoboe", "oboe", 1), ("sellfihs", "shellfish", 2)],
)
def test_slips_are_counted(one: str, other: str, slips: int) -> None:
    assert distance(one, other) == distance(other, one) == slips


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("sehllfish", ["shellfish"]),
        ("sellfihs", ["shellfish"]),
        ("holidya", ["holiday"]),
        ("obae", ["oboe"]),
        ("doboe", []),  # nobody slips at the first letter
        ("bicycl", []),
        ("versicher", ["haftpflichtversicher"]),
        ("طبيب", ["الطبيب"]),
    ],
)
def test_words_that_are_spelled_alike_or_hold_the_word_are_meant(asked: str, meant: list[str]) -> None:
    assert Vocabulary([each for each in WORDS if each != asked]).alike(asked) == meant


@pytest.mark.parametrize(
    ("asked", "said"), [("مفاتيحي", "مفاتيح"), ("الثلاجه", "ثلاجة"), ("لطبيب", "الطبيب"), ("للبيت", "البيت")]
)
def test_what_is_joined_to_an_arabic_word_does_not_hide_it(asked: str, said: str) -> None:
    assert Vocabulary(sorted([said, "قهوة", "tea"])).alike(asked) == [said]


def test_a_compound_is_known_by_its_parts() -> None:
    words = Vocabulary(WORDS)
    assert words.parts("wohnungsschlussel", "german") == ["schlussel"]
    assert words.parts("versicherungsnummer", "german") == ["versicher"]
    assert words.parts("المدرسة", "english") == ["مدرسة"]
    assert words.parts("notebook", "english") == []


def test_only_words_may_slip() -> None:
    assert [each for each in ("oboe", "key", "a1b2c", "车站", "") if may_slip(each)] == ["oboe"]
    assert Vocabulary().alike("oboe") == []


def test_of_equally_near_words_the_one_of_the_same_length_comes_first() -> None:
    assert Vocabulary(["obae", "oboes", "obov", "zoboe"]).alike("oboe") == ["obae", "obov", "oboes"]
