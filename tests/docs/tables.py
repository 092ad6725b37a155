"""Tables of what the code declares: settings and metrics, between two marks of a page that says the rest."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import gateway
from gateway.app.plugins import providers
from gateway.providers.plugin import Vendor
from gateway.runtime.metrics import Counter, Gauge, Histogram
from tests.bench.figures import kept
from tests.bench.table import milliseconds
from tests.docs.charts import NAMES, THEIRS

ROOT: Final = Path(__file__).parents[2]
_KINDS: Final = (Counter, Gauge, Histogram)


def page_with(page: str, **fresh: str) -> str:
    """A page with fresh tables, each between the marks `<!-- NAME: … -->` and `<!-- end of NAME -->`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, words in fresh.items():
        marks = re.compile(rf"(<!-- {name}:[^\n]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        assert len(marks.findall(text)) == 1, f"{page} needs the marks of {name} once"
        text = marks.sub(lambda found, words=words: f"{found[1]}\n{words}\n{found[2]}", text)
    return text


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Markdown."""
    columns = list(head)
    first, *others = (f"| {' | '.join(row)} |\n" for row in (columns, *rows))
    return "".join([first, f"|{'---|' * len(columns)}\n", *others])


_ADAPTERS: Final = {
    "Telegram": "telegram.adapter:TelegramAdapter", "Discord": "discord.adapter:DiscordAdapter",
    "Slack": "slack.adapter:SlackAdapter", "Matrix": "matrix.adapter:MatrixAdapter",
    "WhatsApp": "whatsapp.adapter:WhatsAppBot", "Page": "web.adapter:WebAdapter",
    "Terminal": "console.interactive:InteractiveConsole",
}  # fmt: skip
_ABILITIES: Final = {  # what the adapter has then; Protocols of gateway.domain.adapter
    "An answer grows while the model writes": ("edit", "preview", "show_partial"),
    "Buttons": ("longest_token",),
    "Polls": ("close_poll",),
    "A voice channel": ("rooms",),
}


def abilities() -> str:
    """What each adapter can do beyond sending: the abilities that its class has."""
    has = {}
    for name, path in _ADAPTERS.items():
        module, _, kind = path.partition(":")
        adapter = getattr(importlib.import_module(f"adapters.{module}"), kind)
        has[name] = {*dir(adapter), *adapter.__init__.__code__.co_names}  # some are set when it is made
    rows = [(what, *("✓" if {*names} & has[each] else "–" for each in has)) for what, names in _ABILITIES.items()]
    return table(["", *has], rows)


def vendors() -> str:
    """Every vendor and server that has a name, with what to write."""
    rows = (
        (each.title, f"`{_section(each)}`", f"`{each.key}`" if each.key else "–", each.note)
        for each in (plugin.vendor for plugin in providers().values())
        if each is not None
    )
    return table(("Vendor or server", "`model:`", "Key", "Good to know"), sorted(rows, key=lambda row: row[0].lower()))


def _section(vendor: Vendor) -> str:
    address = f', base_url: "{vendor.address_to_fill}"' if vendor.address_to_fill else ""
    return f"{{provider: {vendor.name}, name: {_quoted(vendor.example)}{address}}}"


def _quoted(name: str) -> str:
    return f'"{name}"' if ":" in name else name


def spent() -> str:
    """What long conversations cost, and how much of what was asked for was in view, as `make bench-cost` kept it."""
    found = {(each["window"], each["rhythm"], each["way"]): each for each in kept()["spent"]}
    ways = list(dict.fromkeys(way for _, _, way in found))
    places = list(dict.fromkeys((window, rhythm) for window, rhythm, _ in found))

    def dollars(window: int, rhythm: str, way: str) -> str:
        cost = found[window, rhythm, way]["dollars"]
        return f"{cost:.2f} ({cost / found[window, rhythm, THEIRS]['dollars']:.2f})"

    rows = [(f"{window:,}", rhythm, *(dollars(window, rhythm, way) for way in ways)) for window, rhythm in places]
    rows += [
        (f"{window:,}", "share in view", *(f"{found[window, rhythm, way]['in_view']:.2f}" for way in ways))
        for window, rhythm in dict(places).items()
    ]
    return table(("window", "rhythm", *(NAMES.get(way, way) for way in ways)), rows)


def budgets() -> str:
    """What a message may cost in each world, as a test holds it."""
    found = json.loads((ROOT / "tests/architecture/budgets.json").read_text(encoding="utf-8"))
    start = found.pop("start")
    names = ("calls", "own", "statements", "commands", "kilobytes")
    head = ("A message on", "Python calls", "Legato's own", "SQLite statements", "Redis commands", "KB written")
    titles = {world: "SQLite" if world == "sqlite" else world.capitalize() for world in found}
    rows = (
        (titles[world], *(f"{each[name]:,.0f}" if name in each else "" for name in names))
        for world, each in found.items()
        if world not in ("status", "lines")  # of interest to `make work` alone
    )
    loaded = f"Before its first reply, `legato chat` loads {start['modules']} modules, {start['ours']} of them ours."
    return f"{table(head, rows)}\n{loaded}\n"


_COMPARED: Final = ("throughput", "redis", "loopback", "telegram", "discord", "start")


def ratios() -> str:
    """How many times a bare loop's figure ours is, by the benches' last run."""
    rows = (
        (each["what"], f"{each['times']:.2f}", each["beside"])
        for bench in _COMPARED
        for each in kept().get(bench, ())
        if "what" in each and each["what"][0].isalpha()  # those of a size are drawn
    )
    return table(("Measured", "Ratio", "Compared with"), rows)


def gateways() -> str:
    """Both gateways at the same number of known sessions."""
    found = {(each["side"], each["sessions"]): each for each in kept()["gateways"]}
    shown: dict[str, Callable[[float], str]] = {"messages a second, 20 chats": "{:,.1f}".format}
    shown |= dict.fromkeys(("CPU per message", "wait in one chat, p50"), milliseconds)
    rows = (
        (f"{sessions:,}", what, show(ours), show(theirs), f"{max(ours, theirs) / min(ours, theirs):,.0f}")
        for side, sessions in found
        if side == "theirs" and sessions != 1_000  # the picture below has more
        for key, (what, show) in zip(("rate", "cpu", "p50"), shown.items(), strict=True)
        for ours, theirs in [(found["ours", sessions][key], found["theirs", sessions][key])]
    )
    return table(("Known sessions", "", "Legato", "hermes-agent 0.19", "ratio"), rows)


def metrics() -> str:
    """Every metric that a room counts, as Prometheus shows it."""
    found = {_shown(metric): metric for metric in all_metrics()}
    rows = ((f"`{name}`", ", ".join(metric.labels) or "–", metric.text) for name, metric in sorted(found.items()))
    return table(("Name", "Labels", "Meaning"), rows)


def all_metrics() -> Iterator[Counter | Gauge | Histogram]:
    """The metrics are constants of the modules that count them."""
    for module in pkgutil.walk_packages(gateway.__path__, "gateway."):
        if not module.name.endswith("__main__"):
            values = vars(importlib.import_module(module.name)).values()
            yield from (value for value in values if isinstance(value, _KINDS))


def _shown(metric: Counter | Gauge | Histogram) -> str:
    return f"legato_{metric.name}_total" if isinstance(metric, Counter) else f"legato_{metric.name}"
