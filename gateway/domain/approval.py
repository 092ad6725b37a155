"""A yes or no that a tool call waits for, and the people who may say it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from gateway.domain.chat import SessionKey, Source

Verdict = Literal["approved", "denied", "expired"]
Lasts = Literal["once", "session", "always"]  # for how long a yes holds
ApprovalState = Literal["open", "approved", "denied", "expired"]

_WORDS: Final[dict[str, Literal["approve", "deny"]]] = {"y": "approve", "yes": "approve", "n": "deny", "no": "deny"}

Labels: TypeAlias = tuple[str, str]  # of the buttons: the yes, and the no
LABELS: Final[Labels] = ("Approve", "Deny")
WORDS: Final[Labels] = ("Answer", "Refuse")  # of a question that is answered in words


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
    state: ApprovalState = "open"
    decided_by: str | None = None
    decided_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Say whether nobody has decided yet."""
        return self.state == "open"

    @property
    def wants_words(self) -> bool:
        """Say whether a yes is no answer to it."""
        return self.labels == WORDS

    def may_be_answered_by(self, source: Source, *, admin: bool) -> bool:
        """Say whether this speaker may answer: in the approval's chat, the person it is bound to, or an admin."""
        here = (source.platform, source.chat) == (self.key.platform, self.key.chat)
        return here and (admin or source.user == self.person)


def command_meant(text: str) -> Literal["approve", "deny"] | None:
    """The command that a plain y or n stands for while a question waits; None: the text is no such word."""
    return _WORDS.get(text.strip().rstrip(".!").lower())
