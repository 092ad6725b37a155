"""The description of Slack as a platform: its section `adapters.slack` of config.yaml, the names of its people, and
the function that makes its adapter. It loads nothing of the library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from gateway.domain.place import Listen
from gateway.domain.platform import AdapterSettings, Platform, matching
from gateway.domain.settings import CatchUp, Contradiction, Flag, HttpUrl, Natural, Port, Secret, Section, Text, Token


class Events(Section):
    """With mode http, Slack calls your https:// address, and your proxy passes the call on to `host` and
    `port`."""

    host: Text = Field("127.0.0.1", description="the address to listen on")
    port: Port = Field(8444, description="its port")
    secret: Secret | None = Field(
        None,
        description="the Signing Secret, from the app's page Basic Information",
        json_schema_extra={"variable": "SLACK_SIGNING_SECRET"},
    )


class SlackSettings(AdapterSettings):
    """The Slack bot (docs/slack.md)."""

    token: Token | None = Field(
        None,
        description="xoxb-…, from the app's page OAuth & Permissions",
        json_schema_extra={"variable": "SLACK_BOT_TOKEN"},
    )
    app_token: Token | None = Field(
        None,
        description="xapp-…, from the app's page Basic Information; for mode socket",
        json_schema_extra={"variable": "SLACK_APP_TOKEN"},
    )
    mode: Literal["socket", "http"] = Field("socket", description="Legato connects to Slack, or Slack calls Legato")
    http: Events = Events()
    listen: Listen = Field("mention", description="when it answers in channels; use `chats` for single ones")
    threads: Flag = Field(True, description="answer a mention in a thread, with a conversation of its own")
    quoted: Natural = Field(20, description="how many messages before a mention the model sees")
    bots: Natural = Field(0, description="how many mentions by another bot it answers in a row")
    catch_up: CatchUp = CatchUp()
    proxy: HttpUrl | None = Field(None, description="http://HOST:PORT; null: as HTTPS_PROXY says")
    base_url: HttpUrl | None = Field(
        None, description="the address of another server with Slack's Web API, such as an emulator"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        """A bot needs a token, and a second secret for either way of reading."""
        yield from self.unset("token", "app_token" if self.mode == "socket" else "http.secret")


_NO_PERSON = (
    'must give a member ID, as in "slack:U012AB3CD", or a workspace\'s, as in "slack:T012AB3CD"; after an @ a '
    "channel's ID or a workspace's, as in \"slack:*@C012AB3CD\""
)
_NO_PLACE = 'must give a channel\'s ID, as in "slack:C012AB3CD", or a workspace\'s, as in "slack:T012AB3CD"'

PLATFORM = Platform(
    name="slack",
    title="Slack",
    create="adapters.slack.adapter:create",
    settings=SlackSettings,
    hint="People write commands after /legato here, as in /legato help.",
    person="U012AB3CD",
    person_problem=matching(r"([UWT][A-Z0-9]{2,}|\*)(@([CDGTE][A-Z0-9]{2,}|\*))?", _NO_PERSON),
    place_problem=matching(r"[CDGTE][A-Z0-9]{2,}(/\d+\.\d+)?|\*", _NO_PLACE),
    listens=("mention", "free", "thread", "off"),
    rehearse="adapters.slack.limits:STAGE",
    guide=(
        "At api.slack.com/apps, choose Create New App, then From a manifest, and paste the manifest from "
        "docs/slack.md. Install the app to get the bot's token. Under Basic Information, make an app token with "
        "connections:write."
    ),
)
