"""The composition root: the only module that names concrete classes.

`build` turns a configuration into a `Gateway`; tests call it with `Parts` of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tzlocal import get_localzone_name

from gateway.agent.compaction import Compactor
from gateway.agent.engines import Engines
from gateway.agent.files.intake import FileIntake
from gateway.agent.files.speech import Dictation
from gateway.agent.forgetting import Forgetter
from gateway.agent.hygiene import Hygiene
from gateway.agent.loop import Agent
from gateway.agent.mcp.servers import McpServers
from gateway.agent.mcp.shelf import Shelf
from gateway.agent.memory.flush import Flushes
from gateway.agent.memory.memories import Memories
from gateway.agent.metering import Metering
from gateway.agent.preparation import Preparations
from gateway.agent.prompt import PromptBuilder
from gateway.agent.quotes import Quoting
from gateway.agent.running import RunningTurns
from gateway.agent.sessions import Sessions
from gateway.agent.tools.base import Tool, ToolHost
from gateway.agent.tools.offer import OfferRule, PlaceRule, Toolbox
from gateway.agent.tools.outputs import OutputLimits
from gateway.app.accounts import AccountLeases, AccountNotes
from gateway.app.config import Config
from gateway.app.config.models import ChatKey
from gateway.app.gateway import Gateway
from gateway.app.models import configured_models, configured_transcriber
from gateway.app.plugins import all_commands, configured_tools, platforms
from gateway.commands.base import CommandContext
from gateway.commands.runner import CommandRunner
from gateway.context.engine import ContextEngine
from gateway.context.registry import EngineRegistry, builtin_engines
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Adapter, Limits, ShowsProposals, TakesNotes, account_of
from gateway.domain.recurrence import zone_named
from gateway.people.access import Access
from gateway.people.approvals import Approvals
from gateway.people.pairing import Pairing
from gateway.people.reminders import Reminders
from gateway.people.welcome import Welcome
from gateway.providers.base import Provider
from gateway.providers.plugin import ProviderHost
from gateway.runtime.aside import Aside, RunsAside, at_once
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
from gateway.turns.reminders import ReminderSweep
from gateway.turns.turn import Turns
from gateway.turns.turn_files import TurnFiles

_PAGE_SECONDS = 5.0  # for the text of one page of the web


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
    metering = Metering(
        models=models,
        store=store,
        caps=config.budgets,
        chats=config.by_place("daily_usd"),
        counter=counter,
        clock=clock,
        ids=ids,
    )
    # A page takes longer than a reply, which must not wait for it: so this is a process of its own.
    pages = Aside(clock=clock, seconds=_PAGE_SECONDS)
    tool_host = ToolHost(
        sections=(config.tools.shell, config.tools.web),
        clock=clock,
        redact=redact,
        home=home(config).absolute(),
        aside=pages,
    )
    toolbox = Toolbox(
        [*configured_tools(tool_host), *parts.tools],
        rules=[
            OfferRule(offered=config.tools.offered, admins_only=config.tools.admins_only),
            PlaceRule(lists=config.by_place("tools")),
        ],
        count=counter.schemas,
    )
    mcp = McpServers(
        settings=config.tools.mcp,
        toolbox=toolbox,
        shelf=Shelf(folder=home(config) / "mcp"),
        clock=clock,
        redact=redact,
    )
    engines = Engines(
        factory=parts.engine or _engine_factory(config, counter, clock, redact),
        metering=metering,
        clock=clock,
        home=home(config) / "engines",
    )
    memories = Memories(
        store=store, clock=clock, redact=redact, settings=config.memory, zone=config.sessions.expiry.zone
    )
    flushes = Flushes(
        memories=memories,
        metering=metering,
        background=background,
        clock=clock,
        metrics=metrics,
        holder=ids.new("f"),
    )
    preparations = Preparations(
        engines=engines,
        flushes=flushes,
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
        prompts=_prompts(config),
        memories=memories,
        flushes=flushes,
        counter=counter,
        toolbox=toolbox,
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
    transcriber = configured_transcriber(config, clock)
    dictation = None
    if transcriber is not None:
        closers.append(transcriber.aclose)
        dictation = Dictation(
            store=store, transcriber=transcriber, settings=config.transcription, metering=metering, clock=clock
        )
    running_turns = RunningTurns()
    rules = TurnRules(
        groups=config.sessions.groups,
        threads=config.sessions.threads,
        busy_mode=config.sessions.busy_mode,
        deadline=config.turns.deadline,
        inactivity=config.turns.inactivity,
        lane_cap=config.turns.lane_cap,
        groups_of=config.by_place("groups"),
        threads_of=config.by_place("threads"),
        busy_mode_of=config.by_place("busy_mode"),
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
    reminders = Reminders(
        store=store,
        outbox=outbox,
        access=access,
        clock=clock,
        ids=ids,
        rules=config.reminders,
        zone=config.sessions.expiry.timezone or machine_zone(),
    )
    sweep = ReminderSweep(
        store=store, reminders=reminders, pairing=pairing, clock=clock, points=points, metrics=metrics
    )
    forgetter = Forgetter(
        store=store,
        sessions=sessions,
        remembered=memories,
        counter=counter,
        redact=redact,
        clock=clock,
        adapters=adapters,
    )
    context = partial(
        CommandContext,
        store=store,
        sessions=sessions,
        approvals=approvals,
        reminders=reminders.of,
        pairing=pairing,
        welcome=welcome,
        metering=metering,
        running_turns=running_turns,
        clock=clock,
        counter=counter,
        files=lambda item: TurnFiles(item=item, store=store, outbox=outbox, clock=clock),
        forgetter=forgetter,
        mcp=mcp,
        redact=redact,
        chats=_chats_in_words(config),
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
        reminders=reminders,
        background=background,
        clock=clock,
        points=points,
        rules=rules,
    )
    agent = partial(
        Agent,
        models=models,
        memories=memories,
        toolbox=toolbox,
        servers_tried=mcp.first_tried,
        clock=clock,
        points=points,
        max_steps=config.turns.max_steps,
        limits=OutputLimits(
            result=config.tools.result_chars, step=config.tools.turn_chars, preview=config.tools.preview_chars
        ),
        automatic=config.compression.enabled,
        quoting=Quoting(counter=counter, clock=clock, redact=redact) if config.context.recall else None,
    )
    turns = Turns(
        store=store,
        sessions=sessions,
        pairing=pairing,
        approvals=approvals,
        reminders=reminders,
        schedules=sweep,
        metering=metering,
        commands=commands,
        forgetter=forgetter,
        files=FileIntake(
            store=store, adapters=by_name, view=metering.view, counter=counter, clock=clock, dictation=dictation
        ),
        hygiene=Hygiene(config.hygiene, clock, enabled=config.compression.enabled),
        preparations=preparations,
        agent=agent,
        compactor=partial(
            Compactor, clock=clock, points=points, metrics=metrics, preparations=preparations, flushes=flushes
        ),
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
        reminders=sweep,
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
        mcp=mcp,
        close=(*closers, pages.aclose),
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


def machine_zone() -> str:
    """The name of this machine's time zone; UTC where it has none that is known."""
    try:
        name = get_localzone_name()
    except (OSError, ValueError, LookupError):
        return "UTC"
    return name if name not in (None, "Etc/UTC") and zone_named(name) else "UTC"


def home(config: Config) -> Path:
    """The gateway's own folder, beside its database: engines' files, console history, its log."""
    path = config.store.sqlite_path or Path("legato.db")
    return path.with_name(f"{path.stem}-home")


def _engine_factory(
    config: Config, counter: TokenCounter, clock: Clock, redact: Redactor
) -> Callable[[], ContextEngine]:
    builtin = builtin_engines(config.compression, counter=counter, clock=clock, redact=redact)
    return EngineRegistry(builtin, Path(config.plugins.dir)).factory(config.context.engine)


def _prompts(config: Config) -> PromptBuilder:
    return PromptBuilder(
        persona=config.prompt.persona,
        personas=config.by_place("persona"),
        context_files=[(Path(name).name, _context_file(name)) for name in config.prompt.context_files],
        hints={each.name: each.hint for each in platforms().values() if each.hint},
    )


def _chats_in_words(config: Config) -> dict[str, dict[str, str]]:
    """What `chats` says beside personas and models, as /context shows it."""
    keys: tuple[ChatKey, ...] = ("tools", "listen", "busy_mode", "groups", "threads", "daily_usd")
    return {
        key: {
            place: (", ".join(value) or "none") if isinstance(value, tuple) else f"{value}"
            for place, value in said.items()
        }
        for key in keys
        if (said := config.by_place(key))
    }


def _context_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"prompt.context_files: {name} cannot be read ({error})"]) from None
