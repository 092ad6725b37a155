"""An answer that does not end by itself is cut; any other one stays whole."""

import random

import pytest

from gateway.agent.asking import LONGEST, longest, said_once

WORDS = [f"word{number}" for number in range(500)]


def prose(characters: int, seed: int = 1) -> str:
    rng, said = random.Random(seed), ""
    while len(said) < characters:
        said += rng.choice(WORDS) + " "
    return said[:characters]


@pytest.mark.parametrize("unit", ["x", "ha ", "and so on, ", "同じことを言う。", prose(200), prose(1_900)])
def test_a_repetition_that_runs_on_to_the_limit_is_said_once(unit: str) -> None:
    before = prose(3_333, seed=2) + "Now: "
    said = said_once((before + unit * (140_000 // len(unit)))[:LONGEST])
    assert said is not None
    assert (before + unit * 3).startswith(said)
    assert len(before) + len(unit) - 2 <= len(said) <= len(before) + len(unit) + 2


@pytest.mark.parametrize(
    "text",
    [
        prose(60_000),
        "\n".join(f"| row {number} | the same in all rows, and quite long at that |" for number in range(800)),
        prose(200) * 15,
        "-" * 3_000 + prose(5_000) + "-" * 3_000,
    ],
)
def test_what_only_resembles_itself_stays_at_a_limit_too(text: str) -> None:
    assert said_once(text) is None


@pytest.mark.parametrize(("tokens", "most"), [(None, LONGEST), (1_000, LONGEST), (20_000, 200_000)])
def test_an_answer_is_as_long_as_its_limit_at_most(tokens: int | None, most: int) -> None:
    assert longest(tokens) == most
