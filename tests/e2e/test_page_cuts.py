"""After any cut, at any event, an open page equals the page after a reload.

Random conversations change what the store holds and what is being written, while a page follows them. Each of its
events is the last one that another page got: when that page comes back, it must show what a reload shows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from adapters.web.log import Entry, Log, News, State
from adapters.web.markup import Html, el
from adapters.web.server import source_of
from adapters.web.stream import Bells, Page, Shared, Work
from gateway.app.views import _standing
from gateway.domain.chat import Button, Outbound, OutboundState, SessionKey
from gateway.domain.views import Said, Story
from gateway.runtime.aside import at_once
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from tests.support.page import Shown

KEY = SessionKey(platform="web", chat="owner")
MOST = 12  # entries of a page, so that a conversation runs out of them
WORDS = ["tea", "**milk**", "`ice`", "<b>bread</b>", "|", "salt", "&", "pepper", "\u202e", "שלום", "你好"]


@dataclass
class Conversation:
    """What the store holds, and what is being written; `Views` as far as a log asks for them."""

    rng: random.Random
    words: list[Said] = field(default_factory=list)
    rows: list[Outbound] = field(default_factory=list)
    draft: Outbound | None = None
    work: str = ""
    number: int = 0
    ring: Callable[[News | None], None] = lambda _: None  # the open page hears of each change, as of the adapter's

    async def said(self, source: object, limit: int) -> list[Said]:
        return self.words[::-1][:limit]

    async def story(self, source: object, since: float) -> Story:
        return Story()

    async def ended(self, source: object, event_id: str) -> bool:
        return any(row.answers == event_id for row in self.rows)

    async def shown(self, source: object, limit: int) -> list[Outbound]:
        return _standing(self.rows[::-1])[:limit]

    def text(self) -> str:
        return " ".join(self.rng.choices(WORDS, k=self.rng.randint(1, 6)))

    def row(self, **more: object) -> Outbound:
        self.number += 1
        facts = {
            "id": f"o_{self.number}",
            "kind": "reply",
            "text": self.text(),
            "created_at": float(self.number),
            "answers": self.rng.choice(self.words[-3:]).event_id if self.words else None,  # some wait for others
            **more,
        }
        return Outbound(key=KEY, to=KEY.address, **facts)  # type: ignore[arg-type]

    def step(self) -> None:
        """Something happens."""
        self.rng.choice(
            [self.speak, self.speak, self.write, self.write, self.finish, self.tell, self.ask, self.forget]
        )()

    def speak(self) -> None:
        self.number += 1
        at = self.number - self.rng.choice([0.0, 0.0, 0.5, 2.5])  # a clock may be set, and rows may be late
        self.words.append(Said(event_id=f"owner:e{self.number}", text=self.text(), at=at))
        self.ring(self.words[-1])

    def write(self) -> None:
        self.work = "thinking"
        if self.draft is None:
            self.draft = self.row()
        else:
            self.draft = replace(self.draft, text=f"{self.draft.text} {self.text()}")

    def finish(self) -> None:
        if self.draft is not None:
            self.number += 1
            self.rows.append(replace(self.draft, created_at=float(self.number)))
            self.ring(self.rows[-1])
        self.draft, self.work = None, ""

    def tell(self) -> None:
        self.rows.append(self.row(kind=self.rng.choice(["notice", "command", "error", "reminder"])))
        self.ring(self.rows[-1])

    def ask(self) -> None:
        asked = self.row(kind="question", buttons=((Button(label="Approve", token="approve a_1"),),))
        self.rows.append(asked)
        if self.rng.random() < 0.5:
            self.rows.append(self.row(kind="question", edits=asked.id))
        self.ring(None)

    def forget(self) -> None:
        if self.words:
            self.words.pop(self.rng.randrange(len(self.words)))
        if self.rows:
            place = self.rng.randrange(len(self.rows))
            self.rows[place] = replace(self.rows[place], text="", buttons=(), state=OutboundState.REFUSED)
        self.ring(None)


@dataclass
class Browser:
    """A page of a conversation: what it is sent is applied, and kept in `events`."""

    talk: Conversation
    log: Log
    seen: Shown
    events: list[tuple[str, object, str]] = field(default_factory=list)
    known: Shared[State] = field(init=False)

    def __post_init__(self) -> None:
        self.known = Shared(self.stored)
        self.talk.ring = self.known.ring

    async def stored(self, made: State | None = None, news: Sequence[News] | None = None) -> State:
        return await self.log.state(self.talk, source_of("owner"), MOST, made, news)  # type: ignore[arg-type]

    async def drafts(self) -> list[Entry]:
        return [await self.log.of_row(self.talk.draft, draft=True)] if self.talk.draft is not None else []

    async def side(self) -> Html:
        return el("p", len(self.talk.rows))

    async def write(self, data: bytes) -> None:
        for block in data.decode().split("\n\n"):
            facts = dict(line.partition(": ")[::2] for line in block.splitlines())
            if "event" in facts:
                event = facts["event"], json.loads(facts["data"]), facts["id"]
                self.events.append(event)
                self.seen.apply(*event)

    def page(self) -> Page:
        return Page(
            state=self.known.now,
            drafts=self.drafts,
            writing=lambda: False,
            work=lambda: Work(self.talk.work),
            side=self.side,
            write=self.write,
            clock=SystemClock(),
            digest=self.seen.digest,
        )

    async def reloaded(self) -> Shown:
        """The page after a reload."""
        entries, shown = (await self.stored()).entries, Shown(work=self.talk.work)
        known = {entry.id for entry in entries}
        for entry in [*entries, *(each for each in await self.drafts() if each.id not in known)]:
            shown.entries[entry.id] = (entry.place, entry.html)
        return shown


@pytest.mark.parametrize(
    "seeds", [range(25), pytest.param(range(25, 200), marks=pytest.mark.slow)], ids=lambda each: f"{each[0]}"
)
async def test_a_page_that_was_cut_off_shows_what_a_reload_shows(seeds: range) -> None:
    for seed in seeds:
        await followed(Conversation(rng=random.Random(seed)), random.Random(seed).randint(5, 40))


async def followed(talk: Conversation, steps: int) -> None:
    log = Log(aside=at_once)
    here = Browser(talk, log, Shown())
    page = here.page()
    await page.look(stored=True)
    cuts: list[Shown] = []
    for _ in range(steps):
        talk.step()
        before = Shown(dict(here.seen.entries), here.seen.digest, here.seen.work)
        begun = len(here.events)
        await page.look(stored=True)
        assert (here.seen.log, here.seen.work) == shown(await here.reloaded())
        for event in here.events[begun:]:
            before.apply(*event)
            cuts.append(Shown(dict(before.entries), before.digest, before.work))
    for cut in cuts:
        back = Browser(talk, log, cut)
        await back.page().look(stored=True)
        assert (back.seen.log, back.seen.work) == shown(await back.reloaded())


def shown(page: Shown) -> tuple[list[tuple[str, str, str]], str]:
    return page.log, page.work


async def test_a_page_that_missed_only_the_end_is_sent_only_the_end() -> None:
    talk, log = Conversation(rng=random.Random(1)), Log(aside=at_once)
    here = Browser(talk, log, Shown())
    talk.rows = [talk.row() for _ in range(5)]
    await here.page().look(stored=True)
    talk.rows.append(talk.row())
    back = Browser(talk, log, here.seen)
    await back.page().look(stored=True)
    assert [kind for kind, *_ in back.events] == ["entry", "drafts", "work", "side"]


async def test_all_pages_end_with_the_server() -> None:
    talk, bells = Conversation(rng=random.Random(1)), Bells()
    here = Browser(talk, Log(aside=at_once), Shown())
    with bells.heard("owner") as bell:
        bells.end()
        await here.page().follow(bell, bells, lambda: True)
