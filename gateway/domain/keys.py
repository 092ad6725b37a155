"""Keys with which other programs talk to the bot: each is for one person, or for a front end that speaks for its
people."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from msgspec import Struct

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
LONGEST_USER: Final = 256  # characters


class Key(Struct, frozen=True, kw_only=True):
    """A key without its secret. `front_end`: it may speak for others, whom it names. `cap`: what all its answers may
    cost in a day, in US dollars; None: as much as the budgets allow. `chat`: the direct chat whose words and facts its
    programs see over MCP, as a session key's text, and `user` the platform's id of the person there; "": the key's own.
    `made_at`: seconds since the epoch."""

    name: str
    front_end: bool = False
    admin: bool = False
    cap: float | None = None
    chat: str = ""
    user: str = ""
    made_at: float = 0.0

    @property
    def person(self) -> str:
        """Whom the key speaks for if it names nobody."""
        return self.name

    def speaks_for(self, person: str) -> bool:
        """Whether it is somebody's own key, or that of their front end."""
        name, named, _ = person.partition("/")
        return name == self.name and (self.front_end or not named)

    def person_named(self, user: str) -> str:
        """The one of its people that a front end calls `user`. Nobody else's people can have this name."""
        return f"{self.name}/{quote(user, safe='')}" if user else self.name
