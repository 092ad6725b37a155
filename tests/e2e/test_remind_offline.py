"""Plain wordings of reminders, with the embedded model, in the real program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import legato


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("remind me in 2 minutes to stretch", "stretch"),
        ("Please remind me to call Ann tomorrow at 9", "call Ann"),
        ("remind me at 17:00 that the oven is on", "the oven is on"),
    ],
)
async def test_a_plain_wording_makes_a_reminder(tmp_path: Path, said: str, kept: str) -> None:
    status, out, errors = await legato(tmp_path, "chat", said)
    assert status == 0, errors
    assert out.startswith(f"I will remind you: {kept}, ")
    _, listed, _ = await legato(tmp_path, "chat", "--continue", "/reminders")
    assert kept in listed


@pytest.mark.parametrize("said", ["remind me", "remind me of my youth", "remind me in a blink to stretch"])
async def test_a_wording_that_is_not_understood_names_the_command(tmp_path: Path, said: str) -> None:
    status, out, errors = await legato(tmp_path, "chat", said)
    assert status == 0, errors
    assert "/remind in 20 minutes stretch" in out


async def test_what_comes_again_needs_a_yes(tmp_path: Path) -> None:
    status, out, errors = await legato(tmp_path, "chat", "can you remind me every weekday at 8:30 about the stand-up?")
    assert status == 0, errors
    assert out.endswith("Nobody was there to say yes, so I did nothing. Ask again in `legato chat`.\n")


async def test_a_wording_in_another_language_is_told_how_to_be_written(tmp_path: Path) -> None:
    _, _, errors = await legato(tmp_path, "chat", "/remind jeden Montag um 8 Müll")
    assert "I found no time in your message" in errors
