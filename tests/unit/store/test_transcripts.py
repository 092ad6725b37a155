"""The transcript cache: a prefix of the truth, bounded, and cheap to extend."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.message import Message, text_of, user
from gateway.store.shared.transcripts import PER_MESSAGE, TranscriptCache, size_of

EACH = size_of(user("1"))


def said(start: int, count: int) -> list[Message]:
    return [user(str(number)) for number in range(start, start + count)]


def test_what_was_put_can_be_extended() -> None:
    cache = TranscriptCache()
    cache.append("s", 0, said(0, 2))  # nothing known: nothing to extend
    assert cache.get("s") is None
    cache.put("s", said(0, 2))
    first = cache.get("s")
    assert cache.get("s") is first
    cache.append("s", 2, said(2, 3))
    assert cache.get("s") == tuple(said(0, 5))
    assert first == tuple(said(0, 2))
    assert cache.size == 5 * EACH


def test_an_overlap_is_harmless_and_a_gap_forgets() -> None:
    cache = TranscriptCache()
    cache.put("s", said(0, 4))
    cache.append("s", 2, said(2, 3))
    assert cache.get("s") == tuple(said(0, 5))
    cache.put("s", said(0, 3))  # shorter: a late reader
    assert cache.get("s") == tuple(said(0, 5))
    cache.append("s", 9, said(9, 1))
    assert cache.get("s") is None
    assert cache.size == 0


def test_the_least_recently_used_goes_first_and_the_newest_stays() -> None:
    cache = TranscriptCache(10 * EACH)
    for name in "abc":
        cache.put(name, said(0, 3))
    cache.get("a")
    cache.append("c", 3, said(3, 3))
    assert cache.get("b") is None
    assert cache.get("a") is not None
    cache.put("huge", said(0, 99))
    assert cache.get("huge") is not None
    assert cache.size == sum(map(size_of, said(0, 99)))


def test_a_transcript_that_grows_outlives_those_that_do_not() -> None:
    cache = TranscriptCache(6 * EACH)
    for name in "ab":
        cache.put(name, said(0, 3))
    cache.append("a", 3, said(3, 1))
    assert (cache.get("a"), cache.get("b")) == (tuple(said(0, 4)), None)


@pytest.mark.parametrize("sign", [" ", "a", "\u754c", "\U0001f600"])
def test_a_long_message_takes_its_room_however_few_tokens_it_has(sign: str) -> None:
    cache = TranscriptCache(1_000_000)
    for number in range(50):
        cache.put(str(number), [user(sign * 100_000), *said(0, 3)])
    kept = [messages for number in range(50) if (messages := cache.get(str(number)))]
    assert 2 <= len(kept) <= 10
    assert sum(sys.getsizeof(text_of(message)) for messages in kept for message in messages) <= cache.size <= 1_000_000


def test_calls_and_parts_count_too() -> None:
    long = "x" * 10_000
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": long}}]
    assert size_of({"role": "assistant", "content": None, "tool_calls": calls}) > 10_000 + PER_MESSAGE
    assert size_of({"role": "user", "content": [{"type": "text", "text": long}] * 2}) > 20_000 + PER_MESSAGE


@given(
    st.lists(st.tuples(st.sampled_from(["put", "append", "drop", "get"]), st.sampled_from("xyz"), st.integers(0, 9)))
)
def test_it_only_ever_tells_a_prefix_of_the_truth(moves: list[tuple[str, str, int]]) -> None:
    cache = TranscriptCache(12 * EACH)
    length = dict.fromkeys("xyz", 0)
    for move, name, number in moves:
        if move == "put":
            cache.put(name, said(0, length[name]))
        elif move == "append":
            cache.append(name, length[name], said(length[name], number))
            length[name] += number
        elif move == "drop":
            cache.drop(name)
        known = cache.get(name)
        assert known is None or known == tuple(said(0, length[name]))
        assert cache.size <= max(12 * EACH, *(sum(map(size_of, said(0, each))) for each in length.values()))


def test_what_nobody_asks_for_is_forgotten() -> None:
    cache = TranscriptCache()
    for session in ("busy", "idle"):
        cache.put(session, [user("hello " * 100)])
    assert cache.rest() == 0  # both were read a moment ago
    assert cache.get("busy")
    freed = cache.rest()
    assert freed > 0
    assert cache.get("idle") is None
    cache.append("busy", 1, [user("more")])
    assert cache.rest() == 0
    assert cache.rest() > 0
    assert cache.size == 0
