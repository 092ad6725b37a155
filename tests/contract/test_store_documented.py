"""The small state that docs/adding.md shows, on every store: written beside others, kept, erased."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.store.port import Store, under
from gateway.store.records import Erasure
from tests.support.store_kit import START, Bench, key

pytest_plugins = ["tests.support.stores"]


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """The names of the page's file."""
    page = Path(__file__).parents[2].joinpath("docs/adding.md").read_text(encoding="utf-8")
    block = re.search(r"^## Add a kind of small state\n.*?^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(block[1], "docs/adding.md", "exec"), names)
    return names


async def test_none_of_many_at_once_is_lost_also_after_a_crash(bench: Bench, example: dict[str, Any]) -> None:
    store = await bench.open()
    assert await example["score"](store, key()) == example["Score"]()
    await asyncio.gather(*(example["won"](store, key()) for _ in range(6)))
    store = await bench.crash(store)
    assert await example["score"](store, key()) == example["Score"](won=6)
    assert await example["score"](store, key("2")) == example["Score"]()


async def test_what_a_later_release_added_is_passed_over(store: Store, example: dict[str, Any]) -> None:
    await store.set_notes(under(key(), "dice"), {"score": '{"won": 2, "drawn": 1}', "best": "7"})
    assert await example["won"](store, key()) == example["Score"](won=3)
    assert (await store.notes(under(key(), "dice")))["best"] == "7"


async def test_it_is_erased_with_its_conversation(store: Store, example: dict[str, Any]) -> None:
    await example["won"](store, key())
    await store.erase(None, Erasure(id="d1", key=key(), at=START))
    assert await example["score"](store, key()) == example["Score"]()
