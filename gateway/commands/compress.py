"""/compress [focus]: condense the conversation now, in a continuation of it (SPEC 7)."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.agent.compaction import CompactionReport
from gateway.commands.base import Answer, Command, Scene
from gateway.context.engine import Outcome
from gateway.context.feedback import aging, summarize_manual_compression
from gateway.domain.message import Message
from gateway.domain.session import Compaction
from gateway.errors import UserError

_NOTHING = "There is nothing to compress yet."


async def compress(scene: Scene) -> Answer:
    """Run the session's engine with `force`, whatever its thresholds and cooldowns say."""
    services = scene.services
    session = await services.store.tip(scene.key)
    if session is None or session.message_count == 0:
        return Answer(text=_NOTHING)
    if scene.argument.startswith("--") or scene.argument == "undo":
        raise UserError("This version knows /compress and /compress <topic to keep in detail>.")
    opened = await scene.opened_before()
    if opened is not None:
        done = await services.store.compactions(opened.id)
        return Answer(text=await _recorded(scene, next(entry for entry in done if entry.child_id == opened.id)))
    conversation = await services.lifecycle.conversation(session)
    if not await conversation.engine.has_content(conversation.all()):
        return Answer(text=_NOTHING)
    assert scene.compress is not None, "a lane's command is given the compactor"
    report = await scene.compress(conversation, scene.argument or None)
    # The summariser's calls and what the engine learnt are stored with the answer.
    count = conversation.session.compaction_count if report.changed else 0
    return Answer(text=_describe(report, count), conversation=conversation)


def _describe(report: CompactionReport, count: int) -> str:
    lines = _lines(report.before, report.after, report.tokens_before, report.tokens_after)
    return "\n".join([*lines, *_remarks(report.outcome, count)])


async def _recorded(scene: Scene, done: Compaction) -> str:
    """The answer of an attempt that was killed after it had published."""
    store = scene.services.store
    parent, child = await store.session(done.parent_id), await store.session(done.child_id)
    before, after = (await store.transcript(parent)).messages, (await store.transcript(child)).messages
    lines = _lines(before, after, done.tokens_before, done.tokens_after)
    outcome = Outcome(fallback=done.fallback, error=done.error)
    return "\n".join([*lines, *_remarks(outcome, child.compaction_count)])


def _lines(before: Sequence[Message], after: Sequence[Message], tokens_before: int, tokens_after: int) -> list[str]:
    feedback = summarize_manual_compression(before, after, tokens_before, tokens_after)
    return [line for line in (feedback.headline, feedback.token_line, feedback.note) if line]


def _remarks(outcome: Outcome, count: int) -> list[str]:
    """What the person should know beside the sizes; `count` is how often the lineage was condensed."""
    remarks = []
    if outcome.aborted:
        remarks.append(f"The compaction was called off: {outcome.error or 'the summariser could not be used'}.")
    elif outcome.fallback:
        reason = f" ({outcome.error})" if outcome.error else ""
        remarks.append(
            f"The summariser could not be used{reason}, so an extract made without a model stands in for the summary; "
            "every original can still be found with /recall."
        )
    elif outcome.error:
        remarks.append(f"Nothing more could be done: {outcome.error}.")
    if outcome.failed_model:
        remarks.append(f"The auxiliary model {outcome.failed_model} failed; the main model wrote the summary.")
    if count >= 2:
        remarks.append(aging(count))
    return remarks


COMMANDS = (
    Command(
        name="compress",
        group="What I remember",
        argument="[topic]",
        help="condense this conversation, keeping a topic in detail",
        run=compress,
    ),
)
