"""`legato trajectories`: work on finished runs, away from any conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.printing import complain, show
from gateway.cli.program import Commands, ConfigOption, guarded, settings_of
from gateway.domain.usage import usage_of

if TYPE_CHECKING:
    from gateway.agent.auxiliary import AuxiliaryModel
    from gateway.app.config import Config
    from gateway.domain.message import Message
    from gateway.domain.usage import LedgerEntry
    from gateway.runtime.clock import Clock
    from gateway.runtime.tokens import TokenCounter
    from gateway.trajectories.region import TrajectorySettings
    from gateway.trajectories.run import Order

_PATIENCE: Final = 300.0  # seconds for one summary, repeats and the second model included


trajectories_app = Commands(help="Compress finished runs, offline.")


@trajectories_app.callback()
def root() -> None:
    """Compress finished runs, offline."""


@trajectories_app.command("compress")
def compress(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Read this .jsonl file, or a folder of .jsonl files.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Write this file or folder.")],
    target: Annotated[int, typer.Option(min=1, metavar="N", help="Let a trajectory have at most N tokens.")] = 15_250,
    summary_target: Annotated[int, typer.Option(min=100, metavar="N", help="Let a summary have about N tokens.")] = 750,
    concurrency: Annotated[
        int, typer.Option(min=1, max=256, metavar="N", help="Compress N trajectories at the same time.")
    ] = 8,
    notice: Annotated[bool, typer.Option(help="Note in the system turn that other turns were condensed.")] = False,
    config: ConfigOption = None,
) -> None:
    """Shorten trajectories to a given length.

    Trajectories are JSON lines in ShareGPT form. A summary replaces their middle.

    If a run is cut off, type the same command again to continue it.
    """
    from gateway.trajectories.region import TrajectorySettings
    from gateway.trajectories.run import Order

    order = Order(source=source, output=output, concurrency=concurrency)
    wanted = TrajectorySettings(target=target, summary=summary_target, notice=notice)
    configured = settings_of(config)
    raise typer.Exit(guarded(lambda: _compress(order, wanted, configured), configured))


async def _compress(order: Order, wanted: TrajectorySettings, config: Config) -> int:
    from gateway.runtime.redaction import Redactor
    from gateway.runtime.tokens import TokenCounter
    from gateway.trajectories.compressor import TrajectoryCompressor
    from gateway.trajectories.report import failures_text, report_text, shown_progress
    from gateway.trajectories.run import compress_files

    redact, counter = Redactor(config.secrets()), TokenCounter()
    summariser = await _summariser(config, counter)
    compressor = TrajectoryCompressor(
        wanted, summarise=summariser, counter=counter, redact=redact, window=summariser.model.context_length
    )
    with shown_progress() as tell:
        async with aclosing(summariser):
            report = await compress_files(order, compressor, summariser=summariser.name, tell=tell)
    show("\n".join([report_text(report, wanted), *summariser.spent()]))
    problems = failures_text(report)
    for problem in problems:
        complain(f"legato: {problem}")
    return 1 if problems else 0


@dataclass(kw_only=True)
class _Summariser:
    """The configured auxiliary model, which gives up in time, and what it cost."""

    name: str
    model: AuxiliaryModel
    clock: Clock
    aclose: Callable[[], Awaitable[None]]
    ledger: list[LedgerEntry] = field(default_factory=list)

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
        async with self.clock.limit(_PATIENCE):
            return await self.model(messages, max_tokens)

    def spent(self) -> list[str]:
        """A line about what this process's calls took, unless they were free."""
        if not any(entry.cost_usd != 0 for entry in self.ledger):
            return []
        usage = usage_of(self.ledger)
        unknown = any(entry.cost_usd is None for entry in self.ledger)
        cost = "an unknown price" if unknown else f"${sum(entry.cost_usd or 0 for entry in self.ledger):,.2f}"
        return [f"Summaries took {usage.prompt_tokens:,} tokens read and {usage.output_tokens:,} written, for {cost}"]


async def _summariser(config: Config, counter: TokenCounter) -> _Summariser:
    """A run belongs to no conversation and may be compressed beside a running gateway, so no store is
    opened: spend caps, which are kept there, do not hold, and the person is told."""
    from gateway.agent.auxiliary import standing_alone
    from gateway.agent.caps import Caps
    from gateway.agent.metering import Metering
    from gateway.app.build import Parts, build
    from gateway.app.plugins import providers
    from gateway.app.store import configured_store
    from gateway.domain.chat import SessionKey
    from gateway.domain.session import Session
    from gateway.runtime.clock import SystemClock, SystemIds

    clock = SystemClock()
    store = configured_store(config, clock=clock, waits=False)
    gateway = build(config, [], Parts(store=store, clock=clock))
    models = gateway.agents.metering.models
    await models.learn_windows()
    helpers = models.helpers("compression", models.main)
    if config.budgets and any(not providers()[spec.provider].free for spec in helpers):
        complain("legato: the spend caps in the configuration do not apply to trajectories")
    metering = Metering(models=models, store=store, caps=Caps(), counter=counter, clock=clock, ids=SystemIds())
    session = Session(
        id="trajectories",
        key=SessionKey(platform="trajectories", chat="trajectories"),
        chat_type="direct",
        parent_id=None,
        started_at=clock.now(),
        model=models.main.name,
        system_prompt="",
    )
    ledger: list[LedgerEntry] = []
    model = standing_alone(metering, "compression", session, models.main, ledger.append)
    name = " or ".join(spec.name for spec in helpers)
    return _Summariser(name=name, model=model, clock=clock, aclose=gateway.settings.aclose, ledger=ledger)
