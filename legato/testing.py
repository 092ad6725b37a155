"""The behaviour of an adapter, as tests that run the real program against an emulator of its platform.

A package's own tests need pytest, and this:

    class TestMine(AdapterSuite):
        platform = PLATFORM

        def emulator(self):
            return MyEmulator()

pytest then finds the tests of `AdapterSuite` there. What the platform cannot do is skipped.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Final
from unittest import SkipTest

from gateway.agent.memory.snapshot import MemorySettings
from gateway.agent.tools.base import ToolContext
from gateway.app.build import Parts, build
from gateway.app.config import Config
from gateway.app.config.models import StoreSettings
from gateway.app.gateway import Gateway
from gateway.app.serving import adapter_of
from gateway.domain.adapter import Accept, Accepted, Adapter, CanEdit, HasButtons
from gateway.domain.chat import Inbound
from gateway.domain.message import ToolCall, text_of
from gateway.domain.platform import Platform
from gateway.domain.turn import SessionSettings
from gateway.people.access import AccessSettings
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, TextDelta
from gateway.providers.plugin import ModelSettings
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.points import Point
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.sqlite.backend import SqliteStore

KILLS: Final[tuple[Point, ...]] = (
    "accept.before", "accept.after", "turn.claimed", "turn.model_called", "turn.finished", "outbox.before_send",
    "outbox.after_send", "outbox.marked",
)  # fmt: skip
_ANSWER: Final = re.compile(r"(↻\s*)?answer (\d+)\b")
_HASTE: Final = 0.1  # seconds in which an adapter that is in a hurry has told its platform too early
_WORDS: Final = 40  # of the beginning of a reply that grows


class Emulator(ABC):
    """Stands in for a platform's server, and for the people there. It outlives the program, which comes and goes.

    `settings`: the keys of `adapters.NAME` that lead to it. `person` may talk to the bot, and `stranger` may not: their
    ids, as `access` has them. `keeps`: it hands over later, or again, what was said while nobody read it or was not
    acknowledged. `clock`: the program's time."""

    settings: Mapping[str, Any]
    person: str
    stranger: str
    keeps = True
    clock: Clock = SystemClock()

    @abstractmethod
    async def say(self, who: str, text: str) -> None:
        """Somebody writes to the bot, in the chat that the two have."""

    @abstractmethod
    def shown(self, who: str) -> Sequence[str]:
        """Return the bot's messages to somebody as they read now, without marks of layout, oldest first."""

    @abstractmethod
    async def repeat(self) -> None:
        """Hand the bot once more the newest event that it was handed; when it is back, where it is away."""

    @abstractmethod
    async def cut(self) -> None:
        """Break all connections with the bot. It may connect again."""

    def buttons(self, who: str) -> Sequence[str]:
        """Return the labels under the newest message to somebody that has buttons now."""
        return ()

    async def press(self, who: str, label: str) -> None:
        """Somebody presses the button that bore this label last, in the person's chat; it may be gone by now, and a
        stranger may press it."""
        raise LookupError(f"there is no button {label!r}")


class _Killed(asyncio.CancelledError):
    """The process dies here. In this process all its tasks end instead, as if they were cancelled."""


class _Kill:
    """`Points` that kill whoever comes to `point`, once it is `armed`."""

    def __init__(self, point: Point | None) -> None:
        self.point, self.armed, self.struck = point, False, False

    def has_struck(self) -> bool:
        return self.struck

    def __call__(self, point: Point, /) -> None:
        self.struck = self.struck or (self.armed and point == self.point)
        if self.struck:
            raise _Killed


class _MortalStore(SqliteStore):
    """A store that nobody reaches any more once `kill` has struck: what was stored until then is what
    the next life finds, whatever the dying one still tries."""

    kill: _Kill | None = None

    def __getattribute__(self, name: str) -> Any:
        kill = object.__getattribute__(self, "kill")
        if name in _STEPS and kill is not None and kill.struck:
            raise _Killed
        return object.__getattribute__(self, name)


_STEPS: Final = {name for role in Store.__mro__ for name in vars(role) if not name.startswith("_")} - {"aclose", "rest"}


class _Model:
    """Answers `question 7` by `answer 7`, and does what it is told: `grow 7`, `long 7`, `pay 7`."""

    name = "offline"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.length = 0  # characters of a long answer
        self.goes_on = asyncio.Event()  # until then a growing reply stays as it is

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        last = request.messages[-1]
        found = re.findall(r"(question|grow|long|pay) (\d+)", text_of(last))
        what, number = found[-1] if found and last["role"] == "user" else ("", "0")
        self.asked.append(f"{what} {number}")
        texts = {"long": " ".join(f"word{each:05}😀" for each in range(self.length // 11)), "pay": "", "": "Done."}
        text, begun = texts.get(what, f"answer {number}"), "begun " * _WORDS if what == "grow" else ""
        pays: ToolCall = {
            "id": number,
            "type": "function",
            "function": {"name": "pay", "arguments": f'{{"sum": {number}}}'},
        }
        if begun:
            yield TextDelta(text=begun)
            await self.goes_on.wait()
        if text:
            yield TextDelta(text=text)
        calls = (pays,) if what == "pay" else ()
        yield Completed(text=begun + text, tool_calls=calls, stop="tool_calls" if calls else "stop")

    async def aclose(self) -> None:
        """Nothing is open."""


class _Payment:
    """A tool that asks the person first."""

    name, setting = "pay", "tools.pay.allow"
    description = "Pays a sum."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    read_only = idempotent = admins_only = False
    timeout = 5.0

    def __init__(self) -> None:
        self.paid: list[int] = []

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        return f"Pay {arguments['sum']} €?"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        self.paid.append(arguments["sum"])
        return "Paid."


class _Program:
    """A life of the program. `handed`: all that its adapter handed over."""

    def __init__(self, emulator: Emulator, adapter: Adapter, patience: float) -> None:
        self.emulator, self.adapter, self._patience = emulator, adapter, patience
        self.gateway: Gateway
        self.handed: list[Inbound] = []
        self.unavailable = 0  # so many times from now on the store is away
        self.lets_in = asyncio.Event()  # until then the store takes its time
        self.lets_in.set()
        self.reads = asyncio.Event()
        run = adapter.run

        async def reading(accept: Accept) -> None:
            self.reads.set()

            async def taking(batch: Sequence[Inbound]) -> Sequence[Accepted]:
                self.handed.extend(batch)
                await self.lets_in.wait()
                if self.unavailable:
                    self.unavailable -= 1
                    raise StoreUnavailable("the store is away, for the test")
                return await accept(batch)

            await run(taking)

        adapter.run = reading  # type: ignore[method-assign]

    @property
    def text(self) -> str:
        """All that the person sees of the bot."""
        return "\n".join(self.emulator.shown(self.emulator.person))

    async def says(self, text: str) -> None:
        await self.emulator.say(self.emulator.person, text)

    async def until(self, holds: Callable[[], Any], otherwise: str) -> None:
        """Return once it holds; fails with a sentence."""
        try:
            async with asyncio.timeout(self._patience):
                while not holds():
                    await SystemClock().sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{otherwise}; the person sees: {self.text[-500:]!r}") from None

    async def until_answered(self, *numbers: int, otherwise: str) -> None:
        """Return once each of these questions is answered, in this order, and nothing waits."""
        await self.until(lambda: {number for _, number in _answers(self.text)} >= {*numbers}, otherwise)
        await self.quiet()
        seen = list(dict.fromkeys(number for _, number in _answers(self.text)))
        assert seen == list(numbers), f"the answers {numbers} were shown in the order {seen}"

    async def quiet(self) -> None:
        """Return when nothing is accepted, running or being shown any more."""
        async with asyncio.timeout(self._patience):
            while True:
                status = await self.gateway.store.status()
                if not (status.waiting or status.unsent or self.gateway.lanes.active or self.gateway.outbox.in_flight):
                    return
                await SystemClock().sleep(0.005)


def _answers(text: str) -> list[tuple[bool, int]]:
    """The answers in a text, with whether each is marked as a repeat."""
    return [(bool(mark), int(number)) for mark, number in _ANSWER.findall(text)]


class _Stage:
    """An emulator, and the folder in which the program's lives follow one another."""

    def __init__(self, suite: AdapterSuite, emulator: Emulator, folder: Path) -> None:
        self.suite, self.emulator, self._folder = suite, emulator, folder
        self.model, self.pay = _Model(), _Payment()

    @asynccontextmanager
    async def life(self, kill: _Kill | None = None) -> AsyncIterator[_Program]:
        """The program, until the block ends or `kill` strikes."""
        platform, emulator = self.suite.platform, self.emulator
        assert platform.settings is not None, "a platform without settings cannot be enabled"
        path = self._folder / "legato.db"
        config = Config().replace(
            store=StoreSettings(url=f"sqlite:///{path}"),
            model=ModelSettings(provider="offline", name="test"),
            memory=MemorySettings(flush=False),
            sessions=SessionSettings(titles=False),
            access=AccessSettings(allow=(f"{platform.name}:{emulator.person}",), pairing=False),
        )
        store = _MortalStore(path, clock=emulator.clock)
        store.kill = kill
        settings = platform.settings(**emulator.settings, enabled=True)
        adapter = adapter_of(config, platform, [], settings=settings, clock=emulator.clock)
        program = _Program(emulator, adapter, self.suite.patience)
        parts = Parts(clock=emulator.clock, store=store, providers={"offline": self.model}, tools=[self.pay])
        if kill is not None:
            parts = replace(parts, points=kill)
        program.gateway = build(config, [adapter], parts)
        serving = asyncio.get_running_loop().create_task(program.gateway.run())
        reads = asyncio.get_running_loop().create_task(program.reads.wait())
        try:
            await asyncio.wait([serving, reads], return_when=asyncio.FIRST_COMPLETED)
            yield program
        finally:
            reads.cancel()
            dead = kill is not None and kill.struck
            program.lets_in.set()
            program.gateway.stop()
            if dead:
                serving.cancel()
                await asyncio.wait([serving])
                for close in (program.gateway.background.aclose, adapter.aclose, store.aclose):  # as the system would
                    await close()
            else:
                await serving


Story = Callable[["AdapterSuite", _Stage], Awaitable[None]]


def _story(test: Story) -> Callable[[AdapterSuite], None]:
    """A test that pytest runs without a plug-in."""

    def played(suite: AdapterSuite) -> None:
        async def play() -> None:
            with tempfile.TemporaryDirectory() as folder:
                async with suite.emulator() as emulator:
                    await test(suite, _Stage(suite, emulator, Path(folder)))

        asyncio.run(play())

    played.__doc__ = test.__doc__
    return played


class AdapterSuite(ABC):
    """What Legato relies on. `patience`: seconds until a test that waits for something fails."""

    platform: ClassVar[Platform]
    patience: ClassVar[float] = 30.0

    @abstractmethod
    def emulator(self) -> AbstractAsyncContextManager[Emulator]:
        """Start the platform's server, with a person and a stranger who can write to the bot."""

    @_story
    async def test_messages_are_answered_in_their_order(self, stage: _Stage) -> None:
        async with stage.life() as program:
            for number in range(1, 5):
                await program.says(f"question {number}")
            await program.until_answered(1, 2, 3, 4, otherwise="four messages were not answered")
            _assert_shown_once(program, "four messages in a row")

    @_story
    async def test_a_stranger_gets_nothing(self, stage: _Stage) -> None:
        async with stage.life() as program:
            await stage.emulator.say(stage.emulator.stranger, "question 1")
            await program.says("question 2")
            await program.until_answered(2, otherwise="the person was not answered after a stranger wrote")
            assert stage.model.asked == ["question 2"], "the model was shown a stranger's words"
            shown = stage.emulator.shown(stage.emulator.stranger)
            assert not shown, f"a stranger, whom `access` does not name, was shown {shown}"

    @_story
    async def test_what_was_said_while_the_program_was_away_is_answered(self, stage: _Stage) -> None:
        _skip_unless(stage.emulator.keeps, "the platform keeps nothing for who is away")
        async with stage.life() as program:
            await program.says("question 1")
            await program.until_answered(1, otherwise="the first message was not answered")
        await stage.emulator.say(stage.emulator.person, "question 2")
        async with stage.life() as program:
            await program.says("question 3")
            await program.until_answered(1, 2, 3, otherwise="a message from while the program was away was lost")
            _assert_shown_once(program, "a start after messages were missed")

    @_story
    async def test_a_message_is_stored_before_the_platform_is_told(self, stage: _Stage) -> None:
        _skip_unless(stage.emulator.keeps, "the platform hands nothing over again")
        async with stage.life() as program:
            await program.says("question 1")
            await program.until_answered(1, otherwise="the first message was not answered")
        kill = _Kill("accept.before")
        async with stage.life(kill) as program:
            await program.says("question 2")
            program.lets_in.clear()
            await program.until(lambda: program.handed, "the adapter never handed the message over to `accept`")
            await SystemClock().sleep(_HASTE)
            kill.armed = True
            program.lets_in.set()
            await program.until(kill.has_struck, "`accept` was not called")
        async with stage.life() as program:
            lost = "the platform was told of a message before `accept` had stored it: after a crash it was lost"
            await program.until_answered(1, 2, otherwise=lost)

    @_story
    async def test_a_store_that_is_away_loses_nothing(self, stage: _Stage) -> None:
        async with stage.life() as program:
            program.unavailable = 2
            await program.says("question 1")
            await program.says("question 2")
            lost = "after StoreUnavailable, a message was not handed over again"
            await program.until_answered(1, 2, otherwise=lost)
            _assert_shown_once(program, "the store was away")

    @_story
    async def test_a_repeated_event_is_answered_once(self, stage: _Stage) -> None:
        _skip_unless(stage.emulator.keeps, "the platform hands nothing over again")
        async with stage.life() as program:
            await program.says("question 1")
            await program.until_answered(1, otherwise="the first message was not answered")
            await stage.emulator.repeat()
            await program.says("question 2")
            await program.until_answered(1, 2, otherwise="a message after a repeated one was not answered")
            handed = program.handed
        await stage.emulator.repeat()
        async with stage.life() as program:
            await program.says("question 3")
            await program.until_answered(1, 2, 3, otherwise="a message after a repeated one was not answered")
            _assert_shown_once(program, "the platform repeated an event")
            ids = [each.event_id for each in (*handed, *program.handed) if "question" in each.text]
            assert len({*ids}) == 3, f"three messages, some of them handed over twice, had {len({*ids})} event ids"

    @_story
    async def test_a_long_answer_is_cut_and_whole(self, stage: _Stage) -> None:
        async with stage.life() as program:
            limits = program.adapter.limits
            stage.model.length = int(2.5 * (limits.text_units or 4_000))
            await program.says("long 1")
            last = stage.model.length // 11 - 1
            await program.until(lambda: f"word{last:05}" in program.text, "the end of a long answer was not shown")
            await program.quiet()
            seen, wanted = re.findall(r"word(\d{5})😀", program.text), [f"{each:05}" for each in range(last + 1)]
            missing = [each for each in wanted if each not in seen]
            assert seen == wanted, f"a long answer lost the words {missing[:5]}, or their order"
            longest = max(map(len, stage.emulator.shown(stage.emulator.person)))
            most = limits.text_units or longest
            assert longest <= most, f"a message of {longest} characters was shown, and `limits` allow {most}"

    @_story
    async def test_a_reply_grows_in_its_message(self, stage: _Stage) -> None:
        async with stage.life() as program:
            _skip_unless(isinstance(program.adapter, CanEdit), "the platform changes no messages")
            await program.says("grow 1")
            await program.until(lambda: "begun" in program.text, "nothing was shown of a reply that is being written")
            assert not _answers(program.text)
            stage.model.goes_on.set()
            await program.until_answered(1, otherwise="a reply that grew was not shown to its end")
            shown = stage.emulator.shown(stage.emulator.person)
            assert len(shown) == 1, f"a reply that grew stands in {len(shown)} messages"
            assert program.text.count("begun") == _WORDS, "a reply that grew is not what the model wrote"

    @_story
    async def test_a_button_is_its_persons_and_works_once(self, stage: _Stage) -> None:
        async with stage.life() as program:
            _skip_unless(isinstance(program.adapter, HasButtons), "the platform has no buttons")
            presses, goes = (
                stage.emulator,
                isinstance(program.adapter, CanEdit),
            )  # else old buttons stay, and do nothing
            person, stranger = stage.emulator.person, stage.emulator.stranger
            await program.says("pay 1")
            await program.until(lambda: presses.buttons(person), "no button was shown under a question")
            yes = presses.buttons(person)[0]
            await presses.press(stranger, yes)
            await program.says("/status")
            await program.until(lambda: len(stage.emulator.shown(person)) > 1, "a command was not answered")
            assert stage.pay.paid == [], "a stranger's press counted"
            await presses.press(person, yes)
            await program.until(lambda: stage.pay.paid == [1], "the person's press did not arrive")

            def decided() -> bool:
                return not (goes and presses.buttons(person))

            await program.until(decided, "the buttons stayed under a decided question")
            await presses.press(person, yes)
            await program.says("pay 2")
            await program.until(
                lambda: "Pay 2" in program.text and presses.buttons(person),
                "no button was shown under a second question",
            )
            await program.says("/stop")
            await program.until(decided, "the buttons stayed after /stop")
            await presses.press(person, yes)
            await program.says("question 3")
            await program.until(lambda: "answer 3" in program.text, "a message after a late press was not answered")
            await program.quiet()
            assert stage.pay.paid == [1], f"a second or a late press counted: paid {stage.pay.paid}"

    @_story
    async def test_a_connection_that_breaks_is_made_again(self, stage: _Stage) -> None:
        async with stage.life() as program:
            await program.says("question 1")
            await program.until_answered(1, otherwise="the first message was not answered")
            await stage.emulator.cut()
            await program.says("question 2")
            await program.until_answered(1, 2, otherwise="after its connection broke, the adapter heard nothing")

    @_story
    async def test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked(self, stage: _Stage) -> None:
        _skip_unless(stage.emulator.keeps, "the platform keeps nothing for who is away")
        for number, point in enumerate((*KILLS, None)):
            kill = _Kill(point)
            async with stage.life(kill) as program:
                after = f"a death at {KILLS[number - 1]}" if number else "the start"
                await program.until_answered(*range(number), otherwise=f"after {after}, an answer is missing")
                _assert_shown_once(program, after)
                kill.armed = point is not None
                await program.says(f"question {number}")
                if kill.armed:
                    await program.until(kill.has_struck, f"the program never came to {point}")


def _assert_shown_once(program: _Program, what: str) -> None:
    """Fail if an answer was repeated without the mark, more often than the limits allow."""
    allowed = program.adapter.limits.ambiguous_retries
    unmarked = [number for marked, number in _answers(program.text) if not marked]
    twice = {number for number in unmarked if allowed is not None and unmarked.count(number) > 1 + allowed}
    assert not twice, f"{what}: the answers {sorted(twice)} were shown twice, without the mark of a repeat"


def _skip_unless(able: bool, why: str) -> None:
    if not able:
        raise SkipTest(why)
