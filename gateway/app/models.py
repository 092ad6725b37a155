"""The configured models, with the providers that serve them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from gateway.agent.files.speech import Command, SpeechSettings
from gateway.agent.models import Models
from gateway.app.config import Config
from gateway.app.plugins import providers
from gateway.domain.chat import SessionKey, Source
from gateway.domain.place import names
from gateway.domain.speech import Transcriber
from gateway.domain.usage import UNKNOWN_WINDOW, CanonicalUsage
from gateway.providers.adapting import Adapting
from gateway.providers.base import ModelSpec, Prices, Provider, Windows
from gateway.providers.keyring import Keyring, has_more_than_a_key
from gateway.providers.known import known
from gateway.providers.plugin import ModelSettings, ProviderHost, ProviderPlugin, ServedModel
from gateway.providers.retry import Retrying
from gateway.providers.windows import is_near
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import ConfigError, StoreUnavailable
from gateway.runtime.plugins import contained, imported
from gateway.store.port import SessionStore

if TYPE_CHECKING:
    from gateway.providers.media import SpeechServer

_IMPATIENT: Final = 30.0  # seconds: nobody waits longer for attempts at a model while another one could answer
# Seconds in which a stream must begin while another model could answer. A model that thinks shows thoughts, or at least
# the beginning of its answer, well before; one that shows neither, and a server that reads a long prompt slowly, may
# need more and has `silence` in its section.
_SILENCE: Final = 90.0


class _Table(Windows, Prices, Protocol):
    """Both things the price table knows."""


class NoTable(Struct, frozen=True):
    """Stands in for the price table, which takes long to load, where no model costs anything."""

    def context_window(self, model: str, base_url: str | None = None) -> int | None:
        """Unknown: the configuration or the provider's package decides."""
        return None

    def cost_usd(self, spec: ModelSpec, usage: CanonicalUsage) -> float | None:
        """Nothing is charged by those that are free."""
        known = providers().get(spec.provider)
        return 0.0 if known is not None and known.free else None


def configured_models(
    config: Config,
    host: ProviderHost,
    rng: random.Random,
    replaced: Mapping[str, Provider],
    there: Mapping[str, Provider] = {},
) -> tuple[Models, list[Callable[[], Awaitable[None]]]]:
    """The models, and a function that closes their providers. `replaced` are used instead of the configured providers
    with these names. `there`: providers of an earlier call, used again and not closed by this function. Raises
    ConfigError."""
    helpers = config.auxiliary_models()
    fallbacks, of_places = config.fallbacks(), config.chat_models()
    entries = [config.model, *fallbacks, *of_places.values(), *helpers.values()]
    embedding = config.search.embeddings
    entries += [embedding] if embedding else []
    table = _price_table(entries)
    needed = {entry.provider: _plugin(entry) for entry in entries if entry.provider not in replaced}
    new: dict[str, Provider] = {
        name: contained(f"the provider {name}", partial(imported(plugin.create), host))
        for name, plugin in needed.items()
        if name not in there
    }
    made = {name: new.get(name) or there[name] for name in needed}
    ringed = {entry.provider for entry in entries if has_more_than_a_key(entry)} & {*made}
    made |= {name: Keyring(made[name], host.clock) for name in ringed}
    retrying = partial(Retrying, deadline=_IMPATIENT) if fallbacks else Retrying
    models = Models(
        main=model_spec(config.model, table, replaceable=bool(fallbacks)),
        providers={
            name: retrying(Adapting(each), clock=host.clock, rng=rng) if _is_served(name) else each
            for name, each in made.items()
        }
        | {**replaced},
        windows=table,
        prices=table,
        fallbacks=[model_spec(each, table, replaceable=each is not fallbacks[-1]) for each in fallbacks],
        of_places={place: model_spec(each, table, replaceable=bool(fallbacks)) for place, each in of_places.items()},
        plugins={entry.provider: _plugin(entry) for entry in entries},
        auxiliary={purpose: model_spec(entry, table) for purpose, entry in helpers.items()},
        embedding=model_spec(embedding, table) if embedding else None,
        servers=made,
        clock=host.clock,
    )
    return models, [each.aclose for each in new.values()]


def model_spec(entry: ModelSettings, windows: Windows, *, replaceable: bool = False) -> ModelSpec:
    """A configured model with everything the host must know. `replaceable`: another one answers where it is silent.
    Raises ConfigError without a name."""
    plugin = _plugin(entry)
    if entry.name is None and not plugin.only_model:
        raise ConfigError([f"model.name: say which model of {entry.provider} to use"])
    name = entry.name or entry.provider
    return ModelSpec(
        provider=entry.provider,
        name=name,
        base_url=entry.base_url,
        api_key=entry.api_key.get_secret_value() if entry.api_key else None,
        key_header=plugin.vendor.key_header if plugin.vendor else "",
        context_length=entry.context_length
        or plugin.window
        or windows.context_window(name, None if plugin.passes_on else entry.base_url)
        or UNKNOWN_WINDOW,
        max_output_tokens=entry.max_output_tokens,
        cache_ttl=entry.cache_ttl,
        cache_marks=plugin.marks_cache(name, entry.base_url),
        marks_results=plugin.marks_results,
        pictures=_takes_pictures(plugin, entry, name) if entry.pictures == "auto" else entry.pictures,
        sounds=entry.sounds,
        silence=_SILENCE if entry.silence is None and replaceable else entry.silence,
        whole_answer=entry.whole_answer,
        settings=entry,
    )


def _takes_pictures(plugin: ProviderPlugin, entry: ModelSettings, name: str) -> bool | None:
    row = None if is_near(entry.base_url) else known(name)
    return row.sees if row is not None and plugin.pictures is None else plugin.pictures


def configured_transcriber(config: Config, clock: Clock) -> Transcriber | None:
    """The part that transcribes voice messages; None if there is none."""
    settings = config.transcription
    if settings.base_url is not None and settings.model is not None:
        server: Transcriber = imported("gateway.providers.transcription:TranscriptionServer")(
            **settings.server, language=settings.language, clock=clock
        )
        return server
    return Command(settings.command, seconds=settings.timeout, clock=clock) if settings.command else None


async def answering(models: Models, store: SessionStore, key: SessionKey, source: Source) -> ModelSpec:
    """Return the model that answers a person: the one that was chosen in their conversation, else that of the place."""
    with suppress(StoreUnavailable):
        tip = await store.tip(key)
        if tip is not None and models.is_chosen(tip):
            return models.of(tip)
    return models.home_of(source.platform, names(source))


def configured_speaker(settings: SpeechSettings, clock: Clock) -> SpeechServer:
    """Return the server that says answers aloud, which the settings name."""
    server: SpeechServer = imported("gateway.providers.media:SpeechServer")(
        **settings.server, clock=clock, does="says it aloud", section="speech"
    )
    return server


def model_in_full(config: Config) -> str:
    """Return the name of the answering model and of its provider, and whether and for how long its prompts are marked
    for the provider's cache."""
    entry, plugin = config.model, _plugin(config.model)
    if plugin.only_model:
        return plugin.only_model
    lasts = "5m or 1h" if entry.cache_ttl == "auto" else entry.cache_ttl
    cached = f", prompts cached {lasts}" if plugin.marks_cache(entry.name or "", entry.base_url) else ""
    return f"{entry.name} ({entry.provider}{cached})"


def caching_note(spec: ModelSpec) -> str:
    """Return the line of the start about cache marks: whether they are set, for which model, and how long they last."""
    if not spec.cache_marks:
        return f"off, because {spec.name} takes no cache marks (a provider's own caching needs none)"
    lasts = "5m or 1h, whichever is cheaper for the chat" if spec.cache_ttl == "auto" else spec.cache_ttl
    return f"on for {spec.name}, kept {lasts}"


def _plugin(entry: ModelSettings) -> ProviderPlugin:
    try:
        return providers()[entry.provider]
    except KeyError:
        known = ", ".join(providers())
        raise ConfigError([f"model.provider: there is no {entry.provider!r}; known are {known}"]) from None


def _is_served(name: str) -> bool:
    """Whether trying again may help: a model inside this process gives the same answer at once."""
    return issubclass(providers()[name].settings, ServedModel)


def _price_table(entries: Sequence[ModelSettings]) -> _Table:
    if all(_plugin(entry).free and not entry.prices for entry in entries):
        return NoTable()
    own = {(entry.provider, entry.base_url, entry.name or ""): entry.prices for entry in entries if entry.prices}
    table: _Table = imported("gateway.providers.catalog:PriceTable")(
        {entry.provider: _plugin(entry) for entry in entries}, own
    )
    return table


@asynccontextmanager
async def models_alone(config: Config, redact: Callable[[str], str]) -> AsyncIterator[Models]:
    """The main model and its provider without a gateway around them, to be asked what there is. Raises ConfigError."""
    clock = SystemClock()
    host = ProviderHost(clock=clock, redact=redact, count=len, pause=partial(clock.sleep, 0))
    alone = config.replace(fallback_models=(), auxiliary=type(config.auxiliary)(), chats={})
    models, closers = configured_models(alone, host, random.Random(), {})
    try:
        yield models
    finally:
        for close in closers:
            await close()
