"""Commands about the running turn: /stop, /steer, /queue; and about the last one: /retry, /continue."""

from __future__ import annotations

from gateway.agent.forgetting import is_by
from gateway.commands.base import Answer, CommandContext, command
from gateway.domain.chat import Outbound, OutboundState, file_in, is_shared, unspoken
from gateway.domain.message import Message, last_requests, note_of, text_of
from gateway.domain.wording import counted
from gateway.runtime.clock import lasting_id
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace

_LOOKED_AT = 200  # rows: an answer has a few
_AT_ONCE = 20  # rows
NOT_SHOWN = "I could not show you this before:"
MORE = " ({messages} more follow; send /last again)"
_NOT_YOURS = "Someone else sent that message, so only that person can repeat it. Ask in your own words."
GO_ON = "Go on exactly where your last answer stopped, without repeating any of it."


@command("stop [all]", "While I work", "stop what I am doing", bypass=True, urgent=True, elsewhere=("abort", "cancel"))
async def stop(ctx: CommandContext) -> str:
    """End the running turn and its helpers; what they did stays recorded. With `all`, end the commands in the
    background, too."""
    stopped = await ctx.store.signal(ctx.key, "stop", ctx.clock.now())
    stopped = bool(await ctx.sessions.helpers.stop(ctx.key, background=True)) or stopped
    if (rooms := ctx.program.rooms.get(ctx.key.platform)) is not None:
        stopped = rooms.hush(ctx.inbound.source.address) or stopped
    background = ctx.running_turns.background
    if running := await background.running(ctx.key):
        named = ", ".join(each.name for each in running)
        if ctx.argument.strip().lower() == "all":
            await background.end_all(ctx.key)
            return f"{'Stopping. I also' if stopped else 'I'} ended what ran in the background: {named}."
        said = (
            "Stopping. This goes on in the background"
            if stopped
            else "I am not writing an answer. This runs in the background"
        )
        return f"{said}: {named}. /stop all ends it, too."
    return "Stopping." if stopped else "Nothing is running."


@command("steer <text>", "While I work", "add something to what I am doing", sends="steer")
async def steer(ctx: CommandContext) -> str:
    """/steer without a text; with one it is a message for the running turn."""
    raise UserError("Say what I should know while I work, for example: /steer use metric units")


@command("queue <text>", "While I work", "ask something for when I am done", sends="queue")
async def queue(ctx: CommandContext) -> str:
    """/queue without a text. With one, it is a message that waits for its own turn."""
    raise UserError("Say what I should do next, for example: /queue and then summarise it")


@command("retry", "Conversation", "answer your last message again", elsewhere=("regenerate",))
async def retry(ctx: CommandContext) -> Answer:
    """Take the last exchange back and ask the same again."""
    opened = await ctx.opened_before()
    if opened is not None and opened.parent_id:
        messages = await ctx.messages(await ctx.store.session(opened.parent_id))
        return _again(ctx, messages[last_requests(messages, 1)[-1]])
    present = await ctx.present()
    messages = await ctx.messages(present)
    requests = last_requests(messages, 1)
    if present is None or not requests:
        raise UserError("There is nothing to retry yet. Send a message first.")
    cut = requests[-1]
    if is_shared(ctx.key, ctx.inbound.source) and not is_by(messages[cut], ctx.inbound.source):
        raise UserError(_NOT_YOURS)  # their words would stand under another name, and be another's to forget
    await ctx.switch(present, present, messages[:cut], "undone")
    return _again(ctx, messages[cut])


def _again(ctx: CommandContext, request: Message) -> Answer:
    # In a shared session the words begin with a name, which is put before them again.
    note = note_of(request)
    files = tuple(file_in(file) for file in note.get("files", ()))
    words = note["said"] if "said" in note else text_of(request)
    return Answer(then=unspoken(ctx.key, ctx.inbound.source, words), files=files)


@command("last", "Conversation", "show my last answer again", bypass=True, elsewhere=("repeat", "again", "resend"))
async def last(ctx: CommandContext) -> Answer:
    """Show the answers that could not be shown; else the last answer once more, with its files and its questions."""
    if (withheld := await _withheld(ctx)) is not None:
        return withheld
    here = await ctx.store.outbox(ctx.inbound.source.address, _LOOKED_AT)
    settled = {row.edits for row in here}  # a question is edited once it is answered
    rows = [row for row in here if row.key == ctx.key and _is_of_answer(row) and row.id not in settled]
    if not rows:
        raise UserError("I have not answered here yet. Send a message first.")
    event = ctx.inbound.event_id
    return Answer(
        text="",
        again=tuple(
            Outbound(
                id=lasting_id("o", ctx.key, event, row.id),
                key=row.key,
                to=row.to,
                kind=row.kind,
                text=row.text,
                session_id=row.session_id,
                answers=event,
                buttons=row.buttons,
                created_at=ctx.clock.now(),
                file=row.file,
            )
            for row in reversed(rows)
            if row.answers == rows[0].answers
        ),
    )


async def _withheld(ctx: CommandContext) -> Answer | None:
    """The oldest answers that could not be shown here. Their rows go out as they are, so none is shown twice."""
    here = await ctx.store.outbox(ctx.inbound.source.address, _LOOKED_AT, (OutboundState.WITHHELD,))
    rows = [row for row in reversed(here) if row.key == ctx.key]
    if not rows:
        return None
    more = MORE.format(messages=counted(len(rows) - _AT_ONCE, "message")) if len(rows) > _AT_ONCE else ""
    again = (
        replace(row, created_at=ctx.clock.now(), due_at=0.0, platform_message_id=None, error=None)
        for row in rows[:_AT_ONCE]
    )
    return Answer(text=f"{NOT_SHOWN}{more}", again=tuple(again))


def _is_of_answer(row: Outbound) -> bool:
    """Whether a row showed some of an answer, and still has it: what was forgotten left an empty row."""
    is_answer = row.file is not None or (row.text != "" and row.kind in ("reply", "remark", "question"))
    return is_answer and row.edits is None and row.state == OutboundState.SENT


@command("continue", "Conversation", "go on where my answer stopped", elsewhere=("more",))
async def go_on(ctx: CommandContext) -> Answer:
    """Ask for the rest of an answer that was cut off. The words of the request stay in the conversation, because no API
    continues an answer by itself."""
    if not any(message["role"] == "assistant" for message in await ctx.messages(await ctx.present())):
        raise UserError("There is no answer to continue yet. Send a message first.")
    return Answer(then=GO_ON)


COMMANDS = (stop, steer, queue, retry, last, go_on)
