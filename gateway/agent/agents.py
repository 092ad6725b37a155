"""What agents are made of and work with, as long as the program runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from gateway.agent.asking import Asking
from gateway.agent.compaction import Compactor, Hygiene
from gateway.agent.conversation import Conversation
from gateway.agent.embeddings import Embeddings
from gateway.agent.files.intake import FileIntake
from gateway.agent.fitting import Fitting
from gateway.agent.forgetting import Forgetter
from gateway.agent.loop import Agent
from gateway.agent.mcp.servers import McpServers
from gateway.agent.metering import Metering
from gateway.agent.ports import Observer, Reply, TranscriptWriter
from gateway.agent.prompt import PromptBuilder
from gateway.agent.sessions import Sessions
from gateway.agent.steps import ToolSteps
from gateway.agent.tools.base import Polls, ReminderBook, ToolContext
from gateway.agent.tools.offer import Rule
from gateway.agent.tools.outputs import OutputLimits
from gateway.agent.workspace.folders import Workspaces
from gateway.domain.adapter import HasTopics
from gateway.domain.chat import NO_TERMS, SessionKey, Terms
from gateway.domain.usage import Purpose
from gateway.providers.base import KeepsBodies, ModelSpec
from gateway.store.records import Passage, ToolIntent


class Agents(Struct, kw_only=True):
    """`agent`, `fitting`, `steps` and `compactor` build the parts of one turn (`of_turn`); `invoke` runs its
    agent. `embeddings` are None where searches go by words alone."""

    sessions: Sessions
    forgetter: Forgetter
    metering: Metering
    embeddings: Embeddings | None
    files: FileIntake
    hygiene: Hygiene
    mcp: McpServers
    agent: partial[Agent]
    fitting: partial[Fitting]
    steps: partial[ToolSteps]
    compactor: partial[Compactor]
    invoke: Callable[[Agent, Conversation, Collection[ToolIntent]], Awaitable[str]] = Agent.run

    @property
    def workspaces(self) -> Workspaces:
        """The folders of the conversations."""
        return self.forgetter.workspaces

    def of_turn(
        self,
        key: SessionKey,
        *,
        writer: TranscriptWriter,
        observer: Observer,
        reply: Reply,
        metering: Metering,
        steer: Callable[[Conversation], Awaitable[None]],
        details: bool = False,
        purpose: Purpose = "turn",
        also: Sequence[ModelSpec] = (),
        terms: Terms = NO_TERMS,
        talk: Sequence[str] = (),
        reminders: ReminderBook,
        polls: Polls | None = None,
        topics: HasTopics | None = None,
        hidden: SessionKey | None = None,
        **of_steps: Any,
    ) -> Agent:
        """Return the agent of one turn, which may look into the conversations of `key`, or only into the temporary chat
        of `hidden`. `of_steps`: what its `ToolSteps` take beside. A helper's agent recalls nothing by itself."""
        store, compactor = self.sessions.store, self.compactor(writer=writer)
        fitting = self.fitting(compactor=compactor, metering=metering, observer=observer, details=details)
        steps = self.steps(
            writer=writer,
            observer=observer,
            reply=reply,
            context=partial(
                ToolContext,
                recall=lambda words, limit: self.search(words, key, limit, hidden=hidden),
                around=lambda message_id, reach: store.around(key, message_id, reach, hidden=hidden),
                unindexed=store.unindexed,
                reminders=reminders,
                polls=polls,
                topics=topics,
            ),
            terms=terms,
            **of_steps,
        )
        asking = Asking(
            metering=metering,
            fitting=fitting,
            steps=steps,
            observer=observer,
            reply=reply,
            points=self.sessions.points,
            purpose=purpose,
            also=also,
            terms=terms,
        )
        agent = self.agent if purpose == "turn" else partial(self.agent, quoting=None)
        return agent(
            fitting=fitting,
            asking=asking,
            steps=steps,
            steer=steer,
            holding=lambda values, limit: store.holding(values, key, limit, hidden=hidden),
            talk=talk,
        )

    async def search(
        self, words: str, key: SessionKey | None, limit: int, *, hidden: SessionKey | None = None
    ) -> list[Passage]:
        """Find what was said, also by what was meant where there are vectors. Raises StoreUnavailable."""
        return await (self.embeddings or self.sessions.store).search(words, key, limit, hidden=hidden)

    def take_up(
        self,
        metering: Metering,
        *,
        rules: Sequence[Rule],
        prompts: PromptBuilder,
        limits: OutputLimits,
        helper_usd: float | None,
    ) -> None:
        """Keep to other settings from the next turn on: the models and caps of another meter, other rules about tools,
        limits of their output, prompts, and what a helper may cost."""
        self.metering.take_up(metering)
        self.sessions.toolbox.rules = rules
        self.sessions.helpers.budget_usd = helper_usd
        self.sessions.write_with(prompts)
        self.steps = partial(self.steps, limits=limits)

    def rest(self) -> tuple[int, int]:
        """Forget the conversations in which nothing was said for a while: they are read again when it is. Returns how
        many engines went, and the bytes that are free by that."""
        engines, store = self.sessions.engines.rest(), self.sessions.store
        servers = self.metering.models.servers.values()
        freed = sum(each.rest() for each in servers if isinstance(each, KeepsBodies))
        return engines, freed + store.rest()
