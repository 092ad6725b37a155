"""An answer that does not end by itself is cut; any other one stays whole."""

import random

import pytest

from gateway.agent.asking import LONGEST, Bound

WORDS = [f"word{number}" for number in range(500)]


def grown(text: str, tokens: int | None = None, piece: int = 7) -> tuple[int | None, Bound]:
    """The cut of a text that comes in pieces, and what is known of it."""
    bound = Bound(tokens)
    for end in range(piece, len(text) + piece, piece):
        if (kept := bound.cut(text[:end])) is not None:
            return kept, bound
    return None, bound


def prose(characters: int, seed: int = 1) -> str:
    rng, said = random.Random(seed), ""
    while len(said) < characters:
        said += rng.choice(WORDS) + " "
    return said[:characters]


@pytest.mark.parametrize("unit", ["x", "ha ", "and so on, ", "同じことを言う。", prose(200), prose(1_900)])
def test_a_repetition_that_runs_on_to_the_limit_is_said_once(unit: str) -> None:
    before = prose(3_333, seed=2) + "Now: "
    kept, bound = grown(before + unit * (140_000 // len(unit)), piece=997)
    assert kept is not None
    assert bound.repeats
    said = (before + unit * 3)[:kept]
    assert said.startswith(before)
    assert len(before) + len(unit) - 2 <= kept <= len(before) + len(unit) + 2


@pytest.mark.parametrize(
    "text", ["I will not talk in class.\n" * 200, "0 " * 10_000, prose(1_000) * 50, prose(60_000), "-" * 3_000]
)
def test_what_ends_by_itself_stays_however_often_it_says_the_same(text: str) -> None:
    assert grown(text, piece=53)[0] is None


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
    bound = Bound(None)
    assert (bound.at_limit(text), bound.repeats) == (len(text), False)


@pytest.mark.parametrize(("tokens", "most"), [(None, LONGEST), (1_000, LONGEST), (20_000, 200_000)])
def test_an_answer_is_as_long_as_its_limit_at_most(tokens: int | None, most: int) -> None:
    kept, bound = grown(prose(most + 5_000), tokens, piece=499)
    assert kept == most
    assert not bound.repeats
    assert grown(prose(most - 1), tokens, piece=499)[0] is None
