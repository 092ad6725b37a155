"""The words of servers about length, each with its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from gateway.providers.errors import classify
from gateway.runtime.errors import ContextOverflow, OutputCapTooLarge

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the table is 127 KB, and each process that runs tests reads it
REFUSALS: list[tuple[int, str, int | None, str, str]] = [
    tuple(row) for row in yaml.load((Path(__file__).parent / "refusals.yaml").read_text(), Loader=LOADER)
]
LENGTHS = [row for row in REFUSALS if row[1] != "other"]
TRAPS = [row for row in REFUSALS if row[1] == "other"]


def meaning(status: int, text: str) -> tuple[str, int | None]:
    """Return the meaning of a refusal with this text, and its number. A cap and the room that is left are told
    alike."""
    error = classify(status, json.dumps({"error": {"message": text}}) if text else "", {})
    if isinstance(error, ContextOverflow):
        return "prompt", error.limit
    return ("output", error.available) if isinstance(error, OutputCapTooLarge) else ("other", None)


def test_what_is_too_long() -> None:
    assert all(source for *_, source in LENGTHS)
    wrong = misread(LENGTHS)
    assert not wrong, "\n".join(wrong)


def test_what_only_sounds_like_it() -> None:
    wrong = misread(TRAPS)
    assert not wrong, "\n".join(wrong)


def misread(rows: list[tuple[int, str, int | None, str, str]]) -> list[str]:
    """Every row that is taken for something else."""
    return [
        f"{means} {number} is read as {read}: {status} {text!r}"
        for status, means, number, text, _ in rows
        if (read := meaning(status, text)) != ("output" if means == "fits" else means, number)
    ]


def test_there_are_many_of_each() -> None:
    assert len({text for *_, text, _ in LENGTHS}) >= 380
    assert len({text for *_, text, _ in TRAPS}) >= 145


@pytest.mark.parametrize(("numbers", "limit"), [(49, 8_192), (50, None)])
def test_of_very_many_numbers_only_the_first_are_looked_at(numbers: int, limit: int | None) -> None:
    text = "The prompt is too long. " + "Item has 7 tokens. " * numbers + "The maximum context length is 8192 tokens."
    assert meaning(400, text) == ("prompt", limit)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("prompt is too long: 200049 tokens > 200000 maximum", "window 200000, input 200049, output None"),
        ("This conversation is too large for the selected model", "prompt, excess"),
        ("max_tokens must be at most 8192", "a cap of the output"),
    ],
)
def test_a_verdict_says_why(text: str, because: str) -> None:
    error = classify(400, json.dumps({"error": {"message": text}}), {})
    assert isinstance(error, ContextOverflow | OutputCapTooLarge)
    assert error.because == because
