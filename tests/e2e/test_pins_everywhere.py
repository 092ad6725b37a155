"""Every pin is in every prompt, whatever happens to the conversation."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from gateway.context.policy import CompressionSettings
from gateway.domain.message import text_of
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.support.examples import one_of
from tests.support.gateway import FakeModel, Live, RecordingEngine, config_in, running
from tests.support.model import Say, newest
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

WORDS = "the quick brown fox jumps over the lazy dog " * 60


def check(model: FakeModel, start: int, pins: Sequence[str]) -> int:
    """Every request from `start` on holds exactly these rules, to the byte: in its prompt, or the newest of them in a
    person's message. Returns how many requests there are."""
    for request in model.requests[start:]:
        system = text_of(request.messages[0])
        assert request.messages[0]["role"] == "system"
        assert [message["role"] for message in request.messages].count("system") == 1
        said, shown = {text_of(each) for each in request.messages if each["role"] == "user"}, list(pins)
        while shown and f"<pinned-rules>\n{_listed(shown)}\n</pinned-rules>" not in system:
            assert shown.pop() in said
        assert system.count("<pinned-rules>") == bool(shown)
    return len(model.requests)


def _listed(pins: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(pins, 1))


async def test_ten_compactions_later_every_prompt_still_holds_them(tmp_path: Path) -> None:
    config = config_in(
        tmp_path,
        model=ModelEntry(provider="offline", name="fake", context_length=8_000),
        compression=CompressionSettings(background=True),
    )
    model = FakeModel(lambda _, request: Say(text=f"heard {newest(request)[:3]}", prompt=None))
    pins = ["never push to main", "用中文回答：\n  一律", "always say {please}  "]
    async with running(tmp_path, config=config, model=model) as live:
        await live.ask("hello")
        for pin in pins:
            await live.ask(f"/pin {pin}")
        seen = check(model, 1, pins := [pin.strip() for pin in pins])
        for number in range(200):
            await live.ask(f"{number:03} {WORDS}")
            if (tip := await live.tip()) is not None and tip.compaction_count >= 10:
                break
        assert tip is not None
        assert tip.compaction_count >= 10
        prompts = {text_of(request.messages[0]) for request in model.requests[1:]}
        assert len(prompts) == 2  # one before the first compaction, one for all continuations
        seen = check(model, seen, pins)
        assert (await live.ask("/unpin 2")).startswith("I removed pin 2.")
        await live.ask("and now?")
        assert check(model, seen, [pins[0], pins[2]]) > seen


# -- whatever is done --------------------------------------------------------------------------

_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=40).filter(
    lambda text: text.strip() and not text.strip().isdecimal()
)
_CHANGES = st.one_of(
    st.builds("/pin rule {}".format, _TEXTS),
    st.builds("/pin rule {}".format, _TEXTS),
    st.sampled_from(["/unpin 1", "/unpin 2", "/pin remove 3", "/unpin all", "Never use emojis"]),
)
# Each life has all of these, in its own order.
_DEEDS = (
    *("/new", "/resume 1", "/branch", "/undo", "/retry", "/queue more", "/compress", "/compress", "/compress undo"),
    *("/model other", "restart", "restart"),
)
_LIVES = st.tuples(st.lists(_CHANGES, min_size=len(_DEEDS), max_size=len(_DEEDS)), st.permutations(_DEEDS))
# A life takes seconds: one that fails is read as it is, since shrinking it would take minutes.
_HOW: Any = {"suppress_health_check": list(HealthCheck), "phases": [Phase.explicit, Phase.generate]}


class Person:
    """Does things, and knows what must be pinned then."""

    def __init__(self) -> None:
        self.pins: list[str] = []

    async def do(self, live: Live, what: str) -> None:
        """One thing; a request that it makes is checked."""
        seen = len(live.model.requests)
        answer = await live.answer(await live.tell("hello" if what == "say" else what))
        if answer.text.startswith("I removed") and answer.kind == "command" and "pin" in what:
            which = what.rpartition(" ")[2]
            self.pins = [] if which == "all" else [each for n, each in enumerate(self.pins, 1) if n != int(which)]
        elif answer.text.startswith("Pinned as number"):
            self.pins.append(what.removeprefix("/pin").strip())
        elif what == "Never use emojis" and what not in self.pins:
            self.pins.append(what)
        check(live.model, seen, self.pins)
        if what in ("say", "/queue more", "Never use emojis"):
            assert len(live.model.requests) > seen


async def live_through(folder: Path, store: Callable[[], Store], life: tuple[Sequence[str], Sequence[str]]) -> None:
    """A conversation over several runs of the program: a change of the pins, a deed, a message, and so on."""
    person, model = Person(), FakeModel()

    def start() -> AbstractAsyncContextManager[Live]:
        return running(folder, model=model, store=store(), engine=lambda: RecordingEngine([]))

    left = ["say", "/pin the first", *chain.from_iterable((*both, "say") for both in zip(*life, strict=True))]
    while left:
        async with start() as live:
            while left and (deed := left.pop(0)) != "restart":
                await person.do(live, deed)


@one_of(10, **_HOW)
@given(life=_LIVES)
def test_every_pin_is_in_every_prompt_from_a_file(life: tuple[list[str], list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "legato.db"
        asyncio.run(live_through(path.parent, lambda: SqliteStore(path, clock=SystemClock()), life))


@one_of(20, **_HOW)
@given(life=_LIVES)
def test_every_pin_is_in_every_prompt_from_a_server(
    redis_server: RedisServer, life: tuple[list[str], list[str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, redis_server.client() as client:
        client.flushall()
        asyncio.run(live_through(Path(folder), lambda: RedisStore(redis_server.url, clock=SystemClock()), life))


async def test_what_one_process_pins_is_in_the_next_prompt_of_another(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    redis_server.empty()
    model = FakeModel()

    def gateway() -> AbstractAsyncContextManager[Live]:
        return running(tmp_path, model=model, store=RedisStore(redis_server.url, clock=SystemClock()))

    async with gateway() as one:
        await one.ask("hello")  # its prompt is in the memory of this process
        async with gateway() as two:

            def answered(event: str) -> bool:
                return any(live.adapter.answer_to(event) is not None for live in (one, two))

            for number in range(6):  # whichever of them runs the command, and the turn behind it
                pinning, asking = (one, two) if number % 2 else (two, one)
                for event in (await pinning.tell(f"/pin rule {number}"), await asking.tell("hello")):
                    await eventually(partial(answered, event))
                check(model, number + 1, [f"rule {each}" for each in range(number + 1)])
            assert len(model.requests) == 7
