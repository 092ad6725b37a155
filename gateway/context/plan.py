"""The plan of one compaction, made before any model is asked and without a change to the input."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Final

from msgspec import Struct

from gateway.context import facts
from gateway.context.archive import TABLE_SHARE, TABLE_TOKENS, Archive, Chapter, bounded
from gateway.context.assembly import Noted, joined, sanitize, summary_message, with_system_note
from gateway.context.boundaries import Layout, Limits, find_layout
from gateway.context.facts import PersonalFact
from gateway.context.policy import (
    EFFECTIVE_SAVING,
    MIN_TAIL_MESSAGES,
    SLACK,
    Budgets,
    CompressionSettings,
    fitted,
    summary_budget,
)
from gateway.context.prompts import framed
from gateway.context.pruning import prune, squeeze
from gateway.context.readable import Call, Calls, sources
from gateway.context.standing import Instruction, carried
from gateway.context.state import Correction
from gateway.context.summary import Extracted, extract
from gateway.context.timelines import Saying
from gateway.domain.message import HOST, Message, is_request, text_of
from gateway.runtime.redaction import Redact
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter

_REQUESTS: Final = 3  # the newest ones, on which a summary dwells
_LINE: Final = 48  # tokens; the line that leads back, and the overhead of a message
LEAST_NOTES: Final = 64  # tokens; a shorter summary says nothing


class Plan(Struct, frozen=True, kw_only=True):
    """What one pass does.

    The `middle` becomes a summary between `head` and `tail` (already pruned, carried turns first). `whole`: the
    sanitised transcript, whose last `protected` messages must not be pruned. `before`: tokens of the transcript as it
    is. `room`: the most tokens for notes and their lists, so that they are smaller than the middle and the result is
    under the threshold; with less than `LEAST_NOTES` only pruning is possible. `after`: tokens of the result if the
    earlier notes stay as long as they are, because notes that are written again seldom become shorter. `rest`: the
    first message after the middle. `requests`: people's newest requests, oldest first. `identifiers`: those of the
    earlier notes with their weights; `owned`: those of people among them. `archive`: the messages out of view after
    this compaction. `chapters`: those of the earlier notes, and `table_room`: the most tokens for the table.
    `standing`: the instructions in the notes that still hold, oldest first. `facts`: what people said of themselves
    there, oldest first. `sayings`: what the earlier notes hold of things over time. All counts are our tokenizer's.
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
    owned: Mapping[str, float]
    archive: Archive
    chapters: Sequence[Chapter]
    table_room: int
    standing: Sequence[Instruction]
    facts: Sequence[PersonalFact]
    sayings: Sequence[Saying]
    before: int
    after: int
    room: int
    budget: int
    budgets: Budgets
    overhead: int

    @property
    def summarises(self) -> bool:
        """Whether there is a middle worth a summary; otherwise messages are only shortened."""
        return bool(self.middle) and self.room >= LEAST_NOTES

    @property
    def saves(self) -> bool:
        """Whether a summary is likely to save as much as an automatic pass must."""
        return self.after <= (1 - EFFECTIVE_SAVING) * self.before

    @property
    def ledger_room(self) -> int:
        """The part of the room that belongs to the list of identifiers, in tokens."""
        return min(self.budgets.ledger_tokens, self.room // 2)

    @property
    def request(self) -> str:
        """The latest request of a person, "" if nobody said anything."""
        return self.requests[-1] if self.requests else ""


def counts(messages: Sequence[Message], counter: TokenCounter) -> list[int]:
    """Return the tokens of each message: the count stored with it, or a fresh one; 0 for anything but a message."""
    try:  # nearly always, and over every message of the longest transcripts
        result = [message[HOST]["tokens"] for message in messages]
        if set(map(type, result)) == {int} and min(result) > 0:
            return result
    except (KeyError, TypeError):
        pass
    result = []
    for message in messages:
        note = message.get(HOST) if type(message) is dict else None
        stored = note.get("tokens") if type(note) is dict else None
        if type(stored) is not int or stored <= 0:
            stored = counter.message(message) if isinstance(message, Mapping) else 0
        result.append(stored)
    return result


def total_tokens(messages: Sequence[Message], counter: TokenCounter) -> int:
    """Return the tokens of a transcript, by stored counts where there are any."""
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
    """Return the plan for `messages`, or None when there are too few of them.

    `current_tokens`: the whole request as reported or estimated; its share beyond the transcript (system prompt,
    tools) narrows the budgets. With `force` the tail takes no more than its share of this transcript, so that a
    person who asks for a pass on a short one gets one.
    """
    calls = Calls()
    clean = sanitize(messages, opening=False, calls=calls)
    lead_end = next((index for index, m in enumerate(clean) if m.get("role") != "system"), len(clean))
    lead = clean[:lead_end]
    found = extract(clean[lead_end:], counter)
    turns, tokens = found.turns, found.tokens
    count = min(len(messages) - lead_end, len(turns) + found.found)  # repairs must not make it long enough
    if count <= settings.protect_first_n + MIN_TAIL_MESSAGES + 1:
        return None

    unrepaired = not found.found and len(clean) == len(messages) and all(map(operator.is_, clean, messages))
    before = sum(tokens) + total_tokens(lead, counter) if unrepaired else total_tokens(messages, counter)
    overhead = 0 if current_tokens is None else max(0, correction.invert(current_tokens) - before)
    own = fitted(_in_own_tokens(budgets, correction), overhead, sum(tokens) / max(1, len(tokens)))

    layout = _layout(found, own, settings, force=force)
    table_room = min(TABLE_TOKENS, int(own.usable_tokens * TABLE_SHARE)) if found.chapters else 0
    frame = counter.constant(framed("")) + _LINE + table_room
    reserve = overhead + frame + min(4 * LEAST_NOTES, own.max_summary_tokens)
    kept = _fitting(_kept(turns, layout, calls, counter), own.usable_tokens - reserve, counter)
    middle = layout.middle_of(turns)
    told = [turns[index] for index in found.telling if layout.is_middle(index)]
    noted, stays = counter.text(found.notes), total_tokens(kept, counter) + frame
    replaced = sum(layout.middle_of(tokens)) + noted
    free = own.threshold_tokens - overhead - stays
    ceiling = int(own.max_summary_tokens * SLACK) + own.ledger_tokens
    room = min(replaced - 1 - (0 if found.found else frame), ceiling, max(free, ceiling // 4))
    return Plan(
        lead=lead,
        head=kept[: layout.head_end],
        middle=middle,
        tail=kept[layout.head_end :],
        previous=found.notes,
        replaced_ids=_originals(found.ids, middle, layout.middle_of(found.rows)),
        whole=clean,
        protected=len(turns) - layout.protected_from,
        calls=calls,
        rest=turns[layout.cut] if layout.cut < len(turns) else None,
        requests=_newest_requests(turns),
        identifiers=found.identifiers,
        owned=found.owned,
        archive=found.archive.grown(middle),
        chapters=found.chapters,
        table_room=table_room,
        standing=carried(found.standing, told, kept[layout.head_end :]),
        facts=facts.carried(found.facts, middle),
        sayings=found.sayings,
        before=before,
        after=stays + total_tokens(lead, counter) + min(noted, max(0, room)),
        room=room,
        budget=max(1, min(summary_budget(replaced, own.max_summary_tokens), room * 4 // 5)),
        budgets=own,
        overhead=overhead,
    )


def carry_out(
    plan: Plan, notes: str, kept: Noted, redact: Redact, *, fallback: bool, counter: TokenCounter
) -> list[Message]:
    """The new transcript: head, a summary with `notes` (which contain what is `kept`), tail."""
    lead = [with_system_note(plan.lead[0], counter), *plan.lead[1:]] if plan.lead else []
    chapters = bounded([*plan.chapters, *Chapter.made(plan.middle, redact)], plan.table_room, counter)
    summary = summary_message(notes, plan.replaced_ids, plan.archive, chapters, fallback=fallback, kept=kept)
    return sanitize([*lead, *joined(plan.head, summary, plan.tail, counter)])


def shortened(plan: Plan, counter: TokenCounter) -> list[Message]:
    """The transcript only pruned, for when no summary is worth its tokens. Earlier notes stay."""
    short = prune(plan.whole, len(plan.whole) - plan.protected, plan.calls, counter)
    return sanitize(_fitting(short, plan.budgets.usable_tokens - plan.overhead, counter))


def _layout(found: Extracted, budgets: Budgets, settings: CompressionSettings, *, force: bool) -> Layout:
    """Return the division of the turns. With `force`, or where the budget would protect everything, the tail takes no
    more than its share of this transcript."""

    def divided(tail_tokens: int) -> Layout:
        limits = Limits(
            head_tokens=budgets.head_tokens,
            tail_tokens=tail_tokens,
            protect_first_n=settings.protect_first_n,
            protect_last_n=max(1, settings.protect_last_n),
            head_limit=found.head_limit,
        )
        return find_layout(found.turns, found.tokens, limits)

    if not force:
        layout = divided(budgets.tail_tokens)
        if len(layout.middle) > 1:
            return layout
    return divided(min(budgets.tail_tokens, int(sum(found.tokens) * settings.target_ratio)))


def _kept(turns: Sequence[Message], layout: Layout, calls: Mapping[str, Call], counter: TokenCounter) -> list[Message]:
    """The turns that stay, in order, pruned before the protected ones."""
    carried = [turns[index] for index in layout.carried]
    kept = [*turns[: layout.head_end], *carried, *turns[layout.cut :]]
    protected_from = layout.head_end + len(carried) + layout.protected_from - layout.cut
    return prune(kept, protected_from, calls, counter)


def _fitting(kept: list[Message], most: int, counter: TokenCounter) -> list[Message]:
    """The turns that stay, with tool results cut so far that they fit the window. The threshold is no reason to cut:
    the model would read the same again, and the result would be cut again."""
    excess = total_tokens(kept, counter) - max(0, most)
    return squeeze(kept, excess, counter) if excess > 0 else kept


def _originals(summarised: Sequence[str], middle: Sequence[Message], rows: list[str]) -> list[str]:
    """The row ids that a summary of the `middle` stands for, each once. `summarised`: those of earlier summaries; one
    may also name a message that it was merged into. `rows`: those of the middle."""
    named = dict.fromkeys(chain(summarised, rows))
    if "" in named:
        named = dict.fromkeys(chain(summarised, *map(sources, middle)))
    return list(named)


def _newest_requests(turns: Sequence[Message]) -> list[str]:
    requests = (text_of(message) for message in reversed(turns) if is_request(message))
    return list(islice(requests, _REQUESTS))[::-1]


def _in_own_tokens(budgets: Budgets, correction: Correction) -> Budgets:
    names = ("usable_tokens", "threshold_tokens", "tail_tokens", "head_tokens", "max_summary_tokens", "ledger_tokens")
    return replace(budgets, **{name: correction.invert(getattr(budgets, name)) for name in names})
