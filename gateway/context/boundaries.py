"""Phase 2: the division of a transcript.

    [ head ][ middle: becomes the summary ][ carried ][ tail ]

The tail is counted from the end, as far as the token budget allows. Two messages belong to it even if they lie
further back, as in one long turn of tool calls: the latest request, and the latest answer that the person has seen.
They are *carried*: taken out of the middle and put, unchanged and in order, right behind the summary.

The turns must come from `assembly.sanitize`: results directly follow their call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from gateway.context.policy import MIN_TAIL_MESSAGES, TAIL_OVERRUN
from gateway.domain.message import Message, is_request, text_of

_T = TypeVar("_T")
_STUB_TOKENS = 70  # of a pruned tool result in the head, at most


class Limits(Struct, frozen=True, kw_only=True):
    """The most that each part may take. `head_limit`: how many leading turns may be head."""

    head_tokens: int
    tail_tokens: int
    protect_first_n: int
    protect_last_n: int
    head_limit: int


class Layout(Struct, frozen=True, kw_only=True):
    """Indices into the turns: the head [0, head_end), then the middle with the `carried` ones in it, then the tail
    [cut, n). Turns of the tail before `protected_from` are there only because a call and its results stay together;
    they may be pruned."""

    head_end: int
    cut: int
    protected_from: int
    carried: tuple[int, ...]

    @property
    def middle(self) -> tuple[int, ...]:
        """Return the indices of the middle."""
        return tuple(self.middle_of(range(self.cut)))

    def is_middle(self, index: int) -> bool:
        """Whether a turn belongs to the middle."""
        return self.head_end <= index < self.cut and index not in self.carried

    def middle_of(self, each: Sequence[_T]) -> list[_T]:
        """Return the middle's part of a list with one element for each turn."""
        part = list(each[self.head_end : self.cut])
        for index in reversed(self.carried):
            del part[index - self.head_end]
        return part


def find_layout(turns: Sequence[Message], tokens: Sequence[int], limits: Limits) -> Layout:
    """Divide `turns`. The middle is empty when nothing can be taken away."""
    count = len(turns)
    request = latest_request(turns)
    answer = _latest_answer(turns)
    head_end = _head_end(turns, tokens, limits, count if request is None else request)
    protected_from = _tail_start(tokens, limits, head_end)
    cut = _whole_step(turns, tokens, limits, protected_from, head_end)
    carried = _carried(request, answer, head_end, cut)
    last = _to_call(turns, max(head_end, count - MIN_TAIL_MESSAGES), head_end)
    while cut - head_end <= len(carried) and (forced := _past_results(turns, cut + 1)) <= last:
        # The budget would protect everything: one message (or call with results) makes a middle.
        cut = forced
        carried = _carried(request, answer, head_end, cut)
    protected_from = max(cut, protected_from)
    return Layout(head_end=head_end, cut=cut, protected_from=protected_from, carried=carried)


def latest_request(turns: Sequence[Message]) -> int | None:
    """Return the index of the latest request of a person, None if nobody said anything."""
    return next((index for index in range(len(turns) - 1, -1, -1) if is_request(turns[index])), None)


def _latest_answer(turns: Sequence[Message]) -> int | None:
    for index in range(len(turns) - 1, -1, -1):
        message = turns[index]
        if message.get("role") == "assistant" and not message.get("tool_calls") and text_of(message).strip():
            return index
    return None


def _carried(request: int | None, answer: int | None, head_end: int, cut: int) -> tuple[int, ...]:
    return tuple(sorted({index for index in (request, answer) if index is not None and head_end <= index < cut}))


def _head_end(turns: Sequence[Message], tokens: Sequence[int], limits: Limits, request: int) -> int:
    """The end of the head, which starts with a person's words and ends before the latest request."""
    if not turns or turns[0].get("role") != "user":
        return 0
    limit = min(limits.protect_first_n, limits.head_limit, request)
    end, total = 0, 0
    while end < limit:
        total += _pruned(turns[end], tokens[end])
        if total > limits.head_tokens:
            break
        end += 1
    past = _past_results(turns, end)
    rest = sum(_pruned(turns[index], tokens[index]) for index in range(end, past))
    if past > end and (past > limits.head_limit or total + rest > TAIL_OVERRUN * limits.head_tokens):
        return _to_call(turns, end, 0)  # a call whose results do not fit: both go into the summary
    return past


def _pruned(message: Message, tokens: int) -> int:
    return min(tokens, _STUB_TOKENS) if message.get("role") == "tool" else tokens


def _tail_start(tokens: Sequence[int], limits: Limits, head_end: int) -> int:
    """Walk back while the budget lasts. The last few messages always stay."""
    ceiling = int(limits.tail_tokens * TAIL_OVERRUN)
    start, total, kept = len(tokens), 0, 0
    while start > head_end:
        grown = total + tokens[start - 1]
        free = total < limits.tail_tokens or kept < limits.protect_last_n
        if kept >= MIN_TAIL_MESSAGES and (grown > ceiling or not free):
            break
        start, total, kept = start - 1, grown, kept + 1
    return start


def _whole_step(turns: Sequence[Message], tokens: Sequence[int], limits: Limits, start: int, head_end: int) -> int:
    """A cut that separates no call from its results: before the call, or after the results if the call alone (for
    example with images) is too long for a tail."""
    back, on = _to_call(turns, start, head_end), _past_results(turns, start)
    taken = sum(_pruned(turns[index], tokens[index]) for index in range(back, start))
    if taken > TAIL_OVERRUN * limits.tail_tokens and len(turns) - on >= MIN_TAIL_MESSAGES:
        return on
    return back


def _to_call(turns: Sequence[Message], index: int, floor: int) -> int:
    """Step back from a tool result to the message with its call."""
    while floor < index < len(turns) and turns[index].get("role") == "tool":
        index -= 1
    return index


def _past_results(turns: Sequence[Message], index: int) -> int:
    while index < len(turns) and turns[index].get("role") == "tool":
        index += 1
    return index
