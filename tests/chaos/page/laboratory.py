"""Runs of the page: what the person and the tabs did until the process died, and what is left."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout, CookieJar

from adapters.web.log import path_of
from gateway.runtime.clock import SystemClock
from gateway.store.sqlite import SqliteStore
from tests.chaos.bots.model import SlowModel
from tests.chaos.bots.script import Kill
from tests.chaos.campaign import listed
from tests.chaos.launch import encoded
from tests.chaos.page.bot import PageOrder
from tests.chaos.page.script import CHATS, Said, Schedule
from tests.chaos.page.wire import Wire
from tests.chaos.trial import Result, failed, summed, took, trial
from tests.support.forks import Child, forks
from tests.support.page import Shown, Visitor
from tests.support.redis_server import free_port

_PATIENCE: Final = 100.0  # real seconds
_AGAIN: Final = 0.05  # between two attempts
_ASKED: Final = 20.0  # for one answer of the page
_AWAY: Final = (ClientError, OSError, TimeoutError, AssertionError)  # what a page that is killed answers


class Run:
    """One schedule on its way."""

    def __init__(self, schedule: Schedule, folder: Path, model: str, counts: Counter[str]) -> None:
        self._schedule, self._folder, self._model, self._counts = schedule, folder, model, counts
        self._port = free_port()
        self._origin = time.time()
        self._number = 0
        self.killed_at: list[str] = []

    async def carry_out(self) -> Iterator[str]:
        """From the first message to the moment at which all is answered; what was wrong."""
        timeout = ClientTimeout(total=_ASKED, sock_read=None)
        named = {"Host": f"127.0.0.1:{self._port}"}  # the page answers to its own name only
        async with (
            Wire(self._port, self._schedule.torn, self._counts).open() as port,
            ClientSession(
                cookie_jar=CookieJar(unsafe=True), timeout=timeout, read_bufsize=2**22, headers=named
            ) as http,
        ):
            me = Visitor(at=f"http://127.0.0.1:{port}", http=http)
            async with asyncio.timeout(_PATIENCE), asyncio.TaskGroup() as group:
                serving = group.create_task(self._serve())
                csrf = await self._logged_in(me)
                tabs = [
                    Tab(me, chat, cuts, self._counts) for chat, cuts in zip(CHATS, self._schedule.cuts, strict=True)
                ]
                following = [group.create_task(tab.follow()) for tab in tabs]
                for said in self._schedule.said:
                    await asyncio.sleep(said.after)
                    await self._say(me, csrf, said)
                await serving
                shown = {tab.chat: await self._until_answered(me, tab.chat) for tab in tabs}
                for tab in tabs:
                    while tab.shown.digest != shown[tab.chat].digest:
                        await asyncio.sleep(_AGAIN)
                        shown[tab.chat] = await self._until_answered(me, tab.chat)
                for task in following:
                    task.cancel()
            problems = [each for tab in tabs for each in self._problems(shown[tab.chat], tab.chat)]
            problems += [each for tab in tabs for each in tab.differs(shown[tab.chat])]
        await self._end()
        return iter([*problems, *await self._of_the_store()])

    # -- the process --------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """One process after the other; the last one goes on."""
        for kill in self._schedule.kills:
            process = await self._started(kill)
            where = kill.point or "anywhere"
            try:
                async with asyncio.timeout(kill.after + 1.0):  # it needs a moment to come up
                    await asyncio.shield(process.ended)
            except TimeoutError:
                where = "anywhere"
                process.send(signal.SIGKILL)
            await process.ended
            self.killed_at.append(where)
        self._last = await self._started(None)

    async def _started(self, kill: Kill | None) -> Child:
        self._number += 1
        order = PageOrder(
            number=self._number,
            folder=str(self._folder),
            model=self._model,
            platform="",
            token="",
            origin=self._origin,
            point=(kill.point or None) if kill else None,
            passing=kill.passing if kill else 1,
            port=self._port,
        )
        return await forks().logged("tests.chaos.page.bot", encoded(order), log=self._folder / "log", waits=True)

    async def _end(self) -> None:
        self._last.send(signal.SIGTERM)
        async with asyncio.timeout(_PATIENCE):
            await self._last.ended

    # -- the person ---------------------------------------------------------------------------------

    async def _logged_in(self, me: Visitor) -> str:
        """Open the link, as often as the process dies meanwhile; the token of the forms."""
        link = self._folder / "legato-home" / "page-link"
        while True:
            with suppress(*_AWAY):
                async with me.http.get(link.read_text().strip()):
                    return await me.csrf()
            await asyncio.sleep(_AGAIN)

    async def _say(self, me: Visitor, csrf: str, said: Said) -> None:
        """Send it until the page says that it was taken, as its script does."""
        fields = {"id": f"id-{said.token}", "text": said.text, "chat": said.chat}
        while True:
            with suppress(*_AWAY):
                answer = await me.post("/say", fields, csrf=csrf)
                if answer.status == 200:
                    self._counts["messages"] += 1
                    return
            self._counts["sent again"] += 1
            await asyncio.sleep(_AGAIN)

    def _said_in(self, chat: str) -> list[Said]:
        return [each for each in self._schedule.said if each.chat == chat]

    async def _until_answered(self, me: Visitor, chat: str) -> Shown:
        while True:
            with suppress(*_AWAY):
                shown = await me.shown(path_of(chat))
                if shown.is_quiet and all(f"{each.token} is answered" in shown.text for each in self._said_in(chat)):
                    return shown
            await asyncio.sleep(_AGAIN)

    # -- what was wrong -----------------------------------------------------------------------------

    def _problems(self, shown: Shown, chat: str) -> Iterator[str]:
        entries = [re.sub(r"<[^>]+>", "", html) for _, _, html in shown.log]
        asked = [each for each in entries if re.search(r"(say|tell|fill) tok", each)]
        for said in self._said_in(chat):
            if (times := sum(said.text in each for each in asked)) != 1:
                yield f"{said.text}: it stands {times} times in the page"
            if (times := sum(f"{said.token} is answered" in each for each in entries)) != 1:
                yield f"{said.text}: {times} answers are shown"
        order = [found[0] for each in asked if (found := re.findall(r"tok\w{7}", each))]
        if order != [each.token for each in self._said_in(chat)]:
            yield f"the words stand in the order {order}"
        if any(not each.strip() for each in entries):
            yield "an entry is empty"

    async def _of_the_store(self) -> list[str]:
        store = SqliteStore(self._folder / "store.db", clock=SystemClock(), read_only=True)
        await store.open()
        try:
            sessions = len(await store.sessions(None, 99))
            unsent = [row.id for row in await store.outbox(None, 999) if row.state != "sent"]
        finally:
            await store.aclose()
        chats = len({each.chat for each in self._schedule.said})
        wrong = [f"{sessions} sessions were opened for {chats} chats"] if sessions != chats else []
        return [*wrong, *(f"the row {each} is not sent" for each in unsent)]


class Tab:
    """A page of a chat that stays open. Its connection is cut again and again, and comes back with the last event it
    had."""

    def __init__(self, me: Visitor, chat: str, cuts: Sequence[int], counts: Counter[str]) -> None:
        self._me, self.chat, self._cuts, self._counts = me, chat, list(cuts), counts
        self.shown = Shown()

    async def follow(self) -> None:
        """Follow until cancelled."""
        while True:
            left = self._cuts.pop(0) if self._cuts else 0
            with suppress(*_AWAY):
                async with self._me.events(self.shown.digest, header=bool(left % 2), chat=self.chat) as events:
                    async for kind, data, digest in events:
                        self.shown.apply(kind, data, digest)
                        left -= 1
                        if left == 0:
                            self._counts["cuts"] += 1
                            break
            await asyncio.sleep(_AGAIN)

    def differs(self, reloaded: Shown) -> Iterator[str]:
        """Say where the tab is not what a reload shows."""
        if self.shown.log != reloaded.log:
            here, there = set(self.shown.log), set(reloaded.log)
            yield f"the tab of {self.chat or 'the first chat'} has {sorted(here - there)} for {sorted(there - here)}"


async def perform(model: SlowModel, schedule: Schedule) -> Result:
    """One run."""
    model.rng = random.Random(schedule.seed)
    async with trial(schedule, "page") as trying:
        run = Run(schedule, trying.folder, model.url, trying.counts)
        trying.problems += await run.carry_out()
        trying.killed_at = tuple(run.killed_at)
    return trying.result()


@asynccontextmanager
async def laboratories() -> AsyncIterator[Callable[[Schedule], Awaitable[Result]]]:
    """A laboratory for `campaign`."""
    async with SlowModel() as model:
        yield partial(perform, model)


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    kills = Counter(point for result in results for point in result.killed_at)
    counts = summed(result.counts for result in results)
    return [
        f"kills: {listed(kills)}",
        took(results),
        f"{len(results)} runs of the page, {listed(counts)}, {sum(kills.values())} kills, "
        f"{failed(results)} runs with problems",
    ]
