"""The description of the API as a platform: its section `adapters.api` of config.yaml, and the function that makes its
adapter. It loads nothing of the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, SecretStr

from adapters.api.signing import Signature
from gateway.domain.adapter import Limits
from gateway.domain.chat import ChatAddress
from gateway.domain.place import HOME, address_named
from gateway.domain.platform import AdapterSettings, Platform
from gateway.domain.settings import Contradiction, Count, Ident, Secret, Section, Text, Texts

NAME: Final = "api"
ACCOUNT: Final = "server"
_SHORTEST: Final = 12  # characters of a hook's secret
_HOOK: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

LIMITS = Limits(
    ambiguous_retries=None,  # a row is shown by being in the store, however often it is sent
    keyed=True,
    direct_chat=lambda person: person,
)


def _secret(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < _SHORTEST:
        raise ValueError(f"must have {_SHORTEST} characters or more")
    return value


def _chat(value: str) -> str:
    if value != HOME and (address_named(value) is None or not value.isprintable()):
        raise ValueError('must be home, or PLATFORM:CHAT, such as "telegram:4711"')
    return value


class HookSettings(Section):
    """Another program posts news to the address /hook/NAME, and a chat gets the news (docs/hooks.md)."""

    secret: Annotated[Secret, AfterValidator(_secret)] = Field(description="12 characters or more")
    signature: Signature = Field("bearer", description="how the sender proves that it knows the secret")
    chat: Annotated[Text, AfterValidator(_chat)] = Field(
        HOME, description="PLATFORM:CHAT, as /whoami shows it there; home: where an admin wrote /home"
    )
    thread: Ident | None = Field(None, description="a thread or topic of the chat")
    person: Ident | None = Field(
        None, description="in a group, the id of the person whose conversation the agent answers in"
    )
    do: Literal["show", "ask"] = Field("show", description="show the text, or ask the agent about it")
    template: Text | None = Field(
        None, description='the text, with values from the JSON as "{{ a.b }}"; null: all of the JSON'
    )
    task: Text | None = Field(None, description="what the agent should do with it; null: say what matters")
    tools: Texts = Field((), description="tools that change something, and that the agent may use without approval")
    per_minute: Count = Field(60, description="the most deliveries in a minute")

    def contradictions(self) -> Iterator[Contradiction]:
        """Nothing is asked for, or allowed, in vain."""
        if self.thread is not None and self.chat == HOME:
            yield (
                ("thread", "chat"),
                "needs a chat, because the home chat already names the thread in which someone wrote /home",
            )
        for key in ("task", "tools"):
            if self.do == "show" and getattr(self, key):
                yield (key, "do"), "needs do: ask"

    @property
    def to(self) -> ChatAddress | None:
        """The chat; None: the home chat."""
        named = address_named(self.chat)
        return None if named is None else ChatAddress(platform=named.platform, chat=named.chat, thread=self.thread)


class ApiSettings(AdapterSettings):
    """Other programs reach the bot through an OpenAI-compatible API (docs/api.md). `legato keys add NAME` creates the
    key that a caller needs. For callers on other machines, put a proxy with TLS in front of Legato.

        hooks: {deploys: {secret: "${DEPLOYS_SECRET}", signature: github, chat: "telegram:4711"}}
    """

    host: Text = Field("127.0.0.1", description="the address to listen on")
    port: Annotated[int, Field(strict=True, ge=0, le=65_535)] = Field(8788, description="its port; 0: any free one")
    hooks: dict[str, HookSettings] = Field(default_factory=dict, description="hooks, by the names in their addresses")

    def contradictions(self) -> Iterator[Contradiction]:
        """Names are part of addresses."""
        for name in self.hooks:
            if not _HOOK.fullmatch(name):
                yield (f"hooks.{name}",), "must have a name of letters, digits, - and _, 64 at most"


PLATFORM = Platform(
    name=NAME,
    title="the API",
    create="adapters.api.adapter:create",
    settings=ApiSettings,
    hint="The person reads your replies in an app of their own; assume it renders Markdown.",
    person="anna",
    limits=LIMITS,
)
