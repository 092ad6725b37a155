"""A compaction leaves an account: what stayed, what became notes, what was shortened, and what that took. The next one
is estimated by it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from structlog.testing import capture_logs

from gateway.cli.reports import lineage_rows, lineage_text
from gateway.context.policy import CompressionSettings
from gateway.domain.session import PassWork, Session
from gateway.providers.plugin import ModelPrices, ModelSettings
from tests.support.gateway import FEW_TOOLS, FakeModel, Live, Say, config_in, running
from tests.support.model import summary_text

WORDS = "the quick brown fox jumps over the lazy dog " * 60
PRICED = ModelSettings(provider="openai", name="writer", context_length=16_000, prices=ModelPrices(input=2, output=8))


async def tip(live: Live) -> Session:
    session = await live.tip()
    assert session is not None
    return session


async def test_a_pass_is_accounted_for_and_the_next_is_estimated(tmp_path: Path) -> None:
    calls = iter(range(100))

    def answers(spec: object, request: object) -> Say:
        look = next(calls) % 8 == 1
        return (
            Say(calls=[("search_history", json.dumps({"query": "fox"}))], prompt=None)
            if look
            else Say(text=f"heard {WORDS[:400]}", prompt=None)
        )

    refused = [Say(text="## Goal", stop="length")]
    model = FakeModel(answers, summary=lambda s, r: refused.pop() if refused else summary_text(s, r))
    config = config_in(
        tmp_path, model=PRICED, tools=FEW_TOOLS, compression=CompressionSettings(background=False, protect_last_n=30)
    )
    async with running(tmp_path, config=config, model=model) as live:
        for number in range(12):
            await live.ask(f"{number:03} {WORDS}")
        before = await tip(live)
        foretold = await live.ask("/compress --preview")
        assert re.search(
            r"writer would write the notes\. They would cost at most about \$0\.0\d+\. I do not know yet how long",
            foretold,
        )
        assert re.search(
            r"the last \d+ messages would stay word for word, because the setting compression.protect_last_n wants 30, "
            r"but no more fit into 1.5 times [\d,]+ tokens\.",
            await live.ask("/context"),
        )
        with capture_logs() as logs:
            await live.ask("/compress")
        after = await tip(live)
        assert after.parent_id == before.id
        [made] = [each for each in await live.store.compactions(after.id) if each.child_id == after.id]
        work = made.work
        assert isinstance(work, PassWork)
        assert work.head[0] == 1
        assert work.head[1] + 1 == work.middle[0]
        assert work.middle[1] + 1 == work.tail[0]
        assert work.tail[1] == before.message_count == made.messages_before
        assert (work.model, work.tries) == ("writer", 2)
        assert work.cost_usd
        [line] = [each for each in logs if each["event"] == "compacted"]
        assert (line["tries"], list(line["middle"])) == (2, list(work.middle))
        assert f"About the last compression: {work.told}." in await live.ask("/context")
        assert "2 tries by writer" in work.told
        shown = lineage_text(await lineage_rows(live.store, after.id))
        assert f"↓ compressed (manual): ~{made.tokens_before:,}" in shown
        assert work.told in shown
        for number in range(6):
            await live.ask(f"{number:03} {WORDS}")
        assert "A compression would take about 0 s, as it did 1 time before." in await live.ask("/compress --preview")
