"""The description of the page as a platform: its section `adapters.web` of config.yaml, and the function that makes its
adapter. It loads nothing of the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import AfterValidator, Field, SecretStr

from gateway.domain.adapter import Limits
from gateway.domain.platform import AdapterSettings, Platform
from gateway.domain.settings import Contradiction, HttpUrl, Secret, Section, Text, is_loopback

NAME: Final = "web"
ACCOUNT: Final = "page"
OWNER: Final = "owner"  # the person who opened the page by the link that only they can read
LINK_FILE: Final = "page-link"
LARGEST_FILE: Final = 50_000_000  # bytes
_SHORTEST: Final = 12  # characters of a password

LIMITS = Limits(
    ambiguous_retries=None,  # the page shows a row once, however often it is sent
    trusted=True,
    operator=OWNER,
    file_bytes=LARGEST_FILE,
    direct_chat=lambda person: person,
)


def _password(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < _SHORTEST:
        raise ValueError(f"must have {_SHORTEST} characters or more")
    return value


class WebPerson(Section):
    """People log in with a name and a password. People in `access`, as web:NAME, can also write."""

    password: Annotated[Secret, AfterValidator(_password)] = Field(description="12 characters or more")


class WebSettings(AdapterSettings):
    """On the machine where Legato runs, a link opens the page (docs/web.md). For other machines, set `people`, and put
    a proxy with TLS in front of the page.

        people: {anna: {password: "${ANNA_PASSWORD}"}}
    """

    host: Text = Field("127.0.0.1", description="the address to listen on")
    port: Annotated[int, Field(strict=True, ge=0, le=65_535)] = Field(8787, description="its port; 0: any free one")
    url: HttpUrl | None = Field(None, description="the address that people type, if there is a proxy in front")
    proxy: Text | None = Field(None, description="the proxy whose X-Forwarded-For counts; null: one on this machine")
    people: dict[str, WebPerson] = Field(default_factory=dict, description="the people who may log in, by name")

    def contradictions(self) -> Iterator[Contradiction]:
        """Nobody else's page without a login, and none whose name cannot be checked."""
        if self.enabled and not is_loopback(self.host):
            if not self.people:
                yield ("people", "host"), "is needed where others can reach the page: give someone a password"
            if self.url is None:
                yield ("url", "host"), "is needed where others can reach the page: which address do people type?"
        for name in self.people:
            if person_problem(name) or name == OWNER:
                yield (f"people.{name}",), f'must have a name of letters, digits, "." and "-", and not "{OWNER}"'


def person_problem(name: str) -> str | None:
    """Names are part of addresses and of keys."""
    if re.fullmatch(r"(\*|[A-Za-z0-9][A-Za-z0-9.-]{0,63})(@(\*|[A-Za-z0-9][A-Za-z0-9.-]{0,63}))?", name):
        return None
    return 'must be a name of adapters.web.people, as in "web:anna"'


PLATFORM = Platform(
    name=NAME,
    title="the page",
    create="adapters.web.adapter:create",
    settings=WebSettings,
    hint="The person reads your replies on a web page, which renders Markdown with tables and code.",
    person="anna",
    person_problem=person_problem,
    limits=LIMITS,
    beside_shell=True,
    link_file=LINK_FILE,
    logins=ACCOUNT,
    at_once=("people",),
)
