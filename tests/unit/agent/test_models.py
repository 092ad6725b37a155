"""The model that answers: its choice, its learnt counting, and a prompt that is "too long" for it."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.fitting import MOST_ATTEMPTS, Remedy, remedy
from gateway.agent.models import Calibration, Models
from gateway.agent.windows import LearnedWindows
from gateway.domain.chat import SessionKey
from gateway.domain.usage import UNKNOWN_WINDOW, CanonicalUsage
from gateway.providers.base import ModelSpec, OfferedModel
from gateway.providers.openai import PLUGIN
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import (
    ConfigError,
    ContextOverflow,
    OutputCapTooLarge,
    ProviderUnavailable,
)
from gateway.runtime.structs import replace
from tests.support.fakes import ManualClock
from tests.support.model import FakeModel
from tests.support.store_kit import new_session


class Table:
    """Knows one model."""

    def context_window(self, model: str, base_url: str | None = None) -> int | None:
        return {"small": 4_000}.get(model)

    def cost_usd(self, spec: ModelSpec, usage: CanonicalUsage) -> float | None:
        return 0.25 if spec.name == "main" else None


MAIN = ModelSpec(provider="openai", name="main", context_length=100_000)
HELPER = ModelSpec(provider="openai", name="helper", context_length=16_000)
CONFIGURED = ModelSettings(provider="openai", name="main", context_length=100_000)


def models(*, helper: bool = False, configured: bool = False) -> Models:
    return Models(
        main=replace(MAIN, settings=CONFIGURED) if configured else MAIN,
        providers={},
        plugins={"openai": PLUGIN},
        windows=Table(),
        prices=Table(),
        auxiliary={"compression": HELPER} if helper else {},
    )


# -- calibration -------------------------------------------------------------------------------


@given(st.floats(0.6, 3.9), st.integers(1_000, 500_000))
def test_after_some_calls_a_foreign_tokenizer_is_met_within_a_hundredth(ratio: float, counted: int) -> None:
    calibration = Calibration()
    for _ in range(30):
        calibration.learn("m", reported=int(counted * ratio), counted=counted)
    assert calibration["m"].apply(counted) == pytest.approx(counted * ratio, rel=0.01)
    assert calibration["another"].apply(counted) == counted


@given(st.lists(st.tuples(st.integers(-5, 10**7), st.integers(0, 10**7)), max_size=20), st.integers(0, 10**6))
def test_whatever_is_reported_the_ratio_stays_sane(reports: list[tuple[int, int]], counted: int) -> None:
    calibration = Calibration()
    for reported, own in reports:
        calibration.learn("m", reported=reported, counted=own)
    assert counted // 2 <= calibration["m"].apply(counted) <= counted * 4


# -- models ------------------------------------------------------------------------------------


def test_another_model_has_its_own_window_unless_one_is_configured() -> None:
    assert models().spec("small").context_length == 4_000
    assert models().spec("unheard of").context_length == 100_000
    assert models(configured=True).spec("small").context_length == 100_000
    assert models().spec("main") is MAIN or models().spec("main") == MAIN


HERE, ELSEWHERE = SessionKey(platform="test", chat="here"), SessionKey(platform="test", chat="elsewhere")


def test_a_stated_limit_holds_for_its_model_and_address_where_it_was_met() -> None:
    learned = LearnedWindows()
    assert learned.meet(MAIN, HERE, 50_000).context_length == 50_000
    assert learned.of(MAIN, HERE).context_length == 50_000
    assert learned.of(MAIN, ELSEWHERE) is MAIN
    assert learned.of(replace(MAIN, base_url="http://another"), HERE).context_length == 100_000
    assert learned.of(HELPER, HERE) is HELPER
    # A prompt that is too long there, too, without a stated limit, meets the same one.
    assert learned.meet(MAIN, ELSEWHERE, None).context_length == 50_000


def test_a_stated_limit_never_grows_nor_falls_below_what_fitted() -> None:
    learned = LearnedWindows()
    assert learned.meet(MAIN, HERE, 900_000) is MAIN
    learned.fits(MAIN, 60_000)
    assert learned.meet(MAIN, HERE, 50_000) is MAIN
    assert learned.meet(MAIN, HERE, 70_000).context_length == 70_000
    # The server was started with another window since: what it said of its last one is over, although this one is back.
    learned.reported(MAIN, 40_000)
    learned.reported(replace(MAIN, context_length=40_000), 100_000)
    assert learned.of(MAIN, HERE) is MAIN


def test_the_limit_of_a_session_is_that_of_its_conversation() -> None:
    known, session = models(), new_session("1", key=HERE, model="main")
    known.learned.meet(MAIN, HERE, 50_000)
    assert known.of(session).context_length == 50_000
    assert known.spec("main").context_length == 100_000


def test_a_limit_per_minute_is_met_by_less_output_where_that_is_enough() -> None:
    error = ContextOverflow("x", limit=30_000, lasting=False)
    ask = partial(remedy, error, attempts=0, context_length=100_000, max_tokens=16_000)
    assert ask(prompt_tokens=20_000) == Remedy(action="lower_output", max_tokens=9_936)
    assert ask(prompt_tokens=29_900) == Remedy(action="compact", limit=30_000)


def test_helpers_are_the_purposes_own_model_then_the_live_one() -> None:
    assert models().helpers("compression", MAIN) == [MAIN]
    assert models(helper=True).helpers("compression", MAIN) == [HELPER, MAIN]
    assert models(helper=True).helpers("compression", HELPER) == [HELPER]
    assert models(helper=True).helpers("title", MAIN) == [MAIN]


def test_a_provider_nobody_has_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="anthropic"):
        models().provider(ModelSpec(provider="anthropic", name="m"))


def test_a_ledger_entry_says_what_a_call_cost_or_that_nobody_knows() -> None:
    usage = CanonicalUsage(input_tokens=5)
    assert models().entry(1.0, "turn", MAIN, usage).cost_usd == 0.25
    assert models().entry(1.0, "turn", HELPER, usage).cost_usd is None


async def test_a_window_is_assumed_where_nobody_tells_it() -> None:
    known = models()
    assert not known.is_assumed(known.main)
    chosen = known.spec("unheard-of")
    assert chosen.context_length == MAIN.context_length
    assert known.is_assumed(chosen), "it is another model's"
    assert known.is_assumed(replace(MAIN, context_length=UNKNOWN_WINDOW))

    class Listing(FakeModel):
        async def models(self, spec: ModelSpec) -> list[OfferedModel]:
            return [OfferedModel(name="unheard-of", window=9_000)]

    known.servers = {"openai": Listing()}
    await known.offered(known.main)
    assert not known.is_assumed(known.spec("unheard-of"))


# -- too long ----------------------------------------------------------------------------------

overflows = st.builds(lambda limit: ContextOverflow("x", limit=limit), st.none() | st.integers(-1, 10**6))
too_large = st.builds(lambda room: OutputCapTooLarge("x", available=room), st.none() | st.integers(-1, 10**6))


@given(overflows | too_large, st.integers(0, 10), st.integers(1_000, 10**6), st.none() | st.integers(1, 10**6))
def test_every_remedy_is_bounded_and_makes_sense(
    error: ContextOverflow | OutputCapTooLarge, attempts: int, window: int, cap: int | None
) -> None:
    todo = remedy(error, attempts=attempts, context_length=window, max_tokens=cap)
    if attempts >= MOST_ATTEMPTS:
        assert todo.action == "give_up"
        return
    if todo.limit is not None:
        assert isinstance(error, ContextOverflow)
        assert todo.limit == error.limit
        assert 0 < todo.limit < window
    if todo.action == "lower_output":
        assert isinstance(error, OutputCapTooLarge)
        assert todo.limit is None
        assert todo.max_tokens is not None
        assert todo.max_tokens >= 256
        assert error.available is None or error.available <= 0 or todo.max_tokens < error.available
    if isinstance(error, ContextOverflow):
        assert todo.action == "compact"


def test_an_output_cap_without_a_stated_room_is_halved() -> None:
    error = OutputCapTooLarge("x")
    assert remedy(error, attempts=0, context_length=8_000, max_tokens=4_000).max_tokens == 2_000
    assert remedy(error, attempts=0, context_length=8_000, max_tokens=None).max_tokens == 1_000
    assert remedy(error, attempts=0, context_length=8_000, max_tokens=300).action == "compact"


async def test_the_windows_of_all_configured_models_are_asked_for() -> None:
    asked = {"main": 50_000, "first": 9_000, "second": None}

    class Reporting(FakeModel):
        async def reported_window(self, spec: ModelSpec) -> int | None:
            if spec.name == "away":
                raise ProviderUnavailable("It cannot be reached.")
            return asked[spec.name]

    known = models()
    known.servers = {"openai": Reporting()}
    known.fallbacks = [replace(HELPER, name=name) for name in ("first", "second", "away")]
    await known.learn_windows()
    assert known.main.context_length == 50_000
    assert [spec.context_length for spec in known.fallbacks] == [9_000, 16_000, 16_000]


async def test_a_server_of_ones_own_is_asked_again_now_and_then() -> None:
    windows: list[int | None] = [None, 4_096, 4_096, 32_768]
    asked: list[str] = []

    class Reporting(FakeModel):
        async def reported_window(self, spec: ModelSpec) -> int | None:
            asked.append(spec.name)
            return windows.pop(0)

    known, clock = models(), ManualClock()
    known.clock = clock
    known.servers = {"openai": Reporting()}
    known.main = replace(MAIN, base_url="http://ollama:11434/v1", context_length=UNKNOWN_WINDOW)
    session = new_session("1", model="main")
    await known.learn_windows()
    assert known.is_assumed(known.main)
    await known.know_window(session)  # at once: the server was asked a moment ago
    assert known.of(session).context_length == UNKNOWN_WINDOW
    await clock.advance(30)
    await known.know_window(session)  # the model is loaded by now
    assert known.of(session).context_length == 4_096
    assert not known.is_assumed(known.main)
    known.learned.meet(known.main, session.key, 2_048)
    await clock.advance(300)
    await known.know_window(session)
    assert known.of(session).context_length == 2_048
    await clock.advance(300)
    await known.know_window(session)  # started anew, with another window
    assert known.of(session).context_length == 32_768
    assert len(asked) == 4


async def test_a_server_elsewhere_is_asked_once() -> None:
    class Reporting(FakeModel):
        asked = 0

        async def reported_window(self, spec: ModelSpec) -> int | None:
            self.asked += 1
            return None

    known, clock, server = models(), ManualClock(), Reporting()
    known.clock, known.servers = clock, {"openai": server}
    known.main = replace(MAIN, base_url="https://api.example.com/v1")
    await known.learn_windows()
    await clock.advance(3_000)
    await known.know_window(new_session("1", model="main"))
    assert server.asked == 1
