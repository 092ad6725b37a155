"""Phase 4: a summariser's answer is checked, completed and redacted.

An answer is refused when it is empty, cut off, a refusal, longer than its room, or gives its reader orders.
Identifiers of the middle that a usable answer does not mention are appended letter for letter. Redaction comes last,
over the appended list as well.

Often only the words in front of a password give it away, and a model that read those words may repeat the password
without them, unrecognisable by any pattern. So every credential of the middle (`withheld`) is also taken out of the
answer of a model that was shown the middle unredacted (`without`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.context import facts, listing, statements, timelines
from gateway.context.dating import Dating
from gateway.context.injections import orders_in
from gateway.context.ledger import EARLIER, Ledger
from gateway.context.mentions import Named
from gateway.context.prompts import unframed
from gateway.context.readable import calls_of
from gateway.context.standing import HEADING
from gateway.context.statements import Outdated
from gateway.domain.message import Message, text_of
from gateway.domain.notes import IDENTIFIERS, SECTIONS, section, sections_of
from gateway.runtime.errors import SummaryRefused
from gateway.runtime.patterns import late, table
from gateway.runtime.redaction import MARK, SHORTEST_SECRET, Redact
from gateway.runtime.tokens import TokenCounter

_THINKING: Final = late(r"^\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_UNENDED_THINKING: Final = late(r"^\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_FENCE: Final = late(r"^```[a-z]*\n(.*)\n```\s*$", re.DOTALL)
_LAST_HEADING: Final = late(r"\n?^#{1,6}[ \t]*+([^\n]*+)\Z", re.MULTILINE)
_ANY_HEADING: Final = late(r"^#{1,6}[ \t]+([^\n]*)$", re.MULTILINE)
_BARE: Final = late(r"^[ \t]*(?:[-*•]|\d{1,4}[.)])[ \t]*\Z", re.MULTILINE)
_SORRY: Final = late(table(__file__)["sorry"], re.IGNORECASE)
_SORRY_CHARS: Final = 1_500  # a longer text, or a text with headings, is no refusal
_SECTION: Final = late(rf"(?:(?<!\n)\n++)?+^{re.escape(listing.HEADING)}\n((?:- [^\n]*(?:\n|\Z))*)", re.MULTILINE)
_HEADINGS: Final = (HEADING, facts.HEADING, timelines.HEADING)
_WORD_FOR_WORD: Final = late(
    rf"(?:(?<!\n)\n++)?+^(?:{'|'.join(map(re.escape, _HEADINGS))})\n"
    r"(?:(?!- |#)[^\n]++\n)?((?:- [^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)
_APART: Final = "\n\n\x1e\n\n"


class Lists(Struct, frozen=True):
    """What was said, as it appears in notes word for word: instructions, facts, and what changed; each may be ""."""

    standing: str
    facts: str
    changed: str = ""

    @property
    def text(self) -> str:
        """All of them."""
        return "\n\n".join(filter(None, (self.facts, self.changed, self.standing)))


def notes_in(answer: Any, *, limit: int, room: int, counter: TokenCounter, spoken: str = "") -> str:
    """The notes in a summariser's answer.

    Raises SummaryRefused, whose text completes "because". `limit`: the output cap of the request; an answer that
    reaches it was cut off. `room`: the most tokens for the notes, so that the transcript really gets shorter. `spoken`:
    people's newest requests, which may appear in the notes word for word.
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
    if orders := orders_in(text, spoken):
        raise SummaryRefused(f"it gives its reader orders ({orders}) instead of recording")
    if size > room:
        raise SummaryRefused(f"it was too long ({size:,} tokens where {room:,} fit)")
    return text


def structured(notes: str) -> bool:
    """Whether notes hold any of the headings that were asked for. A text without headings continues the
    conversation instead of recording it."""
    return any(heading.strip() in SECTIONS for heading in _ANY_HEADING.findall(notes))


def _ended(text: str) -> str:
    """The text without an empty last section. Raises SummaryRefused for a text that breaks off."""
    heading = _LAST_HEADING.search(text)
    if heading and heading[1].strip() in (*SECTIONS, IDENTIFIERS) and heading.start() > 0:
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
    previous: str,
    lists: Lists,
    gone: Outdated,
    dating: Dating,
) -> str:
    """`notes`, redacted, followed by the `lists` of what people said and a list of the ledger's identifiers that
    neither of them mentions (`listing`).

    Lines with an outdated identifier are marked (`gone`), and so are those with one of several sayings of a thing
    (`dating`). The list is as long as `room` tokens allow. If the notes
    copied an earlier list, that is removed: what is valid of it is in the ledger.
    """
    told = set(listing.unsuspected((value for value in gone.present.values() if value in ledger), ledger, redact))
    changed = {value: present if present in told else "" for value, present in gone.present.items()}
    own = _without_told(without_lists(notes), lists.text)
    own = dating.marked(statements.marked(own, changed, gone.about))
    bare = "\n\n".join(filter(None, (own, lists.text)))
    left = listing.Room(room - counter.text(bare) - counter.constant(listing.HEADING) - 4, counter)
    lines = listing.lines_of(bare, ledger, left, redact, previous, gone.present)
    lines = [dating.marked(line) if statements.CONTEXT in line else line for line in lines]
    while True:
        raw = f"{bare}\n\n{listing.HEADING}\n" + "\n".join(lines) if lines else bare
        whole = redact(raw)
        if not lines or whole == raw or counter.text(whole) <= room:
            return whole
        lines = lines[: len(lines) // 2]  # the marks of redaction took more room than the credentials


def _without_told(notes: str, standing: str) -> str:
    """Notes without lines that the lists repeat word for word but for a day, and without headings that then have
    nothing below them."""
    told = {Dating.unmarked(line) for line in standing.splitlines() if line.startswith("- ")}
    if not told or not any(line in notes for line in told):
        return notes
    kept: list[str] = []
    for title, text in sections_of(notes).items():
        lines = [line for line in text.splitlines() if Dating.unmarked(line) not in told]
        if lines or not text:
            kept.append(section(title, "\n".join(lines)) if title else "\n".join(lines))
    return "\n\n".join(kept)


def held(notes: str, ledger: Ledger) -> dict[str, float]:
    """The identifiers of a ledger that the notes hold, with their weights. The host keeps them with the summary, so
    that the next notes hold them, too. An identifier that was only passed to a tool, or pasted in rows, is listed once
    and then dropped."""
    whole, bare = Named(notes), Named(without_lists(notes))
    kept = (
        (value, round(entry.weight, 3))
        for value, entry in ledger.items()
        if (whole if entry.lasting else bare).mentions(value)
    )
    return dict(itertools.islice(kept, EARLIER))


def without_lists(notes: str) -> str:
    """Return notes without the lists that `completed` appends."""
    bare = _WORD_FOR_WORD.sub("\n", notes) if any(map(notes.__contains__, _HEADINGS)) else notes
    bare = _SECTION.sub("\n", bare) if listing.HEADING in bare else bare
    return notes if bare == notes else bare.strip()


def withheld(messages: Iterable[Message], redact: Redact) -> list[str]:
    """Return every credential that `redact` would replace in these messages, longest first, except those too short
    to be told from ordinary words."""
    texts = [text for message in messages for text in (text_of(message), *(c.arguments for c in calls_of(message)))]
    whole = _APART.join(texts)
    if redact(whole) == whole:  # most of the cost of redaction is the search, so all texts are searched at once
        return []
    found = {secret for text in texts for secret in _between(text, redact(text))}
    return sorted((secret for secret in found if len(secret) >= SHORTEST_SECRET), key=lambda each: (-len(each), each))


def without(text: str, secrets: Sequence[str]) -> str:
    """Return `text` with each of `secrets` replaced everywhere."""
    for secret in secrets:
        text = text.replace(secret, MARK)
    return text


def _between(text: str, redacted: str) -> Iterator[str]:
    """The pieces of `text` in place of the marks."""
    if text == redacted:
        return
    first, *pieces = redacted.split(MARK)
    place = len(first)
    for number, piece in enumerate(pieces, start=1):
        last = number == len(pieces)
        end = len(text) - len(piece) if last else text.find(piece, place + 1) if piece else -1
        if end < place:
            return  # two marks side by side, or marks in the text itself: the pieces cannot be told apart
        yield text[place:end]
        place = end + len(piece)
