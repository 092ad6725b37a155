"""Counting: exact on ordinary text, linear and unshakeable on hostile text."""

from __future__ import annotations

import base64
import random
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime import tokens
from gateway.runtime.errors import ConfigError
from gateway.runtime.tokens import EXACT_CHARS, IMAGE_TOKENS, MESSAGE_OVERHEAD, PIECE_CHARS, TokenCounter

COUNTER, ROUGH = TokenCounter(), TokenCounter(roughly=1)


def test_a_damaged_vocabulary_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "VOCABULARY_SHA256", "")
    with pytest.raises(ConfigError, match="Reinstall"):
        tokens._read(1)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("hello world", 2), ("tiktoken is great!", 6), ("你好，世界", 3), ("\x00", 1), ("\ud800", 1)],
)
def test_known_counts(text: str, count: int) -> None:
    assert COUNTER.text(text) == count


@pytest.mark.parametrize("unit", ["a", " ", "\n", "中", ".", "Aa", "👩‍👩‍👧", "\x00", "\ud83d"])
def test_a_megabyte_of_one_thing(unit: str) -> None:
    text = unit * (1_000_000 // len(unit.encode("utf-8", "surrogatepass")))
    piece = unit * (PIECE_CHARS // len(unit))
    assert COUNTER.text(text) == pytest.approx(COUNTER.text(piece) * len(text) / len(piece), rel=0.02)


def test_a_megabyte_of_base64() -> None:
    text = base64.b64encode(random.Random(7).randbytes(750_000)).decode()
    assert 500_000 < COUNTER.text(text) < 1_000_000


def test_beyond_the_exact_length_a_sample_is_scaled() -> None:
    text = "The quick brown fox jumps over the lazy dog. " * (EXACT_CHARS // 20)
    assert COUNTER.text(text) == pytest.approx(COUNTER.text(text[:450_000]) * len(text) / 450_000, rel=0.02)


@given(st.text(alphabet=st.characters(), max_size=300), st.text(alphabet=st.characters(), max_size=300))
def test_two_texts_are_about_their_sum(one: str, other: str) -> None:
    assert COUNTER.text(one + other) <= COUNTER.text(one) + COUNTER.text(other) + 4


def test_cutting_into_pieces_costs_next_to_nothing() -> None:
    sentence = "Every sentence of this text is the same, which does no harm at all. "
    whole = COUNTER.text(sentence * 200) / 200
    assert COUNTER.text(sentence * 3_000) == pytest.approx(whole * 3_000, rel=0.005)


@pytest.mark.parametrize("size", [400, 2_000, 150_000])
def test_a_text_counts_the_same_however_often_and_after_whichever_other(size: int) -> None:
    one, other = "word " * (size // 5), "a1b2 " * (size // 5)
    counted = [COUNTER.text(text) for text in (one, one, other, one, other, other)]
    assert counted == [TokenCounter().text(text) for text in (one, one, other, one, other, other)]
    assert counted[0] < counted[2]


def test_a_message_counts_everything_that_is_sent() -> None:
    call: Any = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"path": "a.py"}'}}
    plain = COUNTER.message({"role": "assistant", "content": "Looking"})
    assert plain == MESSAGE_OVERHEAD + COUNTER.text("Looking")
    assert COUNTER.message({"role": "assistant", "content": "Looking", "tool_calls": [call]}) > plain + 6
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10_000}}
    assert COUNTER.message({"role": "user", "content": [{"type": "text", "text": "Looking"}, image]}) == (
        plain + IMAGE_TOKENS
    )
    assert COUNTER.message({"role": "user", "content": "Looking", "_legato": {"id": "x" * 900}}) == plain


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


@given(_ODD, _ODD, _ODD)
def test_no_shape_raises(content: Any, calls: Any, call: Any) -> None:
    for message in (
        {"content": content, "tool_calls": calls, "name": call},
        {"content": [content], "tool_calls": [call, SimpleNamespace(id=1, function=SimpleNamespace(name=content))]},
        {"tool_calls": [{"function": {"name": content, "arguments": call}}]},
    ):
        assert COUNTER.message(message) >= MESSAGE_OVERHEAD
    assert COUNTER.schemas([content, {"type": "function", "function": call}]) >= 2 * MESSAGE_OVERHEAD


def test_one_counter_serves_many_threads() -> None:
    counter, counts = TokenCounter(), []
    threads = [threading.Thread(target=lambda: counts.append(counter.text("one two three"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3] * 8


@pytest.mark.parametrize("text", ["今天天气很好。" * 300, "plain " * 300, "häuser " * 9_000])
def test_counting_leaves_nothing_inside_the_text(text: str) -> None:
    before = sys.getsizeof(text)
    TokenCounter().text(text)
    assert sys.getsizeof(text) == before


@given(
    st.text(alphabet=st.characters(), max_size=300) | st.sampled_from(["Where is the key?", "def f(x): pass", "你好"])
)
def test_a_rough_count_is_never_too_low(text: str) -> None:
    assert ROUGH.text(text) >= COUNTER.text(text)


def test_the_whole_vocabulary_is_read_for_a_long_text_or_once_a_conversation_is_long() -> None:
    text, exact = "The anthropologist hesitated unenthusiastically. ", COUNTER.text
    counter = TokenCounter(roughly=0.1)
    assert (counter.takes_long(len(text), 0.1), counter.text(text) > exact(text)) == (False, True)
    assert counter.text(text * 200) == exact(text * 200)
    assert counter.text(text) == exact(text)
    counter = TokenCounter(roughly=0.1)
    assert [counter.takes_long(len(text), filled) for filled in (0.0, 0.1, 0.11)] == [False, False, True]
    assert counter.text(text) == exact(text)
    assert not counter.takes_long(len(text), 0.0)
    assert tokens._common.cache_info().currsize == 0, "the eighth is kept beside the whole"
