"""Standing instructions: sentences of people that are to hold for good.

"From now on …", "whenever I ask …", "always …", "never …": such a sentence says itself that it is not about now. Only
the person's own words are read, because nobody else's bind. The sentences are found once, when a message is stored
(`found`, kept in the host's note). The module `standing` knows which of them still hold.

In doubt a sentence is an instruction: a superfluous line does less harm than a lost rule. A text may be anything, so
only the edges of a long text are read, sentence by sentence, and each pattern begins where its sentence begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from gateway.context.identifiers import EDGE
from gateway.context.statements import sentences
from gateway.domain.message import ends, is_request, note_of, own_words
from gateway.domain.rule import states_rule
from gateway.runtime.patterns import late, table

_LONGEST: Final = 300  # characters of a sentence; a longer one is no rule
_SHORTEST: Final = 4
_EACH: Final = 8  # of one message

_QUOTE: Final = late(r"[ \t]{0,8}[>|\"“„«「『`]")  # at the beginning of a line that repeats somebody's words
_FENCE: Final = late(r"^[ \t]{0,8}(?:```|~~~)", re.MULTILINE)
_SPEAKER: Final = late(r"\[([^\[\]\n]{1,80})\] ")

_LETTERS: Final = late(r"[a-z]+")
_TABLE: Final = table(__file__)
TIMES: Final = _TABLE["times"][0]
# One of these is in every instruction and in every sentence that takes one back. In lower case.
_HINTS, _FOREIGN_HINTS = (tuple(_TABLE[name][0].split("|")) for name in ("hints", "foreign_hints"))
_HINTING: Final = frozenset(max(_LETTERS.findall(hint), key=len) for hint in _HINTS)

# A prohibition with one of these is about this time alone; so is one of a certain thing with a reason behind it.
_ONCE: Final = late(_TABLE["once"], re.IGNORECASE)
_CERTAIN: Final = late("".join(_TABLE["certain"]), re.IGNORECASE)
_FOR_GOOD: Final = late("|".join((*_TABLE["manner"], *_TABLE["for_good"])), re.IGNORECASE)
_BANS: Final = tuple(late(rf"\A(?:{one})", re.IGNORECASE) for one in _TABLE["bans"])
_OPENED: Final = late(r"(?:, (?:so|therefore|also|und|daher|deshalb)|[:;]| [–—-]) (?=\w)|：")
_STANDS: Final = tuple(late(rf"\A(?:{one})", re.IGNORECASE) for one in _TABLE["sentences"])
_FORBIDDEN: Final = tuple(late(rf"\A(?:{one})", re.IGNORECASE) for one in _TABLE["forbids"])
_VERBLESS: Final = tuple(late(rf"\A(?:{one})", re.IGNORECASE) for one in _TABLE["verbless"])
_ASKS: Final = late(r"(?:[?？؟]|(?<=[\u0370-\u03ff])[;\u037e])[)\"'”’»」）]{0,3}\Z|[吗嗎呢么麼][。.]?\Z")
_POLITE: Final = late(_TABLE["polite"], re.IGNORECASE)
_PERMITTING: Final = late(_TABLE["permitting"], re.IGNORECASE)
_WITHDRAWS: Final = late(_TABLE["withdraws"], re.IGNORECASE)


def found(message: Mapping[str, Any]) -> list[str]:
    """Return the sentences of a person's message that are standing instructions or take one back, for the host to keep
    with the message. One of a shared chat begins with its speaker's name in brackets. Any shape is taken."""
    if not is_request(message):
        return []
    text = ends(own_words(message), EDGE)
    if not _hints(text):
        return []
    told = ((by, said) for by, said in read(text, _QUOTE, sentences) if stands(said) or withdraws(said))
    return list(dict.fromkeys(f"[{by}] {said}" if by else said for by, said in told))[:_EACH]


def of(message: Mapping[str, Any]) -> list[str]:
    """Return the sentences that the host noted when the message was stored, or those of a fresh search."""
    noted = note_of(message).get("instructions")
    return [each for each in noted if isinstance(each, str)] if isinstance(noted, list) else found(message)


@lru_cache(maxsize=1024)
def stands(said: str) -> bool:
    """Whether a sentence is a standing instruction."""
    if not _SHORTEST <= len(said) <= _LONGEST or not _hints(said):
        return False
    if _ASKS.search(said):
        return _POLITE.match(said) is not None
    if states_rule(said) or any(one.match(clause) for clause in _clauses(said) for one in _STANDS):
        return True
    if any(one.match(said) for one in _VERBLESS):
        return _ONCE.search(said) is None
    return _ONCE.search(said) is None and any(_forbids(clause, said) for clause in _clauses(said))


def _forbids(clause: str, said: str) -> bool:
    """Whether a clause of a sentence is a ban for good."""
    forbids = any(one.match(clause) for one in _FORBIDDEN)
    if not forbids and not any(one.match(clause) for one in _BANS):
        return False
    certain = _CERTAIN.search(said)
    if forbids and certain is None:
        return True
    good = _FOR_GOOD.search(said)
    return good is not None and (certain is None or good.start() < certain.end())


def _clauses(said: str) -> Iterator[str]:
    """Return a sentence, and its rest after a colon, or after a reason."""
    yield said
    opened = _OPENED.search(said)
    if opened:
        yield said[opened.end() :]


def _hints(text: str) -> bool:
    """Whether a text may hold an instruction, or the end of one."""
    lowered = text.lower()
    # Their longest words are compared first: that takes a tenth of the time.
    if not _HINTING.isdisjoint(_LETTERS.findall(lowered)) and any(map(lowered.__contains__, _HINTS)):
        return True
    return not lowered.isascii() and any(map(lowered.__contains__, _FOREIGN_HINTS))


def withdraws(said: str) -> bool:
    """Whether a sentence takes an instruction back."""
    return len(said) <= _LONGEST and _hints(said) and _WITHDRAWS.search(said) is not None and not _ASKS.search(said)


def permits(said: str) -> bool:
    """Whether a sentence allows something again, or says that it need not be done."""
    return _PERMITTING.search(said) is not None


def parted(said: str) -> tuple[str, str]:
    """Return the name in brackets with which a line of a shared chat begins, "" for none, and the rest of the line."""
    named = _SPEAKER.match(said)
    return (named[1], said[named.end() :]) if named else ("", said)


def read(text: str, quote: re.Pattern[str], cut: Callable[[str], Iterable[str]]) -> Iterator[tuple[str, str]]:
    """Yield (its speaker, "" for nobody named; the plain sentence) for each sentence of a text, as `cut` tells them.
    Blocks of code and lines that begin with a `quote` are left out."""
    by = ""
    for line in "\n".join(_FENCE.split(text)[::2]).splitlines():
        speaker, line = parted(line)
        by = speaker or by
        if line and not quote.match(line):
            for sentence in cut(line):
                yield by, " ".join(sentence.split()).lstrip("-*•– ")
