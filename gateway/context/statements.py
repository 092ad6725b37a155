"""Statements about identifiers, which make their list readable and keep outdated identifiers out of it.

A statement is a sentence (or a line of notes) with at least one identifier in it. A statement that something changed
("the port is 9443 now", "no longer A but B") makes earlier statements about the same thing outdated. The words around
the identifiers decide whether two statements are about the same thing: most of the older one's words must be in the
newer one, and rare words count more than common ones. In doubt nothing is outdated, because a superfluous identifier
does less harm than a lost one.

A line of notes that says an outdated identifier gets a mark at its end: "(no longer 8443, now 9443)".
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from gateway.context import identifiers
from gateway.context.mentions import mentions, place_in
from gateway.domain.message import Message, ends, text_of
from gateway.runtime.patterns import late, table

CONTEXT: Final = " · "  # in a list, between an identifier and the sentence around it
SIDE: Final = " | "  # in a list, between identifiers that share a line
GAP: Final = "…"  # in that sentence, in the place of the identifier
_SCANNED: Final = 300  # newest messages of the middle that are read
_COMPARED: Final = 800  # newest statements of these: each is compared with each before it
_LONGEST: Final = 300  # characters of a sentence; a longer one is not speech
_LEAST_WORDS: Final = 2  # around an identifier; fewer say nothing
_AROUND: Final = 40  # characters kept on either side of an identifier
_ALIKE: Final = 0.65  # of the weight of an older statement's words must be in the newer one
_END: Final = late(
    rf"(?:(?<=[.!?])(?!(?<=\d\.)\s{identifiers.GERMAN_MONTHS})|(?<=[.!?][)\]\"'”’»]))\s+|(?<=[。！？।])(?![」』”）])|\n+"
)
# The same for ASCII. The blank stands in front, because a search for one of some characters is fast.
_END_ASCII: Final = late(
    rf"\s(?:(?:(?<=[.!?]\s)(?!(?<=\d\.\s){identifiers.GERMAN_MONTHS})|(?<=[.!?][)\]\"']\s))\s*|(?<=\n)\n*)"
)
_TABLE: Final = table(__file__)
_CHANGED: Final = _TABLE["changed"]
_CHANGED_INSIDE: Final = _TABLE["changed_inside"]  # parts of words, or written without spaces
_WHOLE: Final = late(_TABLE["whole"])
_FORMER: Final = late(_TABLE["former"], re.IGNORECASE)
_FORMER_AFTER: Final = late(r"[\s`\"'”»」]*(?:नहीं|से बदल|की जगह|ではなく)")
# The same in a sentence about a thing that becomes another, not about a copy from one to another.
_FROM: Final = late(_TABLE["from"], re.IGNORECASE)
_FROM_AFTER: Final = late(r"[\s`\"'”»」]*(?:から|에서)")
_BECOMES: Final = late(_TABLE["becomes"], re.IGNORECASE)
# The words before a value that is only ruled out: it neither replaces a value nor is replaced.
_RULED_OUT: Final = late(_TABLE["ruled_out"], re.IGNORECASE)
_RULED_OUT_AFTER: Final = late(_TABLE["ruled_out_after"], re.IGNORECASE)
_PAST: Final = late(_TABLE["past"], re.IGNORECASE)
_MARK: Final = re.compile(r" \(no longer ([^()\n]+?)(?:, now ([^()\n]+))?\)")
# A day behind a line, and perhaps what was said before (`dating`, `timelines`): no value of the line.
_DAY_AT_END: Final = re.compile(r" \(\d{1,2} [A-Z][a-z]{2}\b[^()\n]*\)$")
_MARKS_AT_END: Final = late(rf"(?:{_MARK.pattern})+$")
_ASKS: Final = late(r"[?？][\s)\"'”’»」）]*$")
_WORD: Final = late(r"(?:[^\W\d_]|[\u0900-\u0963\u0966-\u0dff])+")  # with vowel signs, without the full stop
# Words that say nothing about the subject of a statement, those of a mere change among them.
_EMPTY: Final = frozenset(_WORD.findall(" ".join([*_TABLE["empty"], *_CHANGED])))
DENSE: Final = late(r"[\u3041-\u30ff\u3400-\u9fff]")  # written without spaces between words
# The same in scripts without spaces, where a word cannot be told from its neighbours.
_EMPTY_DENSE: Final = late(_TABLE["empty_dense"])


class Outdated(Struct, frozen=True, kw_only=True):
    """Replaced identifiers. `values`: those that nothing else has, either. `corrections`: replacements of values that
    stay in view at the head, so the notes must hold the correction as long as the head does. `present`: for each
    replaced one, what holds now; "" if that is unclear. `about`: for each, the words of its subject; none if nobody
    said them."""

    values: frozenset[str] = frozenset()
    corrections: frozenset[str] = frozenset()
    present: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Statement(Struct, frozen=True, kw_only=True):
    """A sentence: its identifiers, the `first` of them, those among them that it declares outdated (`former`), the
    words around them in `order`, whether it tells of a change, and whether it is a person's plain assertion."""

    values: frozenset[str]
    first: str
    former: frozenset[str]
    order: tuple[str, ...]
    words: frozenset[str]
    change: bool
    plain: bool


def outdated(middle: Sequence[Message], previous: str, head: Sequence[Message] = ()) -> Outdated:
    """Return the outdated identifiers of the `head`, of the notes so far (`previous`) and of `middle`."""
    spoken = [message for message in middle[-_SCANNED:] if _speaks(message)]
    if not tells_of_change("\n".join(map(text_of, spoken))):
        return Outdated()
    opening = [each for message in head if _speaks(message) for each in _of(message)]
    noted = itertools.islice(_noted(previous), _COMPARED)
    told = [*opening[:_COMPARED], *noted, *_newest(spoken)]
    shown = frozenset(value for statement in opening for value in statement.values)
    weights = _weights(told)
    gone: dict[str, Statement] = {}  # a replaced value and the statement that replaced it
    corrections: set[str] = set()
    for place, newer in enumerate(told):
        if newer.plain:
            for value in newer.values & gone.keys():
                if _same(newer, gone[value], weights):  # asserted, so it holds again
                    by = gone.pop(value)
                    if corrections & by.values:
                        corrections = (corrections - by.values) | ({value} - shown)
        if not newer.change:
            continue
        fresh = newer.values - newer.former
        replaced = set(newer.former)
        for older in told[:place]:
            left = older.values - fresh
            # Of several values no more are replaced than are new: the others are the subject.
            new = fresh - older.values
            if 0 < len(left) <= len(new) and (_same(older, newer, weights) or _is_renewed(older, newer, left, new)):
                replaced |= left
        gone |= dict.fromkeys(sorted(replaced), newer)
        gone = {value: by for value, by in gone.items() if value not in fresh}
        # The replacement of an earlier correction is one, too: the head shows the first value of all.
        corrections = (corrections | (fresh if replaced & (shown | corrections) else set())) - replaced
    about = {value: _about(value, by, told) for value, by in gone.items()}
    return Outdated(
        values=frozenset(value for value in gone if not _is_of_another(value, about[value], told)),
        corrections=frozenset(corrections),
        present={value: _present(value, gone) for value in gone},
        about=about,
    )


def _about(value: str, by: Statement, told: Iterable[Statement]) -> frozenset[str]:
    """The words that statement `by`, which replaces a value, shares with those that said the value."""
    return frozenset(word for one in told if one is not by and value in one.values for word in one.words & by.words)


def _is_of_another(value: str, about: frozenset[str], told: Iterable[Statement]) -> bool:
    """Whether a person plainly said a value about something else, too."""
    others = (one for one in told if one.plain and value in one.values and len(one.words) >= _LEAST_WORDS)
    return bool(about) and any(about.isdisjoint(one.words) for one in others)


def _present(value: str, gone: Mapping[str, Statement]) -> str:
    """Return the identifier that holds now instead of a replaced one, "" if that is not clear."""
    seen: set[str] = set()
    while value in gone and value not in seen:
        seen.add(value)
        fresh = gone[value].values - gone[value].former
        alike = identifiers.alike(value, fresh) if len(fresh) > 1 else fresh
        if len(alike) != 1:
            return ""
        (value,) = alike
    return "" if value in seen else value


def marked(notes: str, gone: Mapping[str, str], about: Mapping[str, frozenset[str]] = MappingProxyType({})) -> str:
    """Return notes in which each line that says a replaced value (`gone`: what holds now) has a mark. A line about
    another thing with the same value has none (`about`: the words of the subject)."""
    return "\n".join(
        _marked(line, gone, about) if any(value in line for value in gone) else line for line in notes.split("\n")
    )


def _marked(line: str, gone: Mapping[str, str], about: Mapping[str, frozenset[str]]) -> str:
    bare = _MARKS_AT_END.sub("", line)
    replaced = {value: gone.get(present, present) for value, present in _MARK.findall(line[len(bare) :])}
    words = _subject(bare)
    for value, present in gone.items():
        subject = about.get(value, frozenset())
        if mentions(bare, value) and not (words and subject and words.isdisjoint(subject)):
            replaced[value] = present
    marks: dict[str, str] = {}  # by what holds now: one for the newest of several former values
    for value, present in replaced.items():
        if present != value and not (present and mentions(bare, present)):
            marks[present or value] = f" (no longer {value}, now {present})" if present else f" (no longer {value})"
    return bare + "".join(marks.values())


def _unmarked(line: str) -> str:
    """Return a line of notes without the marks and the day at its end."""
    return _DAY_AT_END.sub("", _MARKS_AT_END.sub("", line)) if line.endswith(")") else line


def _subject(line: str) -> frozenset[str]:
    """Return the words of a line around its identifiers."""
    for value in identifiers.find(line):
        line = line.replace(value, " ")
    return frozenset(_words(line))


def context_in(previous: str, value: str) -> str:
    """Return the sentence around `value` in the notes so far, as `around` does; "" if they hold none."""
    place = previous.find(value)
    while place >= 0:
        end = previous.find("\n", place)
        line = _unmarked(previous[previous.rfind("\n", 0, place) + 1 : end if end >= 0 else len(previous)])
        said, mark, context = line.removeprefix("- ").partition(CONTEXT)
        if mark and said == value:
            return context
        if not mark and SIDE not in said and said != value and mentions(line, value):
            return around(value, said)
        place = previous.find(value, end) if end >= 0 else -1
    return ""


def around(value: str, text: str) -> str:
    """The sentence of `text` around `value`, with a gap in its place; "" if there are no words."""
    sentence = next((one.strip() for one in sentences(text) if mentions(one, value)), "")
    before, after = _parted(" ".join(sentence.split()), value)
    words = [word[0] for word in itertools.islice(_WORD.finditer(before + after), _LEAST_WORDS)]
    if len(sentence) > _LONGEST or (len(words) < _LEAST_WORDS and not any(map(DENSE.search, words))):
        return ""
    before = before if len(before) <= _AROUND else f"{GAP} {before[-_AROUND:].partition(' ')[2]}"
    after = after if len(after) <= _AROUND else f"{after[:_AROUND].rpartition(' ')[0]} {GAP}"
    return f"{before}{GAP}{after}".replace(CONTEXT, " ").strip()


def _parted(text: str, value: str) -> tuple[str, str]:
    """The text before and after a value; all of it before, if the value is not by itself there."""
    place = place_in(text, value)
    return (text[:place], text[place + len(value) :]) if place >= 0 else (text, "")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without the white space between them."""
    return (_END_ASCII if text.isascii() else _END).split(text)


def _speaks(message: Message) -> bool:
    return message.get("role") in ("user", "assistant") and bool(identifiers.of(message))


def _newest(spoken: Sequence[Message]) -> list[Statement]:
    """Return the last statements of messages, in order."""
    last: list[Statement] = []
    for message in reversed(spoken):
        last += [*_of(message)][::-1]
        if len(last) >= _COMPARED:
            break
    return last[:_COMPARED][::-1]


def _of(message: Message) -> Iterator[Statement]:
    """Return the statements of a message, in order; of a long message those near its ends."""
    values = identifiers.of(message)
    for sentence in sentences(ends(text_of(message), identifiers.EDGE)):
        if len(sentence) <= _LONGEST:
            yield from _statement(sentence, values, said=True, asserted=message.get("role") == "user")


def _noted(previous: str) -> Iterator[Statement]:
    """Return the statements of notes, which tell of states and never of changes."""
    for line in map(_unmarked, filter(str.strip, previous.splitlines())):
        value, mark, context = line.removeprefix("- ").partition(CONTEXT)
        if not mark and SIDE in line:
            continue  # nothing is said of identifiers that share a line
        sentence = context.replace(GAP, f" {value} ") if mark else line
        if len(sentence) <= _LONGEST:
            yield from _statement(sentence, [value, *identifiers.find(context)] if mark else identifiers.find(sentence))


def _statement(
    sentence: str, values: Sequence[str], *, said: bool = False, asserted: bool = False
) -> Iterator[Statement]:
    """Return the sentence as a statement, if it holds any of `values`. `said`: whether it may tell of a change.
    `asserted`: whether it may be a plain assertion otherwise."""
    held = [value for value in values if value in sentence and mentions(sentence, value)]
    if not held:
        return
    tells = said and not _ASKS.search(sentence) and not (len(held) == 1 and _is_ruled_out(held[0], sentence))
    change = tells and tells_of_change(sentence)
    plain = tells and asserted and not change and not _PAST.search(sentence)
    first = min(held, key=sentence.find)
    former = {value for value in held if change and len(held) > 1 and _is_former(value, sentence)}
    for value in held:
        sentence = sentence.replace(value, " ")
    order = tuple(_words(sentence))
    yield Statement(
        values=frozenset(held),
        first=first,
        former=frozenset(former),
        order=order,
        words=frozenset(order),
        change=change,
        plain=plain,
    )


def tells_of_change(text: str) -> bool:
    """Whether a text tells of a change anywhere."""
    lowered = text.lower()
    if any(word in lowered for word in _CHANGED_INSIDE):
        return True
    return any(word in lowered for word in _CHANGED) and bool(_WHOLE.search(lowered))


def _is_former(value: str, sentence: str) -> bool:
    before, after = _parted(sentence, value)
    if _FORMER.search(before) or _FORMER_AFTER.match(after):
        return True
    return bool((_FROM.search(before) or _FROM_AFTER.match(after)) and _BECOMES.search(sentence))


def _is_ruled_out(value: str, sentence: str) -> bool:
    before, after = _parted(sentence, value)
    return bool(_RULED_OUT.search(before) or _RULED_OUT_AFTER.match(after))


def _words(text: str) -> Iterator[str]:
    """Return the words of a text; pairs of characters where it is written without spaces."""
    for run in _WORD.findall(_EMPTY_DENSE.sub(" ", text.lower())):
        if DENSE.search(run) and len(run) > 1:
            yield from (run[index : index + 2] for index in range(len(run) - 1))
        elif run not in _EMPTY:
            yield run


def _weights(told: Sequence[Statement]) -> Mapping[str, float]:
    """Return the weight of each word: the rarer in the statements, the higher."""
    counted = Counter(word for statement in told for word in statement.words)
    return {word: 1 / count for word, count in counted.items()}


def _is_renewed(older: Statement, newer: Statement, left: Iterable[str], new: frozenset[str]) -> bool:
    """Whether a statement about the same thing, which both name first, has values of the same form as the older one:
    "web-7 runs 1.22.1", "web-7 was upgraded to 1.26.2". A word of its own may name another side of the thing."""
    named = older.first == newer.first and not older.words.isdisjoint(newer.words) and not _has_own(newer, older)
    return named and all(identifiers.alike(value, new) for value in left)


def _same(older: Statement, newer: Statement, weights: Mapping[str, float]) -> bool:
    """Whether two statements have the same subject. Then most of the older one is in the newer one (the identifier that
    both name first counts as a word), and no missing word weighs half as much as two shared words. Only one of them may
    have a word of its own, which may be the name of something else. (Pairs of characters do not count as missing,
    because they fall apart when a verb changes.)"""
    shared = sorted((weights[word] for word in older.words & newer.words), reverse=True)
    if shared and older.first == newer.first and not _has_own(newer, older):
        shared.insert(0, 1.0)  # an order's number names it as well as its rarest word
    if len(shared) < 2 or (_has_own(older, newer) and _has_own(newer, older)):
        return False
    missing = {word: weights[word] for word in older.words - newer.words}
    telling = max((weight for word, weight in missing.items() if not DENSE.search(word)), default=0.0)
    return sum(shared) >= _ALIKE * (sum(shared) + sum(missing.values())) and telling < shared[1] / 2


def _has_own(one: Statement, other: Statement) -> bool:
    """Whether a statement has a word that the other lacks; with pairs of characters, only those before a shared one,
    where a name stands."""
    shared = max((place for place, word in enumerate(one.order) if word in other.words), default=0)
    return any(
        word not in other.words and (place < shared or not DENSE.search(word)) for place, word in enumerate(one.order)
    )
