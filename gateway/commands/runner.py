"""Runs a command and contains what it raises, because a command may be foreign code.

The choices in its answer are buttons, a page at a time. A button of a choice gives a command, as if its presser had
typed it. A button that turns the page makes the answer again in place of the old one, only for those who share the
conversation that it was for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog
from msgspec import Struct

from gateway.commands.base import Answer, CommandContext, CommandRegistry, HeldLane
from gateway.delivery.outbox import Outbox
from gateway.domain.chat import Button, Outbound
from gateway.domain.command import CommandCall, Proposal, parse_command
from gateway.people.approvals import GONE, NOT_YOURS
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
from gateway.store.port import OutboxStore
from gateway.store.records import InboxItem

log = structlog.get_logger(__name__)

FILES_LEFT = "I did not read the file that came with this command. Send the file again without a command."
UNREACHABLE = "I cannot reach my model right now. Send /retry to try again."
BROKEN = "Something went wrong while I was answering. The error is in the log. Please send your message again."
TURNS: Final = "page "  # begins the token of a button that turns the page
_PAGE: Final = 8  # choices
_LONGEST_TOKEN: Final = 64  # bytes that platforms let a button carry
_LONGEST_LABEL: Final = 60  # characters
_OF_THE_MODEL = (ProviderUnavailable, ProviderRateLimited, ProviderRejected, ConfigError)


class CommandRunner(Struct, kw_only=True):
    """Runs commands. `context` makes the context of a call from the facts of that call."""

    registry: CommandRegistry
    context: partial[CommandContext]

    async def answer(self, item: InboxItem, call: CommandCall, lane: HeldLane | None = None) -> Answer:
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
        found = [replace(each, value=each.value.removeprefix(f"/{command.name} ")) for each in found]
        typed = call.argument.lower()
        return [each for each in found if typed in each.label.lower() or typed in each.value.lower()]

    async def turned(self, item: InboxItem, store: OutboxStore, outbox: Outbox) -> tuple[str, list[Outbound]]:
        """Turn the page as the press of an item says: what the presser is told, and the rows to show. Where
        no message can be changed, the page is another one."""
        _, page, shown, text = [*item.inbound.text.split(" ", 3), "", "", ""][:4]
        call = parse_command(text)
        command = self.registry.get(call.name) if call is not None else None
        rows = await store.rows(item.inbound.source.address, [shown])
        if call is None or call.argument or command is None or not (command.proposals and rows and page.isdecimal()):
            return GONE, []
        if rows[0].key != item.key:
            return NOT_YOURS, []
        answer = await self.answer(item, call)
        *_, last = outbox.rows(item, answer.kind, answer.text)
        turned = replace(last, edits=shown if outbox.grows(item.key.platform) else None)
        return "", [with_choices(turned, answer.choices, call, min(int(page[:3]), 99))]


def with_choices(row: Outbound, choices: Sequence[Proposal], call: CommandCall, page: int = 0) -> Outbound:
    """The answer to a `call` of a command, with a page of its choices."""
    fitting = [each for each in choices if len(each.value.encode()) <= _LONGEST_TOKEN]
    first, shown = page * _PAGE, row.edits or row.id
    lines: list[tuple[Button, ...]] = [
        (Button(label=each.label[:_LONGEST_LABEL], token=each.value),) for each in fitting[first : first + _PAGE]
    ]
    turning = [("◂", page - 1)] * (page > 0) + [("▸", page + 1)] * (len(fitting) > first + _PAGE)
    if turning:
        lines.append(tuple(Button(label=label, token=f"{TURNS}{to} {shown} /{call.name}") for label, to in turning))
    return replace(row, buttons=tuple(lines))


def sentence_for(error: Exception, *, details: bool = True) -> str:
    """The sentence that a person reads about an error: Legato's own errors are sentences, others are bugs. Without
    `details`, a failed model call is reported without its cause, which is in the log. If the model answered without a
    word, nothing failed."""
    if not details and isinstance(error, _OF_THE_MODEL) and not isinstance(error, EmptyAnswer):
        return UNREACHABLE
    if isinstance(error, GatewayError):
        return str(error)
    log.error("turn_broke", exc_info=error)
    return BROKEN
