"""The configured models: the one that answers, those that help, their windows and their costs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import structlog
from msgspec import Struct, field

from gateway.agent.fallback import reason, rest
from gateway.agent.windows import LearnedWindows
from gateway.context.policy import Rates
from gateway.context.state import Correction
from gateway.domain.place import names_of, narrowest
from gateway.domain.session import Session
from gateway.domain.usage import UNKNOWN_WINDOW, CanonicalUsage, LedgerEntry, Purpose
from gateway.providers.base import (
    HasOneModel,
    ListsModels,
    ModelSpec,
    OfferedModel,
    Prices,
    Provider,
    ReportsWindow,
    Windows,
)
from gateway.providers.plugin import ProviderPlugin
from gateway.providers.windows import is_near
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import ConfigError, ProviderError
from gateway.runtime.metrics import Counter
from gateway.runtime.structs import replace

log = structlog.get_logger(__name__)

WindowSource = Literal["configured", "reported", "known", "assumed"]
"""Who knows a model's window: the configuration, its server, the table of known models, or nobody."""

_ASK_SECONDS: Final = 3.0
_ASK_AGAIN: Final = 300.0  # seconds after a server could not be asked, and between questions to one's own server
_ASK_SOON: Final = 30.0  # seconds after one's own server said nothing: it may load the model meanwhile

TOKENS: Final = Counter(name="tokens", text="Tokens that models used.", labels=("model", "purpose", "kind"))
COST: Final = Counter(
    name="cost_usd", text="US dollars spent on calls with a known price.", labels=("model", "purpose")
)


class Calibration(dict[str, Correction]):
    """The token counts of this process's models compared with ours, by the model's name. They are learned from every
    call, so that a model with another tokenizer is not overrun."""

    def __missing__(self, model: str) -> Correction:
        return _UNKNOWN

    def learn(self, model: str, *, reported: int, counted: int) -> None:
        """Learn from one call: the provider's prompt tokens, and our own count of the same request."""
        self[model] = self[model].observed(counted, reported)


_UNKNOWN: Final = Correction()
_NO_USAGE: Final = CanonicalUsage()


class _Absence(Struct, frozen=True):
    until: float  # monotonic
    reason: str


class Models(Struct, kw_only=True):
    """The configured models.

    `main` is the default. `of_places` answer in chats with a model of their own, by place. `fallbacks` answer while
    another model cannot, in order. `auxiliary` holds whole entries for purposes that have their own. By the providers'
    names: `providers`, their descriptions (`plugins`), and the providers without the retries around them (`servers`).
    `embedding` gives vectors of messages, for searches. `learned` has the limits that providers stated.
    """

    main: ModelSpec
    providers: Mapping[str, Provider]
    plugins: Mapping[str, ProviderPlugin]
    servers: Mapping[str, Provider] = field(default_factory=dict)
    windows: Windows
    prices: Prices
    fallbacks: Sequence[ModelSpec] = ()
    of_places: Mapping[str, ModelSpec] = field(default_factory=dict)
    auxiliary: Mapping[Purpose, ModelSpec] = field(default_factory=dict)
    embedding: ModelSpec | None = None
    calibration: Calibration = field(default_factory=Calibration)
    clock: Clock = field(default_factory=SystemClock)
    _absences: dict[tuple[str | None, ...], _Absence] = field(default_factory=dict)
    learned: LearnedWindows = field(default_factory=LearnedWindows)
    _offered: dict[tuple[str, str | None, str], int] = field(default_factory=dict)  # windows by server and name
    _near: dict[tuple[str | None, ...], float] = field(default_factory=dict)  # when to ask servers of one's own again
    # When a server is asked again which models it has; a server that said so is not.
    _asked: dict[tuple[str, str | None], float] = field(default_factory=dict)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def become(self, other: Models) -> None:
        """Go on as other models. What was learned of these stays, and so do the providers of calls that run."""
        self.main, self.fallbacks, self.of_places = other.main, other.fallbacks, other.of_places
        self.auxiliary, self.windows, self.prices = other.auxiliary, other.windows, other.prices
        self.providers, self.servers = {**self.providers, **other.providers}, {**self.servers, **other.servers}
        self.plugins = {**self.plugins, **other.plugins}
        self._offered |= other._offered
        self._near |= other._near
        self._absences.clear()  # the account may have been mended

    async def learn_windows(self) -> None:
        """Ask the providers for the windows of all models that have none configured. The order is configuration,
        provider's report, table. The wait for a silent provider ends after 3 s."""
        await self._learn({spec.place: spec for spec in self._configured()}.values())

    async def _learn(self, specs: Iterable[ModelSpec]) -> None:
        specs = [spec for spec in specs if not _has_window(spec)]
        windows = await asyncio.gather(*(self._reported_window(spec) for spec in specs))
        found = {spec.place: window for spec, window in zip(specs, windows, strict=True) if window}
        for spec in specs:
            if window := found.get(spec.place):
                self._offered[spec.provider, spec.base_url, spec.name] = window
                self.learned.reported(spec, window)
            if is_near(spec.base_url):
                self._near[spec.place] = self.clock.monotonic() + (_ASK_AGAIN if window else _ASK_SOON)
        self.main, *others = [
            replace(spec, context_length=found.get(spec.place, spec.context_length)) for spec in self._configured()
        ]
        self.fallbacks = others[: len(self.fallbacks)]
        self.of_places = dict(zip(self.of_places, others[len(self.fallbacks) :], strict=True))

    def _configured(self) -> list[ModelSpec]:
        return [self.main, *self.fallbacks, *self.of_places.values()]

    async def _reported_window(self, spec: ModelSpec) -> int | None:
        server = self.servers.get(spec.provider)
        if not isinstance(server, ReportsWindow):
            return None
        try:
            async with self.clock.limit(_ASK_SECONDS):
                return await server.reported_window(spec)
        except (ProviderError, TimeoutError) as error:
            log.info("window_not_reported", model=spec.name, error=str(error))
            return None

    async def offered(self, home: ModelSpec) -> Sequence[OfferedModel]:
        """Return the models that the server of `home` lists; none if it has no such list. Their windows are
        remembered. Raises ProviderError if the server cannot be asked, and TimeoutError if it is silent for 3 s."""
        server = self.servers.get(home.provider)
        if not isinstance(server, ListsModels):
            return ()
        async with self.clock.limit(_ASK_SECONDS):
            found = await server.models(home)
        known = {(home.provider, home.base_url, each.name): each.window for each in found if each.window}
        others = {name: window for name, window in self._offered.items() if name[:2] != (home.provider, home.base_url)}
        self._offered = others | known
        self._asked[home.provider, home.base_url] = math.inf
        return found

    async def know_window(self, session: Session) -> None:
        """Ask the server of a session's model for its window, if a person chose the model before this process began, or
        in another one. A server that cannot be asked is left alone for a while. Your own server is asked again now and
        then: it loads a model when it is first needed, and may be restarted with another window."""
        home = self.home(session)
        if self._near and self.clock.monotonic() >= self._near.get(home.place, math.inf):
            self._near[home.place] = self.clock.monotonic() + _ASK_AGAIN  # others do not wait for the answer
            await self._learn([home])
            home = self.home(session)
        if session.model == home.name or not self.is_chosen(session):
            return
        server = (home.provider, home.base_url)
        if not self._is_to_ask(server):
            return
        async with self._asking:
            if not self._is_to_ask(server):
                return
            try:
                await self.offered(home)
            except (ProviderError, TimeoutError) as error:
                self._asked[server] = self.clock.monotonic() + _ASK_AGAIN
                log.info("models_not_listed", model=session.model, error=str(error))

    def _is_to_ask(self, server: tuple[str, str | None]) -> bool:
        return self.clock.monotonic() >= self._asked.get(server, -math.inf)

    def home(self, session: Session) -> ModelSpec:
        """Return the model that is configured for a session's chat."""
        if not self.of_places:
            return self.main
        return self.home_of(session.key.platform, session.places or names_of(session.key))

    def home_of(self, platform: str, named: Sequence[str]) -> ModelSpec:
        """Return the model that is configured for a place, by its names, narrowest first."""
        found = narrowest(self.of_places, platform, named)
        return found.value if found else self.main

    def spec(self, name: str, home: ModelSpec | None = None) -> ModelSpec:
        """Return the model of this name at the provider of `home`, with its window."""
        home = home or self.main
        if name == home.name:
            return home
        window = self._offered.get((home.provider, home.base_url, name))
        if window is None and not _has_window(home):
            window = self._listed_window(replace(home, name=name))
        marks = self.plugins[home.provider].marks_cache(name, home.base_url)
        return replace(home, name=name, context_length=window or home.context_length, cache_marks=marks)

    def is_assumed(self, spec: ModelSpec) -> bool:
        """Whether the model's window is a guess: nobody configured it, reported it or lists it. A model that somebody
        chose then has the configured model's window."""
        return self.window_source(spec) == "assumed"

    def window_source(self, spec: ModelSpec) -> WindowSource:
        """Say who knows the model's window."""
        if _has_window(spec):
            return "configured"
        if (spec.provider, spec.base_url, spec.name) in self._offered:
            return "reported"
        own = spec.name in {each.name for each in self._configured()}
        known = self._listed_window(spec) is not None or (own and spec.context_length != UNKNOWN_WINDOW)
        return "known" if known else "assumed"

    def _listed_window(self, spec: ModelSpec) -> int | None:
        """The window in the table. Your own server decides for itself, unless it passes calls on."""
        where = None if self.plugins[spec.provider].passes_on else spec.base_url
        return self.windows.context_window(spec.name, where)

    def of(self, session: Session) -> ModelSpec:
        """Return the model that answers in a session: the chosen one, else the configured one."""
        home = self.home(session)
        spec = home if session.model == home.name or not self.is_chosen(session) else self.spec(session.model, home)
        return self.learned.of(spec, session.key)

    def takes_tools(self, spec: ModelSpec) -> bool:
        """Whether the model may understand any wording and call tools: no embedded one, and none without tools."""
        return not self.plugins[spec.provider].only_model and getattr(spec.settings, "tools", "auto") is not False

    def is_chosen(self, session: Session) -> bool:
        """Whether a person chose the session's model at the present provider; another provider has other models."""
        if session.model_chosen_at is None:
            return False
        home = self.home(session)
        return session.model_chosen_at == home.provider and self.may_be(session.model, home)

    def may_be(self, name: str, home: ModelSpec | None = None) -> bool:
        """Whether the provider of `home` could have a model of this name; only a call shows whether it has."""
        home = home or self.main
        return name == home.name or not isinstance(self.provider(home), HasOneModel)

    def provider(self, spec: ModelSpec) -> Provider:
        """The provider of this model. Raises ConfigError if there is none."""
        try:
            return self.providers[spec.provider]
        except KeyError:
            raise ConfigError([f"model.provider: this version has no provider {spec.provider!r}"]) from None

    def helpers(self, purpose: Purpose, live: ModelSpec) -> list[ModelSpec]:
        """Return the models for auxiliary work, in order: the purpose's own model, then the live one or the model that
        stands in for it."""
        own, live = self.auxiliary.get(purpose), self.chain(live)[0]
        return [live] if own is None or own.is_same_model(live) else [own, live]

    def chain(self, live: ModelSpec) -> list[ModelSpec]:
        """Return the models that may answer where `live` should, in order; those that are away come last, because one
        of them may be back."""
        if not self.fallbacks:
            return [live]
        others = [spec for spec in self.fallbacks if spec.place != live.place]
        return sorted([live, *others], key=lambda spec: self.absence(spec) is not None)

    def absence(self, spec: ModelSpec) -> str | None:
        """Return why the model is away, as a clause that follows its name; None if it may be asked."""
        away = self._absences.get(spec.place)
        return away.reason if away is not None and self.clock.monotonic() < away.until else None

    def away_for(self, spec: ModelSpec) -> float:
        """Return the seconds until a model that is away is asked again; 0: it may be asked."""
        away = self._absences.get(spec.place)
        return max(0.0, away.until - self.clock.monotonic()) if away is not None else 0.0

    @property
    def patience(self) -> float:
        """The seconds for which the settings let the main model be silent; 0: they do not say."""
        return getattr(self.main.settings, "silence", None) or 0.0

    def answered(self, spec: ModelSpec) -> None:
        """Note that the model is there."""
        self._absences.pop(spec.place, None)

    def failed(self, spec: ModelSpec, error: ProviderError) -> None:
        """Note a failure of the model: it may be away for a while."""
        seconds = rest(error)
        if seconds:
            self._absences[spec.place] = _Absence(self.clock.monotonic() + seconds, reason(error))

    def rates(self, name: str) -> Rates | None:
        """Return the prices of a model's tokens in US dollars, by its name; None where no price is known."""
        spec = self.spec(name)
        many = 10_000  # tokens: a price may be given for so few decimals that one token costs nothing
        kinds = {"input": "input_tokens", "read": "cache_read_tokens", "write": "cache_write_tokens"}
        usages = {kind: replace(_NO_USAGE, **{tokens: many}) for kind, tokens in kinds.items()}
        costs = {kind: self.prices.cost_usd(spec, usage) for kind, usage in usages.items()}
        output = self.prices.cost_usd(spec, replace(_NO_USAGE, output_tokens=many))
        known = {kind: cost / many for kind, cost in costs.items() if cost}
        if not known or not output:
            return None
        return Rates(**{**dict.fromkeys(kinds, known["input"]), **known}, output=output / many)

    def entry(self, at: float, purpose: Purpose, spec: ModelSpec, usage: CanonicalUsage) -> LedgerEntry:
        """Return the ledger line of one call, and count its tokens and cost."""
        cost = self.prices.cost_usd(spec, usage)
        kinds = {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cache_read": usage.cache_read_tokens,
            "cache_write": usage.cache_write_tokens,
        }
        for kind, tokens in kinds.items():
            if tokens:
                TOKENS.count(spec.name, purpose, kind, by=tokens)
        if cost:
            COST.count(spec.name, purpose, by=cost)
        return LedgerEntry(at=at, purpose=purpose, provider=spec.provider, model=spec.name, usage=usage, cost_usd=cost)


def _has_window(spec: ModelSpec) -> bool:
    """Whether the model's window is configured."""
    return spec.settings is not None and spec.settings.context_length is not None
