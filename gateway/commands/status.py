"""Commands that look at things: /status, /context, /usage, /whoami, /version, /recall."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import ceil

from gateway import __version__
from gateway.agent.caps import Standing, written
from gateway.agent.conversation import Conversation
from gateway.agent.memory.snapshot import snapshot_in
from gateway.agent.prompt import shown_in
from gateway.agent.quotes import quoted
from gateway.agent.running import RunningTurn
from gateway.agent.tools.history import lines_of, not_yet_found, speaker_of
from gateway.commands.base import CommandContext, command
from gateway.commands.chat import said_of_chat
from gateway.commands.pins import pins_tokens
from gateway.context.budgeted import MeasuredEngine
from gateway.domain.chat import is_shared
from gateway.domain.message import noted_tokens, summaries_in, text_of
from gateway.domain.place import names
from gateway.domain.titles import clipped
from gateway.domain.usage import BROKEN_OFF, UsageTotal
from gateway.domain.views import WindowShares
from gateway.domain.wording import counted, lasting, moment
from gateway.people.approvals import listed
from gateway.runtime.errors import UserError

_BAR = 20  # characters: a telephone shows them in one line
_DAY = 86_400.0
_RECALLED = 5
_ECHOED = 200  # characters of what nothing was found for
_MOST_HITS = 20  # of which the originals are shown, each once
_WHOSE = {
    "session": "this conversation",
    "person": "you today",
    "chat": "this chat today",
    "gateway": "everybody today",
}


@command("status", "While I work", "show what I am doing, and what is waiting", bypass=True, elsewhere=("info",))
async def status(ctx: CommandContext) -> str:
    """Say what runs, what waits and which session this is, even while a turn hangs."""
    turn = ctx.running_turns.of(ctx.key)
    waiting = await ctx.store.waiting(ctx.key, 100)
    session = await ctx.present()
    lines = [_running(turn, ctx.clock.monotonic()) if turn else await _elsewhere(ctx)]
    if asked := [each for each in await ctx.people.approvals.answerable(ctx.inbound.source) if each.key == ctx.key]:
        lines.append(f"I am waiting for your /approve or /deny:\n{listed(asked)}")
    lines += [
        f"A helper has been working for {lasting(ctx.clock.now() - helper.since, short=True)}: {helper.brief}"
        for helper in await ctx.sessions.helpers.of(ctx.key)
    ]
    if running := await ctx.running_turns.background.running(ctx.key):
        named = (f"{each.name}, for {lasting(ctx.clock.now() - each.at, short=True)}" for each in running)
        lines.append(f"Running in the background: {'; '.join(named)}. /stop all ends them.")
    if waiting:
        lines.append(f"Messages that are waiting for an answer: {len(waiting)}.")
    if session is None:
        lines.append("There is no session yet. Your next message starts a session.")
    else:
        model = ctx.sessions.models.of(session).name
        lines.append(
            f"This session has {counted(session.message_count, 'message')} and uses the model {model}. Its id is "
            f"{session.id}."
        )
        if session.compaction_count:
            lines.append(f"I compressed this session {_times(session.compaction_count)}, and still keep every word.")
    if ctx.people.pairing.access.sees_details(ctx.inbound.source):
        lines += [f"The MCP server {name} is {note}." for name, note in ctx.agents.mcp.troubled()]
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _running(turn: RunningTurn, now: float) -> str:
    again = f" The model did not answer, so I try again in {left:.0f} s." if (left := ceil(turn.pause(now))) else ""
    worked = lasting(now - turn.started_at, short=True)
    return f"I have been working for {worked}: {turn.doing}, step {max(turn.step, 1)}.{again} /stop ends my work."


async def _elsewhere(ctx: CommandContext) -> str:
    """The same for a turn in another process, as far as the store knows."""
    item = await ctx.store.running(ctx.key)
    if item is None:
        return "Nothing is running."
    since = lasting(ctx.clock.now() - item.accepted_at, short=True)
    return f"I am working on a message that came {since} ago. /stop ends my work."


@command("context", "What I remember", "show how full my window is", bypass=True)
async def context(ctx: CommandContext) -> str:
    """Draw how full the window is, with its shares, and say when the next compaction comes."""
    session = await ctx.present()
    if session is None:
        return "My window is empty. Your next message starts a session."
    return await draw_context(ctx, await ctx.sessions.glance(session))


async def shares_of(ctx: CommandContext, conversation: Conversation) -> WindowShares:
    """What fills the window. The tokens are the provider's where it reported any."""
    summary = noted_tokens(summaries_in(conversation.stored.messages))
    pins = shown_in(conversation.stored.session.system_prompt, (await ctx.store.pins(ctx.key)).rules)
    pinned = pins_tokens(ctx, pins)
    prompt = ctx.sessions.counter.message({"role": "system", "content": conversation.stored.session.system_prompt})
    memory = ctx.sessions.counter.text(snapshot_in(conversation.stored.session.system_prompt))
    part = await ctx.sessions.project(conversation.stored.session)
    project = ctx.sessions.counter.text(part) if part in conversation.stored.session.system_prompt else 0
    rows = [
        ("system prompt", prompt - pinned - memory - project),
        *([("project", project)] if project else []),
        *([("memory", memory)] if memory else []),
        *([(f"rules ({len(pins)})", pinned)] if pins else []),
        ("tools", conversation.overhead - prompt),
        *([("summary", summary)] if summary else []),
        ("conversation", conversation.stored.tokens - summary),
    ]
    used = conversation.prompt_tokens()
    return WindowShares(
        window=conversation.spec.context_length,
        used=used,
        parts=_summing_to(used, rows),
        threshold=int((await conversation.engine.status()).get("threshold_tokens") or 0),
        automatic=ctx.program.automatic,
        messages=len(conversation.stored.messages),
        compactions=conversation.stored.session.compaction_count,
    )


def _summing_to(whole: int, parts: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Our own counts of the parts as shares of the provider's count of the whole, so that they add up."""
    counted = sum(tokens for _, tokens in parts) or 1
    *others, (last, _) = [(name, round(tokens * whole / counted)) for name, tokens in parts]
    return (*others, (last, whole - sum(tokens for _, tokens in others)))


async def draw_context(ctx: CommandContext, conversation: Conversation) -> str:
    """The bar and the shares."""
    shares = await shares_of(ctx, conversation)
    window, used, count, threshold = shares.window, shares.used, shares.compactions, shares.threshold
    filled = min(_BAR, round(_BAR * used / window))
    history = f"which I compressed {_times(count)}" if count else "which I never compressed"
    lines = [
        f"[{'█' * filled}{'░' * (_BAR - filled)}] {100 * used / window:.0f}% of my window",
        f"~{used:,} of {window:,} tokens:",
        *(f"  {name:<14}{tokens:>10,}" for name, tokens in shares.parts),
        f"The conversation has {counted(shares.messages, 'message')}, {history}.",
        *_stated_window(ctx, conversation),
        *await _passes_told(ctx, conversation),
    ]
    if (brought := quoted(conversation.fresh.announced)) is not None:
        quotes, tokens = counted(brought[0], "quote"), brought[1]
        lines.append(f"With your last message, I also read {quotes} from earlier in this chat (~{tokens:,} tokens).")
    if threshold and ctx.program.automatic:
        left = max(0, threshold - used)
        now = f"with your next message (at {threshold:,})"
        lines.append(
            f"I compress the conversation {f'at {threshold:,} tokens, about {left:,} from now' if left else now}."
        )
    elif threshold:
        lines.append("I only compress this conversation when you send /compress.")
    return "\n".join([*lines, *await said_of_chat(ctx, conversation.stored.session)])


def _stated_window(ctx: CommandContext, conversation: Conversation) -> list[str]:
    """Where the window comes from, if it is not what the settings or the lists of models say."""
    otherwise = ctx.sessions.models.learned.otherwise(conversation.spec)
    return (
        []
        if otherwise is None
        else [f"The model's server reported the size of this window; otherwise I would assume {otherwise:,} tokens."]
    )


async def _passes_told(ctx: CommandContext, conversation: Conversation) -> list[str]:
    """What the last compaction did, and how many messages the next one would leave as they are, and why."""
    session, engine, lines = conversation.stored.session, conversation.engine.engine, list[str]()
    if session.compaction_count:
        made = [each for each in await ctx.store.compactions(session.id) if each.child_id == session.id]
        lines += [f"About the last compression: {each.work.told}." for each in made if each.work]
    if isinstance(engine, MeasuredEngine) and ctx.program.automatic:
        tokens = conversation.prompt_tokens()
        count, budget = await asyncio.to_thread(engine.protected, conversation.stored.messages, tokens)
        if count:
            lines.append(protected_told(count, budget, engine.protect_last_n))
    return lines


def protected_told(count: int, budget: int, wanted: int) -> str:
    """A sentence about the messages that stay; `wanted` of them should, if they fit."""
    last = "message" if count == 1 else f"{count} messages"
    if count < wanted:
        why = f"the setting compression.protect_last_n wants {wanted}, but no more fit into 1.5 times {budget:,} tokens"
    elif count == wanted:
        why = f"the setting compression.protect_last_n is {wanted}"
    else:
        why = f"they fit into {budget:,} tokens"
    stays = f"If I compressed this conversation on my own now, the last {last} would stay word for word, because {why}."
    return f"{stays} /compress may keep fewer messages, and /compress --preview says how many."


@command(
    "usage",
    "About",
    "show tokens and cost of this session and day",
    bypass=True,
    audience="person",
    elsewhere=("cost", "tokens"),
)
async def usage(ctx: CommandContext) -> str:
    """Add up what this session and the last day cost, and what each spend cap has left."""
    session = await ctx.present()
    lines = []
    if session is not None:
        # A person sees one session in a lineage, and the cap counts all of it.
        whole = {each.id for each in await ctx.store.lineage(session.id)}
        spent = await ctx.store.usage(0.0, "session", key=ctx.key)
        lines.append(f"This session: {total_line([total for total in spent if total.label in whole])}")
    day = await ctx.store.usage(ctx.clock.now() - _DAY, "model", key=ctx.key)
    lines.append(f"Last 24 hours, in this chat: {total_line(day)}")
    if len(day) > 1:
        lines += [f"  {total.label}: {total_line([total])}" for total in day]
    lines += _estimated(await ctx.store.usage(ctx.clock.now() - _DAY, "purpose", key=ctx.key))
    now = ctx.clock.now()
    metering = ctx.agents.metering.answering(ctx.inbound.source.user)
    lines += [_left(standing, now) for standing in await metering.standings(ctx.key, session)]
    return "\n".join(lines)


def _estimated(by_purpose: Sequence[UsageTotal]) -> list[str]:
    """Say which part of a day's cost is an estimate."""
    lost = [total for total in by_purpose if total.label == BROKEN_OFF]
    return [f"  This includes an estimate for answers that broke off: {total_line(lost)}"] if lost else []


def _left(standing: Standing, now: float) -> str:
    cap, whose = standing.cap, _WHOSE[standing.cap.name]
    left = written(max(0, cap.limit - standing.spent))
    until = "" if cap.resets_at is None else f" for the next {lasting(cap.resets_at - now)}"
    return f"The cap for {whose} leaves {left} of {written(cap.limit)}{until}"


def total_line(totals: Sequence[UsageTotal]) -> str:
    """Calls, tokens and dollars of these totals together."""
    whole = sum(totals, UsageTotal())
    usage, unpriced = whole.usage, whole.unpriced_calls
    text = f"{counted(whole.calls, 'call')}, {usage.prompt_tokens:,} tokens in"
    if usage.cache_read_tokens:
        text += f" ({usage.cache_read_tokens:,} cached)"
    text += f", {usage.output_tokens:,} out"
    if usage.reasoning_tokens:
        text += f" ({usage.reasoning_tokens:,} thinking)"
    if whole.calls and unpriced == whole.calls:
        return f"{text}, no price known"
    text += f", {written(round(1_000_000 * whole.cost_usd))}"
    return f"{text} (no price known for {unpriced} of the calls)" if unpriced else text


@command("whoami", "About", "show who you are to me", audience="person", bypass=True)
async def whoami(ctx: CommandContext) -> str:
    """Say how the gateway sees the caller."""
    source = ctx.inbound.source
    name = f" ({source.user_name})" if source.user_name else ""
    admin = ", and an admin" if ctx.people.pairing.access.is_admin(source) else ""
    chat = source.chat if source.renamed is None else f"{source.renamed} (before: {source.chat})"
    places = ", ".join(f"{source.platform}:{each}" for each in names(source))
    return (
        f"You are {source.platform}:{source.user}{name} in chat {chat}{admin}.\nThis conversation is {ctx.key}.\n"
        f"Under `chats` in config.yaml, you can call this conversation: {places}."
    )


@command("version", "About", "show which Legato this is", audience="person", bypass=True)
async def version(ctx: CommandContext) -> str:
    """Say which Legato this is, and since when it runs."""
    since = moment(ctx.program.started_at, ctx.sessions.policy.zone)
    return f"Legato {__version__}, running since {since}."


@command("recall <words>", "What I remember", "find what was said before", elsewhere=("search",))
async def recall(ctx: CommandContext) -> str:
    """Find original messages of the caller's own conversations, compacted or not."""
    if not ctx.argument:
        raise UserError("Say what to look for, for example: /recall train tickets")
    left = not_yet_found(await ctx.store.unindexed())
    hits = await ctx.agents.search(ctx.argument, ctx.key, _MOST_HITS)
    # The same words may have been said again, or be stored again by /retry.
    found = list({speaker_of(each.hit, {}) + text_of(each.hit.message): each for each in reversed(hits)}.values())
    if not found:
        return " ".join([f"I found nothing about “{clipped(ctx.argument, _ECHOED)}”. Try other words.", *left])
    speakers = {"user": "one of you" if is_shared(ctx.key, ctx.inbound.source) else "you", "assistant": "me"}
    zone = ctx.sessions.policy.zone
    shown = [
        "\n".join([moment(each.hit.at, zone), *lines_of(each, ctx.argument, ctx.redact, speakers)])
        for each in found[::-1][:_RECALLED]
    ]
    return "\n\n".join([*shown, *left])


COMMANDS = (status, context, usage, recall, whoami, version)
