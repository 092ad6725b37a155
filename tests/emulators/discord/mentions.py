"""Whom a text names, and who is told of it.

Source: https://discord.com/developers/docs/reference#message-formatting and
https://discord.com/developers/docs/resources/message#allowed-mentions-object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from tests.emulators.discord.asked import snowflake
from tests.emulators.discord.refusals import bad_choice, bad_length, invalid

_CODE: Final = re.compile(r"```.*?```|``.*?``|`[^`]*`", re.DOTALL)
_USER: Final = re.compile(r"<@!?(\d{5,20})>")
_ROLE: Final = re.compile(r"<@&(\d{5,20})>")
_EVERYONE: Final = re.compile(r"@(everyone|here)\b")
KINDS: Final = ("roles", "users", "everyone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Whom a text names: ids of users and of roles, in the order of the text."""

    users: list[int]
    roles: list[int]
    everyone: bool


def named_in(text: str) -> Named:
    """Return the names in a text outside of code."""
    bare = _CODE.sub(" ", text)
    users = list(dict.fromkeys(int(number) for number in _USER.findall(bare)))
    roles = list(dict.fromkeys(int(number) for number in _ROLE.findall(bare)))
    return Named(users=users, roles=roles, everyone=bool(_EVERYONE.search(bare)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """`allowed_mentions` of a request; without one, everybody who is named may be told."""

    parse: frozenset[str] = frozenset(KINDS)
    users: frozenset[int] = frozenset()
    roles: frozenset[int] = frozenset()
    replied_user: bool = True
    given: bool = field(default=False)

    def user(self, identity: int) -> bool:
        """Say whether a person may be told."""
        return "users" in self.parse or identity in self.users

    def role(self, identity: int) -> bool:
        """Say whether the bearers of a role may be told."""
        return "roles" in self.parse or identity in self.roles


def allowed(form: dict[str, Any]) -> Allowed:
    """The `allowed_mentions` of a form. Raises the refusal if they contradict themselves."""
    given = form.get("allowed_mentions")
    if given is None:
        return Allowed()
    parse = given.get("parse") or ()
    for place, kind in enumerate(parse):
        if kind not in KINDS:
            raise bad_choice(f"allowed_mentions.parse.{place}", f"Value must be one of {set(KINDS)}.")
    lists = {}
    for kind in ("users", "roles"):
        found = given.get(kind) or ()
        if found and kind in parse:
            text = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
            raise invalid("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", text)
        if len(found) > 100:
            raise bad_length(f"allowed_mentions.{kind}", 0, 100)
        lists[kind] = frozenset(snowflake(each, f"allowed_mentions.{kind}") for each in found)
    replied = bool(given.get("replied_user", False))
    return Allowed(parse=frozenset(parse), users=lists["users"], roles=lists["roles"], replied_user=replied, given=True)
