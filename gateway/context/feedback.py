"""What people are told about compactions: plain data in, sentences out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.message import Message, same


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualFeedback:
    """`noop`: the transcript is as it was. `note` is None unless something needs explaining."""

    noop: bool
    headline: str
    token_line: str
    note: str | None


def aging(count: int) -> str:
    """What a conversation that was condensed `count` times (two at least) can no longer promise."""
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
