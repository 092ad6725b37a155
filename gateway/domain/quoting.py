"""Lines that an adapter puts before a person's words, such as "in reply to". Nothing in such a line may look
like the end of it, or like a line of its own. And what people are told of a message that holds no words for a bot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from gateway.domain.chat import Attachment, one_line, straight

CORRECTED: Final = "[an earlier message, corrected]\n"
FORWARDED: Final = "[forwarded]\n"
BY_A_BOT: Final = "[written by another bot]\n"
UNASKED: Final = "[said to the others in the group, not to you: you join in unasked, so be brief]\n"
CALLED: Final = "[they only called you, without a word]"

_LONGEST: Final = 300  # characters of a message that is quoted
_LONGEST_CARD: Final = 2_000  # characters
_NO_MARKS: Final = {ord("["): "(", ord("]"): ")", ord('"'): "'"}


def in_reply_to(who: str, said: str) -> str:
    """The line before an answer to what somebody said; `who`: a name, or "you"."""
    return f'[in reply to {flat(who)}: "{flat(clipped(said))}"]\n'


def listed(files: Iterable[Attachment]) -> str:
    """Files in words, for such a line."""
    return ", ".join(f"({file.kind} {one_line(file.name)})".replace(" )", ")") for file in files)


def flat(text: str) -> str:
    """Somebody's text in a form for such a line."""
    return " ".join(straight(text).translate(_NO_MARKS).split())


def card(parts: Iterable[str | None]) -> str:
    """What stands in a program's card, or in the preview of a link, as a line."""
    text = " | ".join(flat(each) for each in parts if each)
    return f"[card: {text if len(text) <= _LONGEST_CARD else text[: _LONGEST_CARD - 1] + '…'}]"


def poll_in_a_line(question: str, answers: Sequence[tuple[str, int]], *, closed: bool) -> str:
    """A poll: its answers, and how many people gave each as soon as somebody did."""
    begun = any(count for _, count in answers)
    told = " / ".join(f"{text} ({count})" if begun else text for text, count in answers)
    return f"[{'closed ' if closed else ''}poll: {question} — {told}]"


def cannot_read(what: str = "a message of this kind") -> str:
    """The sentence for who sent something that a bot cannot read, such as "a gift"."""
    return f"I cannot read {what}. Send me words, a picture, a voice message or a file instead."


def clipped(text: str) -> str:
    """As much of a message as is quoted."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
