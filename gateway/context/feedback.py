"""What people are told about compactions: plain data in, sentences out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.context.engine import Outcome
from gateway.domain.message import Message, same


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualFeedback:
    """`noop`: the transcript is as it was. `note` is None unless something needs explaining."""

    noop: bool
    headline: str
    token_line: str
    note: str | None


COMPRESSING = "Compressing the earlier conversation to make room; nothing that was said is lost."
COMPRESSING_AGAIN = "Compressing the earlier conversation to make room. {aging}"
NOT_COMPRESSED = "The earlier conversation could not be compressed: {reason}. /compress tries again, /new starts fresh."
FALLBACK = (
    "The summariser could not be used{reason}, so an extract made without a model stands in for the summary and "
    "details may be missing from my view; every original can still be found with /recall."
)
OTHER_MODEL = "The auxiliary model {model} could not be used; the main model wrote the summary."
BLOCKED = (
    "Compressing this conversation no longer makes it shorter, so I stopped trying by myself. "
    "/new starts fresh, /compress <topic> keeps one topic and compresses the rest."
)


def waiting(number: int) -> str:
    """Why a person waits for the `number`th compaction of their conversation and, from the second on, its price: one
    notice, because two for every compaction would be noise."""
    return COMPRESSING if number == 1 else COMPRESSING_AGAIN.format(aging=aging(number))


def remarks(outcome: Outcome) -> list[str]:
    """What a person should know about a compaction beside its sizes."""
    reason = (outcome.error or "").rstrip(".")
    if outcome.aborted:
        return [NOT_COMPRESSED.format(reason=reason or "the summariser could not be used")]
    told = [FALLBACK.format(reason=f" ({reason})" if reason else "")] if outcome.fallback else []
    return [*told, OTHER_MODEL.format(model=outcome.failed_model)] if outcome.failed_model else told


def aging(count: int) -> str:
    """What a conversation that was compressed `count` times (two at least) can no longer promise."""
    return (
        f"That makes {count} times, so my memory of its early parts may be less exact; "
        "/new starts fresh, /recall finds anything that was said."
    )


def summarize_manual_compression(
    before: Sequence[Message], after: Sequence[Message], tokens_before: int, tokens_after: int
) -> ManualFeedback:
    """Compare two transcripts and their request sizes in tokens."""
    noop = len(before) == len(after) and all(map(same, before, after))
    if noop:
        return ManualFeedback(
            noop=True,
            headline=f"No changes from compression: {len(before)} {_messages(len(before))}",
            token_line=f"~{tokens_before:,} tokens (unchanged)",
            note=None,
        )
    line = f"~{tokens_before:,} → ~{tokens_after:,} tokens"
    if tokens_before == tokens_after:
        line = f"~{tokens_before:,} tokens (unchanged)"
    note = None
    if len(after) < len(before) and tokens_after > tokens_before:
        note = (
            "There are fewer messages but more tokens: the notes that replaced the older turns are longer than "
            "those turns were."
        )
    headline = f"Compressed: {len(before)} → {len(after)} {_messages(len(after))}"
    return ManualFeedback(noop=False, headline=headline, token_line=line, note=note)


def _messages(count: int) -> str:
    return "message" if count == 1 else "messages"
