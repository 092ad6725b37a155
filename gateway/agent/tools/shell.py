"""Commands on the gateway's own machine, each allowed by a person.

The command runs as the gateway's user and can do what that user can: this is no sandbox. But the person sees the whole
command before it runs, the gateway's environment (and so its secrets) is kept from it, and everything that it started
ends when its time is over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2s
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import regex
from pydantic import AfterValidator, Field

from gateway.agent.tools.base import ToolContext, ToolHost, schema
from gateway.domain.chat import SessionKey
from gateway.domain.settings import AList, Flag, Seconds, Section
from gateway.runtime import program
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolError

_LONGEST: Final = 1_500  # characters of a command as it is shown: the person must be able to read all of it
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ")  # of the gateway's environment, and nothing else
_LONGEST_NAME: Final = 120  # of a folder
# Without everything that a shell might read as more than a word, a line that looks like one command is one.
_PLAIN: Final = re.compile(r"[\w./,:=@%+ -]+")
# Options of programs that else only read: they write, delete, or run another program.
_WRITING: Final = (
    *("output", "outfile", "in-place", "inplace", "write", "save", "delete", "exec", "fls", "to-command"),
    *(
        "checkpoint-action",
        "compress-program",
        "use-compress-program",
        "rsh",
        "pager",
        "ext-diff",
        "open-files-in-pager",
    ),
)
_WRITING_LETTERS: Final = frozenset("oiw")
# Letters and marks that show nothing (Unicode's Default_Ignorable_Code_Point, and three blanks that it leaves out),
# and the mark that begins a sign which is spelled out.
_UNSEEN: Final = regex.compile(r"[\p{DI}\u2800\U00016FE4\U0001D159‹]")
# Each such word is isolated (https://www.unicode.org/reports/tr9/), so that words stand in the order they have.
_FROM_THE_RIGHT: Final = regex.compile(r"[\p{bc=R}\p{bc=AL}\p{bc=AN}][\p{bc=R}\p{bc=AL}\p{bc=AN}\p{M}]*")
_NAMED: Final = {"\n": "new line", "\t": "tab"}


def _command_start(value: str) -> str:
    """Only plain words can be matched with what a shell would make of them."""
    if not re.fullmatch(r"[\w./,:=@%+-]+(?: [\w./,:=@%+-]+)*", value):
        raise ValueError("must be the first words of a command, such as `git status`, without any of the shell's signs")
    return value


CommandStart = Annotated[str, Field(strict=True), AfterValidator(_command_start)]


class ShellSettings(Section):
    """Commands on this machine, run as the user that runs Legato: see docs/commands.md before you turn it on."""

    enabled: Flag = Field(False, description="whether the model has the tool")
    admins_only: Flag = Field(True, description="only turns of admins may run commands")
    allow: Annotated[tuple[CommandStart, ...], AList] = Field(
        (), description="first words of commands that need no yes, such as [git status, ls]"
    )
    timeout: Seconds = Field(60, description="seconds; then a command is ended with all that it started")


class ShellTool:
    """Runs a command with /bin/sh. Commands that begin with words in `allow` need no yes, unless a
    further word may be an option that writes. Each conversation has a
    folder in `folder`, in which its commands start. `redact` takes secrets out of their output."""

    name = "shell"
    description = (
        "Runs a command with /bin/sh on the machine this bot runs on, and returns its exit code and what it printed. "
        "The person is shown each command and must allow it, so use few and readable ones and say what they are for."
    )
    parameters = schema("command", command={"type": "string", "description": "What to run, as one would type it."})
    read_only = False
    idempotent = False
    brings = "a command"
    setting = "tools.shell.allow"

    def __init__(
        self,
        *,
        folder: Path,
        allow: Sequence[str],
        admins_only: bool,
        seconds: float,
        clock: Clock,
        redact: Callable[[str], str],
    ) -> None:
        self.admins_only = admins_only
        self.timeout = seconds + 10.0  # its own limit comes first, and keeps the output
        self._folder = folder
        self._allowed = [start.split() for start in allow]
        self._seconds = seconds
        self._clock = clock
        self._redact = redact

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        """The whole command, with nothing hidden; None if it needs no yes."""
        command = _command(arguments)
        return None if self._is_allowed(command) else f"Run this command? {shown(command)}"

    def _is_allowed(self, command: str) -> bool:
        if not _PLAIN.fullmatch(command):
            return False
        words = command.split()
        return any(
            words[: len(start)] == start and not any(map(_may_write, words[len(start) :])) for start in self._allowed
        )

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Run the command, and return its end and its output: both streams, in the order in which they came."""
        command = _command(arguments)
        folder = self._folder / _name(context.session.key)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ended = await program.run(
            ("/bin/sh", "-c", command),
            folder=folder,
            environment=_environment(folder),
            seconds=self._seconds,
            clock=self._clock,
        )
        outcome, text = self._outcome(ended), self._redact(ended.output)
        return f"{outcome}\n{text}" if text else f"{outcome}, and it printed nothing"

    def _outcome(self, ended: program.ProgramResult) -> str:
        if ended.late:
            return f"ended after {self._seconds:g} seconds, because it took longer"
        return f"exit code {ended.code}" if ended.code >= 0 else f"ended by signal {-ended.code}"


def _may_write(word: str) -> bool:
    """Say whether a word may be an option that writes. A value may stand at it (`-ofile`), letters may stand together
    (`-uo`), and many programs take the beginning of a long name (`--outp`)."""
    name = word.lstrip("-").partition("=")[0].lower()
    if not word.startswith("-") or not name:
        return False
    if not word.startswith("--"):
        return not _WRITING_LETTERS.isdisjoint(name) or name.startswith(_WRITING)
    return name.startswith(_WRITING) or any(each.startswith(name) for each in _WRITING)


def shown(command: str) -> str:
    """A command in one line, without a sign that is invisible or turns the reading direction round. Such a sign is
    spelled out in a way that nobody could have typed: a new line never looks like the `\\n` in somebody's quotes."""
    spelled = "".join(sign if sign.isprintable() and not _UNSEEN.match(sign) else _spelled(sign) for sign in command)
    return str(_FROM_THE_RIGHT.sub("\u2068\\g<0>\u2069", spelled))


def _spelled(sign: str) -> str:
    return f"‹{_NAMED.get(sign) or f'U+{ord(sign):04X}'}›"


def _command(arguments: Mapping[str, Any]) -> str:
    command: str = arguments["command"].strip()
    if not command:
        raise ToolError("`command` is empty.")
    if "\0" in command:
        raise ToolError("A command cannot hold a zero byte.")
    if len(shown(command)) > _LONGEST:
        raise ToolError(f"A command has at most {_LONGEST:,} characters, so that it can be read; do it in steps.")
    return command


def _name(key: SessionKey) -> str:
    """A conversation's folder. Slashes are escaped, so no name leaves the folder above."""
    name = quote(str(key), safe="=")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:80]}-{blake2s(name.encode(), digest_size=16).hexdigest()}"


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"PATH": os.defpath, **kept, "HOME": str(folder), "PWD": str(folder), "TERM": "dumb"}


def _tool(host: ToolHost) -> ShellTool | None:
    settings = host.settings(ShellSettings)
    if not settings.enabled:
        return None
    return ShellTool(
        folder=host.home / "shell",
        allow=settings.allow,
        admins_only=settings.admins_only,
        seconds=settings.timeout,
        clock=host.clock,
        redact=host.redact,
    )


TOOLS = (_tool,)
