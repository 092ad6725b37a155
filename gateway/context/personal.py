"""Which sentences tell something about the person who says them, and how much that is worth remembering.

Most is worth who somebody is, who their people are, what they must not have and what they decided. Next come their
habits and possessions, and last what happened once, and all else. Questions, requests, wishes and talk of the moment
tell nothing, but a clause in them may: "since my brother moved to Lyon, which train …". Then only that clause is kept,
as is the best clause of a long sentence. A sentence is read where each of its clauses begins, in a dozen languages."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gateway.context.statements import DENSE
from gateway.runtime.patterns import late, table

LASTING, DECIDED, PLAIN, NAMED, TOLD = 2.0, 1.5, 1.25, 0.75, 0.5
LONGEST: Final = 240  # characters of a sentence of which nothing is cut off; of twice as many one clause may be kept
_WHOLE: Final = 100  # characters of a sentence that is kept whole, whatever else it says
_LEAST: Final = 2  # words
_LEAST_TOLD: Final = 6  # words of a statement that is not about its speaker
_LEAST_DENSE: Final = 5  # characters of one in a script without spaces
_CLAUSES: Final = 8  # of a sentence that are read
_PART: Final = 3  # words of a clause that is kept alone; "I'm" is two

_TABLE: Final = table(__file__)
_OPENS: Final = late(_TABLE["opens"], re.IGNORECASE)
_CLOSES: Final = late(_TABLE["closes"], re.IGNORECASE)
_TODAY: Final = late(_TABLE["today"], re.IGNORECASE)
_ASKS: Final = late(r"[?？؟;][\s)\"'”’»」）]*\Z|\A\W*(?:could|can|would|will|do|does) (?:you|we|i)\b", re.IGNORECASE)
_ASKED: Final = late("哪|什么|几点|多少|谁|怎么")  # in a clause of a question: what is asked
# What is asked for, and what only keeps a talk going.
_REQUESTS: Final = late(_TABLE["requests"], re.IGNORECASE)
_MOMENT: Final = late(_TABLE["moment"], re.IGNORECASE)
_PASSED: Final = late(_TABLE["passed"], re.IGNORECASE)
_NAMED: Final = late(r"\d|(?<=[^.!?\s]\s)[A-ZÄÖÜÉÈÀА-Я][\w’'-]+")
_IS_LASTING: Final = late(_TABLE["is_lasting"], re.IGNORECASE)
_IS_PLAIN: Final = late(_TABLE["is_plain"], re.IGNORECASE)
_LEADING: Final = late(_TABLE["leading"], re.IGNORECASE)
_WORD: Final = late(r"\w+")
# A past tense that tells of a state.
_STATE: Final = late(_TABLE["state"], re.IGNORECASE)
_CHOICE: Final = late(_TABLE["choice"], re.IGNORECASE)


class Said(NamedTuple):
    """What a sentence tells, in its own words, and its worth."""

    text: str
    worth: float


def told(said: str) -> Said | None:
    """Return what a sentence tells: all of it, or one clause; None if it tells nothing."""
    dense = DENSE.search(said) is not None
    words = len(said.split())
    if len(said) > 2 * LONGEST or (words < _LEAST and not dense):
        return None
    asks = _ASKS.search(said) is not None
    starts = [0]
    for opened in _OPENS.finditer(said):
        if len(starts) == _CLAUSES:
            break
        starts.append(opened.end())
    worth, start = max((_worth(said, each), -each) for each in starts)
    if worth:
        whole = not asks and len(said) <= _WHOLE and not _MOMENT.match(said)
        text = said if whole else _clause(said, -start)
        short = not (whole and worth == LASTING) and not _enough(text, dense=dense)  # "Soy zurda." says enough
        if short or (asks and _ASKED.search(text)):
            return None
        return Said(text, min(worth, NAMED) if _TODAY.search(text) else worth)
    if len(said) > LONGEST or not asserts(said):
        return None
    if dense:
        return Said(said, NAMED if _NAMED.search(said) else TOLD) if len(said) >= 2 * _LEAST_DENSE - 1 else None
    if words > _LEAST and _NAMED.search(said):
        return Said(said, NAMED)
    return Said(said, TOLD) if words >= _LEAST_TOLD else None


def asserts(said: str) -> bool:
    """Whether a sentence states something: it asks nothing, requests nothing, and does more than keep a talk going."""
    return not (_ASKS.search(said) or _REQUESTS.search(said) or _MOMENT.match(said))


def _worth(said: str, start: int) -> float:
    """What the clause that begins at `start` is worth as a statement of its speaker about themselves; 0.0 if it is
    none."""
    lasting = _IS_LASTING.match(said, start)
    if not lasting and (_MOMENT.match(said, start) or not _IS_PLAIN.match(said, start)):
        return 0.0
    once = _PASSED.match(said, start)
    if once and not _STATE.search(said, start, once.end()):
        return NAMED if lasting else TOLD
    if lasting:
        return DECIDED if _CHOICE.search(lasting[0]) else LASTING
    return PLAIN


def _clause(said: str, start: int) -> str:
    """The clause that begins at `start`, to the first end after enough words."""
    start = _LEADING.match(said, start).end()  # type: ignore[union-attr]
    end = next(
        (each.start() for each in _CLOSES.finditer(said, start) if _enough(said[start : each.start()], dense=None)),
        len(said),
    )
    clause = said[start:end].strip(" .")
    return "" if clause.endswith(("'s", "’s")) else clause  # whose, and not what


def _enough(text: str, *, dense: bool | None) -> bool:
    """Whether a clause says enough to stand by itself."""
    if dense if dense is not None else DENSE.search(text):
        return len(text) >= _LEAST_DENSE
    return sum(1 for _ in _WORD.finditer(text)) >= _PART
