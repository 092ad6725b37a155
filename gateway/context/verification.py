"""Phase 4: whether a summariser's answer can be used, and what it left out put back.

An answer is refused when it is empty, cut off, a refusal, or longer than there is room for. The
identifiers of what leaves view that a usable one does not mention are appended letter for letter.
Redaction comes last, over the appended ones as well: and since a piece of a credential may look like
an identifier once it is taken out of its line, each is looked at in its line first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.context.identifiers import EARLIER, Entry, mentions
from gateway.context.material import Redact
from gateway.context.prompts import IDENTIFIERS, SECTIONS, unframed
from gateway.context.shapes import calls_of
from gateway.context.statements import CONTEXT, around, context_in
from gateway.domain.message import Message, text_of
from gateway.runtime.errors import SummaryRefused
from gateway.runtime.tokens import TokenCounter

_THINKING: Final = re.compile(r"^\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_UNENDED_THINKING: Final = re.compile(r"^\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_FENCE: Final = re.compile(r"^```[a-z]*\n(.*)\n```\s*$", re.DOTALL)
_LAST_HEADING: Final = re.compile(r"\n?^#{1,6}[ \t]*([^\n]*)\Z", re.MULTILINE)
_ANY_HEADING: Final = re.compile(r"^#{1,6}[ \t]+([^\n]*)$", re.MULTILINE)
_HEADINGS: Final = SECTIONS | {IDENTIFIERS.lstrip("# ")}
_BARE: Final = re.compile(r"^[ \t]*(?:[-*•]|\d{1,4}[.)])[ \t]*\Z", re.MULTILINE)
_SORRY: Final = re.compile(
    r"\W*(?:i(?:['’]| a)m (?:really |very |so )?(?:sorry|not able|unable)|sorry\b|i (?:can ?not|can['’]t|won['’]t)\b"
    r"|unfortunately,? i\b|as an ai\b|my apologies|i apologi[sz]e"
    r"|抱歉|对不起|很遗憾|我无法|我不能|作为(?:一个|一名)?(?:ai|人工智能)|申し訳|죄송"
    r"|извините|к сожалению|я не могу|как языковая модель|क्षमा|माफ़|मैं (?:यह )?नहीं"
    r"|lo siento|no puedo|désolé|je ne peux pas|es tut mir leid|leider kann ich)",
    re.IGNORECASE,
)
_SORRY_CHARS: Final = 1_500  # a longer text, or one with headings, is no refusal
_SECTION: Final = re.compile(rf"(?:(?<!\n)\n++)?+^{re.escape(IDENTIFIERS)}\n((?:- [^\n]*(?:\n|\Z))*)", re.MULTILINE)
_NEAR: Final = 300  # characters around an identifier that are looked at
_NEAR_KEY: Final = 16_384  # where there is a key of many lines
_READ: Final = 12_000  # characters of a message; in a longer one nobody looks for what was said
_APART: Final = "\n\n\x1e\n\n"
_BARE_SHARE: Final = 0.85  # of a list's room, for the values themselves; all of the little there is in notes by rule
_LEAST_CONTEXT: Final = 6  # tokens; less says nothing

Ledger = Mapping[str, Entry]


def accept(answer: Any, redact: Redact, *, limit: int, room: int, counter: TokenCounter) -> str:
    """The redacted notes in a summariser's answer. Raises SummaryRefused, see `notes_in`."""
    return redact(notes_in(answer, limit=limit, room=room, counter=counter))


def notes_in(answer: Any, *, limit: int, room: int, counter: TokenCounter) -> str:
    """The notes in a summariser's answer. Raises SummaryRefused, whose text completes "because".

    `limit`: the output cap the answer was asked under; reaching it means it was cut off. `room`:
    the most it may take, so that the transcript really becomes shorter.
    """
    text = str(answer).replace("\x00", "") if isinstance(answer, str) else ""
    text = _THINKING.sub("", text).strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    framed = unframed(text)
    text = framed[0] if framed else text
    if not text:
        raise SummaryRefused("it was empty")
    size = counter.text(text)
    if getattr(answer, "stop", None) == "length" or size >= limit or _UNENDED_THINKING.match(text):
        raise SummaryRefused("it was cut off before its end")
    if len(text) < _SORRY_CHARS and "\n## " not in f"\n{text}" and _SORRY.match(text):
        raise SummaryRefused("it refused the task instead of doing it")
    text = _ended(text)
    if size > room:
        raise SummaryRefused(f"it was too long ({size:,} tokens where {room:,} fit)")
    return text


def structured(notes: str) -> bool:
    """Whether notes hold any of the headings that were asked for. Text without one is no record of a
    conversation but more of it."""
    return any(heading.strip() in SECTIONS for heading in _ANY_HEADING.findall(notes))


def _ended(text: str) -> str:
    """The text without a last section that says nothing. Raises SummaryRefused if it breaks off."""
    heading = _LAST_HEADING.search(text)
    if heading and heading[1].strip() in _HEADINGS and heading.start() > 0:
        return text[: heading.start()].rstrip()
    if heading or _BARE.search(text) or text.count("\n```") % 2:
        raise SummaryRefused("it was cut off before its end")
    return text


def completed(
    notes: str,
    ledger: Ledger,
    redact: Redact,
    *,
    room: int,
    counter: TokenCounter,
    chars: int | None = None,
    previous: str = "",
) -> str:
    """`notes`, redacted, with what it does not mention of the ledger at its end, as far as `room` tokens
    and `chars` characters last; beside each, what was said of it in the middle or in the `previous` notes.
    An earlier list that it copied is left out: what of it holds still is in the ledger."""
    bare, _ = without_section(notes)
    dropped = [value for value, entry in ledger.items() if entry.owed and not mentions(bare, value)]
    lines = _listed(
        _unsuspected(dropped, ledger, redact),
        ledger,
        _Room(
            room - counter.text(bare) - counter.text(IDENTIFIERS) - 4,
            None if chars is None else chars - len(bare) - len(IDENTIFIERS) - 3,
            counter,
        ),
        lambda value: _said(value, ledger[value].source, redact, previous),
    )
    while True:
        whole = redact(f"{bare}\n\n{IDENTIFIERS}\n" + "\n".join(lines) if lines else bare)
        if not lines or (counter.text(whole) <= room and (chars is None or len(whole) <= chars)):
            return whole
        lines = lines[: len(lines) // 2]  # what redaction put in took more than what it took out


def held(notes: str, ledger: Ledger) -> dict[str, float]:
    """The identifiers of a ledger that notes hold and their weights, for the host to keep with the summary,
    so that the next hold them, too. What was only passed to a tool, or pasted in rows, is listed once and
    then let go."""
    bare, _ = without_section(notes)
    lasts = (value for value, entry in ledger.items() if entry.lasting or mentions(bare, value))
    kept = itertools.islice((value for value in lasts if mentions(notes, value)), EARLIER)
    return {value: round(ledger[value].weight, 3) for value in kept}


def without_section(notes: str) -> tuple[str, list[str]]:
    """(notes without the list that `completed` appends, the identifiers that were in it)."""
    copied: list[str] = []
    for section in _SECTION.finditer(notes):
        copied += [line[2:].partition(CONTEXT)[0] for line in section[1].splitlines()]
    return (_SECTION.sub("\n", notes).strip(), copied) if copied else (notes, [])


@dataclass(slots=True)
class _Room:
    """What a list may take yet; `chars` None: as many as there are."""

    tokens: int
    chars: int | None
    counter: TokenCounter

    def share(self, share: float) -> _Room:
        """A part of it, by itself."""
        return _Room(int(self.tokens * share), None if self.chars is None else int(self.chars * share), self.counter)

    def takes(self, text: str) -> bool:
        """Make room for a text, or say that there is none."""
        tokens, chars = self.tokens - self.counter.text(text) - 1, (self.chars or 0) - len(text) - 1
        if tokens < 0 or (self.chars is not None and chars < 0):
            return False
        self.tokens, self.chars = tokens, self.chars if self.chars is None else chars
        return True


def _listed(values: Iterable[str], ledger: Ledger, room: _Room, said: Callable[[str], str]) -> list[str]:
    """A line for each value as long as there is room. The best of those that are to last share it with what
    was said of them, for a value alone tells little; the others follow."""
    apart: list[str] = []
    named = ""
    for value in values:
        if not mentions(named, value):  # a part of one that is listed already
            apart.append(value)
            named = f"{named}\n{value}"
    lasts = [value for value in apart if ledger[value].lasting]
    lines: dict[str, str] = {}
    left = room.share(_BARE_SHARE if room.chars is None else 1.0)
    for value in itertools.takewhile(lambda value: left.takes(f"- {value}"), lasts):
        room.takes(f"- {value}")
        lines[value] = f"- {value}"
    for value in itertools.takewhile(lambda _: room.tokens > _LEAST_CONTEXT, list(lines)):
        context = said(value)
        if context and room.takes(CONTEXT + context):
            lines[value] += CONTEXT + context
    rest = (value for value in [*lasts, *apart] if value not in lines)
    for value in itertools.takewhile(lambda value: room.takes(f"- {value}"), dict.fromkeys(rest)):
        lines[value] = f"- {value}"
    return list(lines.values())


def _said(value: str, message: Message | None, redact: Redact, previous: str) -> str:
    """What was said of a value, "" for nothing. Redacted before it is cut."""
    if message is None:
        return context_in(previous, value)
    text = text_of(message)
    return around(value, redact(text)) if len(text) <= _READ else ""


def _unsuspected(values: Iterable[str], ledger: Ledger, redact: Redact) -> list[str]:
    """Those that redaction leaves alone where they stood."""
    candidates = [(value, near) for value in values if (near := _near(value, ledger[value].source)) is not None]
    looked_at = redact(_APART.join(near for _, near in candidates)).split(_APART)
    if len(looked_at) != len(candidates):  # something was taken out across two of them
        looked_at = [redact(near) for _, near in candidates]
    return [value for (value, _), near in zip(candidates, looked_at, strict=True) if value in near]


def _near(value: str, message: Message | None) -> str | None:
    """What stands around an identifier in its message; None if it is not there to be looked at."""
    if message is None:
        return value
    for text in (text_of(message), *(call.arguments for call in calls_of(message))):
        place = text.find(value)
        if place >= 0:
            near = _NEAR_KEY if "PRIVATE KEY" in text else _NEAR
            return text[max(0, place - near) : place + len(value) + near]
    return None
