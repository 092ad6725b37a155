"""Providers that fail, prompts that are too long, and the pass that comes before either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.fallback import NO_FALLBACK
from gateway.agent.fitting import NO_WAY_OUT, SWITCHED_OFF, TOO_LARGE_ALONE
from gateway.app.config import Config
from gateway.commands.runner import BROKEN
from gateway.context.engine import ContextEngine
from gateway.context.feedback import COMPRESSING
from gateway.context.policy import CompressionSettings, HygieneRules
from gateway.domain.message import Message, text_of, user
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import (
    ContextOverflow,
    EmptyAnswer,
    OutputCapTooLarge,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)
from tests.emulators.llm import LlmServer
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeModel, Gate, Live, RecordingEngine, Say, config_in, echo, in_turn, running
from tests.support.program import KEY, chatting, write_config

LONG = "a sentence that takes some room in the window " * 40
WINDOW = 32_000  # of the model called "fake"


async def transcript(live: Live) -> list[str]:
    tip = await live.tip()
    return [] if tip is None else [text_of(m) for m in await live.store.transcript(tip)]


async def triggers(live: Live) -> list[str]:
    """Return the triggers of the compactions of the present lineage, oldest first."""
    tip = await live.tip()
    assert tip is not None
    lineage = await live.store.lineage(tip.id)
    return [
        entry.trigger
        for each in lineage
        for entry in await live.store.compactions(each.id)
        if entry.parent_id == each.id
    ]


# -- a provider that fails ---------------------------------------------------------------------

HINTED = [
    ProviderUnavailable("The provider cannot be reached."),
    ProviderRejected("The provider refused the API key. Check model.api_key.", status=401),
    QuotaExceeded("The provider says the account has no credit left.", status=402),
]
FAILURES = [
    *HINTED,
    ProviderUnavailable("The model's answer is garbled. Try again.", malformed=True),
    ProviderRateLimited("The provider asks to slow down. Try again in 9 s.", retry_after=9),
]


def told(failure: ProviderError) -> str:
    """Return the operator's line: another model could answer where one is away for longer."""
    return f"{failure} {NO_FALLBACK}" if failure in HINTED else str(failure)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
async def test_a_failing_provider_gives_one_sentence_and_the_next_message_works(
    tmp_path: Path, failure: ProviderError
) -> None:
    async with running(tmp_path, model=FakeModel(in_turn(failure))) as live:
        event = await live.tell("hello")
        answer = await live.answer(event)
        assert (answer.kind, answer.text) == ("error", told(failure))
        assert await live.ask("and now?") == "echo: and now?"
        assert live.model.spoken() == [("user", "hello"), ("user", "and now?")]
        await live.quiet()
        assert len(live.adapter.sent) == 2


async def test_a_failure_in_the_middle_of_an_answer_keeps_what_was_shown(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(first="Half an answer", error=ProviderUnavailable("The line broke."))))
    async with running(tmp_path, model=model) as live:
        await live.tell("hello")
        assert await live.ask("go on") == "echo: go on"
        assert live.adapter.shown("c", "error") == [f"The line broke. {NO_FALLBACK}"]
        assert model.spoken() == [("user", "hello"), ("assistant", "Half an answer"), ("user", "go on")]


async def test_a_bug_is_not_quoted_to_the_person(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel(in_turn(RuntimeError("secret inner workings")))) as live:
        assert await live.ask("hello") == BROKEN
        assert await live.ask("and now?") == "echo: and now?"


async def test_an_empty_answer_is_asked_for_once_more(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel(in_turn(Say(), Say(text="better")))) as live:
        assert await live.ask("hello") == "better"
        live.model.script = in_turn(Say(), Say())
        assert await live.ask("again") == str(EmptyAnswer())
        assert await live.ask("and now?") == "echo: and now?"


async def test_bad_tool_calls_are_results_the_model_can_read(tmp_path: Path) -> None:
    calls = [("clock", "not json"), ("clock", "[1]"), ("no_such_tool", "{}"), ("clock", '{"timezone": "Mars/Base"}')]
    async with running(tmp_path, model=FakeModel(in_turn(Say(calls=calls), Say(text="sorry")))) as live:
        assert await live.ask("hello") == "sorry"
        results = [text for role, text in live.model.spoken() if role == "tool"]
        assert len(results) == 4
        assert all(text.startswith("Error: ") for text in results)
        assert "not valid JSON" in results[0]
        assert "There is no tool named 'no_such_tool'" in results[2]


# -- prompts that are too long -----------------------------------------------------------------


class Halving(RecordingEngine):
    """Keeps the newer half at every pass."""

    def compress(
        self, messages: Sequence[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        self.heard.append(("compress", len(messages), focus_topic))
        return [user("notes", summary=True), *messages[len(messages) // 2 + 1 :]]


def engine_of(kind: type[RecordingEngine], heard: list[tuple[Any, ...]]) -> Any:
    def make() -> ContextEngine:
        return kind(heard)

    return make


async def filled(live: Live, exchanges: int) -> None:
    script, live.model.script = live.model.script, lambda *_: Say(text=LONG, prompt=100)
    for number in range(exchanges):
        await live.ask(f"{number} {LONG}")
    live.model.requests.clear()
    live.model.script = script


async def test_a_stated_smaller_limit_is_adopted_and_the_turn_goes_on(tmp_path: Path) -> None:
    heard: list[tuple[Any, ...]] = []
    model = FakeModel(in_turn(ContextOverflow("Too long.", limit=20_000)))
    async with running(tmp_path, model=model, engine=engine_of(RecordingEngine, heard)) as live:
        await filled(live, 4)
        assert await live.ask("what now?") == "echo: what now?"
        assert model.specs[-1].context_length == 20_000
        assert await triggers(live) == ["overflow"]
        assert model.spoken() == [("user", "notes on what was said"), ("user", "what now?")]
        assert await live.ask("and later?", chat="elsewhere") == "echo: and later?"
        assert model.specs[-1].context_length == WINDOW, "nobody is condensed for a limit that they have not met"
        assert await live.ask("and then?") == "echo: and then?"
        assert model.specs[-1].context_length == 20_000, "a stated limit is remembered where it was met"


async def test_a_stated_limit_outlives_a_restart_until_the_window_is_known_to_be_another(tmp_path: Path) -> None:
    heard: list[tuple[Any, ...]] = []
    model = FakeModel(in_turn(ContextOverflow("Too long.", limit=20_000)))
    async with running(tmp_path, model=model, engine=engine_of(RecordingEngine, heard)) as live:
        await filled(live, 4)
        await live.ask("what now?")
    model = FakeModel(echo)
    async with running(tmp_path, model=model) as live:
        await live.ask("and after the restart?")
        assert model.specs[-1].context_length == 20_000
        told = await live.ask("/context")
        assert "of 20,000 tokens" in told
        assert (
            f"The model's server reported the size of this window; otherwise I would assume {WINDOW:,} tokens." in told
        )
        await live.ask("and here?", chat="elsewhere")
        assert model.specs[-1].context_length == WINDOW
        assert "server reported" not in await live.ask("/context", chat="elsewhere")
    model = FakeModel(echo)
    larger = config_in(tmp_path, model=ModelSettings(provider="offline", name="fake", context_length=WINDOW + 1_000))
    async with running(tmp_path, model=model, config=larger) as live:
        await live.ask("and in the new one?")
        assert model.specs[-1].context_length == WINDOW + 1_000


async def test_a_window_that_is_stated_about_the_output_costs_one_refused_call(tmp_path: Path) -> None:
    async with LlmServer(context_length=16_000, api_key=KEY) as server:
        entry = {"provider": "anthropic", "name": "claude-sonnet-4-5", "context_length": 64_000}
        write_config(tmp_path, server.url, model=entry)
        for started in ("first", "again"):
            async with chatting(tmp_path) as program:
                for number in range(2):
                    program.send({"id": f"{started}{number}", "text": "hello"})
                    await program.until_answered(f"{started}{number}")
                program.send({"id": started, "text": "/context"})
                [told] = await program.until_answered(started)
                assert (await program.finish())[0] == 0
            assert "of 16,000 tokens" in told["text"]
            assert server.overflows == 1, "the window is known from then on"


async def test_a_limit_per_minute_is_that_of_one_call(tmp_path: Path) -> None:
    refusal = ContextOverflow("Larger than a minute takes.", limit=5_000, lasting=False)
    model = FakeModel(in_turn(refusal))
    shape = CompressionSettings(min_threshold_tokens=0, protect_first_n=0, protect_last_n=2)
    async with running(tmp_path, config=config_in(tmp_path, compression=shape), model=model) as live:
        model.script, script = echo, model.script
        await filled(live, 12)
        model.script = script
        assert await live.ask("what now?") == "echo: what now?"
        assert await triggers(live) == ["overflow"]
        assert sum(len(text_of(message)) for message in model.requests[-1].messages) < 4 * 5_000
        assert model.specs[-1].context_length == WINDOW
        tip = await live.tip()
        assert tip is not None
        assert (await live.gateway.agents.sessions.engines.of(tip)).engine.threshold_tokens == WINDOW // 2


async def test_an_unstated_or_larger_limit_changes_nothing_about_the_window(tmp_path: Path) -> None:
    overflows = [ContextOverflow("Too long."), ContextOverflow("Too long.", limit=900_000)]
    model = FakeModel(in_turn(*overflows))
    async with running(tmp_path, model=model, engine=engine_of(Halving, [])) as live:
        await filled(live, 6)
        assert await live.ask("what now?") == "echo: what now?"
        assert {spec.context_length for spec in model.specs} == {WINDOW}
        assert await triggers(live) == ["overflow", "overflow"]


async def test_after_three_attempts_the_person_is_told_what_to_do(tmp_path: Path) -> None:
    model = FakeModel(lambda *_: Say(error=ContextOverflow("Too long.")))
    async with running(tmp_path, model=model, engine=engine_of(Halving, [])) as live:
        await filled(live, 16)
        assert await live.ask("what now?") == NO_WAY_OUT
        assert len(model.requests) == 4
        assert await triggers(live) == ["overflow"] * 3
        model.script = echo
        assert await live.ask("and now?") == "echo: and now?"
        assert "0 a sentence" in await live.ask("/recall sentence room window 0")


async def test_a_first_message_that_is_too_large_is_not_told_to_compress(tmp_path: Path) -> None:
    model = FakeModel(lambda *_: Say(error=ContextOverflow("Too large.", bulky=True)))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("a whole book") == TOO_LARGE_ALONE


async def test_no_progress_ends_the_attempts_at_once(tmp_path: Path) -> None:
    class Idle(RecordingEngine):
        def compress(self, messages: Sequence[Message], *_: Any, **__: Any) -> list[Message]:
            self.heard.append(("compress", len(messages), None))
            return list(messages)

    heard: list[tuple[Any, ...]] = []
    model = FakeModel(lambda *_: Say(error=ContextOverflow("Too long.")))
    async with running(tmp_path, model=model, engine=engine_of(Idle, heard)) as live:
        await filled(live, 3)
        assert await live.ask("what now?") == NO_WAY_OUT
        assert len(model.requests) == 1
        assert len([told for told in heard if told[0] == "compress"]) == 1
        model.script = echo
        assert await live.ask("and now?") == "echo: and now?"


def vague(count: int) -> Any:
    """Refuses so many times without a reason; reports 9,000 tokens for what it answers."""
    refusals = [ProviderRejected("The provider refused the request.", status=400, unexplained=True)] * count
    return in_turn(Say(text=LONG, prompt=9_000), *refusals)


LARGER_THAN_EVER = "what now? " + "word " * 12_000  # more than half of the window


async def test_a_large_request_that_is_refused_without_a_reason_is_shortened_once(tmp_path: Path) -> None:
    model = FakeModel(vague(1))
    async with running(tmp_path, model=model, engine=engine_of(Halving, [])) as live:
        await filled(live, 4)
        await live.ask("nine thousand")
        assert (await live.ask(LARGER_THAN_EVER)).startswith("echo: what now?")
        assert await triggers(live) == ["overflow"]
        assert {spec.context_length for spec in model.specs} == {WINDOW}, "a guess is not remembered as the window"


async def test_what_is_refused_again_when_it_is_short_is_told_and_not_shortened_for_any_more(tmp_path: Path) -> None:
    model = FakeModel(vague(4))
    async with running(tmp_path, model=model, engine=engine_of(Halving, [])) as live:
        await filled(live, 4)
        await live.ask("nine thousand")
        for _ in range(2):
            assert await live.ask(LARGER_THAN_EVER) == "The provider refused the request."
        assert len(model.requests) == 4
        assert await triggers(live) == ["overflow"]


async def test_a_small_request_that_is_refused_without_a_reason_is_told_at_once(tmp_path: Path) -> None:
    model = FakeModel(vague(1))
    async with running(tmp_path, model=model, engine=engine_of(Halving, [])) as live:
        await filled(live, 4)
        await live.ask("nine thousand")
        assert await live.ask("what now?") == "The provider refused the request."
        assert await triggers(live) == []


async def test_too_much_output_lowers_the_cap_for_this_call_only(tmp_path: Path) -> None:
    model = FakeModel(in_turn(OutputCapTooLarge("Too much.", available=1_000)))
    async with running(tmp_path, model=model, engine=engine_of(RecordingEngine, [])) as live:
        assert await live.ask("hello") == "echo: hello"
        assert [request.max_tokens for request in model.requests] == [None, 936]
        assert {spec.context_length for spec in model.specs} == {WINDOW}
        assert await triggers(live) == []
        await live.ask("again")
        assert model.requests[-1].max_tokens is None


# -- hygiene -----------------------------------------------------------------------------------


def hygienic(folder: Path, **hygiene: Any) -> Config:
    return config_in(folder, hygiene=HygieneRules(**hygiene))


def reporting(tokens: int) -> Any:
    """A model that echoes and reports this prompt size."""

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        return Say(text=echo(spec, request).text, prompt=tokens)

    return script


async def test_hygiene_compacts_before_the_turn_at_85_percent_and_not_below(tmp_path: Path) -> None:
    async with running(tmp_path, engine=engine_of(RecordingEngine, [])) as live:
        live.model.script = in_turn(*[Say(text=LONG, prompt=100)] * 2, then=reporting(27_000))
        for text in ("one", "two", "three", "three and a half"):
            await live.ask(text)
        assert await triggers(live) == []
        live.model.script = reporting(27_195)
        await live.ask("four")
        await live.ask("five")  # 27,195 reported and a few more: over 27,200
        assert await triggers(live) == ["hygiene"]
        assert live.model.spoken()[0] == ("user", "notes on what was said")
        assert live.model.spoken()[-1] == ("user", "five")


async def test_each_compaction_is_one_notice_that_counts_from_the_second_time_on(tmp_path: Path) -> None:
    async with running(
        tmp_path, config=hygienic(tmp_path, max_messages=6), engine=engine_of(RecordingEngine, [])
    ) as live:
        for number in range(8):
            await live.ask(f"{number} {LONG}")
        assert await triggers(live) == ["hygiene"] * 3
        first, second, third = live.adapter.shown("c", "notice")
        assert first == COMPRESSING
        assert "compressed this conversation 2 times" in second
        assert "compressed this conversation 3 times" in third
        assert "/new starts fresh" in third
        assert "compressed this conversation 4 times" in await live.ask("/compress")


async def test_hygiene_fires_at_the_hard_count_of_messages(tmp_path: Path) -> None:
    config = hygienic(tmp_path, max_messages=6)
    async with running(tmp_path, config=config, engine=engine_of(RecordingEngine, [])) as live:
        for number in range(3):
            await live.ask(f"{number} {LONG}")
        assert await triggers(live) == []
        await live.ask("and one more")
        assert await triggers(live) == ["hygiene"]


async def test_hygiene_fires_after_a_switch_to_a_smaller_model(tmp_path: Path) -> None:
    class Windows:
        def context_window(self, model: str, base_url: str | None = None) -> int | None:
            return {"tiny": 4_000}.get(model)

    async with running(tmp_path, engine=engine_of(RecordingEngine, [])) as live:
        live.gateway.agents.metering.models.windows = Windows()
        await filled(live, 5)
        assert "tiny (a window of 4,000 tokens)" in await live.ask("/model tiny")
        assert await live.ask("hello") == "echo: hello"
        assert await triggers(live) == ["hygiene"]
        assert live.model.specs[-1].context_length == 4_000


async def test_a_failing_hygiene_pass_is_told_and_never_blocks_or_fires_again_without_progress(
    tmp_path: Path, clock: ManualClock
) -> None:
    class Failing(RecordingEngine):
        def compress(self, messages: Sequence[Message], *_: Any, **__: Any) -> list[Message]:
            self.heard.append(("compress", len(messages), None))
            raise RuntimeError("out of order")

    heard: list[tuple[Any, ...]] = []
    model = FakeModel(reporting(30_000))
    async with running(tmp_path, model=model, engine=engine_of(Failing, heard), clock=clock) as live:
        for number in range(5):
            assert await live.ask(f"message {number}") == f"echo: message {number}"
            await clock.advance(600.0)  # for so long an engine rests that failed
        notices = live.adapter.shown("c", "notice")
        assert len([text for text in notices if "could not compress" in text]) == len(
            [told for told in heard if told[0] == "compress"]
        )
        assert [told[1] for told in heard if told[0] == "compress"] == [5, 9], "again only after four more"
    async with running(tmp_path, model=FakeModel(reporting(30_000)), engine=engine_of(Failing, heard)) as live:
        await live.ask("after a restart")
        assert len([told for told in heard if told[0] == "compress"]) == 2


async def test_a_hygiene_pass_that_hangs_ends_at_its_deadline(tmp_path: Path, clock: ManualClock) -> None:
    gate = Gate()
    model = FakeModel(reporting(30_000), summary=lambda *_: Say(gate=gate))
    config = config_in(tmp_path, compression=CompressionSettings(threshold=0.8, background=False))
    async with running(tmp_path, clock=clock, model=model, config=config) as live:
        model.script = lambda *_: Say(text=LONG, prompt=100)
        for number in range(12):
            await live.ask(f"{number} {LONG}")
        model.script = in_turn(Say(text="big", prompt=30_000))
        await live.ask("the report is large")
        event = await live.tell("hello")
        await gate.until_waiting()
        assert "compressing" in await live.ask("/status")
        await clock.advance(121)
        assert (await live.answer(event)).text == "echo: hello"
        assert any("it took longer than 120 seconds" in text for text in live.adapter.shown("c", "notice"))
        assert await triggers(live) == []


async def test_nothing_automatic_happens_where_compression_is_off(tmp_path: Path) -> None:
    config = config_in(tmp_path, compression=CompressionSettings(enabled=False))
    async with running(tmp_path, config=config, model=FakeModel(reporting(31_000))) as live:
        for number in range(10):
            await live.ask(f"{number} {LONG}")
        assert await triggers(live) == []
        assert "I only compress this conversation when you send /compress" in await live.ask("/context")
        assert "Compressed:" in await live.ask("/compress")
        live.model.script = lambda *_: Say(error=ContextOverflow("Too long."))
        assert await live.ask("what now?") == SWITCHED_OFF


# -- messages that fit nowhere -----------------------------------------------------------------


async def test_a_message_longer_than_the_window_is_refused_without_a_call(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        event = await live.tell("word " * 200_000)
        answer = await live.answer(event)
        assert answer.kind == "error"
        assert "too long for the model. It has about 200,0" in answer.text
        assert live.model.requests == []
        assert await live.ask("short") == "echo: short"
        assert await transcript(live) == ["short", "echo: short"]


# -- third-party engines -----------------------------------------------------------------------


async def test_an_engines_tools_are_offered_and_routed_and_cannot_shadow_ours(tmp_path: Path) -> None:
    class WithTools(RecordingEngine):
        def get_tool_schemas(self) -> list[dict[str, Any]]:
            parameters = {"type": "object", "properties": {}}
            return [
                {"type": "function", "function": {"name": name, "description": "…", "parameters": parameters}}
                for name in ("peek", "clock", "peek")
            ]

        def handle_tool_call(self, name: str, args: Any, **context: Any) -> str:
            self.heard.append(("tool", name, len(context["messages"])))
            return f'{{"peeked": "{name}"}}'

    heard: list[tuple[Any, ...]] = []
    model = FakeModel(in_turn(Say(calls=[("peek", "{}"), ("clock", "{}")]), Say(text="done")))
    async with running(tmp_path, model=model, engine=engine_of(WithTools, heard)) as live:
        assert await live.ask("hello") == "done"
        offered = [tool["function"]["name"] for tool in model.requests[-1].tools]
        assert len(set(offered)) == len(offered), "a request with two tools of one name is refused"
        assert "peek" in offered
        assert [told for told in heard if told[0] == "tool"] == [("tool", "peek", 2)]
        results = [text for role, text in model.spoken() if role == "tool"]
        assert results[0] == '{"peeked": "peek"}'
        assert "UTC" in results[1]


# -- over real HTTP ----------------------------------------------------------------------------


async def test_a_window_smaller_than_configured_is_learnt_and_the_summariser_is_fed_by_it(tmp_path: Path) -> None:
    async with LlmServer(context_length=8_000, api_key=KEY) as server:
        config = write_config(tmp_path, server.url, model={"context_length": 100_000})
        async with chatting(tmp_path, "--config", str(config)) as program:
            for number in range(30):
                program.send({"id": f"t{number}", "text": f"turn {number}: " + "the locker is in the hall " * 50})
            status, errors = await program.finish()
    assert status == 0, errors
    replies = [row["answers"] for row in program.lines if row["kind"] == "reply"]
    assert replies == [f"t{number}" for number in range(30)]
    assert server.violations == []
    assert server.overflows == 1, "one refusal teaches the window"
    assert not [row for row in program.lines if "made without a model" in row["text"]]
