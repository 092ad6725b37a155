"""Parts of a model's text that nobody should read: thoughts, the marks of chat templates, calls of tools.

Servers that do not know a model's format pass its text on as it is. Three things are told apart here, for all APIs:

- Thoughts between tags at the beginning: `<think>…</think>`, then the answer. Many templates put the opening tag into
  the prompt, so the answer begins with thoughts and only the closing tag shows it. Then all text so far is void. A
  model that did so once (`unopened`) has its text held back until the tag comes.
- Channels (https://cookbook.openai.com/articles/openai-harmony): `<|channel|>analysis<|message|>…<|end|>`. Only what
  the channel `final` says is the answer. Some servers lose the marks: `analysisWe need…assistantfinalHello.`
- Calls of tools: `<tool_call>{"name": …, "arguments": …}</tool_call>`, or with `<function=…>` and `<parameter=…>`.

A person may write about tags, and so may a model: a tag in the middle of a line, with space around it, between
backticks or in a block of code is text. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

_CLOSING: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
_CALL, _CALL_END = "<tool_call>", "</tool_call>"
_CHANNEL, _START, _MESSAGE = "<|channel|>", "<|start|>", "<|message|>"
_ENDS: Final = ("<|end|>", "<|return|>", "<|call|>", _START, _CHANNEL)
_BARE: Final = "analysis"  # a channel whose marks were lost, and the words that then begin the answer
_BARE_END: Final = "assistantfinal"
_OPENINGS: Final = (*_CLOSING, _CHANNEL, _START)
_MARKS: Final = (*_CLOSING.values(), _CALL, _CHANNEL)
_MARK: Final = re.compile("|".join(map(re.escape, _MARKS)))
_END: Final = re.compile("|".join(map(re.escape, _ENDS)))
_RECIPIENT: Final = re.compile(r"\bto=(?:functions\.)?([\w.-]{1,64})")
_FUNCTION: Final = re.compile(r"<function=([\w.-]{1,64})>")
_PARAMETER: Final = "<parameter="
_MARK_BEGINS: Final = frozenset(mark[0] for mark in _MARKS)
_MARK_ENDS: Final = frozenset(mark[-1] for mark in (*_MARKS, *_ENDS, _CALL_END, *_OPENINGS))
_ALONE: Final = (*_CLOSING.values(), _CALL)
_LONGEST: Final = max(map(len, _MARKS))
_SENTENCE_ENDS: Final = ".!?…。！？"
_AROUND_A_QUOTED_MARK: Final = " \t`\"'’)]>.,;:"
_LINE: Final = 64  # characters of the text that are remembered to see where a line begins


class Thinking:
    """Splits the text of one answer, piece by piece. A possible half of a mark is held back.

    `unopened`: the model is expected to begin with thoughts that no tag opens. After use: `calls`, the calls that were
    written as text, as (name, arguments); `void`: whether the text before the last piece turned out to be thoughts;
    `unopened`: whether the answer did begin with thoughts that no tag opened.
    """

    def __init__(self, *, unopened: bool = False) -> None:
        self.calls: list[tuple[str, str]] = []
        self.void = self.unopened = False
        self._held = ""
        self._step: Callable[[], bool] = self._unopened if unopened else self._opening
        self._closing = ""  # the mark that ends the thoughts
        self._header = ""  # of a message in a channel
        self._pieces: list[str] = []  # pieces of steps that wait long, joined once
        self._said: list[str] = []  # all text so far
        self._tail = ""  # the end of that
        self._fences = 0  # in that
        self._thought = False  # whether thoughts were told apart
        self._text: list[str] = []
        self._thoughts: list[str] = []

    def feed(self, text: str) -> tuple[str, str]:
        """(text, reasoning) that can be told apart by now."""
        if self._step == self._plain and not self._held and not _MARK_BEGINS & {*text}:
            self._note(text)  # nearly every piece of an answer
            return text, ""
        if self._waits and not _MARK_ENDS & {*text}:
            self._pieces.append(text)
            return "", ""
        self._held = "".join((self._held, *self._pieces, text))
        self._pieces.clear()
        while self._held and self._step():
            pass
        return self._told()

    def apart(self) -> None:
        """Thoughts came beside the text, so none are expected in it."""
        self._thought = True
        if self._step == self._unopened:
            self._step = self._opening

    def flush(self) -> tuple[str, str]:
        """Return the text that is still held back, now that no mark can be completed any more."""
        held, self._held = "".join((self._held, *self._pieces)), ""
        self._pieces.clear()
        if self._step == self._plain and held.strip() in _ALONE and self._begins_line():
            if held.strip() != _CALL and not self._thought:
                self._withdraw()
        elif self._step == self._call:
            self._take_call(held)
        elif self._step in (self._thoughts_of, self._head) or (self._step == self._message and self._is_private):
            self._think(held)
        elif held and self._step != self._gap:
            self._say(held)
        self._step = self._plain
        return self._told()

    def _told(self) -> tuple[str, str]:
        told = "".join(self._text), "".join(self._thoughts)
        self._text.clear()
        self._thoughts.clear()
        return told

    @property
    def _waits(self) -> bool:
        """Say whether nothing can be decided before a mark comes."""
        return self._step in (self._call, self._unopened) or (
            self._step == self._message and _RECIPIENT.search(self._header) is not None
        )

    def _note(self, text: str) -> None:
        self._said.append(text)
        if "`" in text:
            self._fences += (self._tail[-2:] + text).count("```")
        self._tail = (self._tail + text)[-_LINE:]

    def _say(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._note(text)

    def _think(self, text: str) -> None:
        if text:
            self._thought = True
            self._thoughts.append(text)

    # Each step takes its part of the held text; False: more text is needed.

    def _opening(self) -> bool:
        """Before the first word: tags that open the whole answer."""
        opening = self._held.lstrip()
        found = next((mark for mark in _OPENINGS if opening.startswith(mark)), None)
        if found in (_CHANNEL, _START):
            self._held, self._step = opening, self._between
        elif found is not None:
            self._held, self._closing, self._step = opening[len(found) :], _CLOSING[found], self._thoughts_of
            self._thought = True
        elif opening.startswith(_BARE) and opening[len(_BARE) : len(_BARE) + 1].isupper():
            self._held, self._closing, self._step = opening[len(_BARE) :], _BARE_END, self._thoughts_of
        elif any(mark.startswith(opening) for mark in (*_OPENINGS, _BARE)):
            return False
        else:
            self._step = self._plain
        return True

    def _unopened(self) -> bool:
        """Thoughts that no tag opened, as is known of this model."""
        if any(self._held.lstrip().startswith(mark) for mark in _OPENINGS):
            self._step = self._opening
            return True
        for mark in _CLOSING.values():
            thought, closed, rest = self._held.partition(mark)
            if closed:
                self._think(thought)
                self._held, self._step, self.unopened = rest, self._gap, True
                return True
        return False

    def _thoughts_of(self) -> bool:
        thought, closed, rest = self._held.partition(self._closing)
        if closed:
            self._think(thought)
            self._held, self._step = rest, self._gap
            return True
        safe = len(thought) - _overlap(thought, self._closing)
        self._think(thought[:safe])
        self._held = thought[safe:]
        return False

    def _gap(self) -> bool:
        """The white space behind thoughts."""
        self._held = self._held.lstrip()
        if self._held:
            self._step = self._plain
        return bool(self._held)

    def _plain(self) -> bool:
        found = _MARK.search(self._held)
        if found is None:
            end = self._held[-_LONGEST:]
            begins = not _MARK_BEGINS.isdisjoint(end)  # seldom
            safe = len(self._held) - (max(_overlap(end, mark) for mark in _MARKS) if begins else 0)
            self._say(self._held[:safe])
            self._held = self._held[safe:]
            return False
        self._say(self._held[: found.start()])
        self._held = self._held[found.start() :]
        return self._mark(found.group())

    def _mark(self, mark: str) -> bool:
        """A mark, with the text behind it."""
        behind = self._held[len(mark) :]
        if mark == _CALL:
            if not behind.strip():
                return False
            meant = self._begins_line() and behind.lstrip().startswith(("{", "<"))
            step = self._call
        elif mark == _CHANNEL:
            meant, step, behind = self._begins_line(), self._between, self._held
        elif not behind:
            return False
        else:
            first = not self._tail.strip()  # servers that take the thoughts out may leave the mark
            meant = first or (
                not self._thought and (self._begins_line() or behind[0] == "\n" or self._is_glued(behind[0]))
            )
            step = self._gap
        if not meant or self._in_code():
            self._say(mark)
            self._held = self._held[len(mark) :]
            return True
        if step == self._gap:
            self._withdraw()
        self._held, self._step = behind, step
        return True

    def _withdraw(self) -> None:
        """All text so far was thoughts."""
        said = "".join(self._said)
        unsaid = "".join(self._text)
        self.unopened, self.void = bool(said.strip()), len(said) > len(unsaid)
        self._text.clear()
        self._said.clear()
        self._tail, self._fences, self._thought = "", 0, True
        self._think(said)

    def _begins_line(self) -> bool:
        line = self._tail.rstrip(" \t")
        return not line or line.endswith("\n")

    def _is_glued(self, behind: str) -> bool:
        """Say whether words stand right before and behind a mark, as in `so it is 4.</think>4`."""
        before = self._tail[-1:]
        if not (before.isalnum() or before in _SENTENCE_ENDS) or behind in _AROUND_A_QUOTED_MARK:
            return False
        said = "".join(self._said)
        return not any(opening in said for opening in _CLOSING)

    def _in_code(self) -> bool:
        return self._fences % 2 == 1 or self._tail.endswith("`")

    def _call(self) -> bool:
        body, ended, rest = self._held.partition(_CALL_END)
        if not ended:
            return False
        self._take_call(body)
        self._held, self._step = rest, self._gap
        return True

    def _take_call(self, body: str) -> None:
        call = read_call(body)
        if call is None:  # nobody can read it, and nobody should
            self._think(body)
        else:
            self.calls.append(call)

    # -- channels

    @property
    def _is_private(self) -> bool:
        return not self._header.lstrip().startswith("final")

    def _between(self) -> bool:
        """Between two messages: marks, or text that stands in no channel."""
        held = self._held.lstrip()
        if held.startswith(_CHANNEL):
            self._held, self._step = held[len(_CHANNEL) :], self._head
        elif held.startswith(_START):
            _, channel, rest = held.partition(_CHANNEL)
            if not channel:
                return False
            self._held, self._step = rest, self._head
        elif any(mark.startswith(held) for mark in (_CHANNEL, _START)):
            return False
        else:
            self._step = self._plain
        return True

    def _head(self) -> bool:
        header, message, rest = self._held.partition(_MESSAGE)
        if not message:
            return False
        self._header, self._held, self._step = header, rest, self._message
        return True

    def _message(self) -> bool:
        to = _RECIPIENT.search(self._header)
        found = _END.search(self._held)
        if found is None:
            if to:
                return False
            safe = len(self._held) - max(_overlap(self._held, mark) for mark in _ENDS)
            (self._think if self._is_private else self._say)(self._held[:safe])
            self._held = self._held[safe:]
            return False
        body, rest = self._held[: found.start()], self._held[found.start() :]
        if to:
            self.calls.append((to.group(1), body.strip() or "{}"))
        else:
            (self._think if self._is_private else self._say)(body)
        self._held = rest if found.group() in (_START, _CHANNEL) else rest[len(found.group()) :]
        self._step = self._between
        return True


def read_call(body: str) -> tuple[str, str] | None:
    """(name, arguments) of a call that was written as text; None if it cannot be read."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        inner = data["function"] if isinstance(data.get("function"), dict) else data
        name, arguments = inner.get("name"), inner.get("arguments", inner.get("parameters", {}))
        if not isinstance(name, str) or not name:
            return None
        return name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    function = _FUNCTION.search(body)
    if function is None:
        return None
    given: dict[str, object] = {}
    for part in body.split(_PARAMETER)[1:]:
        key, _, text = part.partition(">")
        given[key] = _value(text.partition("</parameter>")[0].removeprefix("\n").removesuffix("\n"))
    return function.group(1), json.dumps(given, ensure_ascii=False)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _overlap(text: str, mark: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `mark`."""
    sizes = range(min(len(mark) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(mark[:size])), 0)
