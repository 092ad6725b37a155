"""The model of a run: it hands on, begins, writes and runs, and remembers what it was told of that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gateway.turns.delegated import PROMPT
from tests.emulators.llm_replies import Reply

LEDGER: Final = "ran"  # the file in which each command writes its name
PAGE: Final = "page.txt"
_WOKE: Final = re.compile(r"\[In the background: (.*?)\. Nobody waits at the screen\.", re.DOTALL)
_LINES: Final = 300

Call = tuple[str, Mapping[str, Any]]


def version(name: str) -> str:
    """A text of some kilobytes, so that half of it is seen to be none."""
    return f"{name}\n" * _LINES


class HandsModel:
    """`mark` is in each command. `called` hears of each call; the rest is what the program said that it did: the
    commands that ran to their end, those that were begun in the background, the versions that were written to each
    file, in their order, and of which it said so."""

    def __init__(self, mark: str, called: Callable[[], None]) -> None:
        self._mark, self._called = mark, called
        self.ran: set[str] = set()
        self.begun: set[str] = set()
        self.ordered: dict[str, list[str]] = {}
        self.written: dict[str, str] = {}

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        self._called()
        first, *messages = body["messages"]
        self._hear(messages)
        last = max(number for number, each in enumerate(messages) if each["role"] == "user")
        said, since = messages[last]["content"], messages[last + 1 :]
        steps = sum(bool(each.get("tool_calls")) for each in since)
        if found := _WOKE.match(said):
            return Reply(text=f"heard {found[1]}")
        planned = list(self._helps(said) if first["content"] == PROMPT else self._works(said.split()[-1]))
        if steps < len(planned):
            return Reply(tool_calls=self._noted(planned[steps]))
        if first["content"] == PROMPT:
            return Reply(text=f"found {said}")
        return Reply(text="; ".join([said, *(each["content"].splitlines()[0] for each in since if _is_result(each))]))

    def _works(self, token: str) -> Iterator[list[Call]]:
        """The steps of a person's turn."""
        yield [
            ("delegate", {"task": f"search {token}"}),
            ("delegate", {"task": f"write {token}", "background": True}),
            ("shell", {"command": self._command(f"back-{token}", "; sleep 0.2"), "background": True}),
            ("write_file", {"path": PAGE, "content": version(f"first-{token}")}),
        ]
        yield [
            ("shell", {"command": self._command(f"fore-{token}")}),
            ("write_file", {"path": PAGE, "content": version(f"second-{token}")}),
        ]

    def _helps(self, task: str) -> Iterator[list[Call]]:
        """The steps of a helper."""
        name = task.replace(" ", "-")
        yield [
            ("write_file", {"path": f"{name}.txt", "content": version(name)}),
            ("shell", {"command": self._command(f"help-{name}")}),
        ]
        if task.startswith("write"):
            yield [("shell", {"command": self._command(f"hback-{name}"), "background": True})]

    def _command(self, name: str, more: str = "") -> str:
        return f"echo {name} >> {LEDGER}{more}; : {self._mark}"

    def _noted(self, calls: list[Call]) -> list[Call]:
        for name, arguments in calls:
            if name == "write_file":
                versions = self.ordered.setdefault(arguments["path"], [])
                if arguments["content"] not in versions:
                    versions.append(arguments["content"])
        return calls

    def _hear(self, messages: list[Any]) -> None:
        """Note what the results say."""
        results = {each["tool_call_id"]: each["content"] for each in messages if _is_result(each)}
        for call in (call for each in messages for call in each.get("tool_calls") or ()):
            said, name = results.get(call["id"], ""), call["function"]["name"]
            arguments = json.loads(call["function"]["arguments"])
            if name == "shell":
                label = arguments["command"].split()[1]
                if said.startswith("exit code 0"):
                    self.ran.add(label)
                if "runs in the background" in said:
                    self.begun.add(label)
            if name == "write_file" and said.startswith("Wrote"):
                self.written[arguments["path"]] = arguments["content"]


def _is_result(message: Mapping[str, Any]) -> bool:
    return bool(message["role"] == "tool")
