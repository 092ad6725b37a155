"""The instructions that hold, carried from summary to summary word for word, by code and not by a model.

The newest wins: an instruction that takes an earlier one of the same person back, or says the opposite or another
value, ends that one. In doubt the earlier one holds, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import takewhile
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gateway.context.instructions import TIMES, of, parted, permits, stands, withdraws
from gateway.context.listing import Room
from gateway.context.readable import said_at, well_formed
from gateway.domain.message import Message, is_summary, note_of
from gateway.domain.notes import INSTRUCTIONS, section
from gateway.runtime.patterns import late, table, words
from gateway.runtime.redaction import Redact

MOST: Final = 64  # instructions that are kept
SHARE: Final = 0.18  # of a summary's room: the most that they take
HEADING: Final = section(INSTRUCTIONS, "").rstrip()
_KEEP: Final = "Sentences of the people here that hold for good, word for word; keep to each."
_KEEP_SHARED: Final = f"{_KEEP} The brackets name whom one binds; nobody else is bound."
_STOPS: Final = ".!。！ "
_UNNOTED: Final = 200  # newest messages without the host's note that are read


class Instruction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence that holds for good. `by`: its author, if several people talk, who is also the only one that it binds.
    `at`: when it was said, in seconds since the epoch; 0.0 if unknown."""

    text: Annotated[str, Meta(min_length=1)]
    by: str = ""
    at: float = 0.0

    @property
    def line(self) -> str:
        """The instruction as it stands in a summary."""
        return f"[{self.by}] {self.text}" if self.by else self.text


def earlier(note: Mapping[str, Any]) -> list[Instruction]:
    """Return the instructions that the note of a summary holds; of a malformed note none."""
    return well_formed(note.get("standing"), Instruction)


def carried(
    before: Iterable[Instruction], middle: Sequence[Message], later: Sequence[Message] = ()
) -> list[Instruction]:
    """The instructions from the summaries `before` and the `middle` that still hold, oldest first, at most `MOST`.
    Those in the `later` messages, which stay in view, can end earlier ones, too."""
    held: list[Instruction] = []
    for said in (*before, *_said_in(middle)):
        left = _after(held, said)
        gone = [each for each in held if each not in left]
        allows = bool(gone) and (permits(said.text) or _repeats(said.text, gone))
        held = left
        if not allows and (stands(said.text) or not withdraws(said.text)):
            held.append(said)
    for said in _said_in(later):
        held = _after(held, said)
    return held[-MOST:]


def holding(transcript: Sequence[Message]) -> list[Instruction]:
    """Return the instructions that hold in a whole transcript, oldest first."""
    before = [each for message in transcript if is_summary(message) for each in earlier(note_of(message))]
    return carried(before, transcript)


def ended(transcript: Sequence[Message], said: Message) -> list[Instruction]:
    """Return the instructions of a transcript that a message after it takes back."""
    if not any(withdraws(parted(sentence)[1]) for sentence in of(said)):
        return []
    held = holding(transcript)
    left = carried(held, (), [said])
    return [each for each in held if each not in left]


def listed(standing: Sequence[Instruction], redact: Redact, room: Room) -> str:
    """The section of a summary with these instructions, oldest first, redacted; "" if there are none. If not all fit,
    the newest stay."""
    if not standing:
        return ""
    opening = f"{HEADING}\n{_KEEP_SHARED if any(each.by for each in standing) else _KEEP}"
    left = room.below(opening)
    lines = [*takewhile(partial(left.takes, end=1), (f"- {redact(each.line)}" for each in reversed(standing)))]
    return "\n".join([opening, *reversed(lines)]) if lines else ""


def _said_in(messages: Sequence[Message]) -> Iterator[Instruction]:
    """Return the instructions of messages in order."""
    for message in _instructing(messages):
        at = said_at(message)
        for sentence in of(message):
            by, text = parted(sentence)
            yield Instruction(text=text, by=by, at=at)


def _instructing(messages: Sequence[Message]) -> list[Message]:
    """The people's messages that may hold instructions; of those that an early version stored, only the newest."""
    told: list[Message] = []
    left = _UNNOTED
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        noted = note_of(message).get("instructions")
        left -= noted is None
        if left < 0:
            break
        if noted != []:
            told.append(message)
    return told[::-1]


def _after(held: Sequence[Instruction], said: Instruction) -> list[Instruction]:
    """Return the instructions that still hold once `said` has been said."""
    withdrawn = bool(held) and withdraws(said.text)
    return [each for each in held if each.by != said.by or not _ends(said.text, each.text, withdrawn=withdrawn)]


def _repeats(said: str, gone: Sequence[Instruction]) -> bool:
    """Whether a sentence takes one of the rules that it ended back in that rule's words: "forget the rule: …"."""
    words = said.lower()
    return withdraws(said) and any(each.text.lower().rstrip(_STOPS) in words for each in gone if each.text != said)


def _ends(newer: str, older: str, *, withdrawn: bool) -> bool:
    """Whether the newer of two sentences of one person ends the older one. `withdrawn`: the newer one takes something
    back."""
    if newer == older:
        return True
    one, other = _about(newer), _about(older)
    if withdrawn:
        return _EVERYTHING.search(newer) is not None or _takes_back(newer, older, one, other)
    if one.scope != other.scope:
        return False  # a rule for a case leaves the general rule alone
    if one.name and other.name:
        return True
    if (former := _INSTEAD.search(newer)) and (replaced := _begun(frozenset(_telling(former[1])))):
        return replaced <= _begun(other.words)
    if one.negative != other.negative:
        return _alike(one.words, other.words, 0.6)
    for values in _SLOTS:
        new, old = one.words & values, other.words & values
        if new and old and new != old:
            rest, before = one.words - values, other.words - values
            return not (rest and before) or _alike(rest, before, 0.5)
    return one.numbers != other.numbers and one.words == other.words


def _takes_back(newer: str, older: str, one: _About, other: _About) -> bool:
    """Whether a sentence takes back the `older` one, a rule about `other`. People cancel flights, too, so it must name
    a rule of that subject, tell the bot what it no longer needs to do, or say most of what the rule said. What is said
    of one thing, or of one case of a rule to ask first, takes nothing back."""
    asked, rule = _begun(one.words - _META), _begun(other.words)
    if _A_RULE.search(newer):
        return bool(asked & (rule | _begun(other.scope)))
    asked -= _begun(other.scope)
    own = len(asked & rule)
    if _ASKS_FIRST.search(older) and not _ASKING.search(newer):
        return False
    if other.negative and _OF_A_THING.search(newer) and not _ONE_OF.search(older):
        return False
    if _ASIDE.search(newer) or (_NEEDLESS if other.negative else _FINE).search(newer):
        return False
    if not other.negative:
        if _reversed(newer, older, one, other):
            return True
        if not _WAIVES.search(newer):
            return False  # who asks for it again keeps to the rule
        if _same(one, other):
            return True
    if permits(newer) and _allowed(one, other, most=_ALLOWS.search(newer) is not None):
        return True
    if not _TELLS_ME.search(newer):
        return own > 1 and 2 * own > len(_begun(other.words - _ALLOWING))
    if _ALLOWS.search(newer):
        return 4 * own >= 3 * len(rule) > 0
    return (2 * own > len(rule) and 2 * own >= len(asked)) or (own > 1 and asked <= rule)


def _same(one: _About, other: _About) -> bool:
    """Whether a sentence names what the rule is about, and nothing else: "forget the lists"."""
    asked, rule = (_begun(words - _META - _ALLOWING) for words in (one.words, other.words))
    return bool(asked) and asked == rule


def _reversed(newer: str, older: str, one: _About, other: _About) -> bool:
    """Whether only another value of the same kind is asked for: "you can answer in English again" ends "answer in
    French", and "you can write longer answers again" ends "answer in one sentence". A walk can be longer, too."""
    if one.negative or one.words - other.words - _VALUES - _ALLOWING - _META:
        return False
    if one.numbers and other.numbers:
        return one.numbers != other.numbers and _same(one, other)
    if one.words & _LENGTHS:
        limited = other.words & _LENGTHS or _LIMITS.search(older)
        return bool(limited) and one.words != other.words and _OF_ANSWERS.search(newer) is not None
    return any(other.words & values and one.words & values - other.words for values in _SLOTS)


def _allowed(one: _About, other: _About, *, most: bool) -> bool:
    """Whether the rule names everything that is allowed, and what is allowed names `most` of the rule: people also say
    "you can book the hotel again" about hotels."""
    asked, rule = _begun(one.words - _META - _ALLOWING), _begun(other.words - _ALLOWING)
    own = len(asked & rule)
    return (
        own > 0
        and (asked <= rule | _begun(other.scope) or (4 * own >= 3 * len(_begun(other.words)) and 2 * own >= len(asked)))
        and (not most or 2 * own > len(rule))
    )


def _begun(words: frozenset[str]) -> frozenset[str]:
    """Beginnings of words, so that a verb is the same in an order and in a sentence about it."""
    return frozenset(word.removesuffix("ing")[:4].removesuffix("e") for word in words)


def _alike(one: frozenset[str], other: frozenset[str], share: float) -> bool:
    return bool(one and other) and len(one & other) >= share * min(len(one), len(other))


# -- the subject of an instruction ----------------------------------------------------------------


class _About(Struct, frozen=True):
    """What an instruction is about: its telling words, the words of its case, whether it forbids, its numbers, and
    whether it says what somebody wants to be called."""

    words: frozenset[str]
    scope: frozenset[str]
    negative: bool
    numbers: frozenset[str]
    name: bool


_TABLE: Final = table(__file__)
_NEGATES: Final = late(_TABLE["negates"], re.IGNORECASE)
_EVERYTHING: Final = late(_TABLE["everything"], re.IGNORECASE)
_A_RULE: Final = late(_TABLE["a_rule"], re.IGNORECASE)
# Words to the bot about its own behaviour: it need not, or it may again; or an order to leave something off.
_TELLS_ME: Final = late(_TABLE["tells_me"], re.IGNORECASE)
# Somebody's words, a permission for one time, or what somebody does or has no more: none of them is a word to the bot.
_ASIDE: Final = late(_TABLE["aside"], re.IGNORECASE)
# What need not be, or is called off, may still be forbidden.
_NEEDLESS: Final = late(_TABLE["needless"], re.IGNORECASE)
_ASKS_FIRST: Final = late(_TABLE["asks_first"], re.IGNORECASE)
_ASKING: Final = late(_TABLE["asking"], re.IGNORECASE)
_OF_A_THING: Final = late(_TABLE["of_a_thing"], re.IGNORECASE)
_FINE: Final = late(_TABLE["fine"], re.IGNORECASE)
_WAIVES: Final = late(_TABLE["waives"], re.IGNORECASE)
_OF_ANSWERS: Final = late(_TABLE["of_answers"], re.IGNORECASE)
_ONE_OF: Final = late(_TABLE["one_of"], re.IGNORECASE)
_ALLOWS: Final = late(_TABLE["allows"], re.IGNORECASE)
_LIMITS: Final = late(_TABLE["limits"], re.IGNORECASE)
# "schlag … vor", whose infinitive is "vorschlagen".
_PARTED: Final = late(
    r"\A(?:bitte )?(\w+)\b(.*) (vor|ab|an|aus|weg|mit|zu|ein|auf|nach|hin|bei|um)\W*\Z", re.IGNORECASE
)
_INSTEAD: Final = late(_TABLE["instead"], re.IGNORECASE)
_CASE: Final = late([rf"\b{TIMES} (?:i|we)\b[^,:]*", *_TABLE["case"]], re.IGNORECASE)
_WORDS: Final = late(r"(?:[^\W\d_]|[\u0900-\u0963\u0966-\u0dff])+")
_NUMBERS: Final = late(r"\d{1,12}")
_FILLS: Final = late(_TABLE["fills"])  # without spaces
_DENSE: Final = late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CALL: Final = late(_TABLE["call"], re.IGNORECASE)
_STEM: Final = 6  # letters of a word that are compared
_EMPTY: Final = words(_TABLE["empty"])


def _short(word: str) -> str:
    """What is compared of a word."""
    return word[:_STEM] if len(word) > _STEM else word.removesuffix("s")


# Words about instructions, as far as they are compared.
_META: Final = frozenset(
    {"rule", "instru", "forget", "earlie", "said", "cancel", "scrap", "regel", "vergis", "правил", "забудь"}
)
_SLOTS: Final = tuple(frozenset(map(_short, words.split())) for words in _TABLE["slots"])
# Words with which something is allowed, or need not be done.
_ALLOWING: Final = frozenset(map(_short, words(_TABLE["allowing"])))
_LENGTHS: Final = next(values for values in _SLOTS if "brief" in values)
_VALUES: Final = frozenset().union(*_SLOTS)


@lru_cache(maxsize=1024)
def _about(text: str) -> _About:
    text = _PARTED.sub(r"\3\1\2", text)
    case = _CASE.search(text)
    rest = text if case is None else f"{text[: case.start()]} {text[case.end() :]}"
    return _About(
        words=frozenset(_telling(rest)),
        scope=frozenset(_telling(case[0])) if case else frozenset(),
        negative=_NEGATES.search(rest) is not None,
        numbers=frozenset(_NUMBERS.findall(rest)),
        name=_CALL.search(rest) is not None,
    )


def _telling(text: str) -> Iterator[str]:
    """Return the words of a text that name its subject, without most endings; pairs of characters where it is
    written without spaces."""
    for run in _WORDS.findall(_FILLS.sub(" ", text.lower())):
        run = run.removeprefix("ب").removeprefix("ال")
        if _DENSE.match(run):
            pairs = (run[place : place + 2] for place in range(max(1, len(run) - 1)))
            yield from (pair for pair in pairs if pair not in _EMPTY)
        elif run not in _EMPTY and len(run) > 1:
            yield _short(run)
