"""The quality bench in short: what a context engine keeps, and that no summariser can break a conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.runtime.tokens import TokenCounter
from tests.bench.context.facts import stands
from tests.bench.context.figures import Figures, missed, summed
from tests.bench.context.observing import Record
from tests.bench.context.policies import POLICIES
from tests.bench.context.replay import replay
from tests.bench.context.summarisers import NAMES
from tests.bench.context.trace import write

SMALL = 32_000  # tokens: a compaction every fifteen turns
TURNS = 40
SHORT = 28  # turns: two compactions at SMALL, and nothing yet that is needed later
REFUSED = {"empty", "inflating", "truncated", "hanging", "429"}  # by the engine, which summarises by rule then
QUICK = {"hanging", "injected", "echoes secrets"}


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    """One for all: loading its vocabulary takes longer than a replay."""
    return TokenCounter()


async def replayed(
    folder: Path, counter: TokenCounter, policy: str, summariser: str = "", *, seed: int = 1, turns: int = TURNS
) -> Record:
    folder = _made(folder)
    return await replay(write(seed, turns), POLICIES[policy], summariser, folder, counter, window=SMALL)


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def sound(figures: Figures) -> bool:
    """Say whether the figures hold for any summariser."""
    return (figures.fits, figures.valid, figures.pinned, figures.failed, figures.leaks) == (1, 1, 1, 0, 0)


@pytest.mark.parametrize(
    "summariser", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
async def test_no_summariser_breaks_a_conversation(tmp_path: Path, counter: TokenCounter, summariser: str) -> None:
    turns = TURNS if summariser in REFUSED else SHORT  # a refused summary is prepared twice, so passes come later
    record = await replayed(tmp_path, counter, "compressor", summariser, turns=turns)
    assert record.compactions >= 2
    assert record.problems == []
    assert sound(summed([record]))
    assert record.fallbacks == (record.compactions if summariser in REFUSED else 0)


@pytest.mark.parametrize(
    ("seed", "turns", "least"),
    [(1, 90, 3), *(pytest.param(seed, 200, 6, marks=pytest.mark.slow) for seed in (1, 4, 7))],
)
async def test_every_goal_is_reached(tmp_path: Path, counter: TokenCounter, seed: int, turns: int, least: int) -> None:
    record = await replay(write(seed, turns), POLICIES["compressor"], "extractive", tmp_path, counter)
    assert record.compactions >= least
    assert missed(summed([record])) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
async def test_every_goal_is_reached_in_conversations_twice_as_long(
    tmp_path: Path, counter: TokenCounter, seed: int
) -> None:
    record = await replay(write(seed, 400), POLICIES["compressor"], "extractive", tmp_path, counter)
    assert record.compactions >= 12
    assert missed(summed([record])) == []


@pytest.mark.slow
async def test_engines_without_a_model_keep_less_but_break_nothing(tmp_path: Path, counter: TokenCounter) -> None:
    window = summed([await replayed(tmp_path / "window", counter, "window")])
    tail = summed([await replayed(tmp_path / "tail", counter, "tail-only")])
    ours = summed([await replayed(tmp_path / "ours", counter, "compressor", "extractive")])
    assert sound(window)
    assert sound(tail)
    assert window.summaries == tail.summaries == 0
    assert tail.in_view < ours.in_view
    assert window.in_view < ours.in_view


@pytest.mark.slow
async def test_without_compaction_a_conversation_ends(tmp_path: Path, counter: TokenCounter) -> None:
    figures = summed([await replayed(tmp_path, counter, "none", turns=SHORT)])
    assert figures.broke is not None
    assert figures.fits < 1
    assert figures.compactions == 0


@pytest.mark.slow
async def test_the_same_seed_gives_the_same_record(tmp_path: Path, counter: TokenCounter) -> None:
    one, two = [await replayed(tmp_path / name, counter, "compressor", "drops 30%", turns=SHORT) for name in ("a", "b")]
    assert one == two


def test_a_value_stands_only_where_it_is_not_part_of_another() -> None:
    assert stands("端口是8080。", "8080")
    assert stands("(the path is /srv/a-1.log.)", "/srv/a-1.log")
    assert not stands("18080", "8080")
    assert not stands("8080ms", "8080")
