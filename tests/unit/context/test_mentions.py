"""Whether a text mentions an identifier."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context import mentions as module
from gateway.context.mentions import Named, mentions


def test_a_mention_is_a_whole_word() -> None:
    assert mentions("it took 5 MB.", "5 MB")
    assert not mentions("it took 15 MB", "5 MB")
    assert not mentions("src/a.pyx", "src/a.py")
    assert mentions("改src/a.py吧", "src/a.py")


@settings(suppress_health_check=list(HealthCheck))
@given(
    st.text("aB1 /.é天\n"),
    st.lists(st.text("aB1 /.é天", min_size=1), max_size=4),
    st.text("aB1 /.é天", min_size=1, max_size=4),
)
def test_a_growing_text_mentions_what_the_whole_text_does(text: str, lines: list[str], value: str) -> None:
    named = Named(text)
    for number, line in enumerate(lines):
        assert named.takes(line) != mentions("\n".join([text, *lines[:number]]), line)
    assert named.mentions(value) == mentions("\n".join([text, *lines]), value)


def test_names_without_spaces_are_compared_with_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counted(text: str, value: str) -> bool:
        nonlocal compared
        compared += 1
        return mentions(text, value)

    monkeypatch.setattr(module, "mentions", counted)
    named = Named()
    assert all(named.takes(f"{chr(0x4E00 + place)}{chr(0x5E00 + place % 20)}项目") for place in range(400))
    assert not named.takes("项目")
    assert not named.takes(f"{chr(0x4E00 + 7)}{chr(0x5E00 + 7)}")
    assert compared < 400
