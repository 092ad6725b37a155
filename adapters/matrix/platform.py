"""The description of Matrix as a platform: its section `adapters.matrix` of config.yaml, the names of its people and
rooms, and the function that makes its adapter. It loads nothing that it does not need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from gateway.domain.place import Listen
from gateway.domain.platform import AdapterSettings, Platform, matching
from gateway.domain.settings import CatchUp, Contradiction, Flag, HttpUrl, Natural, Secret, Text, Token

# https://spec.matrix.org/v1.15/appendices/#user-identifiers; rooms of version 12 have no server in their ids
_PERSON: Final = r"@[^\s@:]+:[\w.:\[\]-]+"
_ROOM: Final = r"![^\s/@]+"

_HOMESERVER: Final = "the address of the bot's server; null: the one that the server of `user` names"


def _user(value: str) -> str:
    if not re.fullmatch(_PERSON, value):
        raise ValueError("must be a whole id, such as @legato:example.org")
    return value


class RoomCatchUp(CatchUp):
    """`catch_up` limits what the bot reads in each room after a pause."""

    messages: Natural = Field(1_000, description="how many of a room's newest messages it reads; 0: none")


class MatrixSettings(AdapterSettings):
    """The Matrix bot (docs/matrix.md)."""

    user: Annotated[Text, AfterValidator(_user)] | None = Field(
        None, description="the bot's own id, such as @legato:example.org", json_schema_extra={"asked": True}
    )
    password: Secret | None = Field(
        None, description="the password of the bot's account", json_schema_extra={"variable": "MATRIX_PASSWORD"}
    )
    token: Token | None = Field(None, description="an access token, for a server without passwords")
    homeserver: HttpUrl | None = Field(None, description=_HOMESERVER)
    invitations: Literal["allowed", "all", "none"] = Field(
        "allowed", description="whose invitations it accepts; allowed: from people who may talk to it"
    )
    listen: Listen = Field("mention", description="when it answers in rooms with more than one other member")
    quoted: Natural = Field(20, description="how many messages before a mention the model sees")
    streaming: Flag = Field(True, description="show a reply while it grows, by editing it")
    edit_seconds: Natural = Field(
        6, description="seconds between edits; many servers refuse more than one every five seconds"
    )
    encryption: Flag = Field(False, description="read and write in encrypted rooms; needs pip install 'legato[e2e]'")
    catch_up: RoomCatchUp = RoomCatchUp()

    def contradictions(self) -> Iterator[Contradiction]:
        """A bot needs an account."""
        if self.enabled and self.user is None:
            yield ("user", "enabled"), "is needed: the bot's own id, such as @legato:example.org"
        if self.enabled and self.encryption and find_spec("vodozemac") is None:
            yield (
                ("encryption",),
                "needs a library that is not installed: pip install 'legato[e2e]', or set it to false",
            )
        if self.enabled and self.password is None and self.token is None:
            yield (
                ("password", "enabled"),
                'is needed, or a token: write "${MATRIX_PASSWORD}" and set that variable, or set enabled to false',
            )


_NO_PERSON: Final = (
    'must give a whole id, as in "matrix:@anna:example.org"; after another @ a room\'s, as in '
    '"matrix:*@!abcdef:example.org"'
)
_NO_PLACE: Final = 'must give a room\'s id, as in "matrix:!abcdef:example.org"; its settings show it under Advanced'

PLATFORM = Platform(
    name="matrix",
    title="Matrix",
    create="adapters.matrix.adapter:create",
    settings=MatrixSettings,
    person="@anna:example.org",
    person_problem=matching(rf"({_PERSON}|\*)(@({_ROOM}|\*))?", _NO_PERSON),
    place_problem=matching(rf"{_ROOM}(/\$\S+)?|{_PERSON}|\*", _NO_PLACE),
    listens=("mention", "free", "thread", "off"),
    rehearse="adapters.matrix.limits:STAGE",
    guide="Make an account for the bot on any server that allows password logins, and enter its password here.",
)
