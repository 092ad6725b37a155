"""The spend caps: every model call of every purpose goes through here.

Where a cap is configured, a call's worst case is reserved under each cap that applies before the call is sent, and
replaced by its real cost when the answer is there. So no number of turns and processes overruns a cap, as far as the
prompt is counted right: the reservation adds a quarter to our count. Without a cap the store is not asked.

The usage in an answer tells the cost of a call. A call that was refused, or failed before its first event, cost
nothing. A call that was broken off or reported no usage stays at its worst case, and so does a call whose process
died, because the money may have been spent. Attempts that `providers.retry` repeats are one call here, so a bill for
an unanswered attempt goes unseen.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, Final, Literal

import structlog
from pydantic import Field

from gateway.agent.files.view import FileView
from gateway.agent.models import Models
from gateway.domain.chat import SessionKey
from gateway.domain.message import Message
from gateway.domain.place import names_of, places
from gateway.domain.session import Session
from gateway.domain.settings import Contradiction, Flag, Section, SpendCap
from gateway.domain.usage import CanonicalUsage, Purpose
from gateway.domain.wording import lasting
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, Restarted
from gateway.runtime.clock import Clock, Ids
from gateway.runtime.errors import (
    ConfigError,
    ContextOverflow,
    GatewayError,
    OutputCapTooLarge,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    SpendCapReached,
    StoreUnavailable,
    TranscriptionFailed,
    UserError,
)
from gateway.runtime.metrics import Histogram, outcome_of
from gateway.runtime.tokens import TokenCounter
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import Cap, CapReached, Reservation

log = structlog.get_logger(__name__)

_MARGIN: Final = 1.25  # of the prompt's count: a provider may count more than we do
_MOST_ROOTS: Final = 10_000  # sessions whose lineage's root is remembered
LEAST_OUTPUT: Final = 1_024  # tokens of an answer that a cap has shortened; models that think need some for that
_REFUSED: Final = (ProviderRejected, ProviderRateLimited, ContextOverflow, OutputCapTooLarge)

CALLS: Final = Histogram(
    name="model_call_seconds",
    text="How long model calls took, with the attempts that were repeated.",
    labels=("provider", "model", "purpose", "outcome"),
)

NEAR_MARK: Final = "cap-nearly-reached:"  # of a session that was told so: a cap spans the whole lineage
_WHOSE: Final = {
    "session": ("This conversation's", "budgets.per_session_usd"),
    "person": ("Your daily", "budgets.per_user_daily_usd"),
    "gateway": ("This bot's daily", "budgets.daily_usd"),
    "chat": ("This chat's daily", "daily_usd in chats"),
    "schedule": ("This scheduled prompt's", "reminders.budget_usd"),
}

_LOOK: Final = 1 / 20  # of a cap
NEAR: Final = 0.8  # of a cap: then the person is told once
NEARLY_REACHED: Final = "{whose} spend cap of {limit} is nearly used up: {left} is left{until}."

REACHED = (
    "{whose} spend cap of {limit} leaves no room for another answer ({spent} is spent or set aside, and {this} "
    "could cost up to {amount}): {way_out}, or the operator can raise {key}."
)
UNPRICED = (
    "No price is known for the model {model}, so no spend cap could be kept: choose another one with /model, or the "
    "operator can set model.prices."
)
UNPRICED_AT_START = (
    "{where}.prices: no price is known for {model}, so the caps in budgets could not be kept; say what it costs in USD "
    "per million tokens, for example {{input: 1, output: 4}} (0 and 0 for a server of your own), or remove the caps"
)


class Caps(Section):
    """Spend caps in US dollars; a day begins at 00:00 UTC. Before each call to a model, its highest possible cost is
    set aside. Where a cap leaves less, but room for 1,024 tokens, the answer may have as many tokens as there is room
    for. With less room the call is not made, and the person is told. A model without a price in the built-in table
    needs `prices` then. With a cap and without model.max_output_tokens, an answer has at most a tenth of the window,
    and at most 8,192 tokens."""

    per_session_usd: SpendCap | None = Field(None, description="one conversation, however often it is compressed")
    per_user_daily_usd: SpendCap | None = Field(
        None, description="one person (in a shared conversation: the chat), one day"
    )
    daily_usd: SpendCap | None = Field(None, description="everybody together, one day")
    when_reached: Literal["stop", "fallback"] = Field(
        "stop",
        description="a message without room under a cap is refused, or goes to the first of fallback_models that "
        "has room for a whole answer, or to the last of them",
    )
    footer: Flag = Field(False, description="whether each answer ends with its tokens and cost")

    def contradictions(self) -> Iterator[Contradiction]:
        """Nobody can spend more than all."""
        person, everybody = self.per_user_daily_usd, self.daily_usd
        if person is not None and everybody is not None and person > everybody:
            yield (
                ("per_user_daily_usd", "daily_usd"),
                f"({person:g}) must not exceed budgets.daily_usd ({everybody:g}), which all share",
            )

    def __bool__(self) -> bool:
        """Say whether there is any cap."""
        return (self.per_session_usd, self.per_user_daily_usd, self.daily_usd) != (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The use of a cap: spent or set aside for answers under way, in millionths of a US dollar."""

    cap: Cap
    spent: int

    def is_near(self, another: int) -> bool:
        """Say whether the cap is nearly used up, or leaves no room for `another` answer."""
        return self.spent >= NEAR * self.cap.limit or self.cap.limit - self.spent < another

    def until_look(self, another: int) -> int:
        """Return the amount that may be spent before the cap is looked at again."""
        left = self.cap.limit - self.spent - another
        return 0 if self.is_near(another) else min(left, int(self.cap.limit * _LOOK))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worst:
    """The most that a call can cost (`amount`) and its prompt alone, in millionths of a US dollar. `output`: the tokens
    that its answer may have. `least`: those that would do."""

    amount: int
    prompt: int = 0
    output: int = 0
    least: int = 0

    @property
    def least_amount(self) -> int:
        """The most that the call costs with the shortest answer that would do."""
        return (
            self.prompt + ceil((self.amount - self.prompt) * self.least / self.output) if self.output else self.amount
        )

    def room(self, left: int) -> int:
        """The output tokens, fewer than `output`, for which so much money is enough; 0 if those would not do."""
        if not self.least < self.output or self.least_amount > left:
            return 0
        return self.output * (left - self.prompt) // (self.amount - self.prompt)


@dataclass(slots=True, kw_only=True)
class Metering:
    """Calls models within the spend caps; `chats` are those of places. A day begins at 00:00 UTC, the same on every
    host. A person is the user in the conversation's key, else its chat. A session's cap spans its whole lineage. Raises
    ConfigError for a cap and a configured model without a known price."""

    models: Models
    store: Store
    caps: Caps
    chats: Mapping[str, float] = field(default_factory=dict)
    counter: TokenCounter
    clock: Clock
    ids: Ids
    beside: tuple[Cap, ...] = ()  # caps of this use of it
    view: FileView = field(init=False)
    _roots: dict[str, str] = field(default_factory=dict)
    _until_look: dict[str, int] = field(default_factory=dict)  # may be spent here before a cap is looked at again

    def __post_init__(self) -> None:
        self.view = FileView(self.store)
        if self.has_caps:
            self._require_prices()

    @property
    def has_caps(self) -> bool:
        """Say whether some call may have to be refused."""
        return bool(self.caps or self.chats)

    def within(self, *caps: Cap) -> Metering:
        """The same for one use that has caps of its own, too. They hold where the model's price is known."""
        return replace(self, beside=caps)

    def _require_prices(self) -> None:
        configured = {"model": self.models.main}
        configured |= {f"fallback_models[{index}]": spec for index, spec in enumerate(self.models.fallbacks)}
        configured |= {f"chats.{place}.model": spec for place, spec in self.models.of_places.items()}
        configured |= {f"auxiliary.{purpose}": spec for purpose, spec in self.models.auxiliary.items()}
        sample = CanonicalUsage(input_tokens=1, output_tokens=1)
        problems = [
            UNPRICED_AT_START.format(where=where, model=spec.name)
            for where, spec in configured.items()
            if self._price(spec, sample) is None
        ]
        if problems:
            raise ConfigError(problems)

    # -- calling ----------------------------------------------------------------------------

    @asynccontextmanager
    async def call(
        self,
        spec: ModelSpec,
        request: ModelRequest,
        session: Session,
        purpose: Purpose,
        *,
        prompt_tokens: int | None = None,
        least: int | None = None,
    ) -> AsyncIterator[AsyncGenerator[ModelEvent, None]]:
        """Call the model for this session; gives the events of `Provider.stream`. `prompt_tokens`: the request's count
        where it is known. `least`: the output tokens that would do; None: all that the request asks for. Raises
        SpendCapReached, before anything is sent."""
        began, outcome = self.clock.monotonic(), "broken_off"
        try:
            async with aclosing(self._stream(spec, request, session, prompt_tokens, least)) as events:
                yield events
            outcome = "answered"
            self.models.answered(spec)
        except GatewayError as error:
            outcome = outcome_of(error)
            _note_failure(error, spec, session, purpose)
            if isinstance(error, ProviderError):
                self.models.failed(spec, error)
            raise
        finally:
            took = self.clock.monotonic() - began
            CALLS.observe(took, spec.provider, spec.name, purpose, outcome)

    def _stream(
        self,
        spec: ModelSpec,
        request: ModelRequest,
        session: Session,
        prompt_tokens: int | None,
        least: int | None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """Return the call's events, within the caps.

        With a cap, a call without a limit of its own gets the model's `reserved_output`, because its worst case would
        be the whole window. A call that costs nothing needs no room.
        """
        provider = self.models.provider(spec)
        if not self.has_caps and not self.beside:
            return self.view.stream(provider, spec, request, session.key)
        limited = replace(request, max_tokens=request.max_tokens or spec.reserved_output)
        worst = self._worst_case(spec, limited, prompt_tokens, least)
        if not worst.amount:
            return self.view.stream(provider, spec, request, session.key)
        return self._metered(self.view.stream(provider, spec, limited, session.key), spec, session, worst)

    async def _metered(
        self, stream: AsyncGenerator[ModelEvent, None], spec: ModelSpec, session: Session, worst: _Worst
    ) -> AsyncGenerator[ModelEvent, None]:
        reservation = await self._reserve(worst, session)
        begun = False
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    begun = not isinstance(event, Restarted)
                    if not begun:  # the half that broke off may be billed: it stays set aside
                        reservation = await self._reserve(worst, session)
                    if isinstance(event, Completed) and event.usage is not None:
                        await self._settle(reservation, self._price(spec, event.usage))
                    yield event
        except _REFUSED:
            await self._settle(reservation, 0)
            raise
        except ProviderUnavailable as error:
            if not begun and not error.timed_out:
                await self._settle(reservation, 0)
            raise

    @asynccontextmanager
    async def paying(self, session: Session, most: float) -> AsyncIterator[Callable[[float | None], None]]:
        """Set US dollars aside for a purchase beside models: the most that it can cost. Gives a function that takes
        the real cost; None: it stays at the most. A failed purchase costs nothing. Raises SpendCapReached."""
        costs: list[float | None] = []
        if not self.has_caps or not most:
            yield costs.append
            return
        reservation = await self._reserve(_Worst(amount=millionths(most)), session)
        try:
            yield costs.append
        except TranscriptionFailed:
            await self._settle(reservation, 0)
            raise
        if costs and costs[-1] is not None:
            await self._settle(reservation, millionths(costs[-1]))

    # -- caps -------------------------------------------------------------------------------

    async def standings(self, key: SessionKey, session: Session | None) -> list[Standing]:
        """Return the use of each cap that applies there, widest first."""
        caps = await self._in_force(key, session)
        if not caps:
            return []
        spent = await self.store.spent([cap.account for cap in caps])
        return [Standing(cap=cap, spent=used) for cap, used in zip(caps, spent, strict=True)]

    async def warnings(
        self, session: Session, told: Collection[str], *, another: int = 0
    ) -> tuple[list[str], tuple[str, ...]]:
        """Return a sentence for each cap that is nearly used up and of which nothing was `told`, and the session's
        marks with all that is told now. `another`: the most that a short answer more can cost. The store is asked when
        this process may have spent what was left until then, and at least once a twentieth of a cap."""
        caps = {_mark(cap): cap for cap in await self._in_force(session.key, session)}
        if not any(self._until_look.get(cap.account, 0) <= 0 for mark, cap in caps.items() if mark not in told):
            return [], tuple(told)
        if len(self._until_look) >= _MOST_ROOTS:
            self._until_look.clear()
        standings = await self.standings(session.key, session)
        self._until_look |= {each.cap.account: each.until_look(another) for each in standings}
        news = [each for each in standings if each.is_near(another) and _mark(each.cap) not in told]
        others = [mark for mark in told if mark in caps or not mark.startswith(NEAR_MARK)]
        return [_nearly(each) for each in news], (*others, *(_mark(each.cap) for each in news))

    async def _in_force(self, key: SessionKey, session: Session | None) -> tuple[Cap, ...]:
        caps: list[Cap] = []
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
        ends, today = midnight.timestamp(), f"{now:%Y-%m-%d}"
        if self.caps.daily_usd is not None:
            limit = millionths(self.caps.daily_usd)
            caps.append(Cap(name="gateway", account=f"gateway {today}", limit=limit, resets_at=ends))
        named = (session.places if session else ()) or names_of(key)
        for place in reversed([each for each in places(key.platform, named) if each in self.chats]):
            limit = millionths(self.chats[place])
            caps.append(Cap(name="chat", account=f"chat {place} {today}", limit=limit, resets_at=ends))
        if self.caps.per_user_daily_usd is not None:
            limit = millionths(self.caps.per_user_daily_usd)
            person = SessionKey(platform=key.platform, chat=key.user or key.chat)
            caps.append(Cap(name="person", account=f"person {person} {today}", limit=limit, resets_at=ends))
        if self.caps.per_session_usd is not None and session is not None:
            limit = millionths(self.caps.per_session_usd)
            caps.append(Cap(name="session", account=f"session {await self._root(session)}", limit=limit))
        return tuple(caps)

    async def _root(self, session: Session) -> str:
        """Return the first session of the lineage; the store is asked once for each continuation."""
        if session.parent_id is None:
            return session.id
        root = self._roots.get(session.id)
        if root is None:
            root = (await self.store.lineage(session.id))[0].id
            if len(self._roots) >= _MOST_ROOTS:
                self._roots.clear()
            self._roots[session.id] = root
        return root

    # -- reserving --------------------------------------------------------------------------

    async def _reserve(self, worst: _Worst, session: Session) -> Reservation:
        """Raises SpendCapReached. While the store cannot be written, the call waits."""
        caps = (*await self._in_force(session.key, session), *self.beside)
        reservation = Reservation(id=self.ids.new("r"), amount=worst.amount, caps=caps)
        reached = await insist(lambda: self.store.reserve(reservation), clock=self.clock, what="reserve")
        if reached is not None:
            raise _refusal(reached, worst, self.clock.now())
        return reservation

    async def _settle(self, reservation: Reservation, cost: int | None) -> None:
        if cost is None:
            return
        for cap in reservation.caps:
            if cap.account in self._until_look:
                self._until_look[cap.account] -= cost
        try:
            await self.store.settle(reservation, cost)
        except StoreUnavailable as error:  # it stays at its worst case, and the answer is kept
            log.warning("spending_not_settled", reservation=reservation.id, error=str(error))

    def _worst_case(
        self, spec: ModelSpec, request: ModelRequest, prompt_tokens: int | None, least: int | None
    ) -> _Worst:
        """Raises UserError for a model without a known price, which somebody chose and nobody configured."""
        counted = self.count(request.messages, request.tools) if prompt_tokens is None else prompt_tokens
        prompt, output = ceil(_MARGIN * counted), request.max_tokens or 0
        amount = self._dearest(spec, prompt, output)
        if amount is None and not self.has_caps:
            return _Worst(amount=0)
        if amount is None:
            raise UserError(UNPRICED.format(model=spec.name))
        alone = self._dearest(spec, prompt, 0) or 0
        return _Worst(amount=amount, prompt=alone, output=output, least=output if least is None else min(least, output))

    def _dearest(self, spec: ModelSpec, prompt: int, output: int) -> int | None:
        plain = self._price(spec, CanonicalUsage(input_tokens=prompt, output_tokens=output))
        stored = self._price(spec, CanonicalUsage(cache_write_tokens=prompt, output_tokens=output))
        return None if plain is None else max(plain, stored or 0)

    def short_answer(self, spec: ModelSpec, prompt_tokens: int) -> int:
        """Return the most that an answer of the fewest tokens that do can cost, in millionths of a US dollar."""
        return self._dearest(spec, ceil(_MARGIN * prompt_tokens), min(LEAST_OUTPUT, spec.reserved_output)) or 0

    def count(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> int:
        """Return our own count of a request, in tokens."""
        return sum(map(self.counter.message, messages)) + self.counter.schemas(tools)

    def _price(self, spec: ModelSpec, usage: CanonicalUsage) -> int | None:
        cost = self.models.prices.cost_usd(spec.provider, spec.name, usage)
        return None if cost is None else millionths(cost)

    def note(self) -> str | None:
        """Return the caps and their effect on calls in one line; None if there is none."""
        named = [
            (self.caps.per_session_usd, "a conversation"),
            (self.caps.per_user_daily_usd, "a person and day"),
            (self.caps.daily_usd, "a day in all"),
        ]
        if not self.has_caps:
            return None
        named += [(cap, f"a day in {place}") for place, cap in self.chats.items()]
        listed = ", ".join(f"{written(millionths(cap))} {what}" for cap, what in named if cap is not None)
        most = self.models.main.reserved_output
        return f"{listed}; days begin at 00:00 UTC; answers that cost anything have at most {most:,} tokens"


def _note_failure(error: GatewayError, spec: ModelSpec, session: Session, purpose: Purpose) -> None:
    """Tell the operator of a call that failed. A prompt that is too long is mended by the caller."""
    if isinstance(error, ProviderError) and not isinstance(error, ContextOverflow | OutputCapTooLarge):
        log.warning(
            "model_call_failed",
            provider=spec.provider,
            model=spec.name,
            purpose=purpose,
            status=error.status,
            cause=str(error),
            session=session.id,
        )


def millionths(dollars: float) -> int:
    """Return US dollars in whole millionths, rounded up, without the error of floating point."""
    return ceil(round(dollars * 1_000_000, 3))


def written(amount: int) -> str:
    """Return millionths of a US dollar for people: "$1.50", "$0.0042"."""
    places = 2 if amount >= 1_000_000 or amount % 10_000 == 0 else 4
    return f"${amount / 1_000_000:,.{places}f}"


def _mark(cap: Cap) -> str:
    """The mark of a session that was told of a cap; a changed cap is another one."""
    return f"{NEAR_MARK}{cap.account} {cap.limit}"


def _nearly(standing: Standing) -> str:
    cap = standing.cap
    return NEARLY_REACHED.format(
        whose=_WHOSE[cap.name][0],
        limit=written(cap.limit),
        left=written(max(0, cap.limit - standing.spent)),
        until="" if cap.resets_at is None else " until 00:00 UTC",
    )


def _refusal(reached: CapReached, worst: _Worst, now: float) -> SpendCapReached:
    available = worst.room(reached.cap.limit - reached.spent)
    return SpendCapReached(_sentence(reached, worst, now), available=available, key=_WHOSE[reached.cap.name][1])


def _sentence(reached: CapReached, worst: _Worst, now: float) -> str:
    cap, amount, shortest = reached.cap, worst.least_amount, worst.least < worst.output
    whose, key = _WHOSE[cap.name]
    if amount > cap.limit:
        cheaper = "" if shortest else ", and so does a lower model.max_output_tokens"
        way_out = f"/compress or /new makes an answer cheaper{cheaper}"
    elif cap.name == "schedule":
        way_out = "it runs again at its next time"
    elif cap.resets_at is None:
        way_out = "/new starts a conversation with a cap of its own"
    else:
        way_out = f"it starts anew in {lasting(cap.resets_at - now)}"
    return REACHED.format(
        whose=whose,
        limit=written(cap.limit),
        spent=written(reached.spent),
        this="even a short one" if shortest else "this one",
        amount=written(amount),
        way_out=way_out,
        key=key,
    )
