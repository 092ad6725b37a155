"""The composition root: the one place where the concrete classes are put together.

`build` turns a configuration into a `Gateway`, and reads as the list of its parts; the functions below it make them.
Tests call it with `Parts` of their own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from tzlocal import get_localzone_name

from gateway.agent.agents import Agents
from gateway.agent.background import BackgroundCommands
from gateway.agent.compaction import Compactor, Hygiene
from gateway.agent.delegation import Helpers
from gateway.agent.embeddings import Embeddings
from gateway.agent.engines import Engines
from gateway.agent.files.frames import frames
from gateway.agent.files.intake import FileIntake
from gateway.agent.files.quota import FileQuotas
from gateway.agent.files.speech import Dictation
from gateway.agent.fitting import Fitting
from gateway.agent.forgetting import Forgetter
from gateway.agent.hooks import Hooks
from gateway.agent.loop import Agent
from gateway.agent.mcp.servers import McpServers
from gateway.agent.memory.flush import Flushes
from gateway.agent.memory.memories import Memories
from gateway.agent.metering import Metering
from gateway.agent.models import Models
from gateway.agent.preparation import Preparations
from gateway.agent.prompt import PromptBuilder
from gateway.agent.quotes import Quoting
from gateway.agent.running import RunningTurns
from gateway.agent.sessions import Sessions
from gateway.agent.skills.catalogue import Skills
from gateway.agent.steps import ToolSteps
from gateway.agent.tools.base import Tool, ToolHost
from gateway.agent.tools.offer import OWN, Caller, OfferRule, Rule, Toolbox, place_rule
from gateway.agent.tools.runtime import untraced
from gateway.agent.waking import Waking
from gateway.agent.workspace.folders import Workspaces
from gateway.app.accounts import AccountLeases, AccountNotes
from gateway.app.alerts import Alerts
from gateway.app.config import Config
from gateway.app.config.models import Chat
from gateway.app.gateway import Gateway
from gateway.app.health import Health
from gateway.app.home_files import OWNERS, home_files
from gateway.app.models import configured_models, configured_speaker, configured_transcriber
from gateway.app.orders import Events, Orders
from gateway.app.plugins import all_commands, configured_tools, platforms, plugged
from gateway.app.readers import Readers
from gateway.app.reload import InForce
from gateway.app.store import configured_store
from gateway.app.upkeep import Upkeep
from gateway.app.views import OperatorView, StoreViews
from gateway.app.watchdog import Watchdog
from gateway.commands.base import CommandContext, CommandRegistry, Program
from gateway.commands.mcp import prompt_commands
from gateway.commands.runner import CommandRunner
from gateway.context.compressor import Compressor
from gateway.context.engine import ContextEngine
from gateway.context.registry import EngineRegistry, builtin_engines
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import (
    Adapter,
    AnswerMcp,
    AsksFirst,
    AsksForKeys,
    CanReact,
    CanShowWork,
    CanType,
    Doing,
    HasTopics,
    LearnsNames,
    Limits,
    ShowsProposals,
    SpeaksMcp,
    TakesEvents,
    TakesNotes,
    account_of,
)
from gateway.domain.platform import TakesSettings
from gateway.domain.recurrence import zone_named
from gateway.domain.settings import Section
from gateway.domain.turn import TurnRules
from gateway.domain.views import ShowsStore, TakesHistories
from gateway.people.access import Access
from gateway.people.approvals import Approvals
from gateway.people.firing import ReminderFiring
from gateway.people.pairing import Pairing
from gateway.people.people import Home, People
from gateway.people.reminders import Reminders
from gateway.people.welcome import Welcome
from gateway.providers.base import Embeds, Provider
from gateway.providers.plugin import ProviderHost
from gateway.runtime.aside import RunsAside, WorkerProcess, at_once
from gateway.runtime.clock import Clock, Ids, SystemClock, SystemIds
from gateway.runtime.errors import ConfigError
from gateway.runtime.metrics import Metrics
from gateway.runtime.points import Points, TimedPoints, ignore_points
from gateway.runtime.redaction import Redactor
from gateway.runtime.structs import replace
from gateway.runtime.supervisor import Supervisor
from gateway.runtime.tasks import Background, best_effort
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import Documents, Store
from gateway.store.records import InboxItem
from gateway.turns.admission import Admission
from gateway.turns.expiry import Expiry
from gateway.turns.lanes import Lanes
from gateway.turns.reception import Reception
from gateway.turns.turn import Beside, Turns
from gateway.turns.turn_files import TurnFiles

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from gateway.agent.titles import Titles
    from gateway.app.backup.schedule import DailyBackups
    from gateway.app.tracing import Tracing
    from gateway.turns.joining import Joining
    from gateway.turns.overheard import Overheard
    from gateway.turns.reactions import Reactions
    from gateway.turns.suggestions import Suggestions
    from gateway.turns.voice import Voice

_PAGE_SECONDS = 10.0  # for the text of one page of the web or one file; 100,000 rows of a table take three


class Parts(Struct, frozen=True, kw_only=True):
    """Parts that a caller may replace. `providers` and `engine` replace the configured ones; `also_runs` are platforms
    whose turns run here although another process has their adapter."""

    clock: Clock | None = None
    ids: Ids | None = None
    rng: random.Random | None = None
    points: Points = ignore_points
    providers: Mapping[str, Provider] | None = None
    engine: Callable[[], ContextEngine] | None = None
    tools: Sequence[Tool] = ()
    counter: TokenCounter | None = None
    store: Store | None = None
    also_runs: Mapping[str, Limits] = field(default_factory=dict)
    told: Callable[[str], None] = lambda _: None  # what to say before an adapter can say anything
    aside: RunsAside = at_once  # what reads Markdown; `legato run` has a process for that
    supervisor: Supervisor | None = None  # with one, the watchdog runs
    tracer: Tracer | None = None  # in the place of the one that sends spans away
    backups: Callable[..., DailyBackups] | None = None  # for a process that makes them by itself
    pace: float = 0.0  # seconds between two words of a model that writes faster than people read


def build(config: Config, adapters: Sequence[Adapter], parts: Parts = Parts()) -> Gateway:
    """Wire a gateway. Call it inside a running event loop. Raises ConfigError."""
    base = _base(config, adapters, parts)
    agents, closers = _agents(base, parts)
    people = _people(base)
    known = all_commands()
    if agents.mcp.servers:
        known = CommandRegistry(known.commands, partial(prompt_commands, config.tools.mcp, agents.mcp.prompts))
    program = Program(
        registry=known,
        chats=_chats_in_words(config),
        automatic=config.compression.enabled,
        speaks="" if config.speech.base_url is None else config.speech.when,
        writes_down=config.transcription.base_url is not None or bool(config.transcription.command),
        started_at=base.clock.now(),
        rooms=base.outbox.rooms,
    )
    commands = _commands(base, program, agents, people)
    reactions = _reactions(base, people.pairing)
    overheard = _overheard(base)
    reception = _reception(base, agents, people, commands, reactions, overheard)
    beside = Beside(
        overheard=overheard,
        reactions=reactions,
        suggestions=_suggestions(base),
        voice=_voice(base, agents, parts),
        topics=config.tools.topics,
    )
    turns = _turns(base, agents, people, commands, beside)
    events = Events(
        store=base.store,
        outbox=base.outbox,
        pairing=people.pairing,
        home=people.home,
        rules=base.rules,
        clock=base.clock,
    )
    _connect(base, reception, events)
    worker = base.ids.new("w")
    lanes = Lanes(
        store=base.store,
        run=turns.run,
        worker=worker,
        concurrent=config.turns.concurrent,
        background=base.background,
        clock=base.clock,
        rest=reception.admission.rest,
        crowded=partial(_show_crowded, base),
    )
    agents.sessions.helpers.aside = lanes.aside
    accounts = AccountLeases(
        store=base.store, clock=base.clock, worker=worker, background=base.background, runs=tuple(base.limits)
    )
    readers = Readers(
        adapters=base.adapters, accounts=accounts, reception=reception, background=base.background, clock=base.clock
    )
    health = _health(base, agents, lanes, readers)
    if parts.backups is not None:
        health.backups = parts.backups(store=base.store, clock=base.clock, worker=worker)
    operator = OperatorView(
        store=base.store, health=health, outbox=base.outbox, clock=base.clock, redact=base.redact, config=base.config
    )
    _show_store(base, commands, operator, parts.aside)
    _speak_mcp(base, agents)
    watchdog = _watchdog(base, people.home, health, readers, parts.supervisor)
    close = [*closers, *base.close]
    models, toolbox = agents.metering.models, agents.sessions.toolbox

    async def take_up(changed: Config) -> None:
        """Whatever may fail comes first."""
        new = replace(base, config=changed)
        async with AsyncExitStack() as undo:
            metering, opened = _metering(new, parts, there=models.servers)
            for each in opened:
                undo.push_async_callback(each)
            own, prompts = _own_tools(new, parts), _prompts(new)
            metering.models.learned = models.learned
            await metering.models.learn_windows()
            toolbox.register(OWN, own)
            undo.pop_all()
        close.extend(opened)
        base.redact.learn(changed.secrets())
        base.skills.enabled = changed.tools.skills.enabled
        await asyncio.to_thread(base.skills.scan)
        agents.take_up(
            metering,
            rules=_tool_rules(new),
            prompts=prompts,
            limits=changed.tools,
            helper_usd=changed.tools.delegate.budget_usd,
        )
        agents.sessions.titles = _titles(new, models)
        people.take_up(
            Access.of(changed.access, base.limits),
            deadline=changed.tools.approval_deadline,
            lasts=changed.tools.approval_lasts,
            home=changed.home_chat,
        )
        program.chats = _chats_in_words(changed)
        watchdog.alerts.to = changed.alerts.chat
        operator.config = changed
        for adapter in adapters:
            if isinstance(adapter, TakesSettings) and (usual := platforms()[adapter.name].settings) is not None:
                adapter.take_up(changed.adapters.get(adapter.name, usual()))

    return Gateway(
        store=base.store,
        agents=agents,
        people=people,
        readers=readers,
        lanes=lanes,
        outbox=base.outbox,
        running_turns=base.running_turns,
        background=base.background,
        clock=base.clock,
        upkeep=Upkeep(
            expiry=Expiry(store=base.store, clock=base.clock),
            people=people,
            agents=agents,
            orders=Orders(store=base.store, outbox=base.outbox, events=events, clock=base.clock),
            health=health,
            background=base.background,
            clock=base.clock,
            heartbeat=_heartbeat(base, agents, people),
        ),
        watchdog=watchdog,
        settings=InForce(redact=base.redact, take_up=take_up, close=close),
    )


class _Base(Struct, frozen=True, kw_only=True):
    """The parts that nearly all others are given. `limits` has the platforms whose turns run here, with an adapter
    or without; `pages` is the process that reads pages of the web and files."""

    config: Config
    rules: TurnRules
    clock: Clock
    ids: Ids
    points: Points
    redact: Redactor
    counter: TokenCounter
    background: Background
    store: Store
    adapters: Mapping[str, Adapter]
    limits: Mapping[str, Limits]
    outbox: Outbox
    running_turns: RunningTurns
    tracing: Tracing | None
    pages: WorkerProcess
    workspaces: Workspaces
    skills: Skills
    close: Sequence[Callable[[], Awaitable[None]]]


def _base(config: Config, adapters: Sequence[Adapter], parts: Parts) -> _Base:
    clock, ids, background = parts.clock or SystemClock(), parts.ids or SystemIds(), Background()
    points = TimedPoints(parts.points, clock)
    store = parts.store or configured_store(config, clock=clock, told=parts.told)
    by_name = {adapter.name: adapter for adapter in adapters}
    limits = {**parts.also_runs, **{adapter.name: adapter.limits for adapter in adapters}}
    redact = Redactor(config.secrets())
    tracing, close = _tracing(config, parts, clock, redact)
    # A page takes longer than a reply, which must not wait for it: so this is a process of its own.
    pages = WorkerProcess(clock=clock, seconds=_PAGE_SECONDS)
    workspaces = Workspaces(config.home.absolute() / "workspaces", config.tools.workspace)
    return _Base(
        config=config,
        rules=TurnRules(
            sessions=config.sessions,
            turns=config.turns,
            groups=config.by_place("groups"),
            threads=config.by_place("threads"),
            busy_mode=config.by_place("busy_mode"),
            reactions=config.by_place("reactions"),
            context=config.by_place("context"),
            names=config.by_place("names"),
            joins=config.by_place("joins"),
        ),
        clock=clock,
        ids=ids,
        points=points,
        redact=redact,
        counter=parts.counter or TokenCounter(),
        background=background,
        store=store,
        adapters=by_name,
        limits=limits,
        outbox=Outbox(
            store=store,
            adapters=by_name,
            limits=limits,
            clock=clock,
            ids=ids,
            background=background,
            points=points,
            aside=parts.aside,
        ),
        running_turns=RunningTurns(
            background=BackgroundCommands(
                root=workspaces.background,
                jobs=background,
                clock=clock,
                redact=redact,
                wake=Waking(store=store, clock=clock).wake,
            )
        ),
        tracing=tracing,
        pages=pages,
        workspaces=workspaces,
        skills=_skills(config, store, redact, workspaces),
        close=[pages.aclose, *close],
    )


def _skills(config: Config, store: Documents, redact: Redactor, workspaces: Workspaces) -> Skills:
    skills = Skills(
        store=store,
        folder=config.at("skills").absolute(),
        workspaces=workspaces,
        redact=redact,
        enabled=config.tools.skills.enabled,
    )
    skills.scan()
    return skills


def _tracing(
    config: Config, parts: Parts, clock: Clock, redact: Redactor
) -> tuple[Tracing | None, list[Callable[[], Awaitable[None]]]]:
    """What makes spans, and what sends the last of them; nothing where they are not wanted."""
    if not config.otel.enabled:
        return None, []
    try:
        module = import_module("gateway.app.tracing")
    except ModuleNotFoundError as error:
        raise ConfigError([f"otel.enabled needs OpenTelemetry ({error}): pip install 'legato[otel]'"]) from None
    tracer, close = (parts.tracer, []) if parts.tracer else module.exporting()
    return module.Tracing(tracer=tracer, clock=clock, redact=redact, contents=config.otel.contents), close


def _agents(base: _Base, parts: Parts) -> tuple[Agents, list[Callable[[], Awaitable[None]]]]:
    """What agents are made of, and a function that closes the connections to their models."""
    config, store, clock, counter, redact = base.config, base.store, base.clock, base.counter, base.redact
    metering, closers = _metering(base, parts)
    toolbox = Toolbox(_own_tools(base, parts), rules=_tool_rules(base), count=counter.schemas)
    sessions = _sessions(base, metering, toolbox, parts)
    mcp = McpServers(
        settings=config.tools.mcp,
        toolbox=toolbox,
        folder=config.home / "mcp",
        own=_own_places(config),
        clock=clock,
        redact=redact,
        learn=redact.learn,
    )
    agents = Agents(
        sessions=sessions,
        forgetter=Forgetter(
            store=store,
            sessions=sessions,
            redact=redact,
            clock=clock,
            adapters=list(base.adapters.values()),
            workspaces=base.workspaces,
            background=base.running_turns.background,
        ),
        metering=metering,
        embeddings=_embeddings(base, metering),
        files=FileIntake(
            store=store,
            adapters=base.adapters,
            view=metering.view,
            counter=counter,
            clock=clock,
            quotas=FileQuotas(store=store, settings=config.files),
            aside=base.pages,
            dictation=_dictation(base, metering),
            frames=frames(clock),
            paints=config.tools.pictures.base_url is not None,
        ),
        hygiene=Hygiene(config.hygiene, clock, enabled=config.compression.enabled),
        mcp=mcp,
        agent=partial(
            Agent,
            quoting=Quoting(counter=counter, clock=clock, redact=redact) if config.context.recall else None,
            servers_tried=mcp.first_tried,
            settings=config.turns,
            clock=clock,
        ),
        fitting=partial(Fitting, automatic=config.compression.enabled, plugged=sessions.hooks.plugged),
        steps=partial(
            ToolSteps,
            toolbox=toolbox,
            redact=base.redact,
            memories=sessions.memories,
            helpers=sessions.helpers,
            limits=config.tools,
            clock=clock,
            points=base.points,
            traced=base.tracing.tool if base.tracing else untraced,
            plugged=sessions.hooks.plugged,
        ),
        compactor=partial(
            Compactor,
            clock=clock,
            points=base.points,
            preparations=sessions.preparations,
            flushes=sessions.flushes,
            rescuer=sessions.engines.rescuer,
            plugged=sessions.hooks.plugged,
        ),
        invoke=base.tracing.invoke if base.tracing else Agent.run,
    )
    return agents, closers


def _metering(
    base: _Base, parts: Parts, *, there: Mapping[str, Provider] = {}
) -> tuple[Metering, list[Callable[[], Awaitable[None]]]]:
    """The models with their costs, and what closes those of their providers that are not `there` already."""
    config, clock = base.config, base.clock

    async def pause() -> None:
        if parts.pace:
            await clock.sleep(parts.pace)

    models, closers = configured_models(
        config,
        ProviderHost(clock=clock, redact=base.redact, count=base.counter.text, pause=pause),
        parts.rng or random.Random(),
        parts.providers or {},
        there,
    )
    if base.tracing is not None:
        models.providers = base.tracing.providers(models.providers)
    metering = Metering(
        models=models,
        store=base.store,
        caps=config.budgets,
        chats=config.by_place("daily_usd"),
        counter=base.counter,
        clock=clock,
        ids=base.ids,
    )
    return metering, closers


def _titles(base: _Base, models: Models) -> Titles | None:
    """What names conversations; None where that is off, or no model can."""
    if not base.config.sessions.titles or all(each.only_model for each in models.plugins.values()):
        return None
    titles: Titles = import_module("gateway.agent.titles").Titles(background=base.background, redact=base.redact)
    return titles


def _dictation(base: _Base, metering: Metering) -> Dictation | None:
    transcriber = configured_transcriber(base.config, base.clock)
    if transcriber is None:
        return None
    return Dictation(store=base.store, transcriber=transcriber, settings=base.config.transcription, metering=metering)


def _embeddings(base: _Base, metering: Metering) -> Embeddings | None:
    models = metering.models
    spec = models.embedding
    if spec is None:
        return None
    server = models.servers[spec.provider]
    if not isinstance(server, Embeds):
        raise ConfigError([f"search.embeddings.provider: {spec.provider} gives no vectors; name another one"])
    return Embeddings(
        spec=spec,
        server=server,
        metering=metering,
        redact=base.redact,
        holder=base.ids.new("v"),
    )


def _own_tools(base: _Base, parts: Parts) -> list[Tool]:
    config = base.config
    host = ToolHost(
        sections=[each for _, each in config.tools if isinstance(each, Section)],
        clock=base.clock,
        redact=base.redact,
        home=config.home.absolute(),
        own=_own_places(config),
        aside=base.pages,
        skills=base.skills,
        background=base.running_turns.background,
    )
    topics = [import_module("gateway.agent.tools.topic").TopicTool()] if config.tools.topics else []
    return [*configured_tools(host), *topics, *parts.tools]


def _own_places(config: Config) -> Sequence[Path]:
    """What no sandbox may see."""
    return [each.resolve() for each in (config.at("."), config.home, config.database) if each]


def _tool_rules(base: _Base) -> list[Rule]:
    config = base.config
    rules: list[Rule] = []
    if config.tools.offered or config.tools.admins_only:
        mail_ids = [name for name, adapter in base.adapters.items() if adapter.limits.mail_ids]
        rules.append(OfferRule(offered=config.tools.offered, admins_only=config.tools.admins_only, mail_ids=mail_ids))
    if lists := config.by_place("tools"):
        rules.append(place_rule(lists))
    with_topics = {name for name, adapter in base.adapters.items() if isinstance(adapter, HasTopics)}

    def has_topics(name: str, caller: Caller) -> bool:
        return name != "topic" or (caller.source.chat_type != "direct" and caller.source.platform in with_topics)

    return [*rules, has_topics] if config.tools.topics else rules


def _sessions(base: _Base, metering: Metering, toolbox: Toolbox, parts: Parts) -> Sessions:
    config, store, clock = base.config, base.store, base.clock
    builtin = builtin_engines(config.compression, counter=base.counter, clock=clock, redact=base.redact)
    registry = EngineRegistry(builtin, config.at(config.plugins.dir), config.home / "engines")
    engines = Engines(
        factory=parts.engine or registry.factory(config.context.engine),
        builtin=builtin[Compressor.name],
        metering=metering,
        home=config.home / "engines",
    )
    memories = Memories(
        store=store, clock=clock, redact=base.redact, settings=config.memory, zone=config.sessions.expiry.zone
    )
    flushes = Flushes(memories=memories, metering=metering, background=base.background, holder=base.ids.new("f"))
    preparations = Preparations(
        engines=engines,
        flushes=flushes,
        store=store,
        background=base.background,
        clock=clock,
        compression=config.compression,
        hygiene=config.hygiene,
    )
    return Sessions(
        store=store,
        engines=engines,
        preparations=preparations,
        titles=_titles(base, metering.models),
        models=metering.models,
        prompts=_prompts(base),
        memories=memories,
        skills=base.skills,
        flushes=flushes,
        hooks=Hooks(
            store=store,
            engines=engines,
            clock=clock,
            points=base.points,
            background=base.background,
            plugged=plugged(clock),
        ),
        helpers=Helpers(
            store=store, clock=clock, budget_usd=config.tools.delegate.budget_usd, looks_usd=config.heartbeat.daily_usd
        ),
        counter=base.counter,
        toolbox=toolbox,
        policy=config.sessions.expiry,
        clock=clock,
        ids=base.ids,
        points=base.points,
    )


def _people(base: _Base) -> People:
    config, store, outbox, clock = base.config, base.store, base.outbox, base.clock
    access = Access.of(config.access, base.limits)
    approvals = Approvals(
        store=store,
        outbox=outbox,
        access=access,
        clock=clock,
        ids=base.ids,
        seconds=config.tools.approval_deadline,
        lasts=config.tools.approval_lasts,
    )
    keys = import_module("gateway.people.keys").Keys(store=store, clock=clock) if access.keyed else None
    pairing = Pairing(access=access, store=store, clock=clock, rng=random.SystemRandom(), keys=keys)
    reminders = Reminders(
        store=store,
        outbox=outbox,
        access=access,
        clock=clock,
        ids=base.ids,
        rules=config.reminders,
        zone=config.sessions.expiry.timezone or machine_zone(),
    )
    return People(
        approvals=approvals,
        pairing=pairing,
        welcome=Welcome(pairing=pairing, outbox=outbox),
        reminders=reminders,
        firing=ReminderFiring(store=store, reminders=reminders, pairing=pairing, clock=clock, points=base.points),
        home=Home(store=store, said=config.home_chat),
    )


def _commands(base: _Base, program: Program, agents: Agents, people: People) -> CommandRunner:
    store, outbox, clock = base.store, base.outbox, base.clock
    context = partial(
        CommandContext,
        program=program,
        store=store,
        sessions=agents.sessions,
        agents=agents,
        people=people,
        running_turns=base.running_turns,
        clock=clock,
        files=lambda item: TurnFiles(item=item, store=store, outbox=outbox, clock=clock),
        redact=base.redact,
    )
    return CommandRunner(registry=program.registry, context=context)


def _overheard(base: _Base) -> Overheard | None:
    """What hears groups; None if only the operator, or people with a key, can talk, each alone."""
    if all(each.trusted or each.keyed for each in base.limits.values()):
        return None
    heard: Overheard = import_module("gateway.turns.overheard").Overheard(
        rules=base.rules, redact=base.redact, notes=base.store
    )
    return heard


def _reception(
    base: _Base,
    agents: Agents,
    people: People,
    commands: CommandRunner,
    reactions: Reactions | None,
    overheard: Overheard | None,
) -> Reception:
    joining: Joining | None = None
    if overheard is not None and base.rules.joins:
        joining = import_module("gateway.turns.joining").Joining(
            store=base.store,
            metering=agents.metering,
            overheard=overheard,
            rules=base.rules,
            background=base.background,
            clock=base.clock,
            redact=base.redact,
            lets_in=people.pairing.lets_in,
        )
    return Reception(
        store=base.store,
        outbox=base.outbox,
        commands=commands,
        pairing=people.pairing,
        welcome=people.welcome,
        approvals=people.approvals,
        reminders=people.reminders,
        background=base.background,
        clock=base.clock,
        points=base.points,
        rules=base.rules,
        admission=Admission(
            store=base.store,
            outbox=base.outbox,
            registry=commands.registry,
            cap=base.rules.turns.lane_cap,
            clock=base.clock,
        ),
        overheard=overheard,
        joining=joining,
        reactions=reactions,
    )


def _reactions(base: _Base, pairing: Pairing) -> Reactions | None:
    """The bot's reactions and people's; None where no platform has any."""
    adapters = {name: adapter for name, adapter in base.adapters.items() if isinstance(adapter, CanReact)}
    if not adapters:
        return None
    made: Reactions = import_module("gateway.turns.reactions").Reactions(
        store=base.store,
        rules=base.rules,
        pairing=pairing,
        clock=base.clock,
        background=base.background,
        adapters=adapters,
        signs=base.rules.sessions.reactions or any(base.rules.reactions.values()),
    )
    return made


def _turns(base: _Base, agents: Agents, people: People, commands: CommandRunner, beside: Beside) -> Turns:
    return Turns(
        store=base.store,
        agents=agents,
        people=people,
        commands=commands,
        running_turns=base.running_turns,
        outbox=base.outbox,
        adapters=base.adapters,
        rules=base.rules,
        clock=base.clock,
        began=base.clock.monotonic(),
        points=base.points,
        beside=beside,
    )


def _suggestions(base: _Base) -> Suggestions | None:
    if not base.config.sessions.suggestions:
        return None
    suggestions: Suggestions = import_module("gateway.turns.suggestions").Suggestions(
        store=base.store, outbox=base.outbox, background=base.background, redact=base.redact
    )
    return suggestions


def _voice(base: _Base, agents: Agents, parts: Parts) -> Voice | None:
    settings = base.config.speech
    if settings.base_url is None:
        return None
    voice: Voice = import_module("gateway.turns.voice").Voice(
        store=base.store,
        outbox=base.outbox,
        sessions=agents.sessions,
        server=configured_speaker(settings, base.clock),
        settings=settings,
        read=parts.aside,
        clock=base.clock,
        points=base.points,
    )
    return voice


def _health(base: _Base, agents: Agents, lanes: Lanes, readers: Readers) -> Health:
    return Health(
        store=base.store,
        readers=readers,
        lanes=lanes,
        running_turns=base.running_turns,
        models=agents.metering.models,
        metrics=Metrics(),
        clock=base.clock,
        background=base.background,
        folder=None if base.config.database is None else base.config.database.parent,
    )


def _heartbeat(base: _Base, agents: Agents, people: People) -> Callable[[], Awaitable[None]] | None:
    if base.config.heartbeat.chat is None:
        return None
    heartbeat = import_module("gateway.app.heartbeat").Heartbeat(
        settings=base.config.heartbeat,
        folder=base.config.at("."),
        store=base.store,
        helpers=agents.sessions.helpers,
        rules=base.rules,
        redact=base.redact,
        zone=base.config.sessions.expiry.zone,
        pairing=people.pairing,
        home=people.home,
        clock=base.clock,
    )
    return partial(heartbeat.look)


def _watchdog(base: _Base, home: Home, health: Health, readers: Readers, supervisor: Supervisor | None) -> Watchdog:
    to = base.config.alerts.chat
    return Watchdog(
        health=health,
        readers=readers,
        alerts=Alerts(to=to, home=home, outbox=base.outbox, background=base.background, clock=base.clock),
        supervisor=supervisor or Supervisor(),
        clock=base.clock,
        runs=supervisor is not None,
    )


async def _show_crowded(base: _Base, item: InboxItem) -> None:
    """Show that a message waits for the other chats of the same person."""
    adapter, to = base.adapters.get(item.key.platform), item.inbound.source.address
    if isinstance(adapter, CanType) and isinstance(adapter, CanShowWork):
        await best_effort(adapter.typing(to, True), what="typing")
        adapter.working(to, Doing("waiting until one of your other chats is done"), 0.0)


def _connect(base: _Base, reception: Reception, events: Events) -> None:
    """Give the adapters what some of them ask the gateway for."""
    for adapter in base.adapters.values():
        if isinstance(adapter, TakesNotes):
            adapter.notebook = AccountNotes(store=base.store, account=account_of(adapter))
        if isinstance(adapter, LearnsNames):
            adapter.renamed = partial(base.store.rename_chat, adapter.name)
        if isinstance(adapter, AsksForKeys):
            adapter.keys = reception.pairing.keys
        if isinstance(adapter, AsksFirst):
            adapter.admits = reception.admits
        if isinstance(adapter, ShowsProposals):
            adapter.propose = reception.proposals
        if isinstance(adapter, TakesEvents):
            adapter.take_event = events.take


def _show_store(base: _Base, commands: CommandRunner, operator: OperatorView, aside: RunsAside) -> None:
    """Give the adapters that show what the store holds a way to read it."""
    for adapter in base.adapters.values():
        if isinstance(adapter, ShowsStore):
            adapter.views = StoreViews(
                store=base.store,
                runner=commands,
                rules=base.rules,
                quotas=FileQuotas(store=base.store, settings=base.config.files),
                clock=base.clock,
                aside=aside,
            )
            adapter.inside = operator
        if isinstance(adapter, TakesHistories):
            histories = import_module("gateway.app.histories").StoreHistories
            adapter.histories = histories(store=base.store, rules=base.rules, counter=base.counter, clock=base.clock)


def _speak_mcp(base: _Base, agents: Agents) -> None:
    """Give the adapters that take MCP's requests what answers them. The library is loaded with the first one."""

    made: list[AnswerMcp] = []

    async def answer(*asked: Any) -> tuple[int, str, bytes]:
        if not made:
            served = await asyncio.to_thread(import_module, "gateway.app.mcp_server")
            parts = {"store": base.store, "redact": base.redact, "clock": base.clock, "ids": base.ids}
            if agents.embeddings is not None:
                parts["means"] = agents.embeddings.meaning
            made.append(partial(served.answered, served.Shelf(memories=agents.sessions.memories, **parts)))
        return await made[0](*asked)

    for adapter in base.adapters.values():
        if isinstance(adapter, SpeaksMcp):
            adapter.mcp = answer


def machine_zone() -> str:
    """The name of this machine's time zone; UTC where it has none that is known."""
    try:
        name = get_localzone_name()
    except (OSError, ValueError, LookupError):
        return "UTC"
    return name if name not in (None, "Etc/UTC") and zone_named(name) else "UTC"


def _prompts(base: _Base) -> PromptBuilder:
    config = base.config
    named = [(Path(name).name, _context_file(config.at(name))) for name in config.prompt.context_files]
    found = [(each.name, each.text) for each in home_files(config, base.redact) if each.text]
    return PromptBuilder(
        settings=config.prompt,
        personas=config.by_place("persona"),
        context_files=[*named, *(each for each in found if each[0] != OWNERS)],
        owners_files=[each for each in found if each[0] == OWNERS],
        is_owner=Access.of(config.access, base.limits).is_admin,
        hints={each.name: each.hint for each in platforms().values() if each.hint},
    )


def _chats_in_words(config: Config) -> dict[str, dict[str, str]]:
    """The entries of `chats` other than personas and models, as /context shows them."""
    keys = [key for key in Chat.model_fields if key not in ("persona", "model")]
    return {
        key: {
            place: (", ".join(value) or "none") if isinstance(value, tuple) else f"{value}".lower()
            for place, value in said.items()
        }
        for key in keys
        if (said := config.by_place(key))
    }


def _context_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"prompt.context_files: {path} cannot be read ({error})"]) from None
