"""A yes or no that a tool call waits for, and the people who may say it."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from gateway.domain.chat import SessionKey, Source
from gateway.runtime.patterns import late

Verdict = Literal["approved", "denied", "expired"]
Lasts = Literal["once", "session", "always"]  # for how long a yes holds
ApprovalState = Literal["open", "approved", "denied", "expired"]

_WORDS: Final[dict[str, Literal["approve", "deny"]]] = {"y": "approve", "yes": "approve", "n": "deny", "no": "deny"}

Labels: TypeAlias = tuple[str, str]  # of the buttons: the yes, and the no
LABELS: Final[Labels] = ("Approve", "Deny")
WORDS: Final[Labels] = ("Answer", "Refuse")  # of a question that is answered in words


class Choices(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a question in words may be answered with: one of the `options`, with `several` some of them, and unless it
    is `closed` any words."""

    options: tuple[str, ...] = ()
    several: bool = False
    closed: bool = False

    def named(self, said: str) -> str | None:
        """The options that an answer names, by number or in one's own words; otherwise the answer itself, or None if it
        cannot be one."""
        said = said.strip()
        if self.options and _NUMBERS.fullmatch(said):
            numbers = [int(each) for each in re.findall(r"\d+", said)]
            if all(1 <= number <= len(self.options) for number in numbers) and (len(numbers) == 1 or self.several):
                return "; ".join(self.options[number - 1] for number in dict.fromkeys(numbers))
        same = next((each for each in self.options if each.casefold() == said.casefold()), None)
        return same if self.closed else same or said


ANYTHING: Final = Choices()
_NUMBERS: Final = late(r"(?i)\d{1,2}(?:\s*(?:[,;&+\s]|and|und|et|y)\s*\d{1,2})*[.!]?")


class Approval(Struct, frozen=True, kw_only=True):
    """A question about one call of one turn, to one person.

    `token` names it on a button, so nobody can guess it. `item` is the inbox item whose turn asks, `call` names the
    tool call within all of the item's steps, `number` counts the item's questions from 1. `person` is the id of whom
    the turn answers. `shown_as` is the id of the Outbound that asks, with `labels` on its buttons. It is decided once:
    `decided_by` is the id of the person who did, None for the gateway itself."""

    token: str
    key: SessionKey
    item: str
    call: str
    number: int
    person: str
    question: str  # one line
    shown_as: str
    asked_at: float
    expires_at: float
    labels: Labels = LABELS
    deed: str = ""  # names the very call that is asked about, where a yes to it may last; "": it may not
    session: str = ""  # in which it is asked
    choices: Choices = ANYTHING  # of one that wants words
    code_at: int = 0  # where in the question a command begins that it is about; 0: nowhere
    state: ApprovalState = "open"
    decided_by: str | None = None
    decided_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is still undecided."""
        return self.state == "open"

    @property
    def wants_words(self) -> bool:
        """Whether a yes is no answer to it."""
        return self.labels == WORDS

    def may_be_answered_by(self, source: Source, *, admin: bool) -> bool:
        """Whether this speaker may answer: in the approval's chat, the person it is bound to, or an admin."""
        here = (source.platform, source.chat) == (self.key.platform, self.key.chat)
        return here and (admin or source.user == self.person)


def command_meant(text: str) -> Literal["approve", "deny"] | None:
    """The command that a plain y or n stands for while a question waits; None if the text is neither."""
    return _WORDS.get(text.strip().rstrip(".!").lower())
