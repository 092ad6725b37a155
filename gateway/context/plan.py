"""What one compaction would do, worked out before any model is asked and without touching input."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.context.assembly import joined, sanitize, summary_message, with_system_note
from gateway.context.boundaries import Layout, Limits, find_layout
from gateway.context.policy import (
    MIN_TAIL_MESSAGES,
    Budgets,
    CompressionSettings,
    Correction,
    fitted,
    summary_budget,
)
from gateway.context.prompts import framed
from gateway.context.pruning import prune, squeeze
from gateway.context.shapes import Call, Calls, all_sources
from gateway.context.summary import extract
from gateway.domain.message import HOST, Message, is_request, text_of
from gateway.runtime.tokens import TokenCounter

_REQUESTS: Final = 3
LEAST_NOTES: Final = 64  # tokens: below this there is no room for a summary that says anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`middle` becomes a summary between `head` and `tail` (pruned already, carried turns first).

    `whole` is the sanitised transcript, whose last `protected` messages are not to be pruned.
    `before`: tokens of the transcript as it is. `room`: the most tokens the notes may take so that
    the result is smaller than what they replace and lies under the threshold; less than
    `LEAST_NOTES` means that only pruning is possible. `rest`: the first message behind the middle.
    `requests`: what people asked for last, oldest first. `identifiers`: those that the earlier notes
    held, and their weights. All counts are our tokenizer's.
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
    rest: Message | None
    requests: list[str]
    identifiers: Mapping[str, float]
    before: int
    room: int
    budget: int
    budgets: Budgets
    overhead: int

    @property
    def summarises(self) -> bool:
        """Whether there is a middle worth a summary; otherwise messages are only shortened."""
        return bool(self.middle) and self.room >= LEAST_NOTES

    @property
    def request(self) -> str:
        """The latest thing a person asked for, "" if nobody said anything."""
        return self.requests[-1] if self.requests else ""


def counts(messages: Sequence[Message], counter: TokenCounter) -> list[int]:
    """Tokens of each message: the count stored with it, or a fresh one; 0 for what is no message."""
    result: list[int] = []
    try:  # nearly always, and over every message of the longest transcripts
        result = [message[HOST]["tokens"] for message in messages]
    except (KeyError, TypeError):
        result = []
    if set(map(type, result)) == {int} and min(result) > 0:
        return result
    result = []
    for message in messages:
        note = message.get(HOST) if type(message) is dict else None
        stored = note.get("tokens") if type(note) is dict else None
        if type(stored) is not int or stored <= 0:
            stored = counter.message(message) if isinstance(message, Mapping) else 0
        result.append(stored)
    return result


def total_tokens(messages: Sequence[Message], counter: TokenCounter) -> int:
    """Tokens of a transcript, by stored counts where there are any."""
    return sum(counts(messages, counter))


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
    calls = Calls()
    clean = sanitize(messages, opening=False, calls=calls)
    lead_end = next((index for index, m in enumerate(clean) if m.get("role") != "system"), len(clean))
    lead = clean[:lead_end]
    found = extract(clean[lead_end:], counter)
    turns = found.turns
    count = min(len(messages) - lead_end, len(turns) + found.found)  # repairs must not make it long enough
    if count <= settings.protect_first_n + MIN_TAIL_MESSAGES + 1:
        return None

    tokens = counts(turns, counter)
    total = sum(tokens)
    unrepaired = not found.found and len(clean) == len(messages) and all(map(operator.is_, clean, messages))
    before = total + total_tokens(lead, counter) if unrepaired else total_tokens(messages, counter)
    overhead = 0 if current_tokens is None else max(0, correction.invert(current_tokens) - before)
    own = fitted(_in_own_tokens(budgets, correction), overhead)

    short = min(own.tail_tokens, int(total * settings.target_ratio))
    limits = _limits(own, settings, short if force else own.tail_tokens, found.head_limit)
    layout = find_layout(turns, tokens, limits)
    if not force and len(layout.middle) <= 1:  # the budget would protect everything
        layout = find_layout(turns, tokens, _limits(own, settings, short, found.head_limit))

    frame = counter.text(framed("")) + 8
    reserve = overhead + frame + min(4 * LEAST_NOTES, own.max_summary_tokens)
    kept = _fitting(_kept(turns, layout, calls, counter), own.usable_tokens - reserve, counter)
    middle = list(map(turns.__getitem__, layout.middle))
    replaced = sum(map(tokens.__getitem__, layout.middle)) + counter.text(found.notes)
    free = own.threshold_tokens - overhead - total_tokens(kept, counter) - frame
    ceiling = own.max_summary_tokens * 5 // 4
    room = min(replaced - 1 - (0 if found.found else frame), ceiling, max(free, ceiling // 4))
    return Plan(
        lead=lead,
        head=kept[: layout.head_end],
        middle=middle,
        tail=kept[layout.head_end :],
        previous=found.notes,
        replaced_ids=[*found.ids, *all_sources(middle)],
        whole=clean,
        protected=len(turns) - layout.protected_from,
        calls=calls,
        rest=turns[layout.cut] if layout.cut < len(turns) else None,
        requests=_newest_requests(turns),
        identifiers=found.identifiers,
        before=before,
        room=room,
        budget=max(1, min(summary_budget(replaced, own.max_summary_tokens), room * 4 // 5)),
        budgets=own,
        overhead=overhead,
    )


def carry_out(
    plan: Plan, notes: str, *, fallback: bool, counter: TokenCounter, identifiers: Mapping[str, float] | None = None
) -> list[Message]:
    """The new transcript: head, a summary holding `notes` (and in them `identifiers`), tail."""
    lead = [with_system_note(plan.lead[0], counter), *plan.lead[1:]] if plan.lead else []
    summary = summary_message(notes, plan.replaced_ids, fallback=fallback, counter=counter, identifiers=identifiers)
    return sanitize([*lead, *joined(plan.head, summary, plan.tail, counter)])


def shortened(plan: Plan, counter: TokenCounter) -> list[Message]:
    """The transcript only pruned, for when no summary is worth making. Earlier notes stay put."""
    short = prune(plan.whole, len(plan.whole) - plan.protected, plan.calls, counter)
    return sanitize(_fitting(short, plan.budgets.usable_tokens - plan.overhead, counter))


def _kept(turns: Sequence[Message], layout: Layout, calls: Mapping[str, Call], counter: TokenCounter) -> list[Message]:
    """What stays of the turns, in order, pruned in front of what is protected."""
    carried = [turns[index] for index in layout.carried]
    kept = [*turns[: layout.head_end], *carried, *turns[layout.cut :]]
    protected_from = layout.head_end + len(carried) + layout.protected_from - layout.cut
    return prune(kept, protected_from, calls, counter)


def _fitting(kept: list[Message], most: int, counter: TokenCounter) -> list[Message]:
    """What stays, within the window if cutting its tool results can do that. Not within the threshold:
    what was just read would have to be read again, and cut again."""
    excess = total_tokens(kept, counter) - max(0, most)
    return squeeze(kept, excess, counter) if excess > 0 else kept


def _newest_requests(turns: Sequence[Message]) -> list[str]:
    requests = (text_of(message) for message in reversed(turns) if is_request(message))
    return list(itertools.islice(requests, _REQUESTS))[::-1]


def _in_own_tokens(budgets: Budgets, correction: Correction) -> Budgets:
    return Budgets(
        usable_tokens=correction.invert(budgets.usable_tokens),
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
