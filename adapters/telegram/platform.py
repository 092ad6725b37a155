"""The description of Telegram as a platform: its section `adapters.telegram` of config.yaml, the names of its people,
and the function that makes its adapter. It loads nothing of the library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from gateway.domain.platform import POLLS, AdapterSettings, Platform, matching
from gateway.domain.settings import Contradiction, HttpUrl, Port, Secret, Section, Text, Token

# https://core.telegram.org/bots/api#setwebhook
_PORTS: Final = (443, 80, 88, 8443)

Streaming = Literal["edits", "drafts", "none"]
"""How a reply is shown while it is being written."""


def _path(value: str) -> str:
    if not re.fullmatch(r"/[!-~]*", value):
        raise ValueError("must begin with / and have no spaces")
    return value


def _secret(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[A-Za-z0-9_-]{16,256}", value.get_secret_value()):
        raise ValueError("must be 16 to 256 of the characters A-Z, a-z, 0-9, _ and -, or be left out")
    return value


def _proxy(value: str) -> str:
    if not re.match(r"(https?|socks5h?)://[^\s/]", value):
        raise ValueError("must be an address that begins with http://, https:// or socks5://")
    return value


class Webhook(Section):
    """With mode webhook, Telegram calls `url`, and your proxy passes the call on to `host`, `port` and `path`."""

    url: HttpUrl | None = Field(None, description="an https:// address on port 443, 80, 88 or 8443")
    host: Text = Field("127.0.0.1", description="the address to listen on")
    port: Port = Field(8443, description="its port")
    path: Annotated[Text, AfterValidator(_path)] | None = Field(None, description="its path; null: the path of url")
    secret: Annotated[Secret, AfterValidator(_secret)] | None = Field(
        None, description="a secret that Telegram sends with each call; null: derived from the token"
    )
    max_connections: int = Field(40, ge=1, le=100, description="calls that Telegram makes at the same time")


class TelegramSettings(AdapterSettings):
    """The Telegram bot (docs/telegram.md)."""

    token: Token | None = Field(
        None, description="from @BotFather", json_schema_extra={"variable": "TELEGRAM_BOT_TOKEN"}
    )
    mode: Literal["polling", "webhook"] = Field("polling", description="Legato asks Telegram, or Telegram calls Legato")
    webhook: Webhook = Webhook()
    previews: bool = Field(False, description="show a preview of a message's first link")
    page: HttpUrl | None = Field(None, description="the https:// address of your page; a button in chats opens it")
    streaming: Streaming = Field("edits", description="how a reply is shown while it grows")
    proxy: Annotated[Text, AfterValidator(_proxy)] | None = Field(
        None, description="http://HOST:PORT; null: as HTTPS_PROXY and ALL_PROXY say"
    )
    base_url: HttpUrl | None = Field(None, description="the address of a Bot API server of your own")

    def contradictions(self) -> Iterator[Contradiction]:
        """A Bot API server of one's own calls any address, Telegram's own does not."""
        yield from self.unset("token")
        if self.enabled and self.mode == "webhook" and self.webhook.url is None:
            yield (
                ("webhook.url", "mode"),
                "is needed with mode: webhook. At which https:// address can Telegram reach this bot?",
            )
        if self.page is not None and not self.page.startswith("https://"):
            yield ("page",), "must begin with https://: Telegram opens no other page"
        if self.webhook.url is not None and self.base_url is None:
            parts = urlsplit(self.webhook.url)
            if parts.scheme != "https" or (parts.port or 443) not in _PORTS:
                yield (
                    ("webhook.url", "base_url"),
                    "must begin with https:// and use port 443, 80, 88 or 8443: Telegram calls no other",
                )


def person_problem(name: str) -> str | None:
    """Telegram's people and chats are numbers here, whatever they are called there."""
    if re.fullmatch(r"(\d+|\*)(@(-?\d+|\*))?|-\d+@(-\d+|\*)", name):
        return None
    if re.fullmatch(r"-\d+", name):
        return f'names a group instead of a person; "telegram:*@{name}" names everybody in the group'
    return 'must give a number, as in "telegram:12345678"'


_NO_PLACE = 'must give a chat\'s number, as in "telegram:-1001234567890", or a topic, as in "telegram:-1001234567890/7"'

PLATFORM = Platform(
    name="telegram",
    title="Telegram",
    create="adapters.telegram.making:create",
    settings=TelegramSettings,
    hint=POLLS,
    person_problem=person_problem,
    place_problem=matching(r"-?\d+(/p?\d+)?|\*", _NO_PLACE),
    listens=("mention", "free", "off"),
    rehearse="adapters.telegram.limits:STAGE",
    guide="Send /newbot to @BotFather on Telegram. BotFather asks for two names, then gives you the token.",
)
