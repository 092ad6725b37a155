"""Runs a command and contains what it raises: a command may be foreign code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import structlog
from msgspec import Struct

from gateway.commands.base import Answer, CommandContext, CommandRegistry, HeldLane
from gateway.domain.command import CommandCall, Proposal
from gateway.runtime.errors import (
    ConfigError,
    EmptyAnswer,
    GatewayError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    SessionConflict,
    StoreUnavailable,
)
from gateway.runtime.structs import replace
from gateway.store.records import InboxItem

log = structlog.get_logger(__name__)

FILES_LEFT = "I did not look at the file that came with this command; send it again without one."
UNREACHABLE = "I cannot reach my model right now; /retry tries again."
BROKEN = "Something went wrong on my side while answering; it is logged. Please send your message again."
_OF_THE_MODEL = (ProviderUnavailable, ProviderRateLimited, ProviderRejected, ConfigError)


class CommandRunner(Struct, kw_only=True):
    """`context` makes the context of a call from the call's own facts."""

    registry: CommandRegistry
    context: partial[CommandContext]

    async def answer(
        self,
        item: InboxItem,
        call: CommandCall,
        lane: HeldLane | None = None,
    ) -> Answer:
        """Run the command of a call. Raises SessionConflict, StoreUnavailable."""
        command = self.registry.get(call.name)
        if command is None:
            answer = Answer(kind="error", text=self.registry.unknown(call.name))
        else:
            context = self.context(item=item, argument=call.argument, lane=lane)
            try:
                said = await command.run(context)
                answer = said if isinstance(said, Answer) else Answer(text=said)
            except (SessionConflict, StoreUnavailable):
                raise
            except Exception as error:
                details = context.people.pairing.access.sees_details(item.inbound.source)
                answer = Answer(kind="error", text=sentence_for(error, details=details))
        if item.inbound.attachments and answer.then is None:
            return replace(answer, text=f"{answer.text}\n{FILES_LEFT}")
        return answer

    async def proposals(self, item: InboxItem, call: CommandCall) -> Sequence[Proposal]:
        """Values for the command's argument that hold what was typed of it. Raises StoreUnavailable."""
        command = self.registry.get(call.name)
        if command is None or command.proposals is None:
            return ()
        found = await command.proposals(self.context(item=item, argument=call.argument, lane=None))
        typed = call.argument.lower()
        return [each for each in found if typed in each.label.lower() or typed in each.value.lower()]


def sentence_for(error: Exception, *, details: bool = True) -> str:
    """The sentence that a person reads about an error: Legato's own errors are sentences, others are bugs. Without
    `details` a failed call of the model is told without its cause, which is in the log; nothing failed where the model
    answered without a word."""
    if not details and isinstance(error, _OF_THE_MODEL) and not isinstance(error, EmptyAnswer):
        return UNREACHABLE
    if isinstance(error, GatewayError):
        return str(error)
    log.error("turn_broke", exc_info=error)
    return BROKEN
