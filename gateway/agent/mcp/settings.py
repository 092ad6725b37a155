"""The section of an MCP server in `config.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from gateway.agent.tools.shell import FolderName, FolderSettings
from gateway.domain.settings import (
    AList,
    Contradiction,
    Flag,
    Hosts,
    HttpUrl,
    Ident,
    Seconds,
    Secret,
    Section,
    Text,
    Texts,
)
from gateway.runtime.redaction.plausible import is_path, looks_mixed

ANY: Final = "*"  # in a list of tools: every tool
# No underscore: a tool's full name is NAME_tool, and tells its server.
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,23}")
_ADDRESS: Final = re.compile(r"(https?://)(?:[^/\s@]*@)?([^/\s?#'\"]+)[^\s'\"]*", re.IGNORECASE)
_MORE: Final = "…"  # in the place of arguments
_OF_PROCESS, _OF_ADDRESS = ("args", "env", "cwd", "sandbox"), ("headers", "client_id", "client_secret")
_OF_SANDBOX: Final = ("folders", "hosts")
# A program without arguments may be written as a text.
_PROGRAM: Final = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)


class McpServerSettings(Section):
    """An MCP server is a `url` or a `command` on this machine. A `command` sees only the variables PATH, HOME, LANG and
    those in `env`."""

    enabled: Flag = Field(True, description="use it")
    command: Annotated[Texts, _PROGRAM] = Field((), description="a program with its arguments, as a list")
    args: Annotated[tuple[Annotated[str, Field(strict=True)], ...], AList] = Field((), description="more arguments")
    env: dict[str, Ident] = Field(default_factory=dict, description="variables for the program")
    cwd: Text | None = Field(None, description="the folder it starts in; null: the current one")
    sandbox: Flag = Field(False, description="run it in a sandbox, whose network reaches only `hosts`")
    folders: dict[FolderName, FolderSettings] = Field(
        default_factory=dict, description="folders on this machine that the sandbox shows as /folders/NAME"
    )
    hosts: Hosts = Field((), description="hosts that it may reach from there, such as [api.example.org], or [*]")
    url: HttpUrl | None = Field(None, description="the address of a server that speaks streamable HTTP")
    headers: dict[str, Ident] = Field(default_factory=dict, description="more headers for each request")
    client_id: Text | None = Field(
        None, description="the id of an app that you registered for logins; null: Legato registers itself"
    )
    client_secret: Secret | None = Field(None, description="the secret of that app, if it has one")
    redirect: HttpUrl = Field("http://127.0.0.1:33418/", description="where a login ends; nothing has to answer there")
    timeout: Seconds = Field(60, description="seconds that a call may take")
    start_timeout: Seconds = Field(30, description="seconds within which it must be ready")
    only: Texts = Field((), description="use only these of its tools, by the server's names; empty: all")
    ask: Texts = Field((), description='tools that a person must allow each time, or ["*"]')
    admins_only: Flag = Field(False, description="only admins may use its tools")
    trust: Flag = Field(False, description="trust what it says about which tools change nothing, or may run twice")

    def contradictions(self) -> Iterator[Contradiction]:
        if self.command and self.url:
            yield ("command", "url"), "cannot be used with url: a server is either a program or an address"
        elif not self.command and not self.url:
            yield ("command", "url"), "is missing: name a program (command) or an address (url)"
        wrong, place = (_OF_PROCESS, "url") if self.url else (_OF_ADDRESS, "command")
        for name in wrong:
            if getattr(self, name) and getattr(self, place):
                yield (name, place), f"does not go with {place}"
        if self.client_secret and not self.client_id:
            yield ("client_secret", "client_id"), "needs client_id"
        if self.sandbox and self.cwd:
            yield ("cwd", "sandbox"), "does not go with sandbox: the program starts in a folder of its own"
        for name in _OF_SANDBOX:
            if getattr(self, name) and not self.sandbox:
                yield (name, "sandbox"), "needs sandbox: true"

    @property
    def may_log_in(self) -> bool:
        """Whether a person may log in there: it has an address, and no key in its headers."""
        return bool(self.url) and not any(name.lower() == "authorization" for name in self.headers)

    @property
    def place(self) -> str:
        """Return the process or the address in a few words, without anything that may be secret: without an address's
        path, and without a program's arguments from the first that may hold a value."""
        if self.url:
            return self.hidden(self.url)
        words = [*takewhile(_is_plain, (*self.command[1:], *self.args))]
        more = [_MORE] if len(words) < len(self.command) - 1 + len(self.args) else []
        return " ".join([*self.command[:1], *words, *more])

    @property
    def shown_instead(self) -> Mapping[str, Any]:
        """Return the server's place in the stead of what leads there."""
        return {"url": self.place} if self.url else {"command": self.place, "args": ()}

    def hidden(self, text: str) -> str:
        """Return the text with the scheme and the host alone of the addresses in it: the library tells whole ones, of
        this server and of where it leads."""
        return _ADDRESS.sub(r"\1\2", text) if self.url else text

    def offers(self, tool: str) -> bool:
        """Whether the server's tool of this name is used."""
        return not self.only or tool in self.only or ANY in self.only

    def asks(self, tool: str) -> bool:
        """Whether a person must allow each call of the tool."""
        return tool in self.ask or ANY in self.ask


def _is_plain(word: str) -> bool:
    """Whether an argument is a word, a short option or a path, and holds no value that may be secret."""
    if word.startswith("--") or "=" in word or "://" in word:
        return False
    return is_path(word) or not looks_mixed(word)


def misnamed(name: str) -> bool:
    """Whether a server cannot have this name."""
    return not _NAME.fullmatch(name)
