"""A summary made by rule, if no model writes one.

It promises less than a written summary, and says so. It holds the latest request; constraints, files and last actions
that simple rules pick, added to the lists of earlier notes; the rest of those notes; how many messages left view, and
how to find them. The newest turns are read first, and only `SCANNED` of them, so the cost does not grow with the
transcript. Rules read redacted text, because a piece of a credential cannot be recognised outside its line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

from gateway.context.pruning import STUB_CHARS, stub_line
from gateway.context.readable import Call, result_id
from gateway.context.statements import sentences
from gateway.domain.message import Message, is_request, note_of, own_words, text_of
from gateway.domain.notes import ASKED, CONTEXT, DONE, FILES, RULES, TASK, section, sections_of
from gateway.runtime.patterns import late, table
from gateway.runtime.redaction import Redact
from gateway.runtime.tokens import TokenCounter

SCANNED: Final = 300  # messages of the middle that are read, newest first
_READ_CHARS: Final = 2_000  # of each message
_LEAST_CHARS: Final = 40  # no text is cut below this, whatever its tokens
# Words of a sentence that binds somebody, in lower case; those of the second group may be written without spaces.
_BINDING: Final = (
    "never", "must", "mustn't", "don't", "do not", "have to", "has to", "not allowed", "forbidden", "prefer", "avoid",
    "only", "at most", "at least", "no more than", "muss", "müssen", "darf", "dürfen", "niemals", "bitte nicht",
    "höchstens", "mindestens", "lieber", "il faut", "ne pas", "jamais", "au plus", "debe", "deben", "nunca",
    "no hay que",
    "como máximo", "нельзя", "никогда", "обязательно", "не надо", "не нужно", "только", "должен", "должны",
)  # fmt: skip
_BINDING_INSIDE: Final = (
    "不要", "必须", "一定要", "从不", "禁止", "请勿", "只能", "不能", "最多", "至少", "必ず", "絶対", "कभी नहीं", "हमेशा",
    "मत ", "ज़रूर", "केवल", "सिर्फ़",
)  # fmt: skip
_BINDS: Final = late(rf"\b(?:{'|'.join(_BINDING)})\b|{'|'.join(_BINDING_INSIDE)}", re.IGNORECASE)
# They tell of a thought or a feeling, although they have such a word.
_MUSES: Final = late(table(__file__)["muses"], re.IGNORECASE)
_PATH: Final = late(r"(?<![\w:/.])(?:~|\.{1,2})?/?(?:[\w.-]{1,80}/){1,12}[\w.-]{1,80}|\b[\w-]{1,60}\.[a-z]{1,5}\b")
_EARLIER: Final = "Earlier notes"
_GONE: Final = late(r"^\d+ messages left view and no model[^\n]*\n?", re.MULTILINE)
_SUFFIX: Final = late(r"\.[A-Za-z][A-Za-z0-9]{0,5}$")


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
    """Return redacted notes of at most `chars` characters and `tokens` tokens.

    `request`: the latest request, which also follows the summary verbatim. `previous`: the notes so far, which keep
    up to half of the room.
    """
    turns = [_Turn(message, calls, redact) for message in reversed(middle[-SCANNED:])]
    gone = (
        f"{len(middle)} messages left view and no model could summarise them, so these notes were put together by "
        "rule. /recall <words> finds the original turns."
    )
    while True:
        notes = redact(_notes(redact(request[: chars * 2]), redact(previous), gone, turns, chars))[:chars].rstrip()
        size = counter.text(notes)
        if size <= tokens or chars <= _LEAST_CHARS:
            return notes
        chars = max(_LEAST_CHARS, min(chars, len(notes)) * tokens // (size + 1))


class _Turn:
    """A message of the middle. `call`: the call that a tool's result answers."""

    def __init__(self, message: Message, calls: Mapping[str, Call], redact: Redact) -> None:
        self.message = message
        self.asked = is_request(message)
        self.call = calls.get(result_id(message) or "") if message.get("role") == "tool" else None
        self._redact = redact

    @cached_property
    def text(self) -> str:
        """The redacted beginning of the text; for a result, of its call's arguments."""
        text = self.call.arguments if self.call else text_of(self.message)
        return self._redact(text[: 2 * _READ_CHARS])[:_READ_CHARS]

    @cached_property
    def own(self) -> str:
        """The redacted beginning of a person's own words: only those set rules."""
        return self._redact(own_words(self.message)[: 2 * _READ_CHARS])[:_READ_CHARS]

    def result(self) -> str:
        """Return a result on one line, redacted."""
        text = text_of(self.message)
        short = len(text) <= STUB_CHARS
        return " ".join((self._redact(text) if short else stub_line(self.call, text, self._redact)).split())

    def paths(self) -> list[str]:
        """Return the paths in the text."""
        stored = note_of(self.message).get("identifiers")
        if isinstance(stored, list) and self.message.get("role") != "tool":
            return [each for each in stored if isinstance(each, str) and _PATH.fullmatch(each) and each in self.text]
        return [path for path in _PATH.findall(self.text) if "/" in path or _SUFFIX.search(path)]


def _notes(request: str, previous: str, gone: str, turns: Sequence[_Turn], chars: int) -> str:
    """The sections, most valuable first. Each takes at most a share of the remaining room."""
    task = _clip(request, chars // 4)
    earlier = sections_of(previous)
    rest = "\n".join(f"### {title}\n{text}" if title else text for title, text in _unlisted(earlier))
    sections = [(TASK, task), (CONTEXT, gone)]
    left = chars - len(task) - len(gone) - len(TASK) - len(CONTEXT) - 12
    rules = list(dict.fromkeys(_constraints(turns)))
    shared = [
        (RULES, _listed(rules, 8), 3),
        (_EARLIER, rest.splitlines(), 2),
        (DONE, _listed((turn.result() for turn in turns if turn.message.get("role") == "tool"), 12), 2),
        (ASKED, _listed(_asks(turns, {*rules, task}), 6), 2),
        (FILES, _listed(_files(turns), 15), 2),
    ]
    for title, lines, share in shared:
        known = earlier.get(title, "").splitlines() if title != _EARLIER else []
        text = _fit(dict.fromkeys([*lines, *known]), left // share)
        if text:
            sections.append((title, text))
            left -= len(title) + len(text) + 6
    return "\n".join(section(title, text) for title, text in sections if text)


def _listed(lines: Iterable[str], most: int) -> list[str]:
    return [f"- {line}" for line in islice(lines, most)]


def _unlisted(sections: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The sections of earlier notes, without the task, which is replaced, and the lists, which go on."""
    for title, text in sections.items():
        said = _GONE.sub("", text).strip()
        if said and title not in (TASK, RULES, DONE, ASKED, FILES):
            yield "" if title == _EARLIER else title, said


def _constraints(turns: Iterable[_Turn]) -> Iterator[str]:
    """Sentences of people that bind somebody."""
    for turn in turns:
        if turn.asked and _may_bind(own_words(turn.message)[: 2 * _READ_CHARS]):
            for sentence in sentences(turn.own):
                said = " ".join(sentence.split())
                if _BINDS.search(said) and not _MUSES.search(said):
                    yield _clip(said.lstrip("-*•– "), 240)


def _may_bind(text: str) -> bool:
    """Whether a text may bind somebody. Hardly any does, and looking for words takes a tenth of the pattern's time."""
    lowered = text.lower()
    return any(map(lowered.__contains__, _BINDING)) or any(map(lowered.__contains__, _BINDING_INSIDE))


def _asks(turns: Iterable[_Turn], known: Collection[str]) -> Iterator[str]:
    """Requests that were not answered before the next one, newest first, without the `known` lines. Consecutive
    requests share an answer."""
    has_answer = after_request = False
    for turn in turns:
        if turn.asked:
            after_request = True
            line = " ".join(turn.text.split())
            if not has_answer and line and (clipped := _clip(line, 160)) not in known:
                yield clipped
            continue
        says = turn.message.get("role") == "assistant" and not turn.message.get("tool_calls")
        has_answer, after_request = says or (has_answer and not after_request), False


def _files(turns: Iterable[_Turn]) -> Iterator[str]:
    seen: set[str] = set()
    for turn in turns:
        for path in turn.paths():
            if path not in seen:
                seen.add(path)
                yield path


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
