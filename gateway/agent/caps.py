"""Spend caps: those that are configured, those in force for a call, and what people are told of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final, Literal

from msgspec import Struct
from pydantic import Field

from gateway.domain.chat import SessionKey
from gateway.domain.place import names_of, places
from gateway.domain.session import Session
from gateway.domain.settings import Contradiction, Flag, Section, SpendCap
from gateway.domain.wording import lasting
from gateway.runtime.errors import SpendCapReached
from gateway.store.records import Cap, CapReached

NEAR_MARK: Final = "cap-nearly-reached:"  # of a session that was told so: a cap spans the whole lineage
_WHOSE: Final = {
    "session": ("This conversation's", "budgets.per_session_usd"),
    "person": ("Your daily", "budgets.per_user_daily_usd"),
    "gateway": ("This bot's daily", "budgets.daily_usd"),
    "chat": ("This chat's daily", "daily_usd in chats"),
    "key": ("This key's daily", "the cap of `legato keys add`"),
    "schedule": ("The scheduled prompt's", "reminders.budget_usd"),
    "helper": ("This helper's", "tools.delegate.budget_usd"),
    "heartbeat": ("Today's heartbeat", "heartbeat.daily_usd"),
}

_LOOK: Final = 1 / 20  # of a cap
NEAR: Final = 0.8  # of a cap: then the person is told once
NEARLY_REACHED: Final = "{whose} spend cap of {limit} is nearly used up. {left} is left{until}."

REACHED = (
    "{whose} spend cap of {limit} does not allow another answer: {spent} is spent or set aside, and {this} "
    "could cost up to {amount}. {way_out}, or the operator can raise {key}."
)
UNPRICED = (
    "I do not know what the model {model} costs, so I could not apply the spend cap. Choose another model with "
    "/model, or ask the operator to set model.prices."
)
UNPRICED_AT_START = (
    "{where}.prices: no price is known for {model}, so the caps in budgets cannot be applied; say what it costs in USD "
    "per million tokens, for example {{input: 1, output: 4}} (0 and 0 for a server of your own), or remove the caps"
)


class Caps(Section):
    """`budgets` limits what Legato may spend, in US dollars (docs/operations.md). A day begins at 00:00 UTC. A model
    that is not in the built-in table needs `prices`. Without model.max_output_tokens, an answer under a cap has at most
    a tenth of the window, and at most 8,192 tokens."""

    per_session_usd: SpendCap | None = Field(None, description="for one conversation, however often it is compressed")
    per_user_daily_usd: SpendCap | None = Field(None, description="for one person each day, in all chats on a platform")
    daily_usd: SpendCap | None = Field(None, description="for everyone together, each day")
    when_reached: Literal["stop", "fallback"] = Field(
        "stop",
        description="stop: refuse the message; fallback: a cheaper model from fallback_models answers",
    )
    footer: Flag = Field(False, description="end each answer with its tokens and cost")

    def contradictions(self) -> Iterator[Contradiction]:
        person, everybody = self.per_user_daily_usd, self.daily_usd
        if person is not None and everybody is not None and person > everybody:
            yield (
                ("per_user_daily_usd", "daily_usd"),
                f"({person:g}) must not exceed budgets.daily_usd ({everybody:g}), which all share",
            )

    def __bool__(self) -> bool:
        return (self.per_session_usd, self.per_user_daily_usd, self.daily_usd) != (None, None, None)


def in_force(
    caps: Caps,
    chats: Mapping[str, float],
    key: SessionKey,
    session: Session | None,
    root: str,
    now: float,
    person: str | None = None,
) -> tuple[Cap, ...]:
    """The caps that a call for this session counts against, widest first. `chats`: those of places. `root`: the first
    session of the lineage. `person`: the id of the one who is answered; None: the one that the key names."""
    today, ends = _day(now)
    found: list[Cap] = []
    if caps.daily_usd is not None:
        limit = millionths(caps.daily_usd)
        found.append(Cap(name="gateway", account=f"gateway {today}", limit=limit, resets_at=ends))
    named = (session.places if session else ()) or names_of(key)
    for place in reversed([each for each in places(key.platform, named) if each in chats]):
        limit = millionths(chats[place])
        found.append(Cap(name="chat", account=f"chat {place} {today}", limit=limit, resets_at=ends))
    if caps.per_user_daily_usd is not None:
        limit = millionths(caps.per_user_daily_usd)
        whose = SessionKey(platform=key.platform, chat=person or key.user or key.chat)
        found.append(Cap(name="person", account=f"person {whose} {today}", limit=limit, resets_at=ends))
    if caps.per_session_usd is not None and session is not None:
        found.append(Cap(name="session", account=f"session {root}", limit=millionths(caps.per_session_usd)))
    return tuple(found)


def of_key(cap: tuple[str, float], now: float) -> Cap:
    """Return the cap of a key, as `Source.cap` has it."""
    today, ends = _day(now)
    return Cap(name="key", account=f"key {cap[0]} {today}", limit=millionths(cap[1]), resets_at=ends)


def _day(now: float) -> tuple[str, float]:
    """The day of UTC, and when it ends."""
    day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return f"{day:%Y-%m-%d}", (day + timedelta(days=1)).timestamp()


class Standing(Struct, frozen=True, kw_only=True):
    """The use of a cap: spent or set aside for answers under way, in millionths of a US dollar."""

    cap: Cap
    spent: int

    def is_near(self, another: int) -> bool:
        """Whether the cap is nearly used up, or leaves no room for `another` answer."""
        return self.spent >= NEAR * self.cap.limit or self.cap.limit - self.spent < another

    def until_look(self, another: int) -> int:
        """Return the amount that may be spent before the cap is looked at again."""
        left = self.cap.limit - self.spent - another
        return 0 if self.is_near(another) else min(left, int(self.cap.limit * _LOOK))


class WorstCase(Struct, frozen=True, kw_only=True):
    """The most that a call can cost (`amount`), and the cost of its prompt, in millionths of a US dollar. `output`: how
    many tokens its answer may have; `least`: how many would do."""

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


def millionths(dollars: float) -> int:
    """Return US dollars in whole millionths, rounded up, without the error of floating point."""
    return ceil(round(dollars * 1_000_000, 3))


def written(amount: int) -> str:
    """Return millionths of a US dollar for people: "$1.50", "$0.0042"."""
    places = 2 if amount >= 1_000_000 or amount % 10_000 == 0 else 4
    return f"${amount / 1_000_000:,.{places}f}"


def mark_of(cap: Cap) -> str:
    """Return the mark of a session that was told of a cap; a changed cap is another one."""
    return f"{NEAR_MARK}{cap.account} {cap.limit}"


def nearly(standing: Standing) -> str:
    """Return the sentence about a cap that is nearly used up."""
    cap = standing.cap
    return NEARLY_REACHED.format(
        whose=_WHOSE[cap.name][0],
        limit=written(cap.limit),
        left=written(max(0, cap.limit - standing.spent)),
        until="" if cap.resets_at is None else " until 00:00 UTC",
    )


def refusal(reached: CapReached, worst: WorstCase, now: float) -> SpendCapReached:
    """Return the error of a call that a cap leaves no room for."""
    available = worst.room(reached.cap.limit - reached.spent)
    return SpendCapReached(_sentence(reached, worst, now), available=available, key=_WHOSE[reached.cap.name][1])


def _sentence(reached: CapReached, worst: WorstCase, now: float) -> str:
    cap, amount, shortest = reached.cap, worst.least_amount, worst.least < worst.output
    whose, key = _WHOSE[cap.name]
    if amount > cap.limit:
        cheaper = "" if shortest else ", and so does a lower model.max_output_tokens"
        way_out = f"/compress or /new makes an answer cheaper{cheaper}"
    elif cap.name == "schedule":
        way_out = "It runs again at its next time"
    elif cap.name == "helper":
        way_out = "Hand on a smaller task"
    elif cap.resets_at is None:
        way_out = "/new starts a conversation with a cap of its own"
    else:
        way_out = f"The cap resets in {lasting(cap.resets_at - now)}"
    return REACHED.format(
        whose=whose,
        limit=written(cap.limit),
        spent=written(reached.spent),
        this="even a short one" if shortest else "this one",
        amount=written(amount),
        way_out=way_out,
        key=key,
    )
