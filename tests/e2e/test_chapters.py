"""The table of contents of a long conversation: lines with dates in the notes, each opened by one call."""

from __future__ import annotations

import json
import re
from pathlib import Path

from gateway.domain.message import is_summary, text_of
from tests.e2e.test_forget import forget
from tests.support.gateway import FakeModel, Live, ManualClock, Say, in_turn, running

SUBJECTS = ("Lisbon", "Pottery", "Kestrel", "Marathon", "Orchard", "Violin")
_LINE = re.compile(r"^- (#\w+)-(#\w+) ([\d-]{10})(?: to ([\d-]{10}))?: (.*)$", re.MULTILINE)


async def notes(live: Live) -> str:
    """The summary in the transcript of the conversation."""
    tip = await live.tip()
    assert tip is not None
    return next(text_of(each) for each in await live.store.transcript(tip) if is_summary(each))


async def test_a_year_has_chapters_that_one_call_opens_and_that_forgetting_shortens(tmp_path: Path) -> None:
    clock, model = ManualClock(), FakeModel()
    async with running(tmp_path, model=model, clock=clock) as live:
        for number, subject in enumerate(SUBJECTS * 2):
            for place in range(8):
                await live.ask(
                    f"part {place} of the talk on {subject}, with key {subject}-{number}{place} {'so ' * 40}"
                )
            assert "Compressed" in await live.ask("/compress")
            await clock.advance(86_400 * 6)
        told = await notes(live)
        chapters = _LINE.findall(told)
        assert 5 <= len(chapters) <= 12, told
        assert [each[2] for each in chapters] == sorted(each[2] for each in chapters)
        assert "Lisbon" in chapters[0][4]
        first, last = chapters[0][:2]
        asked = {"message": f"{first}-{last}", "words": "Lisbon-03"}
        model.script = in_turn(Say(calls=[("history_read", json.dumps(asked))]), Say(text="read"))
        await live.ask("what was said in Lisbon?")
        shown = model.spoken()[-1][1]
        assert "key Lisbon-03" in shown
        assert "Lisbon-05" in shown
        assert "Pottery-1" not in shown
        # What is forgotten leaves its line, and the words that it alone had.
        (word,) = re.findall(r"Lisbon-\w+", shown.splitlines()[0])
        await live.ask(f"/forget {word}")
        await forget(live, "1")
        again = _LINE.findall(await notes(live))
        assert len(again) == len(chapters)
        assert first not in [each[0] for each in again]
        assert again[-1] == chapters[-1]
        asked = {"message": f"{first}-{last}", "words": word}
        model.script = in_turn(Say(calls=[("history_read", json.dumps(asked))]), Say(text="read"))
        await live.ask("and now?")
        assert "Lisbon-05" in model.spoken()[-1][1]
        assert f"{word} " not in model.spoken()[-1][1]


async def test_a_range_of_nothing_is_an_error(tmp_path: Path) -> None:
    model = FakeModel()
    async with running(tmp_path, model=model) as live:
        for wrong in ("#8888888-#9999999", "#0-#0", "a-b"):
            model.script = in_turn(Say(calls=[("history_read", json.dumps({"message": wrong}))]), Say(text="no"))
            await live.ask("hm")
            assert "There are no messages" in model.spoken()[-1][1]
