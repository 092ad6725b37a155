"""Commands that only look: /status, /context, /usage, /whoami, /version, /recall, /model."""

from __future__ import annotations

from datetime import UTC, datetime

from gateway.agent.conversation import Conversation
from gateway.agent.metering import Standing, written
from gateway.approvals import listed
from gateway.commands.base import Answer, Command, Scene
from gateway.commands.pins import pins_room, pins_tokens
from gateway.domain.message import is_summary, note_of
from gateway.domain.session import Session
from gateway.domain.usage import UsageTotal
from gateway.errors import UserError
from gateway.signals import RunningTurn
from gateway.tools.history import render as render_hit

_BAR = 30  # characters
_DAY = 86_400.0
_RECALLED = 5
_WHOSE = {"session": "this conversation", "person": "you today", "gateway": "everybody today"}


async def status(scene: Scene) -> Answer:
    """What runs, what waits and which session this is; answers while a turn hangs."""
    services = scene.services
    turn = services.board.of(scene.key)
    waiting = await services.store.waiting(scene.key, 100)
    session = await services.store.tip(scene.key)
    lines = [_running(turn, services.clock.monotonic()) if turn else await _elsewhere(scene)]
    if asked := [each for each in await services.approvals.answerable(scene.inbound.source) if each.key == scene.key]:
        lines.append(f"I wait for your /approve or /deny:\n{listed(asked)}")
    if waiting:
        lines.append(f"Waiting: {len(waiting)} message{'s' if len(waiting) > 1 else ''}.")
    if session is None:
        lines.append("No session yet; your next message starts one.")
    else:
        lines.append(f"Session {session.id}, {session.message_count} messages, model {session.model}.")
        if session.compaction_count:
            times = "once" if session.compaction_count == 1 else f"{session.compaction_count} times"
            lines.append(f"Condensed {times}; nothing that was said is lost.")
    return Answer(text="\n".join(lines))


def _running(turn: RunningTurn, now: float) -> str:
    tools = f" ({', '.join(turn.tools)})" if turn.tools and turn.phase == "running tools" else ""
    return f"Working for {now - turn.started_at:.0f} s: {turn.phase}{tools}, step {max(turn.step, 1)}. /stop ends it."


async def _elsewhere(scene: Scene) -> str:
    """What another process does, as far as the store knows."""
    services = scene.services
    item = await services.store.running(scene.key)
    if item is None:
        return "Idle."
    return (
        f"Working on a message that came {max(0.0, services.clock.now() - item.accepted_at):.0f} s ago. /stop ends it."
    )


async def context(scene: Scene) -> Answer:
    """How full the window is, what fills it, and when the next compaction comes."""
    session = await scene.services.store.tip(scene.key)
    if session is None:
        return Answer(text="The window is empty: your next message starts a session.")
    conversation = await scene.services.lifecycle.conversation(session)
    return Answer(text=await draw_context(scene, conversation))


async def draw_context(scene: Scene, conversation: Conversation) -> str:
    """The pressure bar and the shares, as text. Reported tokens where the provider reported."""
    window = conversation.spec.context_length
    used = conversation.prompt_tokens()
    filled = min(_BAR, round(_BAR * used / window))
    summary = sum(note_of(m).get("tokens", 0) for m in conversation.messages if is_summary(m))
    pins = (await scene.services.store.pins(scene.key)).rules
    pinned = pins_tokens(scene.services, pins)
    system = conversation.overhead - scene.services.tool_schema_tokens - pinned
    rows = [
        ("system prompt", system),
        *([(f"pins ({len(pins)})", pinned)] if pins else []),
        ("tools", scene.services.tool_schema_tokens),
        ("summary", summary),
        ("conversation", conversation.transcript_tokens() - summary),
    ]
    threshold = int((await conversation.engine.status()).get("threshold_tokens") or 0)
    lines = [
        f"[{'█' * filled}{'░' * (_BAR - filled)}] {100 * used / window:.0f}%  ~{used:,} of {window:,} tokens",
        *(f"  {name:<14}{count:>10,}" for name, count in rows),
        f"Messages: {len(conversation.messages)}. Condensed so far: {conversation.session.compaction_count}.",
    ]
    if threshold and scene.services.hygiene.enabled:
        left = max(0, threshold - used)
        when = f"at {threshold:,} tokens, in about {left:,}" if left else f"with your next message ({threshold:,})"
        lines.append(f"Next compaction: {when}.")
    elif threshold:
        lines.append("Automatic compaction is off; /compress condenses by hand.")
    return "\n".join(lines)


async def usage(scene: Scene) -> Answer:
    """What this session and the last day used and cost, and what is left of each spend cap."""
    services = scene.services
    session = await services.store.tip(scene.key)
    lines = []
    if session is not None:
        spent = await services.store.usage(0.0, "session", session_id=session.id)
        lines.append(f"This session: {_total(spent)}")
    day = await services.store.usage(services.clock.now() - _DAY, "model", key=scene.key)
    lines.append(f"Last 24 hours: {_total(day)}")
    lines += [f"  {total.label}: {_total([total])}" for total in day]
    lines += map(_left, await services.metering.standings(scene.key, session))
    return Answer(text="\n".join(lines))


def _left(standing: Standing) -> str:
    cap, whose = standing.cap, _WHOSE[standing.cap.name]
    left = written(max(0, cap.limit - standing.spent))
    return f"Cap for {whose}: {left} left of {written(cap.limit)}{'' if cap.resets_at is None else ' until 00:00 UTC'}"


def _total(totals: list[UsageTotal]) -> str:
    calls = sum(total.calls for total in totals)
    read = sum(total.usage.prompt_tokens for total in totals)
    cached = sum(total.usage.cache_read_tokens for total in totals)
    written = sum(total.usage.output_tokens for total in totals)
    unpriced = sum(total.unpriced_calls for total in totals)
    text = f"{calls} calls, {read:,} tokens in"
    if cached:
        text += f" ({cached:,} cached)"
    text += f", {written:,} out, ${sum(total.cost_usd for total in totals):.4f}"
    return f"{text} (no price known for {unpriced} of the calls)" if unpriced else text


async def whoami(scene: Scene) -> Answer:
    """How the gateway sees the caller."""
    source = scene.inbound.source
    name = f" ({source.user_name})" if source.user_name else ""
    return Answer(text=f"{source.platform}:{source.user}{name} in chat {source.chat}. Conversation: {scene.key}")


async def version(scene: Scene) -> Answer:
    """Which Legato this is, and since when it runs."""
    since = datetime.fromtimestamp(scene.services.started_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Answer(text=f"Legato {scene.services.version}, running since {since}.")


async def recall(scene: Scene) -> Answer:
    """Original turns of the caller's own conversations, compacted or not."""
    if not scene.argument:
        raise UserError("Say what to look for, for example: /recall train tickets")
    found = await scene.services.store.search(scene.argument, scene.key, _RECALLED)
    if not found:
        return Answer(text=f"Nothing was found for “{scene.argument}”.")
    return Answer(text="\n\n".join(render_hit(hit, scene.argument, scene.services.redact) for hit in found))


async def model(scene: Scene) -> Answer:
    """Show or switch the session's model; budgets follow its window from the next message on."""
    services = scene.services
    session = await _session(scene)
    if not scene.argument:
        spec = services.models.spec(session.model)
        return Answer(text=f"This session uses {spec.name} ({spec.context_length:,} tokens of window).")
    name = scene.argument.split()[0]
    spec = services.models.spec(name)
    pinned = pins_tokens(services, (await services.store.pins(scene.key)).rules)
    if pinned > pins_room(spec):
        raise UserError(
            f"{name} has room for {pins_room(spec):,} tokens of pins, and yours take {pinned:,}: /pin lists them, "
            "/unpin <number> makes room."
        )
    # What the old model reported says nothing about the new one's tokenizer or window.
    await services.store.update_session(scene.owned(), session.ref, model=name)
    return Answer(text=f"This session now uses {name} ({spec.context_length:,} tokens of window).")


async def _session(scene: Scene) -> Session:
    session = await scene.services.store.tip(scene.key)
    if session is None:
        raise UserError("There is no session yet; send a message first.")
    return session


COMMANDS = (
    Command(
        name="status",
        group="While I work",
        help="what runs, what waits, which session this is",
        run=status,
        bypass=True,
    ),
    Command(
        name="context", group="What I remember", help="how full the window is and when it is condensed", run=context
    ),
    Command(name="usage", group="About", help="tokens and cost of this session and day", run=usage, audience="person"),
    Command(name="model", group="About", argument="[name]", help="show or switch this session's model", run=model),
    Command(name="recall", group="What I remember", argument="<words>", help="find what was said before", run=recall),
    Command(name="whoami", group="About", help="how the gateway sees you", run=whoami, audience="person"),
    Command(name="version", group="About", help="which Legato this is", run=version, audience="person"),
)
