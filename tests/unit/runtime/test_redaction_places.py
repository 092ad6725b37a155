"""Looking for a credential only where there may be one finds what the patterns find everywhere."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.redaction.kinds import KINDS
from gateway.runtime.redaction.places import IN_RUN, MARK, SHORTEST_RUN
from gateway.runtime.redaction.redactor import _NEEDED
from tests.support.every_pattern import by_patterns
from tests.support.hostile import LONGEST, within
from tests.unit.runtime.test_redaction import ALNUM, HARMLESS, PARTLY, SAMPLES, pem, redact


def only_in_runs(operation, argument):
    """Say whether an element that matches one character matches only those of a run."""
    parser = re._parser
    if operation is parser.IN:
        return all(only_in_runs(*member) for member in argument)
    if operation in (parser.LITERAL, parser.RANGE):
        first, last = (argument, argument) if operation is parser.LITERAL else argument
        return all(IN_RUN.match(chr(code)) for code in range(first, last + 1))
    return False


def stretches(parsed):
    """The least numbers of characters that stand next to each other in a run, for each stretch of a
    pattern that is nothing else; what is only looked at around a match does not count."""
    parser = re._parser
    length = 0
    for operation, argument in parsed:
        if operation in (parser.MAX_REPEAT, parser.MIN_REPEAT, parser.POSSESSIVE_REPEAT):
            least, _, body = argument
            pure = len(body) == 1 and only_in_runs(*body[0])
            inner = [least] if pure else [least * one for one in stretches(body)]
            whole = len(inner) == 1
        elif operation is parser.BRANCH:
            branches = [list(stretches(branch)) for branch in argument[1]]
            inner = [min(max(branch) for branch in branches)]
            whole = all(len(branch) == 1 for branch in branches)
        elif operation is parser.SUBPATTERN:
            inner = list(stretches(argument[3]))
            whole = len(inner) == 1
        elif operation in (parser.ASSERT, parser.ASSERT_NOT, parser.AT):
            continue
        else:
            whole = only_in_runs(operation, argument)
            inner = [1] if whole else [0, 0]
        if whole:
            length += inner[0]
        else:
            yield max(length, *inner)
            length = 0
    yield length


def test_a_kind_promises_no_longer_run_than_its_pattern_takes():
    for kind in KINDS:
        found = list(stretches(re._parser.parse(kind.pattern.pattern)))
        assert kind.run <= max(found), kind.name
        assert kind.run == 0 or kind.run >= SHORTEST_RUN, kind.name
        assert not kind.within or len(found) == 1, kind.name
        assert kind.needs in ("", *_NEEDED), kind.name
        assert not kind.is_run or len(list(stretches(re._parser.parse(kind.probe.pattern)))) == 1, kind.name


joints = st.sampled_from(["", " ", "\n", "\u3000", "\x1f", "\\n", "/", "字", ".", "=", "-", ": ", "\n[user] "])
pieces = st.one_of(
    st.sampled_from([*SAMPLES.values(), *(a + b + c for a, b, c in PARTLY.values()), *HARMLESS, pem(), pem()[40:]]),
    st.sampled_from([kind.starts[0] for kind in KINDS if kind.starts]),
    st.sampled_from(
        ["word", "\u0130", "\u017fecret=", "\u212aEY=", "AP\u0130_KEY=", "ПАРОЛЬ — ", "Contraseña es ", "密码是"]
    ),
    st.sampled_from(["passwor", "d: ", "apikey", "api_-key", "KEY=", "MASTER-KEY: ", "token", "access_", "://x:y@z"]),
    st.text(max_size=20),
    st.text(alphabet=ALNUM + "_-.=:/@", min_size=6, max_size=60),
)


@given(st.lists(pieces, max_size=8), joints, st.data())
def test_looking_for_places_first_finds_what_the_patterns_find(parts, joint, data):
    text = joint.join(parts)
    start = data.draw(st.integers(0, len(text) // 2))
    end = data.draw(st.integers(start, len(text)))
    assert redact(text) == by_patterns(text)
    assert redact(text.upper()) == by_patterns(text.upper())
    assert redact(text[start:end]) == by_patterns(text[start:end])  # as a cut leaves it


UUID = "7c1d88e0-5b1f-4a77-9d0c-51a2b3c4d5e6"


@pytest.mark.parametrize(
    "text",
    [
        "unzip -P hunter2zip photos.zip",
        "curl https://api.example.org/ \\\n  -u anna:hunter2curl \\\n  -d a=b",
        "mysql\t-phunter2sql shop",
        "sshpass\t-p\thunter2ssh ssh me@example.org",
        "redis-cli\t-a\thunter2redis ping",
        "machine\tapi.example.org login anna password hunter2net",
        f"pat_eu1_{UUID}",
        f"waka-{UUID}",
        f"xaat_{UUID}",
        "1ca8b54cfdbf3640b9b98bca064e0f30.zBBPbguFY2hhCy5y\u0130",
    ],
)
def test_a_credential_is_found_wherever_its_pattern_begins(text):
    assert MARK in by_patterns(text)
    assert redact(text) == by_patterns(text)


def test_a_letter_of_many_cases_does_not_make_a_text_slow():
    """In Turkish, such a letter stands in every line."""
    with within(0.3):
        assert MARK not in redact("Işıklar yanıyor, kapı açık. " * (LONGEST // 28))
