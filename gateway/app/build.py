"""The composition root: the only module that names concrete classes.

`build` turns a configuration into a `Gateway`; tests call it with `Parts` of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gateway.agent.compaction import Compactor
from gateway.agent.engines import Engines
from gateway.agent.files.intake import FileIntake
from gateway.agent.hygiene import Hygiene
from gateway.agent.loop import Agent
from gateway.agent.metering import Metering
from gateway.agent.preparation import Preparations
from gateway.agent.prompt import PromptBuilder
from gateway.agent.running import RunningTurns
from gateway.agent.sessions import Sessions
from gateway.agent.tools.base import Tool, ToolHost
from gateway.agent.tools.runtime import ToolRegistry, ToolRuntime
from gateway.app.accounts import AccountLeases, AccountNotes
from gateway.app.config import Config
from gateway.app.gateway import Gateway
from gateway.app.models import configured_models
from gateway.app.plugins import all_commands, configured_tools, platforms
from gateway.commands.base import CommandContext
from gateway.commands.runner import CommandRunner
from gateway.context.engine import ContextEngine
from gateway.context.registry import EngineRegistry, builtin_engines
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Adapter, Limits, ShowsProposals, TakesNotes, account_of
from gateway.people.access import Access
from gateway.people.approvals import Approvals
from gateway.people.pairing import Pairing
from gateway.people.welcome import Welcome
from gateway.providers.base import Provider
from gateway.providers.plugin import ProviderHost
from gateway.runtime.aside import RunsAside, at_once
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
from gateway.turns.reception import Reception, TurnRules
from gateway.turns.turn import Turns
from gateway.turns.turn_files import TurnFiles


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
    aside: RunsAside = at_once  # what reads Markdown; `legato run` has a process for that
    pace: float = 0.0  # seconds between two words of a model that writes faster than people read


def build(config: Config, adapters: Sequence[Adapter], parts: Parts = Parts()) -> Gateway:
    """Wire a gateway. Call it inside a running event loop. Raises ConfigError."""
    clock, ids = parts.clock or SystemClock(), parts.ids or SystemIds()
    metrics = Metrics()
    points = TimedPoints(parts.points, clock, metrics)
    redact = Redactor(config.secrets())
    counter = TokenCounter()
    background = Background()
    store = parts.store or configured_store(config, clock=clock, points=points, told=parts.told)

    async def pause() -> None:
        if parts.pace:
            await clock.sleep(parts.pace)

    models, closers = configured_models(
        config,
        ProviderHost(clock=clock, redact=redact, count=counter.text, pause=pause),
        parts.rng or random.Random(),
        parts.providers or {},
        metrics,
    )
    metering = Metering(models=models, store=store, caps=config.budgets, counter=counter, clock=clock, ids=ids)
    tool_host = ToolHost(sections=(config.tools.shell,), clock=clock, redact=redact, home=home(config).absolute())
    tools = ToolRegistry([*configured_tools(tool_host), *parts.tools])
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
        policy=config.sessions.expiry,
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
        aside=parts.aside,
    )
    running_turns = RunningTurns()
    rules = TurnRules(
        groups=config.sessions.groups,
        threads=config.sessions.threads,
        busy_mode=config.sessions.busy_mode,
        deadline=config.turns.deadline,
        inactivity=config.turns.inactivity,
        lane_cap=config.turns.lane_cap,
    )
    access = Access(
        allow=frozenset(config.access.allow),
        admins=frozenset(config.access.admins),
        trusted=frozenset(name for name, limit in limits.items() if limit.trusted),
        operators={name: limit.operator for name, limit in limits.items() if limit.operator is not None},
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
        files=lambda item: TurnFiles(item=item, store=store, outbox=outbox, clock=clock),
        redact=redact,
        automatic=config.compression.enabled,
        started_at=clock.now(),
    )
    commands = CommandRunner(registry=all_commands(), context=context)
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
        hygiene=Hygiene(config.hygiene, clock, enabled=config.compression.enabled),
        preparations=preparations,
        agent=agent,
        compactor=partial(Compactor, clock=clock, points=points, metrics=metrics, preparations=preparations),
        running_turns=running_turns,
        outbox=outbox,
        adapters=by_name,
        background=background,
        rules=rules,
        clock=clock,
        points=points,
        metrics=metrics,
    )
    for adapter in adapters:
        if isinstance(adapter, TakesNotes):
            adapter.notebook = AccountNotes(store=store, account=account_of(adapter))
        if isinstance(adapter, ShowsProposals):
            adapter.propose = reception.proposals
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


def _engine_factory(
    config: Config, counter: TokenCounter, clock: Clock, redact: Redactor
) -> Callable[[], ContextEngine]:
    builtin = builtin_engines(config.compression, counter=counter, clock=clock, redact=redact)
    return EngineRegistry(builtin, Path(config.plugins.dir)).factory(config.context.engine)


def _prompts(config: Config, tools: ToolRegistry) -> PromptBuilder:
    return PromptBuilder(
        persona=config.prompt.persona,
        context_files=[(Path(name).name, _context_file(name)) for name in config.prompt.context_files],
        tool_names=tools.names,
        hints={each.name: each.hint for each in platforms().values() if each.hint},
    )


def _context_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"prompt.context_files: {name} cannot be read ({error})"]) from None
