"""A summary made without a model, when no model will make one.

It promises less than a written summary and says so: the latest request, constraints, files and last
actions picked by plain rules and added to those that earlier notes listed, what else these said, how
much left view and how to get it back. Reads newest turns first and stops after `SCANNED`, so that its
cost does not grow with the transcript. What is picked is picked from redacted text: a piece of a
credential looks like anything else once it is taken out of its line.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from gateway.context.material import Redact
from gateway.context.shapes import Call, result_id
from gateway.context.stubs import STUB_CHARS, stub_line
from gateway.domain.message import Message, is_request, note_of, text_of
from gateway.runtime.tokens import TokenCounter

SCANNED: Final = 300  # messages of the middle that are looked at, newest first
_READ_CHARS: Final = 2_000  # of each message
_LEAST_CHARS: Final = 40  # cutting ends here, whatever the tokens
_ACTIONS, _FILES, _CONSTRAINTS, _ASKS = 12, 15, 8, 6
_RULES: Final = re.compile(
    r"\b(?:never|always|must|don't|do not|only|prefer|avoid|immer|niemals?|nicht|toujours|jamais|nunca|siempre)\b"
    r"|\b(?:никогда|всегда|нельзя|только|обязательно|не надо|не нужно)\b"
    r"|不要|必须|一定|总是|从不|禁止|请勿|别|只能|必ず|絶対|कभी नहीं|हमेशा|मत |ज़रूर|केवल|सिर्फ़",
    re.IGNORECASE,
)
_PATH: Final = re.compile(
    r"(?<![\w:/.])(?:~|\.{1,2})?/?(?:[\w.-]{1,80}/){1,12}[\w.-]{1,80}|\b[\w-]{1,60}\.[a-z]{1,5}\b"
)
_HEADING: Final = re.compile(r"^## +(\S[^\n]*)\n?", re.MULTILINE)
_TASK, _CONTEXT, _EARLIER = "Active Task", "Critical Context", "Earlier notes"
_RULED, _DONE, _ASKED, _NAMED = "Constraints & Preferences", "Completed Actions", "Pending User Asks", "Relevant Files"
_GONE: Final = re.compile(r"^\d+ messages left view and no model[^\n]*\n?", re.MULTILINE)
_SUFFIX: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}$")


def write(
    request: str,
    previous: str,
    middle: Sequence[Message],
    calls: Mapping[str, Call],
    redact: Redact,
    *,
    chars: int,
    tokens: int,
    counter: TokenCounter,
) -> str:
    """Notes of at most `chars` characters and `tokens` tokens, redacted.

    `request` is the latest one, which also follows verbatim; `previous` the notes that stood
    before, which keep up to half of the room.
    """
    reader = _Reader(middle[-SCANNED:], calls, redact)
    gone = (
        f"{len(middle)} messages left view and no model could summarise them, so these notes were put together by "
        "rule. /recall <words> finds the original turns."
    )
    while True:
        notes = redact(_notes(request, previous, gone, reader, chars))[:chars].rstrip()
        size = counter.text(notes)
        if size <= tokens or chars <= _LEAST_CHARS:
            return notes
        chars = max(_LEAST_CHARS, min(chars, len(notes)) * tokens // (size + 1))


class _Reader:
    """The newest turns of the middle, newest first, each redacted once."""

    def __init__(self, recent: Sequence[Message], calls: Mapping[str, Call], redact: Redact) -> None:
        self.newest_first = list(reversed(recent))
        self.calls = calls
        self.redact = redact
        self._texts: dict[int, str] = {}

    def text(self, place: int) -> str:
        """The beginning of a turn's text; of a result's, the arguments of its call."""
        if place not in self._texts:
            message = self.newest_first[place]
            call = self.call(message)
            text = call.arguments if call else text_of(message)
            self._texts[place] = self.redact(text[: 2 * _READ_CHARS])[:_READ_CHARS]
        return self._texts[place]

    def call(self, message: Message) -> Call | None:
        """The call that a tool message answers."""
        return self.calls.get(result_id(message) or "") if message.get("role") == "tool" else None


def _notes(request: str, previous: str, gone: str, reader: _Reader, chars: int) -> str:
    """Sections in order of worth; each takes a share of what is left at most."""
    task = _clip(reader.redact(request[: chars * 2]), chars // 4)
    earlier = _sections(reader.redact(previous))
    rest = "\n".join(f"### {title}\n{text}" if title else text for title, text in _unlisted(earlier))
    sections = [(_TASK, task), (_CONTEXT, gone)]
    left = chars - len(task) - len(gone) - len(_TASK) - len(_CONTEXT) - 12
    shared = [
        (_RULED, _constraints(reader), 3),
        (_EARLIER, iter(rest.splitlines()), 2),
        (_DONE, _actions(reader), 2),
        (_ASKED, _asks(reader), 2),
        (_NAMED, _files(reader), 2),
    ]
    for title, lines, share in shared:
        known = earlier.get(title, "").splitlines() if title != _EARLIER else []
        text = _fit(dict.fromkeys([*lines, *known]), left // share)
        if text:
            sections.append((title, text))
            left -= len(title) + len(text) + 6
    return "\n".join(f"## {title}\n{text}" for title, text in sections if text)


def _sections(notes: str) -> dict[str, str]:
    """The sections of earlier notes by heading; what stands before the first one under ""."""
    pieces = _HEADING.split(notes)
    found = {"": pieces[0].strip()} if pieces[0].strip() else {}
    for title, text in zip(pieces[1::2], pieces[2::2], strict=True):
        title = title.strip()
        found[title] = f"{found[title]}\n{text.strip()}" if title in found else text.strip()
    return found


def _unlisted(sections: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What earlier notes said beyond the task, which the newer one replaces, and the lists that go on."""
    for title, text in sections.items():
        if title in (_TASK, _RULED, _DONE, _ASKED, _NAMED):
            continue
        said = _GONE.sub("", text).strip()
        if said:
            yield "" if title == _EARLIER else title, said


def _constraints(reader: _Reader) -> Iterator[str]:
    found = 0
    for place, message in enumerate(reader.newest_first):
        if not is_request(message):
            continue
        for line in reader.text(place).splitlines():
            if _RULES.search(line):
                yield f"- {_clip(line.strip(), 240)}"
                found += 1
                if found == _CONSTRAINTS:
                    return


def _actions(reader: _Reader) -> Iterator[str]:
    """The newest results, newest first."""
    results = (message for message in reader.newest_first if message.get("role") == "tool")
    for message in itertools.islice(results, _ACTIONS):
        text = text_of(message)
        short = len(text) <= STUB_CHARS
        line = reader.redact(text) if short else stub_line(reader.call(message), text, reader.redact)
        yield f"- {' '.join(line.split())}"


def _asks(reader: _Reader) -> Iterator[str]:
    asked = (place for place, message in enumerate(reader.newest_first) if is_request(message))
    lines = (" ".join(reader.text(place).split()) for place in asked)
    return (f"- {_clip(line, 160)}" for line in itertools.islice(filter(None, lines), _ASKS))


def _files(reader: _Reader) -> Iterator[str]:
    seen: set[str] = set()
    for place, message in enumerate(reader.newest_first):
        for path in _paths(message, reader.text(place)):
            if path not in seen:
                seen.add(path)
                yield f"- {path}"
                if len(seen) == _FILES:
                    return


def _paths(message: Message, text: str) -> list[str]:
    stored = note_of(message).get("identifiers")
    if isinstance(stored, list) and message.get("role") != "tool":
        return [value for value in stored if isinstance(value, str) and value in text and _PATH.fullmatch(value)]
    return [path for path in _PATH.findall(text) if "/" in path or _SUFFIX.search(path)]


def _fit(lines: Iterable[str], room: int) -> str:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept)


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(0, limit - 1)]}…"
