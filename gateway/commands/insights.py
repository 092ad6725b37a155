"""/insights: what the last days cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Final

from gateway.agent.caps import written
from gateway.commands.base import CommandContext, command
from gateway.commands.status import total_line
from gateway.domain.chat import SessionKey
from gateway.domain.place import person_of
from gateway.domain.usage import UsageTotal
from gateway.domain.wording import counted
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.store.port import Store

_DAY: Final = 86_400.0
_DEFAULT_DAYS: Final = 7
_MOST_DAYS: Final = 365
_BAR: Final = 10  # characters
_ROWS: Final = 6  # of a table; a telephone shows no more without scrolling
_LABEL: Final = 24  # characters
_LOOKED_UP: Final = 500  # conversations whose person is looked up


@command(
    "insights [days]",
    "About",
    "show what the last days cost",
    bypass=True,
    audience="person",
    elsewhere=("stats", "statistics"),
)
async def insights(ctx: CommandContext) -> str:
    """Add up the last days by model and purpose: of this conversation or, for an admin in a private chat, of
    everybody."""
    days = _days(ctx.argument)
    everybody = ctx.people.pairing.access.sees_details(ctx.inbound.source)
    read = partial(ctx.store.usage, ctx.clock.now() - days * _DAY, key=None if everybody else ctx.key)
    models = await read("model")
    if not models:
        return f"I used no model in the last {counted(days, 'day')}."
    whose = "everybody" if everybody else "this conversation"
    lines = [f"Last {counted(days, 'day')}, {whose}: {total_line(models)}", *_table("model", models)]
    lines += _table("purpose", await read("purpose"))
    if everybody:
        lines += _table("person", await _by_person(ctx.store, await read("key")))
        lines += _table("platform", await read("platform"))
    return "\n".join(lines)


def _days(argument: str) -> int:
    if not argument:
        return _DEFAULT_DAYS
    if not argument.isdecimal() or len(argument) > len(str(_MOST_DAYS)) or not 1 <= int(argument) <= _MOST_DAYS:
        raise UserError(f"Say how many days I should look back, from 1 to {_MOST_DAYS}, for example: /insights 30")
    return int(argument)


async def _by_person(store: Store, totals: Sequence[UsageTotal]) -> list[UsageTotal]:
    """Totals by conversation as totals by person, who is named as /whoami does. Those of a conversation that several
    share are its own. Of very many conversations, the cheapest go by their chat."""
    merged: dict[str, UsageTotal] = {}
    for number, total in enumerate(totals):
        name = await _person(store if number < _LOOKED_UP else None, total.label)
        known = merged.get(name)
        merged[name] = replace(total, label=name) if known is None else known + total
    return sorted(merged.values(), key=lambda total: -total.cost_usd)


async def _person(store: Store | None, label: str) -> str:
    try:
        key = SessionKey.parse(label)
    except ValueError:
        return "unknown"
    session = await store.tip(key) if store is not None and not key.user else None
    if session is None:
        return f"{key.platform}:{key.user or key.chat}"
    if session.chat_type != "direct":
        return f"{key.platform}:{key.chat} (shared)"
    return f"{key.platform}:{person_of(key, session.places)}"


def _table(what: str, totals: Sequence[UsageTotal]) -> list[str]:
    """A bar for each label: its share of the dollars, or of the tokens where nothing cost anything."""
    weigh: Callable[[UsageTotal], float] = lambda total: total.cost_usd  # noqa: E731
    if not any(map(weigh, totals)):
        weigh = lambda total: total.usage.total_tokens  # noqa: E731
    whole = sum(map(weigh, totals)) or 1.0
    ranked = sorted(totals, key=weigh, reverse=True)
    lines = [f"By {what}:"]
    for total in islice(ranked, _ROWS):
        share = weigh(total) / whole
        filled = round(_BAR * share)
        label = total.label if len(total.label) <= _LABEL else f"{total.label[: _LABEL - 1]}…"
        bar = "█" * filled + "░" * (_BAR - filled)
        lines.append(f"  [{bar}] {share:.0%}  {label}: {_cost(total)}, {total.usage.total_tokens:,} tokens")
    if len(ranked) > _ROWS:
        lines.append(f"  and {len(ranked) - _ROWS} more")
    return lines


def _cost(total: UsageTotal) -> str:
    if total.unpriced_calls == total.calls:
        return "no price known"
    return written(round(1_000_000 * total.cost_usd))


COMMANDS = (insights,)
