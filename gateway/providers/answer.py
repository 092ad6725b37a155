"""Shared by the answers of all APIs: words apart from thoughts, and tool calls that arrive in pieces.

Pure. An API's own module reads its events and puts them in here; nothing here knows an API.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, Final

from msgspec import Struct, field

from gateway.domain.message import ToolCall
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Completed, ModelEvent, ReasoningDelta, Restarted, StopReason, TextDelta
from gateway.providers.calls import is_object
from gateway.providers.thinking import Thinking
from gateway.runtime.errors import ContextOverflow, EmptyAnswer, ProviderUnavailable


class Speech:
    """The words and the thoughts of one answer, as deltas and in full. Thoughts and calls among the words are told
    apart (`thinking`). `unopened`: the model is expected to begin with thoughts in its words. `tools`: the names of
    those that it was offered."""

    def __init__(self, *, unopened: bool = False, tools: Collection[str] = ()) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._thinking = Thinking(unopened=unopened, tools=tools)
        self._halves = _Halves()
        self._thought_halves = _Halves()

    @property
    def unopened(self) -> bool:
        """Whether the words began with thoughts that no tag opened."""
        return self._thinking.unopened

    @property
    def text(self) -> str:
        """All words so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """All thoughts so far."""
        return "".join(self._reasoning)

    @property
    def calls(self) -> list[PendingCall]:
        """The calls of tools that stood in the words."""
        found = [PendingCall(name=name) for name, _ in self._thinking.calls]
        for call, (_, arguments) in zip(found, self._thinking.calls, strict=True):
            call.add(arguments)
        return found

    def say(self, text: str = "", thoughts: str = "", *, last: bool = False) -> list[ModelEvent]:
        """The deltas of a piece; `Restarted` where the words before it were thoughts. `last`: no words follow, so
        nothing is held back any more."""
        if thoughts:
            self._thinking.apart()
            thoughts = self._thought_halves.joined(thoughts)
        inside = ""
        if text:
            text, inside = self._thinking.feed(self._halves.joined(text))
        if last:
            if half := self._halves.joined("", last=True):
                text += self._thinking.feed(half)[0]
            late, more = self._thinking.flush()
            text, inside = text + late, inside + more
            thoughts += self._thought_halves.joined("", last=True)
        void: list[ModelEvent] = []
        if self._thinking.void:
            self._thinking.void = False
            self._text.clear()
            void.append(Restarted())
        return void + self._deltas(text, thoughts + inside)

    def _deltas(self, text: str, thoughts: str) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if thoughts:
            self._reasoning.append(thoughts)
            events.append(ReasoningDelta(text=thoughts))
        if text:
            self._text.append(text)
            events.append(TextDelta(text=text))
        return events


def whole_characters(text: str) -> str:
    """A text in which halves that belong together are joined, and others became U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _Halves:
    """Joins a character that was cut in two: servers write an emoji as two escapes, and may end a delta between
    them."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-16-le")("replace")
        self._waits = False  # whether a half does

    def joined(self, text: str, *, last: bool = False) -> str:
        """The text without a half at its end, and with the half before it. `last`: a half that stayed alone becomes a
        sign."""
        if not self._waits and text.isascii():
            return text
        whole = self._decoder.decode(text.encode("utf-16-le", "surrogatepass"), last)
        self._waits = self._decoder.getstate()[0] != b""
        return whole


_LONGEST_ARGUMENTS: Final = 2_000_000  # characters of an answer; no tool takes a longer text
_A_CALL: Final = 400  # characters that one stands for beside its arguments
_MOST_LOOKS: Final = 64  # at one call


class Room(Struct):
    """The room of one answer for its calls, in characters."""

    left: int = _LONGEST_ARGUMENTS

    def take(self, size: int) -> None:
        """Raises ProviderUnavailable (malformed) for calls without an end."""
        self.left -= size
        if self.left < 0:
            raise ProviderUnavailable("The model began a tool call and did not finish it. Try again.", malformed=True)


class PendingCall(Struct):
    """A tool call that is still arriving. `room`: that of its answer."""

    id: str = ""
    name: str = ""
    attached: dict[str, Any] = field(default_factory=dict)  # what only its server understands
    room: Room = field(default_factory=Room)
    size: int = 0
    _looks: int = 0
    _written: StringIO = field(default_factory=StringIO)  # a long file comes in thousands of pieces

    def __post_init__(self) -> None:
        self.room.take(_A_CALL)

    def add(self, piece: str) -> None:
        """Take a piece of the arguments. Raises ProviderUnavailable (malformed) for arguments without an end."""
        self.room.take(len(piece))
        self.size += len(piece)
        self._written.write(piece)

    @property
    def arguments(self) -> str:
        """The arguments so far; an object even if the server sends nothing for "none"."""
        return self._written.getvalue() or "{}"

    def seems_whole(self) -> bool:
        """Whether the arguments are an object already, although the answer goes on. Only the first pieces are
        looked at: a server that sends whole calls sends each in one piece."""
        self._looks += 1
        return self._looks <= _MOST_LOOKS and self.size > 0 and is_object(self.arguments)

    @property
    def is_whole(self) -> bool:
        """Whether a cut-off answer had already reached the end of the arguments."""
        return self.size > 0 and is_object(self.arguments)


def completed(
    speech: Speech,
    begun: Sequence[PendingCall],
    stop: StopReason,
    *,
    ended: bool,
    done: bool = False,
    new_id: Callable[[], str],
    usage: CanonicalUsage | None,
) -> Completed:
    """Return a whole answer. `begun`: its calls of tools, the last of which the output limit may have cut off. `ended`:
    the model said that the answer is whole; `done`: only the server said that nothing follows. Raises
    ProviderUnavailable (malformed) if the answer is cut off, and EmptyAnswer."""
    calls = _whole(speech.text, begun, stop, ended=ended, done=done)
    return Completed(
        text=speech.text,
        tool_calls=_named(calls, new_id),
        reasoning=speech.reasoning,
        stop=stop,
        usage=usage,
        cut_call=len(calls) < len(begun),
    )


def _named(calls: Iterable[PendingCall], new_id: Callable[[], str]) -> tuple[ToolCall, ...]:
    """The calls with ids that are present and differ."""
    used: set[str] = set()
    found: list[ToolCall] = []
    for call in calls:
        call_id = call.id if call.id and call.id not in used else new_id()
        used.add(call_id)
        found.append({"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
    return tuple(found)


def _whole(
    text: str, calls: Sequence[PendingCall], stop: StopReason, *, ended: bool, done: bool
) -> Sequence[PendingCall]:
    """The calls without one that the output limit cut off. The server's word alone, `done`, is enough if something was
    said and every call is complete."""
    said = bool(text.strip() or calls)
    if not ended and not (done and said and all(is_object(call.arguments) for call in calls)):
        raise ProviderUnavailable("The model's answer broke off. Try again.", malformed=True)
    if stop == "length":  # the last call's arguments may end anywhere
        return [call for call in calls if call.is_whole]
    if not said and stop != "refused":
        raise EmptyAnswer
    return calls


# -- the end of an answer ------------------------------------------------------------------------------


_STOPS: Final[Mapping[str, StopReason]] = {
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "content_filtered", "refusal", "safety", "sensitive"), "refused"),
    **dict.fromkeys(("recitation", "blocklist", "prohibited_content", "spii"), "refused"),
}
_OVERFLOWS: Final = frozenset({"model_context_window_exceeded", "context_length_exceeded"})
_BROKEN: Final = frozenset(
    {"error", "network_error", "abort", "aborted", "insufficient_system_resource", "malformed_function_call"}
)


def stop_reason(word: str | None) -> StopReason:
    """The reason for which an answer ended; `word` is the vendor's, None for an answer that just ended.

    Raises ContextOverflow where the window was full before the answer was, and ProviderUnavailable where the vendor
    says that the answer broke off.
    """
    known = (word or "stop").lower()
    if known in _OVERFLOWS:
        raise ContextOverflow(
            "The conversation left too little room for the answer in the model's window. "
            "Use /compress to shorten the conversation or /new to start fresh."
        )
    if known in _BROKEN:
        raise ProviderUnavailable("The model's answer broke off. Try again.", malformed=True)
    return _STOPS.get(known, "stop")
