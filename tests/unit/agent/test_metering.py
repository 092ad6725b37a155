"""Spend caps: what is reserved before a call, what is settled after it, and what a person is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import pytest

from gateway.agent.caps import Caps, millionths, written
from gateway.agent.metering import Metering
from gateway.agent.models import Calibration, Models
from gateway.domain.chat import SessionKey
from gateway.domain.message import user
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, TextDelta
from gateway.providers.openai import PLUGIN
from gateway.runtime.errors import (
    ConfigError,
    ContextOverflow,
    OutputCapTooLarge,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    SpendCapReached,
    StoreUnavailable,
    UserError,
)
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import Store
from gateway.store.records import Cap, CapReached, Reservation
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.waiting import eventually

NOON = 1_700_049_600.0  # 2023-11-15 12:00 UTC
SPEC = ModelSpec(provider="openai", name="known", context_length=100_000, max_output_tokens=1_025)
REQUEST = ModelRequest(messages=[user("hello")], prompt_tokens=1_000)
USED = CanonicalUsage(input_tokens=500, output_tokens=100)
WORST = 3_300  # millionths: 1,000 prompt tokens and a quarter more, and 1,025 of output


class Table:
    """A dollar per million tokens in, two out, and for what is written to a cache."""

    def context_window(self, model: str, base_url: str | None = None) -> int | None:
        return None

    def cost_usd(self, spec: ModelSpec, usage: CanonicalUsage) -> float | None:
        if spec.name not in ("known", "free"):
            return None
        price = (usage.input_tokens + 2 * usage.output_tokens + 1 * usage.cache_write_tokens) / 1_000_000
        return price if spec.name == "known" else 0.0


class Accounts:
    """The steps of the store that metering takes, in memory. `trouble` is raised by the next ones."""

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}
        self.open: dict[str, Reservation] = {}
        self.trouble: list[Exception] = []
        self.lineages = 0

    def _stumble(self) -> None:
        if self.trouble:
            raise self.trouble.pop(0)

    async def reserve(self, reservation: Reservation) -> CapReached | None:
        self._stumble()
        for cap in reservation.caps:
            if self.sums.get(cap.account, 0) + reservation.amount > cap.limit:
                return CapReached(cap=cap, spent=self.sums.get(cap.account, 0))
        for cap in reservation.caps:
            self.sums[cap.account] = self.sums.get(cap.account, 0) + reservation.amount
        self.open[reservation.id] = reservation
        return None

    async def settle(self, reservation: Reservation, cost: int) -> None:
        self._stumble()
        for cap in self.open.pop(reservation.id).caps:
            self.sums[cap.account] += cost - reservation.amount

    async def spent(self, accounts: Sequence[str]) -> list[int]:
        return [self.sums.get(account, 0) for account in accounts]

    async def lineage(self, session_id: str) -> list[Session]:
        self.lineages += 1
        return [session("root"), session(session_id, parent_id="root")]


class Script:
    """A provider that yields, then raises what stands at the end of its script."""

    name = "openai"

    def __init__(self, *events: ModelEvent | Exception) -> None:
        self.events = events
        self.requests: list[ModelRequest] = []

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event

    async def aclose(self) -> None:
        """Nothing is open."""


ANSWER = Completed(text="hi", usage=USED)


def session(number: str, **changes: Any) -> Session:
    """A session in a group where everyone has a conversation of their own."""
    key = SessionKey(platform="test", chat="group", user="7")
    made = Session(
        id=number, key=key, chat_type="group", parent_id=None, started_at=0.0, model="known", system_prompt=""
    )
    return replace(made, **changes)


def metering(
    store: Any, provider: Script, *, clock: ManualClock | None = None, main: ModelSpec = SPEC, **caps: float
) -> Metering:
    """One with these caps."""
    models = Models(
        main=main, providers={"openai": provider}, plugins={"openai": PLUGIN}, windows=Table(), prices=Table()
    )
    models.calibration.learn(main.name, reported=1_000, counted=1_000)
    return Metering(
        models=models,
        store=cast(Store, store),
        caps=Caps(**caps),
        counter=TokenCounter(),
        clock=clock or ManualClock(NOON),
        ids=SequentialIds(),
    )


async def call(
    over: Metering, *, spec: ModelSpec = SPEC, of: Session | None = None, least: int | None = None
) -> list[ModelEvent]:
    """One call of a thousand prompt tokens, read to its end."""
    of = of or session("s1")
    async with over.call(spec, REQUEST, of, "turn", [].append, least=least) as made:
        return [event async for event in made.events]


async def test_without_caps_the_store_is_never_asked_and_the_request_is_as_it_was() -> None:
    provider = Script(ANSWER)
    assert await call(metering(None, provider)) == [ANSWER]
    assert provider.requests == [REQUEST]
    assert await metering(None, provider).standings(session("s").key, None) == []


async def test_a_call_is_settled_at_what_it_cost_under_every_cap() -> None:
    store = Accounts()
    over = metering(store, Script(TextDelta(text="hi"), ANSWER), per_session_usd=1, per_user_daily_usd=2, daily_usd=3)
    assert len(await call(over)) == 2
    assert store.sums == {
        "gateway 2023-11-15": 700,
        "person test/chat=7 2023-11-15": 700,
        "session s1": 700,
    }
    standings = await over.standings(session("s1").key, session("s1"))
    assert [(each.cap.name, each.cap.limit, each.spent) for each in standings] == [
        ("gateway", 3_000_000, 700),
        ("person", 2_000_000, 700),
        ("session", 1_000_000, 700),
    ]


async def test_the_worst_case_is_reserved_while_the_model_works() -> None:
    store = Accounts()
    over = metering(store, Script(TextDelta(text="h"), ANSWER), daily_usd=1)
    async with over.call(SPEC, REQUEST, session("s1"), "turn", [].append) as made:
        await anext(made.events)
        assert store.sums == {"gateway 2023-11-15": WORST}


async def test_a_call_without_a_limit_of_its_own_gets_one() -> None:
    provider = Script(ANSWER)
    over = metering(Accounts(), provider, daily_usd=1)
    await call(over)
    await call(over, spec=replace(SPEC, max_output_tokens=None))
    assert [request.max_tokens for request in provider.requests] == [1_025, 8_192]


@pytest.mark.parametrize(
    ("cap", "whose", "way_out"),
    [
        ("per_session_usd", "This conversation's", "/new starts a conversation with a cap of its own"),
        ("per_user_daily_usd", "Your daily", "The cap resets in 12 h"),
        ("daily_usd", "This bot's daily", "The cap resets in 12 h"),
    ],
)
async def test_a_refused_call_is_not_made_and_the_sentence_says_all(cap: str, whose: str, way_out: str) -> None:
    provider = Script(Completed(text="no report"))
    over = metering(Accounts(), provider, **{cap: 0.005})
    await call(over)
    with pytest.raises(SpendCapReached) as caught:
        await call(over)
    assert str(caught.value) == (
        f"{whose} spend cap of $0.0050 does not allow another answer: $0.0033 is spent or set aside, and this one "
        f"could cost up to $0.0033. {way_out}, or the operator can raise budgets.{cap}."
    )
    assert len(provider.requests) == 1


async def test_a_call_that_no_cap_can_hold_asks_for_less() -> None:
    with pytest.raises(SpendCapReached, match="cheaper, and so does a lower model"):
        await call(metering(Accounts(), Script(ANSWER), daily_usd=0.003))


async def test_a_call_that_may_be_shorter_is_told_for_how_much_there_is_room() -> None:
    """The prompt is worth 1,250 millionths, and a token of the answer 2."""
    provider = Script(Completed(text="no report"))
    over = metering(Accounts(), provider, daily_usd=0.003)
    with pytest.raises(SpendCapReached, match=r"even a short one could cost up to \$0.0033") as caught:
        await call(over, least=1_024)
    assert (caught.value.available, caught.value.key) == (0, "budgets.daily_usd")
    with pytest.raises(SpendCapReached) as caught:
        await call(over, least=500)
    assert caught.value.available == 875
    assert provider.requests == []
    await call(over, spec=replace(SPEC, max_output_tokens=875), least=500)
    with pytest.raises(SpendCapReached) as caught:
        await call(over, least=1)
    assert caught.value.available == 0


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 2.5])
async def test_a_server_that_counts_otherwise_spends_no_more_than_was_set_aside(factor: float) -> None:
    """Its first call, of which nobody knows how it counts, and the later ones."""
    store, counted = Accounts(), 10_000
    bill = CanonicalUsage(input_tokens=round(counted * factor), output_tokens=1_025)
    over = metering(store, Script(Completed(text="h", usage=bill)), daily_usd=1)
    over.models.calibration = Calibration()
    for _ in range(5):
        expected = over.models.calibration[SPEC.name].apply(counted)
        worst = over._worst_case(SPEC, replace(REQUEST, max_tokens=1_025, prompt_tokens=expected), None).amount
        cost = over._price(SPEC, bill)
        assert cost is not None
        assert worst >= cost
        over.models.calibration.learn(SPEC.name, reported=bill.prompt_tokens, counted=counted)


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ([ProviderRejected("no")], 0),
        ([ProviderRateLimited("later")], 0),
        ([ContextOverflow("long")], 0),
        ([OutputCapTooLarge("long")], 0),
        ([ProviderUnavailable("refused")], 0),
        ([ProviderUnavailable("nobody is there", timed_out=True)], 0),
        ([ProviderUnavailable("no answer in time", timed_out=True, billable=True)], WORST),
        ([TextDelta(text="h"), ProviderUnavailable("cut")], WORST),
    ],
)
async def test_what_a_failed_call_cost(script: list[ModelEvent | Exception], left: int) -> None:
    store = Accounts()
    with pytest.raises(ProviderError):
        await call(metering(store, Script(*script), daily_usd=1))
    assert store.sums == {"gateway 2023-11-15": left}


async def test_a_call_that_is_broken_off_or_not_reported_stays_at_its_worst_case() -> None:
    store = Accounts()
    over = metering(store, Script(TextDelta(text="h"), Completed(text="h")), daily_usd=1)
    async with over.call(SPEC, REQUEST, session("s1"), "turn", [].append) as made:
        await anext(made.events)
    assert store.sums == {"gateway 2023-11-15": WORST}
    await call(over)
    assert store.sums == {"gateway 2023-11-15": 2 * WORST}


async def test_a_request_nobody_counted_is_counted() -> None:
    store = Accounts()
    over = metering(store, Script(Completed(text="no report")), daily_usd=1)
    async with over.call(
        SPEC, replace(REQUEST, max_tokens=10, prompt_tokens=0), session("s1"), "turn", [].append
    ) as made:
        assert len([event async for event in made.events]) == 1
    assert 20 < store.sums["gateway 2023-11-15"] < 60


async def test_the_next_day_is_another_account() -> None:
    store, clock = Accounts(), ManualClock(NOON)
    over = metering(store, Script(Completed(text="no report")), clock=clock, daily_usd=0.005)
    await call(over)
    with pytest.raises(SpendCapReached):
        await call(over)
    await clock.advance(12 * 3_600)
    await call(over)
    assert list(store.sums) == ["gateway 2023-11-15", "gateway 2023-11-16"]


async def test_a_lineage_shares_one_cap_and_is_looked_up_once() -> None:
    store = Accounts()
    over = metering(store, Script(ANSWER), per_session_usd=1)
    for number in ("root", "child", "child", "grandchild"):
        await call(over, of=session(number, parent_id=None if number == "root" else "x"))
    assert store.sums == {"session root": 4 * 700}
    assert store.lineages == 2


async def test_a_free_model_needs_no_room() -> None:
    store, provider = Accounts(), Script(ANSWER)
    free = replace(SPEC, name="free", max_output_tokens=None)
    assert await call(metering(store, provider, daily_usd=0.000001), spec=free) == [ANSWER]
    assert store.sums == {}
    assert provider.requests == [REQUEST]


async def test_a_model_without_a_price_is_refused_where_there_is_a_cap() -> None:
    unknown, provider = replace(SPEC, name="new"), Script(ANSWER)
    with pytest.raises(UserError, match="I do not know what the model new costs"):
        await call(metering(Accounts(), provider, daily_usd=1), spec=unknown)
    assert provider.requests == []
    assert await call(metering(None, provider), spec=unknown) == [ANSWER]


def test_a_configured_model_without_a_price_is_refused_at_the_start() -> None:
    unknown = replace(SPEC, name="new")
    metering(None, Script(), main=unknown)
    metering(None, Script(), daily_usd=1)
    with pytest.raises(ConfigError, match=r"^model.prices: no price is known for new, .*\{input: 1, output: 4\}"):
        metering(None, Script(), main=unknown, daily_usd=1)


async def test_a_store_that_cannot_be_written_delays_a_call() -> None:
    store, clock = Accounts(), ManualClock(NOON)
    store.trouble = [StoreUnavailable("full")]
    waiting = asyncio.create_task(call(metering(store, Script(ANSWER), clock=clock, daily_usd=1)))
    await clock.advance(0.4)
    assert not waiting.done()
    await clock.advance(0.2)
    assert await waiting == [ANSWER]
    assert store.sums == {"gateway 2023-11-15": 700}


async def test_an_answer_is_not_lost_because_its_cost_cannot_be_stored() -> None:
    store = Accounts()
    over = metering(store, Script(TextDelta(text="h"), ANSWER), daily_usd=1)
    async with over.call(SPEC, REQUEST, session("s1"), "turn", [].append) as made:
        await anext(made.events)
        store.trouble = [StoreUnavailable("full")]
        assert await anext(made.events) == ANSWER
    assert store.sums == {"gateway 2023-11-15": WORST}


def test_the_operator_reads_the_caps_in_one_line() -> None:
    assert metering(None, Script()).note() is None
    assert metering(None, Script(), per_session_usd=0.5, daily_usd=10).note() == (
        "$0.50 a conversation, $10.00 a day in all; days begin at 00:00 UTC; "
        "answers that cost anything have at most 1,025 tokens"
    )


@pytest.mark.parametrize(
    ("dollars", "whole"), [(0.1 + 0.2, 300_000), (0.0, 0), (1e-9, 1), (0.0000011, 2), (12.345678, 12_345_678)]
)
def test_sums_are_whole_millionths_rounded_up(dollars: float, whole: int) -> None:
    assert millionths(dollars) == whole


def test_sums_as_people_read_them() -> None:
    assert [written(sum_) for sum_ in (0, 4_200, 50_000, 1_234_567, 2_000_000_000)] == [
        "$0.00",
        "$0.0042",
        "$0.05",
        "$1.23",
        "$2,000.00",
    ]


async def test_a_cap_is_told_of_once_however_the_next_answers_price_moves() -> None:
    store = Accounts()
    over, told = metering(store, Script(ANSWER), daily_usd=0.01), tuple[str, ...]()
    store.sums["gateway 2023-11-15"] = 5_000
    news, told = await over.warnings(session("s1"), told, another=6_000)
    assert news == ["This bot's daily spend cap of $0.01 is nearly used up. $0.0050 is left until 00:00 UTC."]
    for another in (0, 6_000):  # the conversation is compressed, and grows again
        await call(over)
        news, told = await over.warnings(session("s1"), told, another=another)
        assert news == []
    over.caps = Caps(daily_usd=0.02)
    store.sums["gateway 2023-11-15"] = 19_000
    news, told = await over.warnings(session("s1"), told)
    assert len(news) == 1, "a raised cap is another one"


async def test_a_cap_is_looked_at_before_it_has_no_room_for_another_answer() -> None:
    store = Accounts()
    over = metering(store, Script(ANSWER), daily_usd=0.1)
    store.sums["gateway 2023-11-15"] = 50_000
    assert await over.warnings(session("s1"), (), another=49_500) == ([], ())
    await call(over)  # for 700, which is less than a twentieth
    news, _ = await over.warnings(session("s1"), (), another=49_500)
    assert len(news) == 1


async def test_everybody_is_told_of_a_cap_that_all_share() -> None:
    store = Accounts()
    over = metering(store, Script(ANSWER), daily_usd=0.01)
    store.sums["gateway 2023-11-15"] = 9_000
    for name in ("s1", "s2"):
        news, _ = await over.warnings(session(name), ())
        assert len(news) == 1


async def test_a_persons_day_is_theirs_wherever_they_talk() -> None:
    store = Accounts()
    over = metering(store, Script(ANSWER), per_user_daily_usd=0.005)
    ada = over.answering("ada")
    threads = [replace(session(f"s{number}"), key=SessionKey(platform="test", chat=f"t{number}")) for number in (1, 2)]
    await call(ada, of=threads[0])
    assert store.sums == {"person test/chat=ada 2023-11-15": 700}
    await call(ada, of=threads[1])
    await call(ada, of=threads[1])
    with pytest.raises(SpendCapReached, match=r"Your daily spend cap of \$0\.0050"):
        await call(ada, of=threads[0])
    await call(over.answering("bob"), of=threads[0])
    assert [each.spent for each in await ada.standings(threads[1].key, threads[1])] == [2_100]


async def test_a_use_of_its_own_knows_what_was_learned_of_models() -> None:
    over = metering(Accounts(), Script(ANSWER), per_user_daily_usd=1)
    assert over.within(Cap(name="schedule", account="a", limit=1)).view is over.view
    assert over.answering("ada").view is over.view


class Slow(Script):
    """Answers when `gate` is open; the first answers of a crowd do not wait for the last."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: list[asyncio.Event] = []

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        gate = asyncio.Event()
        self.gates.append(gate)
        yield TextDelta(text="h")
        await gate.wait()
        yield ANSWER


async def test_a_crowd_under_a_cap_waits_for_money_that_is_only_set_aside() -> None:
    """Thirty calls of 700 fit, though only seven of their worst cases do."""
    provider = Slow()
    over = metering(Accounts(), provider, daily_usd=0.024)
    calls = [asyncio.create_task(call(over)) for _ in range(30)]
    for _ in range(30):
        await eventually(lambda: any(not gate.is_set() for gate in provider.gates))
        next(gate for gate in provider.gates if not gate.is_set()).set()
    assert [len(await each) for each in calls] == [2] * 30


async def test_it_waits_no_longer_than_a_minute_and_not_at_all_for_money_that_is_spent() -> None:
    provider, clock = Slow(), ManualClock(NOON)
    over = metering(Accounts(), provider, clock=clock, daily_usd=0.0039)
    first = asyncio.create_task(call(over))
    await eventually(lambda: len(provider.gates) == 1)
    second = asyncio.create_task(call(over))
    await clock.until_pending(1)
    await clock.advance(60)
    with pytest.raises(SpendCapReached):
        await second
    provider.gates[0].set()
    await first
    with pytest.raises(SpendCapReached):
        await call(over)  # 700 are spent, and nothing runs: 3,300 more never fit
    assert len(provider.gates) == 1


async def test_who_gives_up_waiting_holds_up_nobody_behind_them() -> None:
    provider = Slow()
    over = metering(Accounts(), provider, daily_usd=0.0041)
    first, second, third = (asyncio.create_task(call(over)) for _ in range(3))
    await eventually(lambda: len(over._waiting) == 2)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    provider.gates[0].set()
    await eventually(lambda: len(provider.gates) == 2)
    provider.gates[1].set()
    assert len(await first) == len(await third) == 2
