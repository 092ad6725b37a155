"""The sentences for people about compactions: plain data in, sentences out."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.context.engine import Outcome
from gateway.domain.message import Message, same
from gateway.domain.wording import counted

COMPRESSING = "I compress the earlier conversation to make room, and I still keep every word."
COMPRESSING_AGAIN = "I compress the earlier conversation to make room. {aging}"
NOT_COMPRESSED = (
    "I could not compress the earlier conversation: {reason}. /compress tries again, and /new starts fresh."
)
NO_SUMMARISER = "no model could write the summary"
FALLBACK = (
    "No model could write the summary{reason}, so I wrote it by simple rules. I may miss some details now, but "
    "/recall finds every message."
)
OTHER_MODEL = "The auxiliary model {model} could not be used, so the main model wrote the summary."
RESCUED = (
    "The context engine {name} could not make room in this conversation, so the built-in engine did. The operator "
    "can find the reason in the log."
)
BLOCKED = (
    "Compressing this conversation no longer makes it shorter, so I have stopped trying. "
    "/new starts fresh, and /compress <topic> keeps one topic and compresses the rest."
)


def compressing(number: int) -> str:
    """The notice for a person who waits for the `number`th compaction of their conversation. From the second on it also
    mentions what compactions cost, so that there is only one notice each."""
    return COMPRESSING if number == 1 else COMPRESSING_AGAIN.format(aging=aging(number))


def remarks(outcome: Outcome, *, details: bool = True) -> list[str]:
    """What there is to say about a compaction besides its sizes. Without `details`, the cause of a failure is left
    out."""
    reason = (outcome.error or "").rstrip(".") if details else ""
    if outcome.aborted:
        return [NOT_COMPRESSED.format(reason=reason or NO_SUMMARISER)]
    told = [FALLBACK.format(reason=f" ({reason})" if reason else "")] if outcome.fallback else []
    return [*told, OTHER_MODEL.format(model=outcome.failed_model)] if outcome.failed_model else told


def aging(count: int) -> str:
    """A warning for a conversation that was compressed `count` times (at least two)."""
    return (
        f"I have now compressed this conversation {count} times, so my memory of its early parts may be less exact. "
        "/new starts fresh, and /recall finds everything that was said."
    )


def summarize_manual_compression(
    before: Sequence[Message], after: Sequence[Message], tokens_before: int, tokens_after: int
) -> list[str]:
    """Return lines that compare two transcripts and the tokens of their requests."""
    unchanged = f"~{tokens_before:,} tokens (unchanged)"
    if len(before) == len(after) and all(map(same, before, after)):
        return [f"Compression changed nothing: the conversation keeps {counted(len(before), 'message')}", unchanged]
    sizes = unchanged if tokens_before == tokens_after else f"~{tokens_before:,} → ~{tokens_after:,} tokens"
    lines = [f"Compressed: {len(before):,} → {counted(len(after), 'message')}", sizes]
    if len(after) < len(before) and tokens_after > tokens_before:
        lines.append(
            "There are fewer messages but more tokens, because the notes that replaced the older turns are longer than "
            "those turns were."
        )
    return lines
