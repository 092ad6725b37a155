"""What one compaction would do, worked out before any model is asked and without touching input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.context.assembly import joined, sanitize, summary_message, with_system_note
from gateway.context.boundaries import Limits, find_layout, latest_request
from gateway.context.policy import (
    MIN_TAIL_MESSAGES,
    Budgets,
    CompressionSettings,
    Correction,
    fitted,
    summary_budget,
)
from gateway.context.prompts import framed
from gateway.context.pruning import Call, calls_by_id, prune, sources
from gateway.context.summary import extract
from gateway.domain.message import HOST, Message, text_of
from gateway.tokens import TokenCounter

LEAST_NOTES: Final = 64  # tokens: below this there is no room for a summary that says anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`middle` becomes a summary between `head` and `tail` (pruned already, carried turns first).

    `whole` is the sanitised transcript, whose last `protected` messages are not to be pruned.
    `before`: tokens of the transcript as it is. `room`: the most tokens the notes may take so that
    the result is smaller than what they replace and lies under the threshold; less than
    `LEAST_NOTES` means that only pruning is possible. All counts are our tokenizer's.
    """

    lead: list[Message]
    head: list[Message]
    middle: list[Message]
    tail: list[Message]
    previous: str
    replaced_ids: list[str]
    whole: list[Message]
    protected: int
    calls: Mapping[str, Call]
    request: str
    before: int
    room: int
    budget: int
    budgets: Budgets
    overhead: int

    @property
    def summarises(self) -> bool:
        """Whether there is a middle worth a summary; otherwise messages are only shortened."""
        return bool(self.middle) and self.room >= LEAST_NOTES


def tokens_of(message: Message, counter: TokenCounter) -> int:
    """The count stored with a message, or a fresh one."""
    note = message.get(HOST)  # not by `note_of`: asked several times for each of thousands of messages
    stored = note.get("tokens") if isinstance(note, dict) else None
    return stored if isinstance(stored, int) and stored > 0 else counter.message(message)


def total_tokens(messages: Sequence[Message], counter: TokenCounter) -> int:
    """Tokens of a transcript, by stored counts where there are any."""
    return sum(tokens_of(message, counter) for message in messages)


def make_plan(
    messages: Sequence[Message],
    *,
    budgets: Budgets,
    settings: CompressionSettings,
    correction: Correction,
    current_tokens: int | None,
    force: bool,
    counter: TokenCounter,
) -> Plan | None:
    """The plan for `messages`, or None when there are too few of them.

    `current_tokens` is the whole request as reported or estimated; what it holds beyond the
    transcript (system prompt, tools) narrows the budgets. With `force` the tail is no more than
    its share of this transcript, so that asking on a short one does something.
    """
    clean = sanitize(messages, opening=False)
    lead_end = next((index for index, m in enumerate(clean) if m.get("role") != "system"), len(clean))
    lead = clean[:lead_end]
    found = extract(clean[lead_end:], counter)
    turns = found.turns
    count = min(len(messages) - lead_end, len(turns) + found.found)  # repairs must not make it long enough
    if count <= settings.protect_first_n + MIN_TAIL_MESSAGES + 1:
        return None

    before = total_tokens(messages, counter)
    tokens = [tokens_of(message, counter) for message in turns]
    total = sum(tokens)
    overhead = 0 if current_tokens is None else max(0, correction.invert(current_tokens) - before)
    own = fitted(_in_own_tokens(budgets, correction), overhead)

    short = min(own.tail_tokens, int(total * settings.target_ratio))
    limits = _limits(own, settings, short if force else own.tail_tokens, found.head_limit)
    layout = find_layout(turns, tokens, limits)
    if not force and len(layout.middle) <= 1:  # the budget would protect everything
        layout = find_layout(turns, tokens, _limits(own, settings, short, found.head_limit))

    calls = calls_by_id(turns)
    head_size, carried = layout.head_end, [turns[index] for index in layout.carried]
    kept = [*turns[:head_size], *carried, *turns[layout.cut :]]
    protected_from = head_size + len(carried) + layout.protected_from - layout.cut
    kept = prune(kept, protected_from, calls, counter)
    middle = [turns[index] for index in layout.middle]

    previous_tokens = counter.text(found.notes)
    replaced = sum(tokens[index] for index in layout.middle) + previous_tokens
    frame = counter.text(framed("")) + 8
    free = own.threshold_tokens - overhead - total_tokens(kept, counter) - frame
    ceiling = own.max_summary_tokens * 5 // 4
    room = min(replaced - 1 - (0 if found.found else frame), ceiling, max(free, ceiling // 4))
    request = latest_request(turns)
    return Plan(
        lead=lead,
        head=kept[:head_size],
        middle=middle,
        tail=kept[head_size:],
        previous=found.notes,
        replaced_ids=[*found.ids, *(name for message in middle for name in sources(message))],
        whole=clean,
        protected=len(turns) - layout.protected_from,
        calls=calls,
        request="" if request is None else text_of(turns[request]),
        before=before,
        room=room,
        budget=max(1, min(summary_budget(replaced, own.max_summary_tokens), room * 4 // 5)),
        budgets=own,
        overhead=overhead,
    )


def carry_out(plan: Plan, notes: str, *, fallback: bool, counter: TokenCounter) -> list[Message]:
    """The new transcript: head, a summary holding `notes`, tail."""
    lead = [with_system_note(plan.lead[0], counter), *plan.lead[1:]] if plan.lead else []
    summary = summary_message(notes, plan.replaced_ids, fallback=fallback, counter=counter)
    return sanitize([*lead, *joined(plan.head, summary, plan.tail, counter)])


def shortened(plan: Plan, counter: TokenCounter) -> list[Message]:
    """The transcript only pruned, for when no summary is worth making. Earlier notes stay put."""
    return sanitize(prune(plan.whole, len(plan.whole) - plan.protected, plan.calls, counter))


def _in_own_tokens(budgets: Budgets, correction: Correction) -> Budgets:
    return Budgets(
        threshold_tokens=correction.invert(budgets.threshold_tokens),
        tail_tokens=correction.invert(budgets.tail_tokens),
        head_tokens=correction.invert(budgets.head_tokens),
        max_summary_tokens=correction.invert(budgets.max_summary_tokens),
        fallback_chars=budgets.fallback_chars,
    )


def _limits(budgets: Budgets, settings: CompressionSettings, tail_tokens: int, head_limit: int) -> Limits:
    return Limits(
        head_tokens=budgets.head_tokens,
        tail_tokens=tail_tokens,
        protect_first_n=settings.protect_first_n,
        protect_last_n=max(1, settings.protect_last_n),
        head_limit=head_limit,
    )
