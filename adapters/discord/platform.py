"""The description of Discord as a platform: its section `adapters.discord` of config.yaml, the names of its people, and
the function that makes its adapter. It loads nothing of the library."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated, Literal

from pydantic import Field

from gateway.domain.place import Listen
from gateway.domain.platform import POLLS, AdapterSettings, Platform, matching
from gateway.domain.settings import AList, CatchUp, Contradiction, Flag, HttpUrl, Ident, Natural, Token

Channels = Annotated[tuple[Ident, ...], AList]


class DiscordSettings(AdapterSettings):
    """The Discord bot (docs/discord.md)."""

    token: Token | None = Field(
        None,
        description="from discord.com/developers/applications, page Bot",
        json_schema_extra={"variable": "DISCORD_BOT_TOKEN"},
    )
    listen: Listen = Field("mention", description="when it answers in channels that are not listed below")
    mention: Channels = Field((), description="ids of channels where it answers mentions and replies")
    free: Channels = Field((), description="ids of channels where it answers everything")
    thread: Channels = Field((), description="ids of channels where it answers everything, each time in a new thread")
    off: Channels = Field((), description="ids of channels where it stays silent")
    quoted: Natural = Field(
        50, description="how many messages before a mention it looks up; see also chats.NAME.context"
    )
    bots: Natural = Field(0, description="how many mentions by another bot it answers in a row")
    catch_up: CatchUp = CatchUp()
    status: Annotated[str, Field(strict=True, max_length=128)] = Field(
        "", description='the line below its name, such as "Ask me: /help"'
    )
    shows_work: Flag = Field(
        False, description="show in that line how many chats it is working in; everyone in its servers can see it"
    )
    shards: Annotated[int, Field(strict=True, ge=1, le=1_000)] | Literal["auto"] = Field(
        "auto", description="connections for many servers; auto: as Discord advises"
    )
    user_install: Flag = Field(
        False, description="offer its commands, and /ask, to people who install it for themselves"
    )
    voice_channels: Flag = Field(
        False,
        description="let it speak and listen in voice channels: /voice join, /voice listen; needs legato[voice]",
    )
    proxy: HttpUrl | None = Field(None, description="http://HOST:PORT; null: none")
    base_url: HttpUrl | None = Field(
        None, description="the address of another server with Discord's API, with its version"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        """A bot needs a token, a channel one rule, and a voice its libraries."""
        yield from self.unset("token")
        if self.enabled and self.voice_channels and not (find_spec("nacl") and find_spec("davey")):
            yield (
                ("voice_channels",),
                "needs libraries that are not installed: pip install 'legato[voice]', or set it to false",
            )
        rules = {"mention": self.mention, "free": self.free, "thread": self.thread, "off": self.off}
        first: dict[str, str] = {}
        for rule, channels in rules.items():
            for channel in channels:
                if (other := first.setdefault(channel, rule)) != rule:
                    yield (
                        (rule, other),
                        f"names the channel {channel}, and {other} names it, too: name the channel in one list only",
                    )


_NO_PERSON = (
    'must give a number, as in "discord:12345678", or a role, as in "discord:role-12345678"; after an @ a '
    'channel\'s number or a guild, as in "discord:*@guild-12345678"'
)
_NO_PLACE = 'must give a channel\'s number, as in "discord:12345678", or a guild, as in "discord:guild-12345678"'

PLATFORM = Platform(
    name="discord",
    title="Discord",
    create="adapters.discord.adapter:create",
    settings=DiscordSettings,
    hint=POLLS,
    person_problem=matching(r"(\d+|\*|role-\d+)(@(\d+|\*|guild-\d+))?", _NO_PERSON),
    place_problem=matching(r"\d+|guild-\d+|\*", _NO_PLACE),
    listens=("mention", "free", "thread", "off"),
    rehearse="adapters.discord.limits:STAGE",
    guide="At discord.com/developers/applications, choose New Application, then Bot. Press Reset Token, and "
    "copy the token. Switch Message Content Intent on. On the page OAuth2, make the link that invites the bot.",
)
