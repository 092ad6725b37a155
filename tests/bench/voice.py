"""Answers said aloud: how soon the first sound is there, beside the time that the server itself takes for the same
words; and how long others wait while somebody floods the bot with reactions, or a voice server never ends.

The model takes no time, the server a quarter of a second a sentence, and every commit is on the disk. Rounds take
turns. The hostile server is a process of its own.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from gateway.agent.files.speech import SpeechSettings
from gateway.app.models import configured_speaker
from gateway.delivery.markdown.spoken import spoken
from gateway.domain.adapter import Limits, Sign
from gateway.domain.chat import ChatAddress, Outbound
from gateway.runtime.clock import SystemClock
from tests.bench.start import PROJECT
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.emulators.media import ENDLESS, MediaServer
from tests.support.gateway import FakeModel, Fetching, Live, Say, config_in, in_turn, running

TITLE = "Answers said aloud; model at 0 ms, durable SQLite, a voice server that takes 250 ms"
ANSWER: Final = (
    "Here is the first sentence of an answer of a usual length. " + "It goes on for a while after that. " * 30
)
_SERVER: Final = 0.25  # seconds
_ANSWERS: Final = 12
_TURNS: Final = 5
_PEOPLE: Final = 10
_MESSAGES: Final = 20  # of each person, in a round
_REACTIONS: Final = 10_000 / 60  # a second


class Chats(Fetching):
    """A platform with reactions and voices, which notes when a row is shown."""

    def __init__(self) -> None:
        super().__init__(b"")
        self.limits = Limits(trusted=True, file_bytes=10_000_000, voice="opus")
        self.shown_at: dict[str, float] = {}

    async def send(self, outbound: Outbound) -> str:
        self.shown_at[outbound.id] = time.perf_counter()
        return await super().send(outbound)

    async def react(self, to: ChatAddress, message: str, sign: Sign) -> None:
        """Nobody looks."""


async def measure() -> Rows:
    """The first sound, then others' waits."""
    async with MediaServer() as server:
        server.before = partial(asyncio.sleep, _SERVER)
        settings = SpeechSettings(base_url=server.url, model="tts-1", when="always")
        first, alone = await _first_sounds(settings), await _alone(settings)
    async with _hostile() as url:
        waits = await _others(settings.model_copy(update={"base_url": url, "when": "asked"}))
    times = median(first) / median(alone)
    return [
        Row("the server alone, first words, p50", milliseconds(median(alone))),
        Row("first sound behind the text, p50", milliseconds(median(first)), "goal 1.50", times, "the server's"),
        Row("first sound behind the text, p95", milliseconds(percentile(first, 0.95))),
        Row("others' answers, calm, p95", milliseconds(median(waits["calm"]))),
        Row("the same, 10,000 reactions a minute", *_beside(waits, "reactions")),
        Row("the same, a voice server without end", *_beside(waits, "hostile")),
    ]


@asynccontextmanager
async def _hostile() -> AsyncIterator[str]:
    """The address of a server whose answers never end."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "tests.bench.voice")
    process = await asyncio.create_subprocess_exec(*command, cwd=PROJECT, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


async def _never_end() -> None:
    """Be that server, until stdin ends."""
    async with MediaServer() as server:
        server.answers = [ENDLESS] * 100_000
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


def _beside(waits: dict[str, list[float]], flood: str) -> tuple[str, str]:
    """The median over the rounds, and by how much more it is than in the calm round just before: by themselves two
    calm rounds differ."""
    more = [loud - calm for loud, calm in zip(waits[flood], waits["calm"], strict=True)]
    span = f"{milliseconds(min(more))} to {milliseconds(max(more))}"
    return milliseconds(median(waits[flood])), f"{milliseconds(median(more))} more ({span}), goal 10 ms"


@asynccontextmanager
async def _bot(settings: SpeechSettings, **how: Any) -> AsyncIterator[Live]:
    with tempfile.TemporaryDirectory() as folder:
        config = config_in(Path(folder), speech=settings)
        async with running(Path(folder), config=config, adapter=Chats(), **how) as live:
            yield live


async def _first_sounds(settings: SpeechSettings) -> list[float]:
    """The seconds between an answer's text and the first sound of it."""
    found = []
    model = FakeModel(in_turn(*[Say(text=ANSWER)] * (_ANSWERS + 1)))
    async with _bot(settings, model=model) as live:
        assert isinstance(live.adapter, Chats)
        for _ in range(_ANSWERS + 1):
            text = await live.answer(await live.tell("tell me"))
            voice = f"{text.id}.voice1"
            await live.adapter.until(lambda voice=voice: voice in live.adapter.shown_at)
            found.append(live.adapter.shown_at[voice] - live.adapter.shown_at[text.id])
            await live.quiet()
    return found[1:]  # the first one loads the client


async def _alone(settings: SpeechSettings) -> list[float]:
    """The seconds that the server takes for the same words, asked by the same client."""
    server, found = configured_speaker(settings, SystemClock()), []
    words = spoken(settings.max_chars, ANSWER)[0]
    for _ in range(_ANSWERS + 1):
        begun = time.perf_counter()
        await server.say(words, settings.voice, "opus")
        found.append(time.perf_counter() - begun)
    return found[1:]


async def _others(settings: SpeechSettings) -> dict[str, list[float]]:
    """The 95th percentile of people's waits in each round: alone, beside a flood of reactions, and beside a hostile
    server, which take turns."""
    waits: dict[str, list[float]] = {"calm": [], "reactions": [], "hostile": []}
    async with _bot(settings) as live:
        shown = await live.answer(await live.tell("hello", chat="loud"))
        await live.ask("/voice on", chat="loud")
        floods: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "calm": asyncio.Event().wait,  # type: ignore[dict-item]
            "reactions": partial(_react, live, f"m-{shown.id}"),
            "hostile": partial(_speak, live),
        }
        for _ in range(_TURNS):
            for name, flood in floods.items():
                beside = asyncio.create_task(flood())
                people = [_talk(live, f"p{number}") for number in range(_PEOPLE)]
                waits[name].append(percentile([wait for each in await asyncio.gather(*people) for wait in each], 0.95))
                beside.cancel()
                await asyncio.gather(beside, return_exceptions=True)
    return waits


async def _talk(live: Live, chat: str) -> list[float]:
    found = []
    for number in range(_MESSAGES):
        begun = time.perf_counter()
        await live.answer(await live.tell(f"message {number}", chat=chat))
        found.append(time.perf_counter() - begun)
        await asyncio.sleep(0.05)
    return found


async def _react(live: Live, message: str) -> None:
    due = time.perf_counter()
    while True:
        for sign in ("+👎", "-👎"):
            due += 1 / _REACTIONS
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await live.adapter.receive(
                live.adapter.inbound(sign, chat="loud", kind="reaction", reply_to=message, user="u")
            )


async def _speak(live: Live) -> None:
    while True:
        await live.answer(await live.tell("say that", chat="loud"))
        await live.quiet()


if __name__ == "__main__":
    asyncio.run(_never_end())
