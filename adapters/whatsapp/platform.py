"""The description of WhatsApp as a platform: its section `adapters.whatsapp` of config.yaml, the names of its people,
and the function that makes its adapter. It loads nothing that it does not need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from gateway.domain.platform import AdapterSettings, Platform, matching
from gateway.domain.settings import AList, Contradiction, HttpUrl, Ident, Port, Secret, Section, Text, Token


def _number(value: str) -> str:
    if not value.isdecimal():
        raise ValueError("must be a Phone number ID, which has only digits, not a telephone number")
    return value


Number = Annotated[Ident, AfterValidator(_number)]


class Template(Section):
    """Only a message that Meta has approved reaches people who have not written for 24 hours."""

    name: Text | None = Field(None, description="its name in the WhatsApp Manager; null: none")
    language: Text = Field("en", description="its language there, such as en or pt_BR")


class WhatsAppSettings(AdapterSettings):
    """The WhatsApp bot (docs/whatsapp.md)."""

    number: Number | None = Field(
        None, description="the Phone number ID, from the page API Setup", json_schema_extra={"asked": True}
    )
    numbers: Annotated[tuple[Number, ...], AList] = Field((), description="Phone number IDs of the app's other numbers")
    token: Token | None = Field(
        None, description="the access token of a system user", json_schema_extra={"variable": "WHATSAPP_TOKEN"}
    )
    secret: Secret | None = Field(
        None,
        description="the App secret, from the page App settings, Basic",
        json_schema_extra={"variable": "WHATSAPP_APP_SECRET"},
    )
    url: HttpUrl | None = Field(
        None, description="the https:// address at which Meta calls", json_schema_extra={"asked": True}
    )
    host: Text = Field("127.0.0.1", description="the address to listen on")
    port: Port = Field(8445, description="its port; your proxy passes calls of `url` on to it")
    template: Template = Template()
    proxy: HttpUrl | None = Field(None, description="http://HOST:PORT, for calls to Meta; null: none")
    base_url: HttpUrl | None = Field(
        None, description="the address of another server with the Graph API, such as an emulator"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        """A bot needs a number, both secrets, and an address."""
        if self.enabled and self.number is None:
            yield ("number", "enabled"), "is needed: the Phone number ID, from the page API Setup"
        if self.enabled and self.url is None:
            yield ("url", "enabled"), "is needed: at which https:// address can Meta reach this bot?"
        yield from self.unset("token", "secret")
        if self.url is not None and self.base_url is None and urlsplit(self.url).scheme != "https":
            yield ("url",), "must begin with https://: Meta calls no other address"


_PERSON = r"\d{5,20}|[A-Z]{2}\.[A-Za-z0-9.]+"
_NO_PERSON = (
    'must give a telephone number with its country\'s code, in digits only, as in "whatsapp:491701234567"; after '
    "an @ a Phone number ID"
)
_NO_PLACE = 'must give a telephone number, as in "whatsapp:491701234567", or a Phone number ID'

PLATFORM = Platform(
    name="whatsapp",
    title="WhatsApp",
    create="adapters.whatsapp.adapter:create",
    settings=WhatsAppSettings,
    person="491701234567",
    person_problem=matching(rf"({_PERSON}|\*)(@({_PERSON}|\*))?", _NO_PERSON),
    place_problem=matching(rf"({_PERSON})(/\d+)?|\*", _NO_PLACE),
    rehearse="adapters.whatsapp.limits:STAGE",
    guide="At developers.facebook.com, make an app of the type Business, and add WhatsApp. The page API Setup "
    "shows the id of the number. Then make a permanent token for a system user of your business.",
)
