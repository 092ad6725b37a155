"""The memory in a prompt is found again as it stands there, whatever else the prompt says."""

import pytest

from gateway.agent.memory.snapshot import _CLOSING, _OPENING, snapshot_in
from tests.support.hostile import LONGEST, within

SHOWN = f"{_OPENING}- 2026-01-02: Anna likes tea{_CLOSING}"


@pytest.mark.parametrize("around", ["", "You are a bot.\n", f"{_CLOSING}\n"])
def test_what_a_prompt_shows_of_a_memory_is_found(around: str) -> None:
    assert snapshot_in(f"{around}{SHOWN}\n\nMore rules.{_CLOSING}") == SHOWN


@pytest.mark.parametrize("prompt", ["", "You are a bot.", _OPENING, f"{_CLOSING}{_OPENING}"])
def test_a_prompt_without_a_memory_shows_none(prompt: str) -> None:
    assert snapshot_in(prompt) == ""


def test_a_memory_that_never_ends_is_looked_for_once() -> None:
    with within(1.0):
        assert snapshot_in(_OPENING * (10 * LONGEST // len(_OPENING))) == ""
