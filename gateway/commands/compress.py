"""/compress: compress the conversation now, in a continuation of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gateway.agent.compaction import reconcile
from gateway.agent.conversation import Conversation
from gateway.commands.base import Answer, CommandContext, command
from gateway.context.assembly import sanitize
from gateway.context.compressor import Compressor
from gateway.context.engine import Outcome
from gateway.context.feedback import aging, remarks, summarize_manual_compression
from gateway.domain.command import Parameter
from gateway.domain.message import Message, last_requests, note_of, noted_tokens, summaries_in
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage
from gateway.domain.wording import counted, dollars, lasting
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace

_ASKED = 800  # tokens: about what the request for notes itself takes
_PASSES = 20  # newest ones, by which the next is estimated
_NOTHING = "There is nothing to compress yet."
_USAGE = (
    "Write /compress [--preview] [--keep <exchanges>] [a topic to keep in detail], or /compress undo. "
    "For example: /compress --keep 5 the budget"
)
_NOT_COMPRESSED = (
    "There is nothing to undo, because this conversation was not compressed. /resume goes back to an earlier session."
)
_LEFT = "I left the conversation as it is, because compressing it would not make it shorter. Just keep writing."
_UNDONE = (
    "I undid the compression, and this conversation has {count:,} messages again. "
    "If the restored messages take up too much of the window, I will compress them again."
)


class CompressArguments(Struct, frozen=True, kw_only=True):
    """The argument of /compress. The last `keep` exchanges stay word for word."""

    focus: str | None = None
    keep: int = 0
    preview: bool = False
    undo: bool = False


def arguments_in(argument: str) -> CompressArguments:
    """Read the argument: options first, then the topic. Raises UserError."""
    words = argument.split()
    if [word.lower() for word in words] == ["undo"]:
        return CompressArguments(undo=True)
    keep, preview = 0, False
    while words and words[0].startswith("--"):
        option = words.pop(0)
        if option == "--preview":
            preview = True
        elif option == "--keep" and words and words[0].isdecimal() and 1 <= len(words[0]) <= 4 and int(words[0]):
            keep = int(words.pop(0))
        else:
            raise UserError(_USAGE)
    return CompressArguments(focus=" ".join(words) or None, keep=keep, preview=preview)


@command(
    "compress [topic]",
    "What I remember",
    "compress what was said",
    options="--preview, --keep n, undo",
    parameters=(
        Parameter(name="preview", help="only show what it would do", kind="flag", form="--preview"),
        Parameter(name="keep", help="how many exchanges stay word for word", kind="number", form="--keep {}"),
        Parameter(name="topic", help="what to keep in detail"),
        Parameter(name="undo", help="undo the last compression", kind="flag", form="undo"),
    ),
    elsewhere=("compact", "summarize"),
    over_question="no",
)
async def compress(ctx: CommandContext) -> Answer | str:
    """Run the session's engine with `force`, whatever its thresholds and cooldowns say."""
    asked = arguments_in(ctx.argument)
    session = await ctx.present()
    opened = await ctx.opened_before()
    if asked.undo and session is not None:
        return await _undo(ctx, session, done=opened is not None)
    if asked.undo:
        raise UserError(_NOT_COMPRESSED)
    if session is None or session.message_count == 0:
        return _NOTHING
    if opened is not None:
        return await _recorded(ctx, opened)
    conversation = await ctx.sessions.conversation(session)
    messages = conversation.all()
    kept = _kept(messages, asked.keep)
    if kept == len(messages) or not await conversation.engine.has_content(messages[: len(messages) - kept]):
        return _NOTHING
    if asked.preview:
        return await _preview(ctx, conversation, messages, kept, asked)
    report = await ctx.owned().compress(conversation, asked.focus, kept)
    outcome = report.outcome
    if (outcome.aborted or outcome.fallback) and not ctx.people.pairing.access.sees_details(ctx.inbound.source):
        outcome = replace(outcome, error=None)
    count = conversation.stored.session.compaction_count if report.changed else 0
    text = _described(report.before, report.after, report.tokens_before, report.tokens_after, outcome, count)
    # The summariser's calls and the engine's new state are stored with the answer.
    return Answer(text=text, conversation=conversation)


def _kept(messages: Sequence[Message], exchanges: int) -> int:
    requests = last_requests(messages, exchanges) if exchanges else []
    return len(messages) - requests[0] if requests else 0


async def _preview(
    ctx: CommandContext, conversation: Conversation, messages: Sequence[Message], kept: int, asked: CompressArguments
) -> str:
    """Predict the result, with the engine's own extract in place of the summary."""
    folded = messages[: len(messages) - kept]
    result, outcome = await ctx.sessions.preview(conversation, folded, asked.focus)
    if outcome.aborted:
        return (
            "This context engine cannot show in advance what a compression would do. Send /compress to compress the "
            "conversation now."
        )
    after = reconcile(messages, sanitize([*result, *messages[len(folded) :]]), conversation.counter)
    same = sum("id" in note_of(message) for message in after)
    if same == len(messages):
        return _NOTHING
    tokens = conversation.overhead + noted_tokens(after)
    return "\n".join(
        [
            f"/compress would turn {len(messages)} messages into {len(after)}: {same} messages stay, "
            f"and notes replace the other {len(messages) - same}.",
            f"The conversation would shrink from ~{conversation.prompt_tokens():,} tokens to about {tokens:,}.",
            await _price(ctx, conversation, folded, after),
            "I have not changed anything yet. I keep every message even after /compress, and /recall finds it.",
        ]
    )


async def _price(
    ctx: CommandContext, conversation: Conversation, folded: Sequence[Message], after: Sequence[Message]
) -> str:
    """A sentence about what the notes would cost and how long they would take: by the price list, and by the passes of
    the same model in this conversation."""
    if not isinstance(conversation.engine.engine, Compressor):
        return "The context engine here does not say what a compression would cost, or how long it would take."
    models = ctx.sessions.models
    spec = models.helpers("compression", conversation.spec)[0]
    gone = {note_of(each).get("id") for each in folded} - {note_of(each).get("id") for each in after}
    read = noted_tokens(each for each in folded if note_of(each).get("id") in gone)
    usage = CanonicalUsage(input_tokens=read + _ASKED, output_tokens=noted_tokens(summaries_in(after)))
    cost = models.entry(ctx.clock.now(), "compression", spec, usage).cost_usd
    chain = (await ctx.store.lineage(conversation.stored.session.id))[-_PASSES:]
    made = [entry.work for each in chain for entry in await ctx.store.compactions(each.id) if entry.child_id == each.id]
    seconds = sorted(each.seconds for each in made if each and each.tries and each.model == spec.name)
    took = "I do not know yet how long a compression would take."
    if seconds:
        usual, often = lasting(seconds[len(seconds) // 2], short=True), counted(len(seconds), "time")
        took = f"A compression would take about {usual}, as it did {often} before."
    told = "an unknown amount" if cost is None else f"at most about {dollars(cost)}" if cost else "nothing"
    return f"The model {spec.name} would write the notes. They would cost {told}. {took}"


async def _undo(ctx: CommandContext, session: Session, *, done: bool) -> str:
    """Go back to the messages before the last compaction, in a new session; the messages since then follow."""
    if done:
        return _UNDONE.format(count=session.message_count)
    made = next((entry for entry in await ctx.store.compactions(session.id) if entry.child_id == session.id), None)
    if made is None:
        raise UserError(_NOT_COMPRESSED)
    parent = await ctx.store.session(made.parent_id)
    messages = [*await ctx.messages(parent), *(await ctx.messages(session))[made.messages_after :]]
    await ctx.switch(session, parent, messages, "undone")
    return _UNDONE.format(count=len(messages))


async def _recorded(ctx: CommandContext, child: Session) -> str:
    """The answer of an attempt that was killed after it had published."""
    done = next(entry for entry in await ctx.store.compactions(child.id) if entry.child_id == child.id)
    before = await ctx.messages(await ctx.store.session(done.parent_id))
    after, outcome = await ctx.messages(child), Outcome(fallback=done.fallback, error=done.error)
    return _described(before, after, done.tokens_before, done.tokens_after, outcome, child.compaction_count)


def _described(
    before: Sequence[Message],
    after: Sequence[Message],
    tokens_before: int,
    tokens_after: int,
    outcome: Outcome,
    count: int,
) -> str:
    """Describe a compaction. `count` says how often the lineage was compressed; 0: nothing changed."""
    told = [*summarize_manual_compression(before, after, tokens_before, tokens_after), *remarks(outcome)]
    if outcome.error and not (outcome.aborted or outcome.fallback):
        told.append(f"I cannot make the conversation any shorter: {outcome.error}.")
    elif not count and not outcome.aborted:
        told.append(_LEFT)
    if count >= 2:
        told.append(aging(count))
    if count:
        told.append("To undo this, send /compress undo.")
    return "\n".join(told)


COMMANDS = (compress,)
