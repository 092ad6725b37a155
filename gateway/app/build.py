"""The composition root: the only module that names concrete classes.

`build` turns a configuration into a `Gateway`; tests call it with `Parts` of their own.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gateway.agent.caching import caches_by_marks
from gateway.agent.engines import Engines
from gateway.agent.files.intake import FileIntake
from gateway.agent.hygiene import Hygiene
from gateway.agent.loop import Agent
from gateway.agent.metering import Caps, Metering
from gateway.agent.models import Models, Prices, Windows
from gateway.agent.preparation import Preparations
from gateway.agent.prompt import PromptBuilder
from gateway.agent.running import RunningTurns
from gateway.agent.sessions import Sessions
from gateway.agent.tools.base import Tool
from gateway.agent.tools.clock import ClockTool
from gateway.agent.tools.history import HistoryTool
from gateway.agent.tools.read_file import ReadFileTool
from gateway.agent.tools.registry import ToolRegistry
from gateway.agent.tools.runtime import ToolRuntime
from gateway.agent.tools.send_file import SendFileTool
from gateway.agent.tools.shell import ShellTool
from gateway.agent.tools.todo import TodoTool
from gateway.app.accounts import AccountLeases
from gateway.app.config import Config, Model
from gateway.app.gateway import Gateway
from gateway.app.settings import compression, expiry_policy, hygiene_rules, turn_rules
from gateway.commands import approval, compress, people, pins, status, turn
from gateway.commands import help as help_family
from gateway.commands import sessions as sessions_family
from gateway.commands.base import CommandContext, CommandRegistry
from gateway.commands.runner import CommandRunner
from gateway.context.engine import ContextEngine
from gateway.context.registry import EngineRegistry, builtin_engines
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Adapter, Limits
from gateway.domain.usage import Purpose
from gateway.domain.window import UNKNOWN_WINDOW
from gateway.people.access import Access
from gateway.people.approvals import Approvals
from gateway.people.pairing import Pairing
from gateway.people.welcome import Welcome
from gateway.providers.base import ModelSpec, Provider
from gateway.providers.offline.model import Offline, OfflinePrices
from gateway.providers.retry import Retrying
from gateway.runtime.clock import Clock, Ids, SystemClock, SystemIds
from gateway.runtime.errors import ConfigError
from gateway.runtime.metrics import Metrics
from gateway.runtime.points import Points, TimedPoints, ignore_points
from gateway.runtime.redaction import Redactor
from gateway.runtime.tasks import Background
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import Store
from gateway.store.sqlite.store import SqliteStore
from gateway.turns.expiry import Expiry
from gateway.turns.lanes import Lanes
from gateway.turns.reception import Reception
from gateway.turns.turn import Turns

if TYPE_CHECKING:
    from gateway.providers.openai.chat_completions import ChatCompletions

_OFFLINE_WINDOW = 32_000  # the offline model has no window of its own; this lets compaction be tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a caller may replace. `providers` and `engine` stand in for the configured ones;
    `also_runs` are platforms without an adapter here whose turns are run all the same, for a process
    that has one."""

    clock: Clock | None = None
    ids: Ids | None = None
    rng: random.Random | None = None
    points: Points = ignore_points
    providers: Mapping[str, Provider] | None = None
    engine: Callable[[], ContextEngine] | None = None
    tools: Sequence[Tool] = ()
    store: Store | None = None
    also_runs: Mapping[str, Limits] = field(default_factory=dict)
    told: Callable[[str], None] = lambda _: None  # what to say before an adapter can say anything
    pace: float = 0.0  # seconds between two words of the offline model


class _Table(Windows, Prices, Protocol):
    """Both things the price table knows."""


def build(config: Config, adapters: Sequence[Adapter], parts: Parts = Parts()) -> Gateway:
    """Wire a gateway. Call it inside a running event loop. Raises ConfigError."""
    clock, ids = parts.clock or SystemClock(), parts.ids or SystemIds()
    metrics = Metrics()
    points = TimedPoints(parts.points, clock, metrics)
    redact = Redactor(config.secrets())
    counter = TokenCounter()
    background = Background()
    store = parts.store or configured_store(config, clock=clock, points=points, told=parts.told)
    models, closers = _models(config, counter, clock, redact, metrics, parts)
    caps = Caps(**config.budgets.model_dump())
    metering = Metering(models=models, store=store, caps=caps, counter=counter, clock=clock, ids=ids)
    own: list[Tool] = [TodoTool(), ClockTool(), HistoryTool(redact), ReadFileTool(), SendFileTool()]
    tools = ToolRegistry([*own, *_shell(config, clock, redact), *parts.tools])
    engines = Engines(
        factory=parts.engine or _engine_factory(config, counter, clock, redact),
        metering=metering,
        clock=clock,
        home=home(config) / "engines",
    )
    preparations = Preparations(
        engines=engines,
        store=store,
        background=background,
        clock=clock,
        timeout=config.hygiene.timeout,
        enabled=config.compression.enabled and config.compression.background,
    )
    sessions = Sessions(
        store=store,
        engines=engines,
        preparations=preparations,
        models=models,
        prompts=_prompts(config, tools),
        counter=counter,
        schema_tokens=counter.schemas(tools.schemas),
        policy_of=expiry_policy(config),
        clock=clock,
        ids=ids,
        points=points,
    )
    by_name = {adapter.name: adapter for adapter in adapters}
    limits = {**parts.also_runs, **{adapter.name: adapter.limits for adapter in adapters}}
    outbox = Outbox(
        store=store,
        adapters=by_name,
        limits=limits,
        clock=clock,
        ids=ids,
        background=background,
        points=points,
        metrics=metrics,
    )
    running_turns = RunningTurns()
    rules = turn_rules(config)
    access = Access(
        allow=frozenset(config.access.allow),
        admins=frozenset(config.access.admins),
        trusted=frozenset(name for name, limit in limits.items() if limit.trusted),
    )
    approvals = Approvals(
        store=store, outbox=outbox, access=access, clock=clock, ids=ids, seconds=config.tools.approval_deadline
    )
    pairing = Pairing(access=access, store=store, clock=clock, rng=random.SystemRandom(), enabled=config.access.pairing)
    welcome = Welcome(pairing=pairing, outbox=outbox)
    context = partial(
        CommandContext,
        store=store,
        sessions=sessions,
        approvals=approvals,
        pairing=pairing,
        welcome=welcome,
        metering=metering,
        running_turns=running_turns,
        clock=clock,
        counter=counter,
        redact=redact,
        automatic=config.compression.enabled,
        started_at=clock.now(),
    )
    commands = CommandRunner(registry=command_registry(), context=context)
    reception = Reception(
        store=store,
        outbox=outbox,
        commands=commands,
        pairing=pairing,
        welcome=welcome,
        approvals=approvals,
        background=background,
        clock=clock,
        points=points,
        rules=rules,
    )
    agent = partial(
        Agent,
        models=models,
        metering=metering,
        tools=ToolRuntime(tools, clock),
        clock=clock,
        points=points,
        max_steps=config.turns.max_steps,
        automatic=config.compression.enabled,
    )
    turns = Turns(
        store=store,
        sessions=sessions,
        pairing=pairing,
        approvals=approvals,
        commands=commands,
        files=FileIntake(store=store, adapters=by_name, view=metering.view, counter=counter, clock=clock),
        hygiene=Hygiene(hygiene_rules(config), clock),
        preparations=preparations,
        agent=agent,
        running_turns=running_turns,
        outbox=outbox,
        adapters=by_name,
        rules=rules,
        clock=clock,
        points=points,
        metrics=metrics,
    )
    worker = ids.new("w")
    lanes = Lanes(
        store=store,
        run=turns.run,
        worker=worker,
        concurrent=config.turns.concurrent,
        background=background,
        clock=clock,
        metrics=metrics,
    )
    return Gateway(
        store=store,
        reception=reception,
        lanes=lanes,
        outbox=outbox,
        sessions=sessions,
        expiry=Expiry(store=store, clock=clock),
        welcome=welcome,
        approvals=approvals,
        metering=metering,
        running_turns=running_turns,
        background=background,
        adapters=by_name,
        clock=clock,
        accounts=AccountLeases(store=store, clock=clock, worker=worker, background=background, runs=tuple(limits)),
        worker=worker,
        metrics=metrics,
        close=closers,
    )


def command_registry() -> CommandRegistry:
    """All commands of this version."""
    families = (help_family, sessions_family, turn, approval, compress, pins, status, people)
    return CommandRegistry(command for family in families for command in family.COMMANDS)


def adapter_part(where: str) -> Any:
    """What an adapter has at `module:name`: its class, or its limits for a process that runs a
    platform's turns without it. Loaded by name, and only when it is used: a platform's library costs
    nothing to those who do not talk on it."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def configured_store(
    config: Config,
    *,
    clock: Clock | None = None,
    points: Points = ignore_points,
    read_only: bool = False,
    waits: bool = True,
    told: Callable[[str], None] = lambda _: None,
) -> Store:
    """The store of the configuration. `read_only` opens a SQLite file beside a running gateway (any
    number of processes share a Redis store), for a person who waits for no server; nor does who does
    not say `waits`. `told` is given a sentence about a server that is waited for."""
    path = config.store.sqlite_path
    clock = clock or SystemClock()
    if path is None:
        from gateway.store.redis import RedisStore

        return RedisStore(config.store.url, clock=clock, waits=waits and not read_only, told=told)
    return SqliteStore(path, clock=clock, concurrency=config.turns.concurrent, points=points, read_only=read_only)


def home(config: Config) -> Path:
    """The gateway's own folder, beside its database: engines' files, console history, its log."""
    path = config.store.sqlite_path or Path("legato.db")
    return path.with_name(f"{path.stem}-home")


def model_spec(entry: Model, windows: Windows) -> ModelSpec:
    """A configured model with everything the host must know. Raises ConfigError without a name."""
    offline = entry.provider == "offline"
    if entry.name is None and not offline:
        raise ConfigError([f"model.name: say which model of {entry.provider} to use, for example gpt-5-mini"])
    name = entry.name or "offline"
    window = entry.context_length or (_OFFLINE_WINDOW if offline else windows.context_window(name))
    return ModelSpec(
        provider=entry.provider,
        name=name,
        base_url=entry.base_url,
        api_key=entry.api_key.get_secret_value() if entry.api_key else None,
        context_length=window or UNKNOWN_WINDOW,
        max_output_tokens=entry.max_output_tokens,
        cache_ttl=entry.cache_ttl,
        # The embedded model reads words only.
        pictures=None if entry.pictures == "auto" and not offline else entry.pictures is True,
        sounds=entry.sounds,
    )


def caching_note(config: Config) -> str:
    """Whether prompts are cached by marks, for which model, and how long: said at the start."""
    model = config.model
    if not caches_by_marks(model.provider, model.name or "", model.base_url):
        return f"off: {model.name or model.provider} takes no cache marks (a provider's own caching needs none)"
    return f"on for {model.name}, kept {model.cache_ttl}"


def _models(
    config: Config, counter: TokenCounter, clock: Clock, redact: Redactor, metrics: Metrics, parts: Parts
) -> tuple[Models, list[Callable[[], Awaitable[None]]]]:
    compression = config.auxiliary_model("compression")
    entries = [entry for entry in (config.model, compression) if entry is not None]
    real = any(entry.provider != "offline" for entry in entries)
    table = _price_table(entries) if real else OfflinePrices()

    async def pause() -> None:
        if parts.pace:
            await clock.sleep(parts.pace)

    providers: dict[str, Provider] = {"offline": Offline(counter.text, pause=pause)}
    ask_window: Callable[[ModelSpec], Awaitable[int | None]] | None = None
    closers: list[Callable[[], Awaitable[None]]] = []
    if parts.providers is not None:
        providers.update(parts.providers)
    elif real:
        openai = _openai(redact)
        providers["openai"] = Retrying(openai, clock=clock, rng=parts.rng or random.Random())
        closers.append(openai.aclose)
        if config.model.provider == "openai":
            ask_window = openai.reported_window
    auxiliary: dict[Purpose, ModelSpec] = {"compression": model_spec(compression, table)} if compression else {}
    models = Models(
        main=model_spec(config.model, table),
        providers=providers,
        windows=table,
        prices=table,
        auxiliary=auxiliary,
        window_is_configured=config.model.context_length is not None,
        ask_window=ask_window,
        metrics=metrics,
    )
    return models, closers


def _openai(redact: Redactor) -> ChatCompletions:
    # The HTTP stack takes 40 MB and 0.3 s: only who calls a real model pays for it.
    from gateway.providers.http import http_client
    from gateway.providers.openai.chat_completions import ChatCompletions

    return ChatCompletions(http_client(), redact)


def _price_table(entries: Sequence[Model]) -> _Table:
    from gateway.providers.catalog import OwnPrices, PriceTable

    return OwnPrices(PriceTable(), {entry.name or "": entry.prices for entry in entries if entry.prices})


def _engine_factory(
    config: Config, counter: TokenCounter, clock: Clock, redact: Redactor
) -> Callable[[], ContextEngine]:
    settings = compression(config)
    builtin = builtin_engines(settings, counter=counter, clock=clock, redact=redact)
    return EngineRegistry(builtin, Path(config.plugins.dir)).factory(config.context.engine)


def _shell(config: Config, clock: Clock, redact: Redactor) -> list[Tool]:
    shell = config.tools.shell
    if not shell.enabled:
        return []
    return [
        ShellTool(
            folder=(home(config) / "shell").absolute(),
            allow=shell.allow,
            admins_only=shell.admins_only,
            seconds=shell.timeout,
            clock=clock,
            redact=redact,
        )
    ]


def _prompts(config: Config, tools: ToolRegistry) -> PromptBuilder:
    return PromptBuilder(
        persona=config.prompt.persona,
        context_files=[(Path(name).name, _context_file(name)) for name in config.prompt.context_files],
        tool_names=tools.names,
    )


def _context_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"prompt.context_files: {name} cannot be read ({error})"]) from None
