"""The cost of a conversation, told in time: insights, a footer, a warning before a cap, and a cheaper model behind
it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.agent.asking import SHORTENED
from gateway.agent.caps import Caps
from gateway.agent.fallback import CHEAPER
from gateway.agent.metering import LEAST_OUTPUT
from gateway.app.config import Config
from gateway.commands.status import total_line
from gateway.domain.chat import SessionKey
from gateway.domain.usage import BROKEN_OFF, CanonicalUsage, UsageTotal
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelPrices, ModelSettings
from gateway.runtime.errors import ProviderUnavailable
from gateway.store.records import Cap, Reservation
from tests.support.fakes import ManualClock
from tests.support.gateway import FEW_TOOLS, KillAt, config_in, running
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.waiting import eventually

DEAR = ModelSettings(
    provider="openai",
    name="dear",
    context_length=32_000,
    max_output_tokens=10,
    prices=ModelPrices(input=100, output=100),
)
UNPRICED = DEAR.model_copy(update={"prices": None})
CHEAP = DEAR.model_copy(update={"name": "cheap", "prices": ModelPrices(input=0.1, output=0.1)})

USUAL = DEAR.model_copy(
    update={"name": "usual", "context_length": 128_000, "max_output_tokens": None}
    | {"prices": ModelPrices(input=1, output=10)}
)


def counting(prompt: int) -> FakeModel:
    """A model whose calls have that many prompt tokens, and say who answers."""
    return FakeModel(lambda spec, request: Say(text=f"{spec.name} here", prompt=prompt))


def settings(
    folder: Path, caps: Caps, *fallbacks: ModelSettings, model: ModelSettings = DEAR, **sections: Any
) -> Config:
    config = config_in(folder, model=model, budgets=caps, **sections)
    return config.model_copy(update={"fallback_models": fallbacks})


async def test_insights_of_a_conversation_and_of_everybody(tmp_path: Path) -> None:
    clock = ManualClock()
    async with running(tmp_path, config=settings(tmp_path, Caps()), model=counting(1_000), clock=clock) as live:
        assert await live.ask("/insights") == "I used no model in the last 7 days."
        await live.ask("hello")
        await live.ask("again")
        await live.ask("hi", chat="b", user="boss")
        everybody = (await live.ask("/insights 30")).splitlines()
        assert everybody[0].startswith("Last 30 days, everybody: 3 calls, 3,000 tokens in, 9 out, $0.30")
        assert "  [██████████] 100%  dear: $0.3009, 3,009 tokens" in everybody
        assert everybody[everybody.index("By person:") + 1].startswith("  [███████░░░] 67%  fake:u")
        assert [line for line in everybody if line.startswith("By ")] == [
            "By model:",
            "By purpose:",
            "By person:",
            "By platform:",
        ]
        assert (await live.ask("/insights x")).startswith("Say how many days I should look back")
        await clock.advance(8 * 86_400)
        assert (await live.ask("/insights")).startswith("I used no model")


async def test_an_attempt_that_broke_off_is_counted_by_an_estimate(tmp_path: Path) -> None:
    cut = ProviderUnavailable("It broke off.")
    script = in_turn(
        Say(broken="half of an answer " * 20, text="whole", prompt=1_000),
        Say(first="these words come, and then", error=cut),
        Say(error=ProviderUnavailable("silent", timed_out=True, billable=True)),
        Say(error=ProviderUnavailable("not there", timed_out=True)),
        then=lambda spec, request: Say(text="well", prompt=1_000),
    )
    async with running(tmp_path, config=settings(tmp_path, Caps()), model=FakeModel(script)) as live:
        for _ in range(5):
            await live.ask("hello")
        totals = {total.label: total for total in await live.store.usage(0.0, "purpose")}
        lost, whole = totals[BROKEN_OFF], totals["turn"]
        assert (lost.calls, whole.calls) == (3, 2)
        assert lost.usage.output_tokens > 60  # of the half, and of the words before the second break
        assert lost.usage.prompt_tokens > 3 * 200
        assert lost.cost_usd > 0
        shown = (await live.ask("/usage")).splitlines()
        assert any(line.startswith("  This includes an estimate for answers that broke off: 3 calls") for line in shown)


async def test_the_tokens_of_thoughts_are_shown(tmp_path: Path) -> None:
    totals = [UsageTotal(label="m", calls=1, usage=CanonicalUsage(output_tokens=50, reasoning_tokens=40),
                         cost_usd=0.0, unpriced_calls=0)]  # fmt: skip
    assert "50 out (40 thinking)" in total_line(totals)


async def test_a_footer_by_choice(tmp_path: Path) -> None:
    config = settings(tmp_path, Caps(footer=True))
    async with running(tmp_path, config=config, model=counting(1_000)) as live:
        assert await live.ask("hello") == "dear here\n\n(1,000 tokens in, 3 out, $0.1003)"
        await live.ask("again")
    assert ("assistant", "dear here") in live.model.spoken()


async def test_a_cap_that_is_nearly_used_up_is_told_once(tmp_path: Path) -> None:
    config = settings(tmp_path, Caps(per_session_usd=1.0))
    async with running(tmp_path, config=config, model=counting(2_000)) as live:
        for word in ("one", "two", "three"):
            await live.ask(word)
        await live.quiet()
        assert live.adapter.shown("c", "notice") == []
        await live.ask("four")
        await live.quiet()
        warning = "This conversation's spend cap of $1.00 is nearly used up. $0.1988 is left."
        assert live.adapter.shown("c", "notice") == [warning]
        assert "cap" in await live.ask("five")
        await live.quiet()
        assert live.adapter.shown("c", "notice") == [warning]


async def test_a_compressed_conversation_is_not_told_of_its_cap_again(tmp_path: Path) -> None:
    model = FakeModel(lambda spec, request: Say(text=" ".join(f"word{number}" for number in range(1_250))))
    cheap = DEAR.model_copy(update={"prices": ModelPrices(input=1, output=1)})
    async with running(
        tmp_path, config=settings(tmp_path, Caps(per_session_usd=1.0), model=cheap), model=model
    ) as live:
        for word in ("one", "two", "three", "four", "five", "six"):
            await live.ask(word)
        tip = await live.tip()
        assert tip is not None
        cap = Cap(name="session", account=f"session {tip.id}", limit=1_000_000)
        await live.store.reserve(Reservation(id="by hand", amount=850_000, caps=(cap,)))
        await live.ask("seven")
        await live.quiet()
        (warning,) = [text for text in live.adapter.shown("c", "notice") if "nearly used up" in text]
        assert (await live.ask("/compress")).startswith("Compressed: ")
        await live.ask("eight")
        await live.quiet()
        assert [text for text in live.adapter.shown("c", "notice") if "nearly used up" in text] == [warning]


async def test_a_cap_is_told_of_before_it_has_no_room_for_another_answer(tmp_path: Path) -> None:
    config = settings(tmp_path, Caps(per_session_usd=1.0))
    async with running(tmp_path, config=config, model=counting(5_500)) as live:
        await live.ask("one")
        await live.quiet()
        warning = "This conversation's spend cap of $1.00 is nearly used up. $0.4497 is left."
        assert live.adapter.shown("c", "notice") == [warning]
        assert "cap" in await live.ask("two")


async def test_a_cheaper_model_answers_where_a_cap_leaves_no_room_and_says_so_once(tmp_path: Path) -> None:
    caps = Caps(per_session_usd=1.0, when_reached="fallback")
    config = settings(tmp_path, caps, CHEAP)
    async with running(tmp_path, config=config, model=counting(9_000)) as live:
        assert await live.ask("one") == "dear here"
        assert [await live.ask(word) for word in ("two", "three")] == ["cheap here"] * 2
        await live.quiet()
        told = live.adapter.shown("c", "notice")
        assert told.count(CHEAPER.format(model="cheap", home="dear")) == 1
        tip = await live.tip()
        assert tip is not None
        (standing,) = await live.gateway.agents.metering.standings(tip.key, tip)
        assert standing.spent <= standing.cap.limit


async def test_fifty_turns_at_once_stay_within_a_cap(tmp_path: Path) -> None:
    config = settings(tmp_path, Caps(daily_usd=0.5), tools=FEW_TOOLS)

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        return Say(text="yes", prompt=200)

    async with running(tmp_path, config=config, model=FakeModel(script)) as live:
        events = [await live.tell("hi", chat=f"c{number}") for number in range(50)]
        answers = [(await live.answer(event)).text for event in events]
        (total,) = await live.store.usage(0.0, "model")
        assert 0 < answers.count("yes") < 50
        assert total.cost_usd <= 0.5


async def test_what_a_killed_turn_may_have_cost_stays_counted(tmp_path: Path) -> None:
    config, kill = settings(tmp_path, Caps(daily_usd=1.0)), KillAt("turn.model_called")
    async with running(tmp_path, config=config, model=counting(1_000), points=kill) as live:
        await live.tell("one")
        await kill.passed.wait()
    async with running(tmp_path, config=config, model=counting(1_000)) as live:
        await live.adapter.until(lambda: live.adapter.shown("c", "reply"))
        tip = await live.tip()
        assert tip is not None
        (standing,) = await live.gateway.agents.metering.standings(tip.key, tip)
        assert standing.spent >= 2 * 100_000  # the call that was killed, and its repetition


async def test_a_cap_that_leaves_less_than_the_longest_answer_shortens_it(tmp_path: Path) -> None:
    """Ten dollars a million tokens: the 8,192 of the longest answer cost $0.08, which is more than the whole cap."""
    config = settings(tmp_path, Caps(daily_usd=0.05), model=USUAL)
    async with running(tmp_path, config=config, model=counting(10_000)) as live:
        answers = []
        while not answers or answers[-1] == "usual here":
            answers.append(await live.ask("hi"))
            assert len(answers) < 10
        rooms = [request.max_tokens or 0 for request in live.model.requests]
        (total,) = await live.store.usage(0.0, "model")
        await live.quiet()
        assert len(rooms) == len(answers) - 1 >= 3
        assert rooms == sorted(rooms, reverse=True)
        assert 2_000 < rooms[0] < 8_192
        assert rooms[-1] >= LEAST_OUTPUT
        assert total.cost_usd <= 0.05
        assert answers[-1].startswith("This bot's daily spend cap of $0.05 does not allow another answer")
        assert "even a short one could cost up to $0.0" in answers[-1]
        assert not any("spend cap stopped this answer" in notice for notice in live.adapter.shown("c", "notice"))


async def test_an_answer_that_a_cap_cut_off_says_so(tmp_path: Path) -> None:
    config = settings(tmp_path, Caps(daily_usd=0.05), model=USUAL)
    model = FakeModel(in_turn(Say(text="Once upon", stop="length", prompt=100)))
    async with running(tmp_path, config=config, model=model) as live:
        assert await live.ask("Tell me a tale.") == "Once upon"
        await live.quiet()
        assert live.adapter.shown("c", "notice") == [SHORTENED.format(key="budgets.daily_usd")]


async def test_a_model_that_thinks_until_the_cap_is_not_asked_again(tmp_path: Path) -> None:
    config = settings(tmp_path, Caps(daily_usd=0.05), model=USUAL)
    async with running(tmp_path, config=config, model=FakeModel(in_turn(Say(stop="length", prompt=100)))) as live:
        assert (await live.ask("Think.")).startswith(
            "This bot's daily spend cap of $0.05 does not allow another answer"
        )
        assert len(live.model.requests) == 1


async def test_a_cheaper_model_gives_a_whole_answer_before_a_cap_shortens_one(tmp_path: Path) -> None:
    caps = Caps(daily_usd=0.05, when_reached="fallback")
    cheap = USUAL.model_copy(update={"name": "cheap", "prices": ModelPrices(input=1, output=5)})
    async with running(tmp_path, config=settings(tmp_path, caps, cheap, model=USUAL), model=counting(10_000)) as live:
        assert await live.ask("one") == "cheap here"
        assert [request.max_tokens for request in live.model.requests] == [8_192]
        assert await live.ask("two") == "cheap here"
        assert LEAST_OUTPUT <= (live.model.requests[-1].max_tokens or 0) < 8_192


async def test_fifty_shortened_turns_at_once_stay_within_a_cap(tmp_path: Path) -> None:
    """Every answer is as long as it may be."""
    config = settings(tmp_path, Caps(daily_usd=0.3), model=USUAL)
    gate = Gate()
    model = FakeModel(lambda spec, request: Say(text="yes", gate=gate, prompt=None))  # the worst case stays counted
    async with running(tmp_path, config=config, model=model) as live:
        events = [await live.tell("hi", chat=f"c{number}") for number in range(50)]
        await gate.until_waiting()
        await eventually(lambda: len(live.gateway.agents.metering._waiting) + gate.waiting == 50)
        gate.open()
        answers = [(await live.answer(event)).text for event in events]
        rooms = [request.max_tokens or 0 for request in model.requests]
        (standing,) = await live.gateway.agents.metering.standings(SessionKey(platform="fake", chat="c"), None)
    assert answers.count("yes") == len(rooms) == 4
    assert rooms[:3] == [8_192] * 3
    assert LEAST_OUTPUT <= rooms[3] < 8_192
    assert 290_000 < standing.spent <= 300_000
