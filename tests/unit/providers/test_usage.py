"""`normalize_usage` gives every provider's buckets one meaning, and nothing a provider sends can upset it."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.usage import CanonicalUsage, is_emergency
from gateway.providers.usage import Api, normalize_usage

TABLE: list[tuple[Api, dict[str, Any], CanonicalUsage]] = [
    (
        "messages",
        {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
        },
        CanonicalUsage(input_tokens=10, output_tokens=5, cache_read_tokens=100, cache_write_tokens=20),
    ),
    (
        "responses",
        {
            "input_tokens": 130,
            "output_tokens": 50,
            "input_tokens_details": {"cached_tokens": 100, "cache_creation_tokens": 20},
            "output_tokens_details": {"reasoning_tokens": 40},
        },
        CanonicalUsage(
            input_tokens=10, output_tokens=50, cache_read_tokens=100, cache_write_tokens=20, reasoning_tokens=40
        ),
    ),
    (
        "chat_completions",
        {
            "prompt_tokens": 130,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 20},
            "completion_tokens_details": {"reasoning_tokens": 40},
        },
        CanonicalUsage(
            input_tokens=10, output_tokens=50, cache_read_tokens=100, cache_write_tokens=20, reasoning_tokens=40
        ),
    ),
    # The names of the vendors' newest clients.
    (
        "messages",
        {
            "input_tokens": 10,
            "output_tokens": 50,
            "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15},
            "output_tokens_details": {"thinking_tokens": 40},
        },
        CanonicalUsage(input_tokens=10, output_tokens=50, cache_write_tokens=20, reasoning_tokens=40),
    ),
    (
        "responses",
        {
            "input_tokens": 130,
            "output_tokens": 5,
            "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 20},
        },
        CanonicalUsage(input_tokens=10, output_tokens=5, cache_read_tokens=100, cache_write_tokens=20),
    ),
    # Proxies that speak one API and count as another.
    ("messages", {"prompt_tokens": 7, "completion_tokens": 3}, CanonicalUsage(input_tokens=7, output_tokens=3)),
    ("responses", {"prompt_tokens": 7, "completion_tokens": 3}, CanonicalUsage(input_tokens=7, output_tokens=3)),
    (
        "chat_completions",
        {"input_tokens": 130, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 100}},
        CanonicalUsage(input_tokens=30, output_tokens=5, cache_read_tokens=100),
    ),
    # Moonshot.
    (
        "chat_completions",
        {"prompt_tokens": 130, "completion_tokens": 5, "cached_tokens": 100},
        CanonicalUsage(input_tokens=30, output_tokens=5, cache_read_tokens=100),
    ),
    # A proxy that puts Anthropic's names beside OpenAI's.
    (
        "chat_completions",
        {
            "prompt_tokens": 130,
            "completion_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
        },
        CanonicalUsage(input_tokens=10, output_tokens=5, cache_read_tokens=100, cache_write_tokens=20),
    ),
    # A proxy that passes Anthropic's usage through whole.
    (
        "chat_completions",
        {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100},
        CanonicalUsage(input_tokens=10, output_tokens=5, cache_read_tokens=100),
    ),
    (
        "chat_completions",
        {
            "prompt_tokens": 130,
            "completion_tokens": 5,
            "prompt_cache_hit_tokens": 100,
            "prompt_cache_miss_tokens": 30,
        },
        CanonicalUsage(input_tokens=30, output_tokens=5, cache_read_tokens=100),
    ),
]


@pytest.mark.parametrize(("api", "raw", "expected"), TABLE)
def test_buckets_follow_the_table_in_dicts_and_in_objects(
    api: Api, raw: dict[str, Any], expected: CanonicalUsage
) -> None:
    assert normalize_usage(raw, api) == expected
    as_object = SimpleNamespace(
        **{key: SimpleNamespace(**value) if isinstance(value, dict) else value for key, value in raw.items()}
    )
    assert normalize_usage(as_object, api) == expected


def test_prompt_tokens_include_what_was_cached() -> None:
    usage = normalize_usage(
        {"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 4}, "messages"
    )
    assert usage.prompt_tokens == 7
    assert usage.total_tokens == 7


def test_more_cached_than_prompted_is_not_negative() -> None:
    usage = normalize_usage({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, "chat_completions")
    assert usage.input_tokens == 0
    assert usage.cache_read_tokens == 9


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["prompt_tokens", "input_tokens", "completion_tokens", "output_tokens", "prompt_tokens_details",
             "cached_tokens", "input_tokens_details", "cache_read_input_tokens", "prompt_cache_hit_tokens"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=12,
)  # fmt: skip


@given(raw=JUNK, api=st.sampled_from(["messages", "responses", "chat_completions"]))
def test_garbage_gives_counts_that_are_never_negative(raw: Any, api: Api) -> None:
    assert all(count >= 0 for count in normalize_usage(raw, api).as_dict().values())


@pytest.mark.parametrize("count", [10**13, 10**30, 10**400, 1e300, float("inf"), float("nan"), -1, True, "7"])
def test_what_nobody_could_have_used_counts_as_nothing(count: Any) -> None:
    assert normalize_usage({"prompt_tokens": count, "completion_tokens": 7}, "chat_completions") == CanonicalUsage(
        output_tokens=7
    )


@pytest.mark.parametrize("raw", [None, "", 7, [], {}, object()])
def test_nothing_usable_gives_zeros(raw: Any) -> None:
    for api in ("messages", "responses", "chat_completions"):
        assert normalize_usage(raw, api) == CanonicalUsage()


@pytest.mark.parametrize(("tokens", "window", "reached"), [(95, 100, True), (94, 100, False), (1, 0, False)])
def test_a_prompt_reaches_the_last_mark_of_a_window_that_is_known(tokens: int, window: int, reached: bool) -> None:
    assert is_emergency(tokens, window) is reached
