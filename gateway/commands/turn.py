"""Commands about the running turn: /stop, /steer, /queue, /retry."""

from __future__ import annotations

from gateway.commands.base import Answer, Command, CommandContext
from gateway.commands.transcript import last_requests
from gateway.domain.chat import file_in, unspoken
from gateway.domain.message import Message, note_of, text_of
from gateway.runtime.errors import UserError


async def stop(ctx: CommandContext) -> Answer:
    """End the running turn; what it did stays recorded."""
    services = ctx.services
    if await services.store.signal(ctx.key, "stop", services.clock.now()):
        return Answer(text="Stopping. What was done so far stays recorded.")
    return Answer(text="Nothing is running.")


async def steer(ctx: CommandContext) -> Answer:
    """Only reached without text: with text, /steer is a message for the running turn."""
    raise UserError("Say what I should know about what I am doing, for example: /steer use metric units")


async def queue(ctx: CommandContext) -> Answer:
    """Only reached without text, or by what an earlier release stored: with text, /queue is a message that
    waits for a turn of its own."""
    if not ctx.argument:
        raise UserError("Say what to ask next, for example: /queue and then summarise it")
    return Answer(text="", then=ctx.argument)


async def retry(ctx: CommandContext) -> Answer:
    """Take the last exchange back and ask the same again."""
    services = ctx.services
    opened = await ctx.opened_before()
    if opened is not None and opened.parent_id:
        messages = (await services.store.transcript(await services.store.session(opened.parent_id))).messages
        return _again(ctx, messages[last_requests(messages, 1)[-1]])
    present = await services.store.tip(ctx.key)
    messages = (await services.store.transcript(present)).messages if present else ()
    requests = last_requests(messages, 1)
    if present is None or not requests:
        raise UserError("There is nothing to retry yet; send a message first.")
    cut = requests[-1]
    await services.sessions.switch(ctx.owned(), present, present, messages[:cut], "undone", session_id=ctx.session_id)
    return _again(ctx, messages[cut])


def _again(ctx: CommandContext, request: Message) -> Answer:
    # In a shared session it begins with a name, and will be given one again.
    note = note_of(request)
    files = tuple(file_in(file) for file in note.get("files", ()))
    words = note["said"] if "said" in note else text_of(request)
    return Answer(text="", then=unspoken(ctx.key, ctx.inbound.source, words), files=files)


COMMANDS = (
    Command(name="stop", group="While I work", help="stop what I am doing", run=stop, bypass=True),
    Command(
        name="steer", group="While I work", argument="<text>", help="tell me something about what I am doing", run=steer
    ),
    Command(name="queue", group="While I work", argument="<text>", help="ask something for when I am done", run=queue),
    Command(name="retry", group="Conversation", help="ask your last message again", run=retry),
)
