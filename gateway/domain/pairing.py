"""Pairing: how a stranger is let in by an admin who knows them, decided on plain data.

A stranger who asks gets a code, and tells it to an admin in another way. The admin types the code: that is the proof
that this account is that person. Codes are few, short-lived and asked for seldom, and wrong guesses lock pairing, so
that nobody can guess one or make the bot write to strangers for ever.

Wall time is compared by its distance in both directions: a clock that was set back makes no code
live longer than its hour and locks nobody out for good.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal

from msgspec import Struct

from gateway.domain.chat import Source, one_line
from gateway.runtime.structs import replace

CODE_LENGTH: Final = 8
CODE_LETTERS: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # none that looks or sounds like another
CODE_SECONDS: Final = 3_600.0
MOST_ASKING: Final = 3  # on each platform, in private and in groups
ASK_EVERY: Final = 600.0  # seconds between two codes for one person
MOST_FAILURES: Final = 5
LOCKED_SECONDS: Final = 3_600.0
_LONGEST_NAME: Final = 60


class PairingRequest(Struct, frozen=True, kw_only=True):
    """A stranger who was given a code, or for whom admins were given one. `event` is the message that asked: heard
    again, it gets the same answer. `place`: the group in which they wrote; empty: in private. `code`: empty once it
    gave way to someone else's. `times`: how many codes they were given."""

    platform: str
    user: str
    chat: str
    name: str
    code: str
    event: str
    at: float
    place: str = ""
    times: int = 1


class Guest(Struct, frozen=True, kw_only=True):
    """Somebody who was let in, and by which code, so that typing it again is no mistake. `place`: see
    `PairingRequest`."""

    platform: str
    user: str
    chat: str
    name: str
    code: str
    at: float
    greeted: bool = True  # whether they were told so
    place: str = ""


class GuestBook(Struct, frozen=True, kw_only=True):
    """The pairing of one platform: who asks, who was let in, and how many wrong codes came one after another.
    `version` rises with every change, so that of two changes of one state only one is stored."""

    asking: tuple[PairingRequest, ...] = ()
    guests: tuple[Guest, ...] = ()
    failures: int = 0
    failed_at: float = 0.0
    version: int = 0

    def knows(self, source: Source) -> bool:
        """Whether this person was let in."""
        return any((guest.platform, guest.user) == (source.platform, source.user) for guest in self.guests)

    def locked_for(self, now: float) -> float:
        """For how many seconds no code is taken; 0.0: they are."""
        if self.failures < MOST_FAILURES:
            return 0.0
        return max(0.0, LOCKED_SECONDS - abs(now - self.failed_at))


def asked(book: GuestBook, source: Source, event: str, code: str, now: float) -> tuple[GuestBook, str | None]:
    """A stranger wrote. Gives the book as it then is, and the code to tell them, or in a group to tell admins; None:
    there is one already, or they were let in meanwhile, or too many ask."""
    if book.knows(source):
        return book, None
    live = tuple(each for each in book.asking if abs(now - each.at) < CODE_SECONDS)
    place = "" if source.chat_type == "direct" else one_line(source.chat_name or source.chat)[:_LONGEST_NAME]
    mine = [each for each in live if (each.platform, each.user) == (source.platform, source.user)]
    same = next((each for each in mine if each.event == event), None)
    if same is not None:
        return book, same.code or None
    own = next((each for each in mine if bool(each.place) == bool(place)), None)
    waits = bool(mine) if place else own is not None and abs(now - own.at) < ASK_EVERY  # admins are told once
    if waits:
        return book, None
    times = own.times if own is not None else 0
    # Members of groups leave the codes of those who write in private to them.
    others = [each for each in live if each is not own]
    rivals = [each for each in others if each.platform == source.platform and bool(each.place) == bool(place)]
    if sum(bool(each.code) for each in rivals) >= MOST_ASKING:
        yields = None if place else _who_gives_way(rivals, times, now)
        if yields is None:
            return book, None
        others = [replace(each, code="") if each is yields else each for each in others]
    new = PairingRequest(
        platform=source.platform,
        user=source.user,
        chat=source.chat,
        name=one_line(source.user_name)[:_LONGEST_NAME],
        code=code,
        event=event,
        at=now,
        place=place,
        times=times + 1,
    )
    return _changed(book, asking=(*others, new)), code


def _who_gives_way(rivals: Sequence[PairingRequest], times: int, now: float) -> PairingRequest | None:
    """Choose whose code gives way to somebody who was given `times` codes: among those who were given more, the one
    with most, oldest first. A first code stays for ten minutes. So nobody keeps others out by asking again and
    again."""
    held = (each for each in rivals if each.code and each.times > times)
    weak = (each for each in held if each.times > 1 or abs(now - each.at) >= ASK_EVERY)
    return max(weak, key=lambda each: (each.times, -each.at), default=None)


Verdict = Literal["let in", "let in before", "wrong", "locked", "no code"]


def is_code(text: str) -> bool:
    """Whether a text has the form of a code. Another text is no guess, so it counts as no wrong one."""
    typed = _typed(text)
    return len(typed) == CODE_LENGTH and all(letter in CODE_LETTERS for letter in typed)


def confirmed(book: GuestBook, code: str, now: float) -> tuple[GuestBook, Verdict, Guest | None]:
    """An admin typed a code. Gives the book as it then is, the verdict, and the person who was let in."""
    typed = _typed(code)
    before = next((each for each in book.guests if each.code == typed and abs(now - each.at) < CODE_SECONDS), None)
    if before is not None:
        return book, "let in before", before
    if book.locked_for(now):
        return book, "locked", None
    live = tuple(each for each in book.asking if abs(now - each.at) < CODE_SECONDS)
    found = next((each for each in live if each.code and each.code == typed), None)
    if found is None:
        failures = 1 if abs(now - book.failed_at) >= LOCKED_SECONDS else book.failures + 1
        return _changed(book, failures=failures, failed_at=now), "wrong", None
    guest = Guest(
        platform=found.platform,
        user=found.user,
        chat=found.chat,
        name=found.name,
        code=found.code,
        at=now,
        greeted=False,
        place=found.place,
    )
    others = tuple(each for each in book.guests if (each.platform, each.user) != (guest.platform, guest.user))
    left = tuple(each for each in live if (each.platform, each.user) != (guest.platform, guest.user))
    return _changed(book, asking=left, guests=(*others, guest), failures=0), "let in", guest


def removed(book: GuestBook, platform: str, user: str) -> tuple[GuestBook, Guest | None]:
    """Show a guest out. Returns the new book, and the guest (None: nobody has that name)."""
    gone = next((each for each in book.guests if (each.platform, each.user) == (platform, user)), None)
    if gone is None:
        return book, None
    return _changed(book, guests=tuple(each for each in book.guests if each is not gone)), gone


def greeted(book: GuestBook, guests: Collection[Guest]) -> GuestBook:
    """The book once these were told that they were let in."""
    after = tuple(replace(each, greeted=True) if each in guests else each for each in book.guests)
    return book if after == book.guests else _changed(book, guests=after)


def _typed(code: str) -> str:
    return "".join(code.upper().replace("-", " ").split())


def written(code: str) -> str:
    """A code as people read it out."""
    half = CODE_LENGTH // 2
    return f"{code[:half]}-{code[half:]}"


def _changed(book: GuestBook, **changes: object) -> GuestBook:
    return replace(book, version=book.version + 1, **changes)  # type: ignore[arg-type]
