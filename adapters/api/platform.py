"""The description of the API as a platform: its section `adapters.api` of config.yaml, and the function that makes its
adapter. It loads nothing of the server."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gateway.domain.adapter import Limits
from gateway.domain.platform import AdapterSettings, Platform
from gateway.domain.settings import Text

NAME: Final = "api"
ACCOUNT: Final = "server"

LIMITS = Limits(
    ambiguous_retries=None,  # a row is shown by being in the store, however often it is sent
    keyed=True,
    direct_chat=lambda person: person,
)


class ApiSettings(AdapterSettings):
    """A server for other programs, in OpenAI's shapes (docs/api.md). Who calls it needs a key: `legato keys add NAME`.
    For callers elsewhere, put a proxy with TLS in front."""

    host: Text = Field("127.0.0.1", description="the address at which this program listens")
    port: Annotated[int, Field(strict=True, ge=0, le=65_535)] = Field(8788, description="its port; 0: any free one")


PLATFORM = Platform(
    name=NAME,
    title="the API",
    create="adapters.api.adapter:create",
    settings=ApiSettings,
    hint="The person reads you in an app of their choice, which shows Markdown.",
    person="anna",
    limits=LIMITS,
)
