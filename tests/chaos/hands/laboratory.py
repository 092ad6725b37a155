"""Runs of a conversation that works with all its hands: how often each life was killed, and what is left."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

from tests.chaos.hands.model import LEDGER, HandsModel
from tests.chaos.hands.script import Kill, Plan
from tests.chaos.trial import Result, failed, on_store, summed, took, trial
from tests.emulators.llm import LlmServer
from tests.support.program import KEY, Program, chatting, write_config
from tests.support.redis_server import RedisServer

_PATIENCE: Final = 300.0  # real seconds
_LOOK: Final = 0.05
_QUIET: Final = 2  # lives in a row in which nothing new is shown
_TOOLS: Final = {"offered": {"*": ["delegate", "shell", "write_file"]}}


class Run:
    """One plan on its way."""

    def __init__(self, plan: Plan, folder: Path, server: RedisServer | None) -> None:
        self._plan, self._folder, self._server = plan, folder, server
        self._mark = f"hands-{os.getpid()}-{folder.name}"
        self._program: Program | None = None
        self._kill: Kill | None = None
        self._calls = 0
        self._shown: dict[str, str] = {}
        self.killed_at: list[str] = []
        self.model = HandsModel(self._mark, self._called)

    async def carry_out(self) -> Iterator[str]:
        """From the first message to the moment at which nothing more comes; what was wrong."""
        problems: list[str] = []
        async with LlmServer(self.model, api_key=KEY) as server, asyncio.timeout(_PATIENCE):
            url = self._server.url if self._server else f"sqlite:///{self._folder / 'legato.db'}"
            write_config(self._folder, server.url, store={"url": url}, tools=_TOOLS)
            kills, quiet = list(self._plan.kills), 0
            while kills or quiet < _QUIET or len(self._answered()) < len(self._plan.said):
                known = len(self._shown)
                await self._live(kills.pop(0) if kills else None)
                quiet = quiet + 1 if len(self._shown) == known else 0
                problems += self._halves()
                problems += await self._left_running()
            problems += server.violations
        return iter([*problems, *self._problems()])

    async def _live(self, kill: Kill | None) -> None:
        """One life of the program: all that was said is said again, and the next thing if that was answered."""
        self._kill, self._calls = kill, 0
        said = self._plan.said[: len(self._answered()) + 1]
        async with chatting(self._folder) as program:
            self._program = program
            program.send(*({"id": token, "text": f"work {token}"} for token in said))
            assert program.process.stdin is not None
            program.process.stdin.close()
            while await program.read_line():
                pass
            code = await program.process.wait()
            self._program = None
        self._shown |= {row["id"]: row["text"] for row in program.lines if row["kind"] == "reply"}
        if code == -signal.SIGKILL:
            self.killed_at.append(str(kill))
            if self._server is not None:
                self._server.let_all_die()

    def _called(self) -> None:
        """The model is called: it may be time."""
        self._calls += 1
        if self._kill is not None and self._calls == self._kill.calls and self._program is not None:
            process = self._program.process
            asyncio.get_running_loop().call_later(self._kill.after, process.kill)

    def _answered(self) -> list[str]:
        return [token for token in self._plan.said if any(text.startswith(f"work {token}") for text in self._texts())]

    def _texts(self) -> list[str]:
        return list(self._shown.values())

    # -- what is left -------------------------------------------------------------------------------

    @property
    def _files(self) -> dict[str, str]:
        """The workspace: each file and what it holds."""
        root = self._folder / "legato-home" / "workspaces"
        folders = [each for each in root.glob("*") if not each.name.startswith(".")]
        return {path.name: path.read_text() for each in folders for path in each.rglob("*") if path.is_file()}

    def _halves(self) -> Iterator[str]:
        """Files that are none of the versions which were written."""
        for name, text in self._files.items():
            if name != LEDGER and text not in self.model.ordered.get(name, []):
                yield f"{name} holds {len(text):,} characters, which nobody wrote so: {text[:40]!r}"

    async def _left_running(self) -> list[str]:
        """What still runs of the program or of its commands, once it has ended."""
        for _ in range(int(_PATIENCE / 10 / _LOOK)):
            if not (left := list(_processes(self._mark, self._folder))):
                return []
            await asyncio.sleep(_LOOK)
        return [f"still runs: {each}" for each in left]

    def _problems(self) -> Iterator[str]:
        texts, files = self._texts(), self._files
        ran = Counter(files.get(LEDGER, "").split())
        yield from (f"{name} ran {times} times" for name, times in ran.items() if times > 1)
        yield from (f"{name} is said to have run, and did not" for name in self.model.ran - ran.keys())
        for token in self._plan.said:
            answers = [text for text in texts if text.startswith(f"work {token}")]
            if len(answers) != 1:
                yield f"{token}: {len(answers)} answers"
            if not all(f"found search {token}" in text for text in answers):
                yield f"{token}: its helper's answer is not in {answers}"
            heard = sum(text.startswith("heard a helper") and f"write {token}" in text for text in texts)
            begun = sum("works in the background" in text for text in answers)
            if heard != begun:
                yield f"{token}: {begun} helpers were begun in the background, and {heard} heard of"
        told = Counter(name for name in {*ran, *self.model.begun} for text in texts if _tells(text, name))
        for name in sorted({*ran, *self.model.begun}):
            if "back-" in name and told[name] != 1:
                yield f"{name} ran in the background, and was told {told[name]} times"
        for name, text in self.model.written.items():
            versions = self.model.ordered[name]
            if files.get(name) not in versions[versions.index(text) :]:
                yield f"{name} was written, and is not there"


def _tells(text: str, name: str) -> bool:
    return text.startswith("heard command") and f"echo {name} " in text


def _processes(mark: str, folder: Path) -> Iterator[str]:
    for each in Path("/proc").iterdir():
        try:
            if not each.name.isdigit():
                continue
            command = (each / "cmdline").read_bytes()
            if mark.encode() in command or Path(os.readlink(each / "cwd")).is_relative_to(folder):
                yield f"{each.name} {command.replace(bytes(1), b' ').decode(errors='replace')[:300]}"
        except OSError:
            pass  # it has ended meanwhile


async def perform(server: RedisServer | None, plan: Plan) -> Result:
    """One run."""
    async with trial(plan, "hands") as trying:
        if server is not None:
            server.empty()
        run = Run(plan, trying.folder, server)
        trying.told = lambda: [f"shown: {text}" for text in run._texts()]
        trying.problems += await run.carry_out()
        trying.killed_at = tuple(run.killed_at)
        trying.counts["commands"] = len(run.model.ran | run.model.begun)
        trying.counts["answers"] = len(run._texts())
    return trying.result()


def laboratories(store: str) -> AbstractAsyncContextManager[Callable[[Plan], Awaitable[Result]]]:
    """A laboratory for `campaign`."""
    return on_store(store, perform, "hands")


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    counts: Any = summed(result.counts for result in results)
    return [
        took(results),
        f"{len(results)} runs with hands, {sum(len(result.killed_at) for result in results)} kills, "
        f"{counts['answers']} answers, {counts['commands']} commands, {failed(results)} runs with problems",
    ]
