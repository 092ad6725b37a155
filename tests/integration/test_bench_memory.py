"""The figures of `make bench-memory` keep their goals. It takes a while, so it stands among the slow tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.agent.memory.rules import Edit, Source
from gateway.agent.tools.memory import fact_line
from gateway.domain.memory import Memory
from tests.bench.memory.__main__ import figures
from tests.bench.memory.lives import VALUES, facts_in, frame_of, lives
from tests.bench.memory.reader import current_in
from tests.support.store_kit import key


@pytest.mark.slow
async def test_what_was_told_is_known_and_nothing_else(tmp_path: Path) -> None:
    ours = await figures(tmp_path, 2, remembers=True)
    assert ours.found >= 0.95 * ours.asked
    assert (ours.stale, ours.foreign, ours.taken, ours.unsourced) == (0, 0, 0, 0)


def test_the_reader_knows_what_holds_from_the_lines_that_the_tool_shows() -> None:
    """Otherwise it adds a fact beside the one that it should replace, and both are shown as if they held."""
    source = Source(message_id="1", session_id="s", said_by="u", said_at=1.0, own="")
    edit = Edit(scope=key(), source=source, now=2.0, alone=True, redact=str)
    memory, _ = edit.add(Memory(), "person", "Lives in Graz")
    memory, _ = edit.replace(memory, "Graz", "Lives in Riga")
    shown = "\n".join(map(fact_line, memory.numbered().facts))
    assert "Graz" in shown
    assert current_in(shown) == ["Lives in Riga"]


def test_every_fact_of_a_life_can_be_read_in_the_words_that_tell_it() -> None:
    for life in lives(3):
        for said in (each for session in life.sessions for each in session if each.topic >= 0):
            ((frame, fact),) = facts_in(said.text)
            assert said.value in fact
            assert frame_of(fact) == frame
        assert all(VALUES.fullmatch(value) for value in life.values)
