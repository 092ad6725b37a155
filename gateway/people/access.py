"""The people who may talk to the bot, and its admins."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import Annotated, Self

from msgspec import Struct, field
from pydantic import Field

from gateway.domain.adapter import ADMIN_ROLE, Limits
from gateway.domain.chat import Source
from gateway.domain.place import is_person
from gateway.domain.settings import AList, Flag, Ident, Section


class AccessSettings(Section):
    """`access` says who may talk to the bot on public platforms. Write PLATFORM:PERSON, or PLATFORM:PERSON@CHAT for one
    chat only. `*` stands for any person or chat. `legato chat` needs no entry."""

    allow: Annotated[tuple[Ident, ...], AList] = Field((), description="people who may talk")
    admins: Annotated[tuple[Ident, ...], AList] = Field(
        (), description="people who may talk, and may decide for others"
    )
    pairing: Flag = Field(True, description="give strangers a code with which an admin can let them in")


class Access(Struct, frozen=True, kw_only=True):
    """Allow lists of `platform:user` or `platform:user@chat`; `*` stands for any user or chat. A chat that was
    renamed goes by either name, and by the names of what it lies in; a user by the names of their roles. A
    trusted platform (a terminal of the person who started the program) needs no entry;
    on every other one nobody is allowed until named. `operators`: the only trusted person of a trusted platform that
    others may speak on as well. `mail_ids`: platforms where people's ids hold an `@`. `keyed`: platforms that only
    people with a key reach. `pairing`: strangers may ask for a code."""

    allow: Set[str] = frozenset()
    admins: Set[str] = frozenset()
    trusted: Collection[str] = ()
    operators: Mapping[str, str] = field(default_factory=dict)
    mail_ids: Collection[str] = ()
    keyed: Collection[str] = ()
    pairing: bool = True

    @classmethod
    def of(cls, settings: AccessSettings, limits: Mapping[str, Limits]) -> Self:
        """The access that the configuration gives, on the platforms with these limits."""
        return cls(
            allow=frozenset(settings.allow),
            admins=frozenset(settings.admins),
            trusted=frozenset(name for name, limit in limits.items() if limit.trusted),
            operators={name: limit.operator for name, limit in limits.items() if limit.operator is not None},
            mail_ids=frozenset(name for name, limit in limits.items() if limit.mail_ids),
            keyed=frozenset(name for name, limit in limits.items() if limit.keyed),
            pairing=settings.pairing,
        )

    def allows(self, source: Source) -> bool:
        """Whether this person may talk here."""
        return source.platform in self.keyed or self._named(source, self.allow) or self._named(source, self.admins)

    def is_admin(self, source: Source) -> bool:
        """Whether this person may give admin commands."""
        return self._named(source, self.admins)

    def sees_details(self, source: Source) -> bool:
        """Whether this person may read the gateway's own troubles in full: an admin, in a chat that nobody else
        reads."""
        return self._named(source, self.admins if source.chat_type == "direct" else frozenset())

    def admins_on(self, platform: str) -> list[str]:
        """Return the ids of a platform's admins who are named for all of the platform."""
        named = (entry.partition(":") for entry in self.admins)
        return sorted(
            user
            for where, _, user in named
            if where == platform and user != "*" and is_person(user, mail_ids=where in self.mail_ids)
        )

    def _named(self, source: Source, entries: Set[str]) -> bool:
        """Whether an entry names this person. The person of a trusted platform needs none."""
        if source.platform in self.keyed and ADMIN_ROLE in source.roles:
            return True
        if source.platform in self.trusted and source.user == self.operators.get(source.platform, source.user):
            return True
        chats = (source.chat, *([source.renamed] if source.renamed else []), *source.within, "*")
        for user in (source.user, *source.roles, "*") if entries else ():
            person = f"{source.platform}:{user}"
            if person in entries and is_person(user, mail_ids=source.platform in self.mail_ids):
                return True
            if not entries.isdisjoint([f"{person}@{chat}" for chat in chats]):
                return True
        return False
