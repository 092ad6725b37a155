"""IRC, described. Reading this loads nothing of the adapter."""

from pydantic import Field

from gateway.domain.platform import AdapterSettings, Platform
from gateway.domain.settings import Flag, Port, Seconds, Secret, Text, Texts


class IrcSettings(AdapterSettings):
    """A bot on one IRC server. On IRC, anyone can take a free nick. With `trust_nicks`, the bot trusts the nick
    alone. Otherwise, it knows people by the account with which they logged in to the server."""

    host: Text = Field("127.0.0.1", description="the server")
    port: Port = Field(6667, description="its port")
    tls: Flag = Field(False, description="whether the connection is encrypted, as on port 6697")
    nick: Text = Field("legato", description="what the bot is called", json_schema_extra={"asked": True})
    password: Secret | None = Field(None, description="the server's password; null: none is needed")
    channels: Texts = Field((), description="channels to be in, such as #choir")
    trust_nicks: Flag = Field(False, description="whether a nick is enough to know a person")
    pause: Seconds = Field(0.5, description="seconds between two lines; servers throw out who is faster")


PLATFORM = Platform(
    name="irc",
    title="IRC",
    create="legato_irc.adapter:create",
    settings=IrcSettings,
    hint="On IRC, text is shown as it is: use no Markdown, and answer in a few short lines.",
    person="anna",
)
