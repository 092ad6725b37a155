"""`legato models`: what a vendor or a server offers, and what is known of it.

Fields of a row: name, window (tokens), pictures, tools (true, false or null), read_usd, write_usd (for a million
tokens). Null means that nobody says. Of a known model: names (a pattern), window, output, pictures, thinks, prices,
source, seen (a day), old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final

from gateway.agent.models import Models
from gateway.app.config import Config, Setup
from gateway.app.config.environment import PREFIX
from gateway.app.config.loading import load_config
from gateway.app.models import models_alone
from gateway.app.plugins import providers
from gateway.domain.usage import CanonicalUsage
from gateway.domain.wording import counted
from gateway.providers.base import ListsModels, ModelSpec, OfferedModel, Prices
from gateway.providers.known import KNOWN, OLD_AFTER, known
from gateway.providers.windows import is_near
from gateway.runtime.errors import ConfigError

Row = dict[str, Any]

_MILLION: Final = 1_000_000
_WIDEST: Final = 60  # characters of a name in the table


async def model_rows(config: Config, redact: Callable[[str], str]) -> list[Row]:
    """The models at the address of the configured one, by name. Raises ConfigError and ProviderError."""
    async with models_alone(config, redact) as models:
        home, offered = models.main, await offered_by(models)
        rows = [_row(each, models.spec(each.name, home), models.prices) for each in offered]
    return sorted(rows, key=lambda row: str(row["name"]).lower())


async def offered_by(models: Models) -> Sequence[OfferedModel]:
    """What the server of the main model lists; nothing, where it has no list. Raises ProviderError."""
    server = models.servers.get(models.main.provider)
    return await server.models(models.main) if isinstance(server, ListsModels) else ()


def has_no_list(provider: str) -> bool:
    """Whether a provider is nobody's: its model is part of this program."""
    return providers()[provider].vendor is None


def vendor_rows(environ: Mapping[str, str]) -> list[Row]:
    """The providers that can be asked: name, title, key (its variable, or ""), set, keys_at, example (a model)."""
    vendors = [each.vendor for each in providers().values() if each.vendor]
    return [
        {
            "name": each.name,
            "title": each.title,
            "key": each.key,
            "set": bool(each.key and environ.get(each.key)),
            "keys_at": each.keys_at,
            "example": each.example,
        }
        for each in vendors
    ]


def vendors_text(rows: Sequence[Row]) -> str:
    """A table of the providers that can be asked."""
    lines = [f"{'provider':<17} {'':<21} {'key':<26} where to get one"]
    for row in rows:
        key = f"{row['key']}{' (set)' if row['set'] else ''}" if row["key"] else "none"
        lines.append(f"{row['name']:<17} {row['title']:<21} {key:<26} {row['keys_at']}".rstrip())
    return "\n".join([*lines, "`legato models PROVIDER` lists the models of one provider."])


def asked_of(named: str, setup: Setup, environ: Mapping[str, str], *, anew: bool = False, **more: str) -> Config:
    """Return the settings with which a provider is asked: those of the configured model if it is that one's, unless it
    is to be asked `anew`; else what the provider's own row says. `more`: further variables. Raises ConfigError."""
    if setup.config.model.provider == named and not anew:
        return setup.config
    given = {name: value for name, value in setup.variables(environ).items() if not name.startswith(PREFIX)}
    try:
        return load_config(None, given | {f"{PREFIX}MODEL__PROVIDER": named, f"{PREFIX}MODEL__NAME": "any"} | more)
    except ConfigError as error:
        raise ConfigError([problem.partition(": ")[2] for problem in error.problems]) from None


def _row(offered: OfferedModel, spec: ModelSpec, prices: Prices) -> Row:
    row = None if is_near(spec.base_url) else known(offered.name)
    read = prices.cost_usd(spec, CanonicalUsage(input_tokens=_MILLION))
    write = prices.cost_usd(spec, CanonicalUsage(output_tokens=_MILLION))
    sees = offered.pictures if offered.pictures is not None or row is None else row.sees
    return {
        "name": offered.name,
        "window": offered.window or (row.window if row else None),
        "pictures": sees,
        "tools": offered.tools,
        "read_usd": offered.read_usd if offered.read_usd is not None else read,
        "write_usd": offered.write_usd if offered.write_usd is not None else write,
    }


def models_text(rows: Sequence[Row]) -> str:
    """A table of the models that a server offers."""
    if not rows:
        return (
            "The server does not list its models. Look up the names in the documentation of the server. `legato check` "
            "tries the model that you choose."
        )
    wide = min(_WIDEST, max(len(str(row["name"])) for row in rows))
    lines = [f"{'model':<{wide}} {'window':>9} {'pictures':>8} {'tools':>5}  {'$ read':>8} {'$ written':>9}"]
    for row in rows:
        window = f"{row['window']:,}" if row["window"] else "?"
        lines.append(
            f"{row['name']:<{wide}} {window:>9} {_told(row['pictures']):>8} {_told(row['tools']):>5}  "
            f"{_dollars(row['read_usd']):>8} {_dollars(row['write_usd']):>9}"
        )
    return "\n".join([*lines, "Windows are in tokens, and prices in US dollars per million tokens. A ? means unknown."])


def known_rows(today: date) -> list[Row]:
    """The rows of our own table."""
    return [
        {
            "names": row.names,
            "window": row.window,
            "output": row.output,
            "pictures": row.sees,
            "thinks": row.thinks,
            "prices": [{"up_to": t.up_to, "read": t.read, "write": t.write, "cached": t.cached} for t in row.prices],
            "source": row.source,
            "seen": row.seen.isoformat(),
            "old": (today - row.seen).days > OLD_AFTER,
        }
        for row in KNOWN
    ]


def known_text(rows: Sequence[Row]) -> str:
    """A paragraph for each row of our own table, and how many are old."""
    lines = []
    for row in rows:
        window = f"{row['window']:,} tokens" if row["window"] else "window not known"
        lines += [f"{row['names']}", f"    {window}; {row['source']}, {row['seen']}{' (OLD)' if row['old'] else ''}"]
    old = sum(row["old"] for row in rows)
    told = f"This table has {counted(len(rows), 'row')}, {old} of them more than {OLD_AFTER} days old."
    return "\n".join([*lines, told])


def _told(value: bool | None) -> str:
    return "?" if value is None else "yes" if value else "no"


def _dollars(amount: float | None) -> str:
    return "?" if amount is None else "free" if amount == 0 else f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.3f}"
