"""Parts of a model's text that nobody should read: thoughts, the marks of chat templates, calls of tools.

Servers that do not know a model's format pass its text on as it is. Three things are told apart here, for all APIs:

- Thoughts between tags at the beginning: `<think>…</think>`, then the answer. Many templates put the opening tag into
  the prompt, so the answer begins with thoughts and only the closing tag shows it. Then all text so far is void. A
  model that did so once (`unopened`) has its text held back until the tag comes. A tag that opened the answer may open
  further thoughts at the beginning of a line.
- Channels (https://cookbook.openai.com/articles/openai-harmony): `<|channel|>analysis<|message|>…<|end|>`. Only what
  the channel `final` says is the answer. Some servers lose the marks: `analysisWe need…assistantfinalHello.`
- Calls of tools in any dialect (`written`), also a call whose JSON is the whole answer. Only tools that were offered
  are called; a call of another one is text about calls. What is half a call is neither shown nor kept.

A person may write about tags, and so may a model: a tag in the middle of a line, with space around it, between
backticks or in a block of code is text. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

from gateway.providers.written import (
    CLOSINGS,
    DIALECTS,
    WORDS,
    bare,
    is_cut,
    is_half,
    is_plausible,
    offered,
    read_bare,
    read_calls,
)

_CLOSING: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
}
_CHANNEL, _START, _MESSAGE = "<|channel|>", "<|start|>", "<|message|>"
_ENDS: Final = ("<|end|>", "<|return|>", "<|call|>", _START, _CHANNEL)
_BARE: Final = "analysis"  # a channel whose marks were lost, and the words that then begin the answer
_BARE_END: Final = "assistantfinal"
_OPENINGS: Final = (*_CLOSING, _CHANNEL, _START)
_TAGS: Final = (*_CLOSING, *_CLOSING.values())
_MARKS: Final = (*_TAGS, *DIALECTS, _CHANNEL)
_MARK: Final = re.compile(
    f"(?i:{'|'.join(map(re.escape, _TAGS))})|" + "|".join(map(re.escape, sorted((*DIALECTS, _CHANNEL), reverse=True)))
)
_BEGINNINGS: Final = frozenset(mark[:size].lower() for mark in _MARKS for size in range(1, len(mark)))
_END: Final = re.compile("|".join(map(re.escape, _ENDS)))
_RECIPIENT: Final = re.compile(r"\bto=(?:functions\.)?([\w.-]{1,64})")
_MARK_BEGINS: Final = frozenset(mark[0] for mark in _MARKS)
_MARK_ENDS: Final = frozenset(mark[-1].lower() for mark in (*_MARKS, *_ENDS, *_OPENINGS, _BARE_END))
_LONGEST: Final = max(map(len, (*_MARKS, *CLOSINGS)))
_SENTENCE_ENDS: Final = ".!?…。！？:："
_AROUND_A_QUOTED_MARK: Final = " \t`\"'’)]>.,;:"
_LINE: Final = 64  # characters of the text that are remembered to see where a line begins
_TOLD: Final = 6  # characters of a mark that are no chance
_AT_ONCE: Final = 8_000  # characters
_LONG_LINE: Final = 4_000  # characters
_FENCE: Final = re.compile(r"[ \t>*+.)\d-]{0,12}(`{3,}|~{3,})([^`]*)")
_INDENTED: Final = re.compile(r"(?: {4}|\t)")


class Thinking:
    """Splits the text of one answer, piece by piece. A possible half of a mark is held back.

    `unopened`: the model is expected to begin with thoughts that no tag opens. `tools`: the names of those that it may
    call. After use, `calls` holds the calls that were written as text, as (name, arguments). `void` says whether the
    text before the last piece turned out to be thoughts, and `unopened` whether the answer began with thoughts that no
    tag opened."""

    def __init__(self, *, unopened: bool = False, tools: Collection[str] = ()) -> None:
        self._tools = tools
        self.calls: list[tuple[str, str]] = []
        self.void = self.unopened = False
        self._held = ""
        self._step: Callable[[], bool] = self._unopened if unopened else self._opening
        self._closing = ""  # the mark that ends the thoughts
        self._mark = ""  # the mark that began a call
        self._recent = ""  # the end of a call so far
        self._header = self._role = ""  # of a message in a channel
        self._pieces: list[str] = []  # pieces of steps that wait long, joined once
        self._said: list[str] = []  # all text so far
        self._tail = ""  # the end of that
        self._read = 0  # pieces of it that were searched for code
        self._fence = self._line = ""  # the open block of code, and the last line, in these
        self._thought = False  # whether thoughts were told apart
        self._text: list[str] = []
        self._thoughts: list[str] = []

    def feed(self, text: str) -> tuple[str, str]:
        """(text, reasoning) that can be told apart by now."""
        if self._step == self._plain and not self._held and not _MARK_BEGINS & {*text}:
            self._note(text)  # nearly every piece of an answer
            return text, ""
        for at in range(0, len(text), _AT_ONCE):  # each mark copies what is held
            self._take(text[at : at + _AT_ONCE])
        return self._told()

    def _take(self, text: str) -> None:
        if self._waits(text):
            self._pieces.append(text)
            return
        self._held = "".join((self._held, *self._pieces, text))
        self._pieces.clear()
        while self._held and self._step():
            pass

    def apart(self) -> None:
        """Thoughts came beside the text, so none are expected in it."""
        self._thought = True
        if self._step == self._unopened:
            self._step = self._opening

    def flush(self) -> tuple[str, str]:
        """The text that is still held back, now that no mark can be completed any more."""
        self._held = "".join((self._held, *self._pieces))
        self._pieces.clear()
        if self._step == self._unopened:  # there were none
            self._step = self._opening
            while self._held and self._step():
                pass
        held, self._held = self._held, ""
        mark = held.strip().lower()
        if self._step == self._plain and mark in _CLOSING.values() and self._begins_line():
            if not self._thought:
                self._withdraw()
        elif (self._step == self._plain or self.calls) and self._is_half_a_mark(held):
            pass
        elif self._step == self._call:
            self._take_call(held, "", cut=True)
        elif self._step in (self._bare, self._opening) and held.lstrip()[:1] in ("{", "["):
            self._take_bare(held)
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

    def _waits(self, text: str) -> bool:
        """Whether nothing can be decided with this piece: a mark has to come, or the end."""
        if self._step == self._call:
            self._recent = self._recent[-_LONGEST:] + text
            return not any(end in self._recent for end in DIALECTS[self._mark])
        if self._step == self._bare:
            return True
        told = self._step == self._message and _RECIPIENT.search(self._header) is not None
        return (told or self._step == self._unopened) and not _MARK_ENDS & {*text.lower()}

    def _note(self, text: str) -> None:
        self._said.append(text)
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
        lowered = opening[:_LONGEST].lower()
        found = next((mark for mark in _OPENINGS if lowered.startswith(mark)), None)
        if found in (_CHANNEL, _START):
            self._held, self._step = opening, self._between
        elif found is not None:
            self._held, self._closing, self._step = opening[len(found) :], _CLOSING[found], self._thoughts_of
            self._thought = True
        elif opening.startswith(_BARE) and opening[len(_BARE) : len(_BARE) + 1].isupper():
            self._held, self._closing, self._step = opening[len(_BARE) :], _BARE_END, self._thoughts_of
        elif any(mark.startswith(lowered) for mark in (*_OPENINGS, _BARE)):
            return False
        elif self._tools and opening[0] in "{[" and (begun := bare(opening, self._tools)) is not False:
            if begun is None:
                return False
            self._step = self._bare
        else:
            self._step = self._plain
        return True

    def _bare(self) -> bool:
        """A call whose JSON is the whole answer."""
        return False

    def _unopened(self) -> bool:
        """Thoughts that no tag opened, as is known of this model."""
        if any(self._held.lstrip()[:_LONGEST].lower().startswith(mark) for mark in _OPENINGS):
            self._step = self._opening
            return True
        found = next((mark for mark in _MARK.finditer(self._held) if mark[0].lower() in _CLOSING.values()), None)
        if found is None:
            return False
        self._think(self._held[: found.start()])
        self._closing, self._held, self._step, self.unopened = (
            found[0].lower(),
            self._held[found.end() :],
            self._gap,
            True,
        )
        return True

    def _thoughts_of(self) -> bool:
        held = self._held
        found = re.search(re.escape(self._closing), held, re.IGNORECASE)
        if found is not None:
            self._think(held[: found.start()])
            self._held, self._step = held[found.end() :], self._gap
            return True
        safe = len(held) - _overlap(held, self._closing)
        self._think(held[:safe])
        self._held = held[safe:]
        return False

    def _gap(self) -> bool:
        """The white space after thoughts and calls, and a mark that ends a call a second time."""
        held = self._held = self._held.lstrip()
        if self.calls and (again := next((end for end in CLOSINGS if held.startswith(end)), None)):
            self._held = held[len(again) :]
            return True
        if not held or (self.calls and any(end.startswith(held) for end in CLOSINGS)):
            return False
        self._step = self._opening
        return True

    def _plain(self) -> bool:
        found = _MARK.search(self._held)
        if found is None:
            end = self._held[-_LONGEST:].lower()
            sizes = range(len(end), 0, -1) if not _MARK_BEGINS.isdisjoint(end) else ()  # seldom
            safe = len(self._held) - next((size for size in sizes if end[-size:] in _BEGINNINGS), 0)
            self._say(self._held[:safe])
            self._held = self._held[safe:]
            return False
        self._say(self._held[: found.start()])
        self._held = self._held[found.start() :]
        return self._marked(found.group())

    def _marked(self, mark: str) -> bool:
        """A mark, and the text after it."""
        behind = self._held[len(mark) :]
        meant: bool | None
        if mark in DIALECTS:
            meant, step = self._means_call(mark, behind), self._call
        elif mark == _CHANNEL:
            meant, step, behind = self._begins_line(), self._between, self._held
        elif mark.lower() in _CLOSING:  # as the one that opened the answer
            meant, step = self._begins_line() and self._closing == _CLOSING[mark.lower()], self._thoughts_of
        elif not behind:
            return False
        else:
            first = not self._tail.strip()  # servers that take the thoughts out may leave the mark
            meant = first or (not self._thought and (self._begins_line() or self._is_glued(behind[0])))
            step = self._gap
        if meant is None:
            return False
        if not meant or self._in_code():
            self._say(mark)
            self._held = self._held[len(mark) :]
            return True
        if step == self._gap:
            self._closing = mark.lower()
            self._withdraw()
        self._held, self._step, self._mark, self._recent = behind, step, mark, ""
        return True

    def _means_call(self, mark: str, behind: str) -> bool | None:
        """Whether a mark begins a call; None if too little has come. Words come between spaces, and marks that are
        words must begin a line, or follow a sentence."""
        apart = mark not in WORDS or self._begins_line() or self._tail[-1:] in _SENTENCE_ENDS
        return is_plausible(mark, behind, self._tools) if self._tools and apart else False

    def _is_half_a_mark(self, held: str) -> bool:
        """Whether the text ends where a call begins."""
        text, least = held.strip(), 1 if self.calls else _TOLD  # behind a call no beginning of a mark is a chance
        return bool(self._tools and self._begins_line()) and any(
            text.startswith(mark) or (mark.startswith(text) and len(text) >= least) for mark in DIALECTS
        )

    def _withdraw(self) -> None:
        """All text so far was thoughts."""
        said = "".join(self._said)
        unsaid = "".join(self._text)
        self.unopened, self.void = bool(said.strip()), len(said) > len(unsaid)
        self._text.clear()
        self._said.clear()
        self._tail = self._fence = self._line = ""
        self._read, self._thought = 0, True
        self._think(said)

    def _begins_line(self) -> bool:
        line = self._tail.rstrip(" \t")
        return not line or line.endswith("\n")

    def _is_glued(self, behind: str) -> bool:
        """Whether there are words right before and after a mark, as in `so it is 4.</think>4`, or its line ends."""
        before = self._tail[-1:]
        if behind != "\n" and (not (before.isalnum() or before in _SENTENCE_ENDS) or behind in _AROUND_A_QUOTED_MARK):
            return False
        said = "".join(self._said)
        return not any(opening in said for opening in _CLOSING)

    def _in_code(self) -> bool:
        """Whether the text so far ends in code: in a block of it, or behind a backtick of the line."""
        *lines, last = (self._line + "".join(self._said[self._read :])).split("\n")
        self._read = len(self._said)
        for line in lines:
            self._fence = _fence_behind(self._fence, line)
        ticks = last.count("`") % 2
        self._line = last if len(last) < _LONG_LINE else last[:100] + "`" * ((ticks + last[:100].count("`")) % 2)
        inside = _fence_behind(self._fence, last) or _INDENTED.match(last)
        return bool(self._fence or inside or ticks)

    def _call(self) -> bool:
        ends = [(at, end) for end in DIALECTS[self._mark] if (at := self._held.find(end)) >= 0]
        if not ends:
            self._recent = self._held[-_LONGEST:]
            return False
        at, end = min(ends)
        body, rest = self._held[:at], self._held[at + len(end) :]
        self._held = rest
        self._take_call(body, end)
        return True

    def _take_call(self, body: str, end: str, *, cut: bool = False) -> None:
        """What is between two marks: calls, words about calls, or half a call. `cut`: the text ended."""
        mark = self._mark
        whole = body if mark.endswith((">", "]")) else mark + body
        written = read_calls(whole, cut=cut)
        calls = offered(written, self._tools)
        half = not written and is_half(mark, body, self._tools, cut=cut)
        self._step = self._gap if calls or half else self._plain
        self.calls += calls
        if not (calls or half):
            self._say(mark + body + end)

    def _take_bare(self, text: str) -> None:
        calls = offered(read_bare(text), self._tools)
        self.calls += calls
        if not calls and not (self._step == self._bare and is_cut(text)):
            self._say(text)

    # -- channels

    @property
    def _is_private(self) -> bool:
        return not self._header.lstrip().startswith("final")

    def _between(self) -> bool:
        """Between two messages: marks, or text that is in no channel."""
        held = self._held.lstrip()
        if held.startswith(_CHANNEL):
            self._held, self._step = held[len(_CHANNEL) :], self._head
        elif held.startswith(_START):
            role, channel, rest = held.partition(_CHANNEL)
            if not channel:
                return False
            self._held, self._step, self._role = rest, self._head, role  # which may name a tool, too
        elif any(mark.startswith(held) for mark in (_CHANNEL, _START)):
            return False
        else:
            self._step = self._plain
        return True

    def _head(self) -> bool:
        header, message, rest = self._held.partition(_MESSAGE)
        if not message:
            return False
        self._header, self._held, self._step = header + self._role, rest, self._message
        self._role = ""
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


def _fence_behind(fence: str, line: str) -> str:
    """The code block that is open after a line, by its fence; "" if there is none."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) and not found[2].strip() else fence


def _overlap(text: str, mark: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `mark`."""
    end, mark = text[-len(mark) :].lower(), mark.lower()
    sizes = range(min(len(mark) - 1, len(end)), 0, -1)
    return next((size for size in sizes if end.endswith(mark[:size])), 0)
