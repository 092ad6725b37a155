"""The page in the test's own process, and a person who opens it without a browser.

async with page(tmp_path, model=Model(says("hi"))) as live:
    await live.me.say("hello")
    await live.me.until("hi")
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession, ClientTimeout, CookieJar, FormData

from adapters.web.adapter import WebAdapter
from adapters.web.platform import WebSettings
from gateway.agent.tools.base import Tool
from gateway.app import build as bootstrap
from gateway.app.config import Config
from gateway.app.gateway import Gateway
from gateway.app.plugins import all_commands
from gateway.domain.platform import AdapterHost
from gateway.domain.views import SettingUp
from gateway.runtime.clock import Clock, SystemIds
from gateway.runtime.structs import replace
from tests.support.gateway import config_in
from tests.support.hosts import host
from tests.support.model import PATIENCE, FakeModel
from tests.support.waiting import pauses

ENTRY = re.compile(r'<li id="e-([^"]*)" data-place="([^"]*)">(.*?)</li>(?=<li id="e-|</ol>\Z)', re.DOTALL)


@dataclass
class Shown:
    """What a page shows: entries by id, each with its place and its markup."""

    entries: dict[str, tuple[str, str]] = field(default_factory=dict)
    digest: str = "0"
    work: str = ""

    @classmethod
    def of(cls, html: str) -> Shown:
        """A page as it was loaded."""
        found = re.search(r'<ol id="log"[^>]*data-digest="([^"]*)"[^>]*>(.*?)</ol><div class="empty"', html, re.DOTALL)
        assert found is not None, html
        entries = {id_: (place, inner) for id_, place, inner in ENTRY.findall(f"{found[2]}</ol>")}
        work = re.search(r'<span id="work" role="status">(.*?)</span>', html)
        return cls(entries=entries, digest=found[1], work=work[1] if work else "")

    def apply(self, kind: str, data: Any, digest: str) -> None:
        """Do what the page's script does with an event."""
        if kind in ("entry", "draft"):
            self.entries[data["id"]] = (data["place"], data["html"])
        elif kind == "gone":
            self.entries.pop(data, None)
        elif kind == "keep":
            self.entries = {id_: each for id_, each in self.entries.items() if id_ in data}
        elif kind == "drafts":
            self.entries = {id_: each for id_, each in self.entries.items() if each[0] != "~" or id_ in data}
        elif kind == "work":
            self.work = data["words"]
        self.digest = digest

    @property
    def log(self) -> list[tuple[str, str, str]]:
        """The entries in their order."""
        return sorted((place, id_, html) for id_, (place, html) in self.entries.items())

    @property
    def is_quiet(self) -> bool:
        """Say whether no turn is at work."""
        return not self.work and "~" not in [place for place, _ in self.entries.values()]

    @property
    def text(self) -> str:
        """All words."""
        return "\n".join(re.sub(r"<[^>]+>", " ", html) for _, _, html in self.log)


@dataclass
class Visitor:
    """A person with a browser that keeps cookies and runs no script."""

    at: str
    http: ClientSession

    async def get(self, path: str, **how: Any) -> tuple[int, str]:
        """Status and text of a page."""
        async with self.http.get(f"{self.at}{path}", **how) as answer:
            return answer.status, await answer.text(errors="replace")

    async def shown(self, path: str = "/c/") -> Shown:
        """The chat after a reload."""
        status, html = await self.get(path)
        assert status == 200, html
        return Shown.of(html)

    async def csrf(self) -> str:
        """The token of this login's forms."""
        found = re.search(r'name="csrf" value="([^"]+)"', (await self.get("/c/"))[1])
        assert found is not None, "nobody is logged in"
        return found[1]

    async def post(
        self, path: str, fields: Mapping[str, str], *, csrf: str | None = None, **how: Any
    ) -> ClientResponse:
        """Send a form of the page; the answer's body is read."""
        fields = {"csrf": await self.csrf() if csrf is None else csrf, **fields}
        how.setdefault("headers", {"Accept": "application/json"})
        answer = await self.http.post(f"{self.at}{path}", data=fields, allow_redirects=False, **how)
        await answer.read()
        return answer

    async def say(self, text: str, id_: str = "", files: Sequence[tuple[str, bytes, str]] = ()) -> str:
        """Say something; its id."""
        id_ = id_ or SystemIds().new("t")
        form = FormData({"csrf": await self.csrf(), "id": id_, "text": text})
        for name, content, mime in files:
            form.add_field("file", content, filename=name, content_type=mime)
        data: Any = form if files else {"csrf": await self.csrf(), "id": id_, "text": text}
        async with self.http.post(f"{self.at}/say", data=data, headers={"Accept": "application/json"}) as answer:
            assert answer.status == 200, await answer.text()
        return id_

    async def until(self, words: str, *, quiet: bool = True, path: str = "/c/") -> Shown:
        """The page, once it shows these words, and, if `quiet`, nothing is being written."""
        async with asyncio.timeout(PATIENCE):
            pause = pauses()
            while True:
                shown = await self.shown(path)
                if words in shown.text and (shown.is_quiet or not quiet):
                    return shown
                await asyncio.sleep(next(pause))

    @asynccontextmanager
    async def events(
        self, last: str, *, header: bool = False, chat: str = ""
    ) -> AsyncIterator[AsyncIterator[tuple[str, Any, str]]]:
        """The stream of a page that has `last`: (kind, data, id) of each event."""
        headers, query = ({"Last-Event-ID": last}, "") if header else ({}, f"&last={last}")
        async with self.http.get(f"{self.at}/events?chat={chat}{query}", headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            yield _events(answer)


async def _events(answer: ClientResponse) -> AsyncIterator[tuple[str, Any, str]]:
    facts: dict[str, str] = {}
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            facts[name] = value
        elif "event" in facts:
            yield facts["event"], json.loads(facts["data"]), facts["id"]
            facts = {}


@dataclass
class LivePage:
    """A running gateway with its page. `me` is the owner, logged in."""

    gateway: Gateway
    adapter: WebAdapter
    model: FakeModel
    me: Visitor

    @asynccontextmanager
    async def visitor(self) -> AsyncIterator[Visitor]:
        """Someone else, who is not logged in."""
        async with _session() as http:
            yield Visitor(at=self.adapter.at, http=http)


def _session() -> ClientSession:
    return ClientSession(cookie_jar=CookieJar(unsafe=True), timeout=ClientTimeout(total=PATIENCE), read_bufsize=2**22)


def host_in(folder: Path, clock: Clock | None = None, **more: Any) -> AdapterHost:
    """The host of a page whose files lie in this folder."""

    menu = [each.entry for each in all_commands().commands]
    return host(clock, home=folder / "legato-home", menu=menu, **more)


@asynccontextmanager
async def page(
    folder: Path,
    *,
    model: FakeModel | None = None,
    config: Config | None = None,
    settings: WebSettings | None = None,
    tools: Sequence[Tool] = (),
    port: int = 0,
    desk: Callable[[Gateway], SettingUp] | None = None,
    **parts: Any,
) -> AsyncIterator[LivePage]:
    """A gateway with a page, whose owner is logged in; stopped in order at the end."""
    settings = settings or WebSettings(enabled=True, port=port)
    adapter, model = WebAdapter(settings, host_in(folder)), model or FakeModel()
    made = bootstrap.Parts(providers={"offline": model, "openai": model}, tools=tools)
    gateway = bootstrap.build(config or config_in(folder), [adapter], replace(made, **parts))
    if desk is not None:
        adapter.setting_up = partial(desk, gateway)
    serving = asyncio.create_task(gateway.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await adapter.listens.wait()
        async with _session() as http:
            me = Visitor(at=adapter.at, http=http)
            if adapter.guard.link:
                async with http.get(adapter.guard.link) as answer:
                    assert answer.status == 200
            yield LivePage(gateway=gateway, adapter=adapter, model=model, me=me)
    finally:
        gateway.stop()
        async with asyncio.timeout(PATIENCE):
            await serving
