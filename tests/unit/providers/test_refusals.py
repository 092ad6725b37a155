"""What servers say about length, in their own words, each with its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.providers.errors import classify
from gateway.runtime.errors import ContextOverflow, OutputCapTooLarge

REFUSALS: list[tuple[int, str, int | None, str, str]] = [
    tuple(row) for row in yaml.safe_load((Path(__file__).parent / "refusals.yaml").read_text())
]
LENGTHS = [row for row in REFUSALS if row[1] != "other"]
TRAPS = [row for row in REFUSALS if row[1] == "other"]


def error_of(status: int, text: str) -> Any:
    """What a refusal of this text means."""
    return classify(status, json.dumps({"error": {"message": text}}) if text else "", {})


@pytest.mark.parametrize(("status", "means", "number", "text", "source"), LENGTHS, ids=lambda value: str(value)[:30])
def test_what_is_too_long(status: int, means: str, number: int | None, text: str, source: str) -> None:
    error = error_of(status, text)
    assert source
    if means == "prompt":
        assert isinstance(error, ContextOverflow)
        assert error.limit == number
    else:
        assert isinstance(error, OutputCapTooLarge)
        assert error.available == number


@pytest.mark.parametrize(("status", "means", "number", "text", "source"), TRAPS, ids=lambda value: str(value)[:30])
def test_what_only_sounds_like_it(status: int, means: str, number: None, text: str, source: str) -> None:
    assert not isinstance(error_of(status, text), ContextOverflow | OutputCapTooLarge)


def test_there_are_many_of_each() -> None:
    assert len({text for *_, text, _ in LENGTHS}) >= 300
    assert len({text for *_, text, _ in TRAPS}) >= 85
