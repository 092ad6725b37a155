"""Agents are cheap: building one costs no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.agent.compaction import Compactor
from gateway.agent.loop import Agent
from gateway.agent.metering import Metering
from gateway.agent.models import Models
from gateway.agent.ports import Observer, Questions, SearchOriginals, TranscriptWriter
from gateway.agent.preparation import Preparations
from gateway.agent.tools.base import Files
from gateway.agent.tools.runtime import ToolRuntime
from gateway.runtime.clock import Clock
from gateway.runtime.metrics import Metrics
from gateway.runtime.points import Points


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFactory:
    """Everything the agents of this gateway share."""

    models: Models
    metering: Metering
    tools: ToolRuntime
    clock: Clock
    points: Points
    metrics: Metrics
    max_steps: int
    preparations: Preparations
    automatic: bool = True

    def compactor(self, writer: TranscriptWriter) -> Compactor:
        """A compactor whose continuations go through `writer`."""
        return Compactor(
            writer=writer,
            clock=self.clock,
            points=self.points,
            metrics=self.metrics,
            preparations=self.preparations,
        )

    def build(
        self,
        *,
        writer: TranscriptWriter,
        observer: Observer,
        questions: Questions,
        recall: SearchOriginals,
        files: Files,
        admin: bool,
    ) -> Agent:
        """An agent for one turn; `admin`: whether the person whom it answers is one."""
        return Agent(
            models=self.models,
            metering=self.metering,
            tools=self.tools,
            compactor=self.compactor(writer),
            writer=writer,
            observer=observer,
            questions=questions,
            recall=recall,
            files=files,
            admin=admin,
            clock=self.clock,
            points=self.points,
            max_steps=self.max_steps,
            automatic=self.automatic,
        )
