"""Commands: in a sandbox, in the conversation's workspace; or on the gateway's own machine, each allowed by a person.

In the sandbox (`gateway.runtime.sandbox`) a command reaches nothing but the workspace, so nobody is asked; but to write
in a folder that the configuration lends takes a yes.

Outside, a command runs as the gateway's user and can do what that user can. The person sees the whole command before it
runs, the gateway's environment (and so its secrets) is kept from it, and everything that it started ends when its time
is over. It starts in a folder where no other tool writes. Otherwise a file that the model writes unasked, such as
`.git/config`, could decide what a command does that needs no yes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import regex
from msgspec import Struct, field
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from gateway.agent.background import SEEN_AS, BackgroundCommands, KeptOutput
from gateway.agent.tools.base import ToolContext, ToolHost, schema
from gateway.agent.tools.workspace import after_command, before_command
from gateway.agent.waking import refuse_more
from gateway.agent.workspace.folders import UNBOXED, Workspaces, name_of
from gateway.domain.chat import SessionKey
from gateway.domain.settings import AList, Contradiction, Flag, Host, Hosts, Seconds, Section, Text
from gateway.runtime import program, sandbox
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ConfigError, ToolError
from gateway.runtime.plugins import imported
from gateway.runtime.sandbox import FOLDERS, PORTS, WORKSPACE, Lent, Limits, Network, Reach, Sandbox, named
from gateway.runtime.structs import replace

_LONGEST: Final = 1_500  # characters of a command as it is shown: the person must be able to read all of it
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ")  # of the gateway's environment, and nothing else
_LONGEST_UNSEEN: Final = 100_000  # bytes of one that nobody reads; the kernel takes 128 KiB (execve(2))
_AT_ONCE: Final = 4  # commands in sandboxes; others wait
BEGUN: Final = (
    "{name} runs in the background. You are woken once it has ended, so say so and go on; `job` {number} is its handle."
)
NOT_REACHED: Final = (
    "[Not reached: {hosts}. Name what is needed in `hosts`, and the person is asked. Hosts that the operator lists in "
    "tools.shell.hosts need no yes.]"
)
_BY_SIGNAL: Final = 128  # what a shell adds to the number of the signal that ended a command
_SIGNALS: Final = frozenset(signal.Signals)
_WHY: Final[Mapping[int, str]] = {
    getattr(signal, "SIGXCPU", -1): "it took too much processor time",
    getattr(signal, "SIGXFSZ", -2): "a file became too large",
}
# Without everything that a shell might read as more than a word, a line that looks like one command is one.
_PLAIN: Final = re.compile(r"[\w./,:=@%+ -]+")
# Options of programs that else only read: they write, delete, or run another program.
_WRITING: Final = (
    "output", "outfile", "in-place", "inplace", "write", "save", "delete", "exec", "fls", "to-command",
    "checkpoint-action", "compress-program", "use-compress-program", "rsh", "pager", "ext-diff", "open-files-in-pager",
)  # fmt: skip
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


def _folder_name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,29}", value):
        raise ValueError("must be a name of small letters, digits, - and _ alone, 30 at most")
    return value


FolderName = Annotated[str, AfterValidator(_folder_name)]


class FolderSettings(Section):
    """Commands in a sandbox see the folder `path` on this machine as /folders/NAME."""

    path: Text = Field(description="its path; ~ is the home of the user who runs Legato")
    write: Flag = Field(False, description="let commands write there, each with a person's approval")


class ShellSettings(Section):
    """In a sandbox, the model's commands need no approval (docs/sandbox.md). Without a sandbox, commands run as the
    user who runs Legato: read docs/commands.md first."""

    enabled: Flag | Literal["auto"] = Field(
        "auto", description="give the model the tool; auto: if a sandbox works here"
    )
    sandbox: Literal["auto", "never"] = Field(
        "auto", description="never: no sandbox, even if one works; auto: use one if it works"
    )
    folders: dict[FolderName, FolderSettings] = Field(
        default_factory=dict, description="folders on this machine that the sandbox can see"
    )
    network: Network = Field(
        "none", description="what a sandbox can reach without asking; listed: the `hosts`; public: the internet"
    )
    hosts: Hosts = Field((), description="the hosts for network: listed, such as [api.example.org]")
    admins_only: Flag = Field(
        True, description="only admins may run commands outside a sandbox, or in one with `folders`"
    )
    allow: Annotated[tuple[CommandStart, ...], AList] = Field(
        (), description="commands that need no approval outside a sandbox, such as [git status, ls]"
    )
    timeout: Seconds = Field(60, description="seconds after which Legato ends a command and everything it started")
    background_timeout: Seconds = Field(21_600, description="seconds for a background command in a sandbox")

    def contradictions(self) -> Iterator[Contradiction]:
        if self.hosts and self.network != "listed":
            yield ("hosts", "network"), f"means nothing while network is {self.network}: make it listed"


class SandboxedShell(Struct, kw_only=True):
    """Runs a command with /bin/sh in a sandbox, in the workspace of the conversation. A folder that is lent for writing
    can be written by those commands alone that name it, and these need a yes; so does a host beyond those in reach.
    `skills` are the folders of the present skills, by their names."""

    name = "shell"
    parameters = schema(
        "command",
        command={"type": "string"},
        hosts={"type": "array", "items": {"type": "string"}},
        background={"type": "boolean"},
        job={"type": "integer"},
    )
    read_only = False
    idempotent = False
    brings = "a command"
    setting = "tools.shell"

    workspaces: Workspaces
    folders: Sequence[Lent] = ()
    skills: Callable[[], Sequence[tuple[str, Path]]] = tuple
    reach: WayOut
    background: BackgroundCommands
    admins_only: bool
    seconds: float
    background_seconds: float = 21_600
    clock: Clock
    redact: Callable[[str], str]
    description: str = ""
    timeout: float = 0.0
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def __post_init__(self) -> None:
        self.description = _described(self.folders, self.reach, self.seconds)
        self.admins_only = self.admins_only and bool(self.folders)
        self.timeout = 2 * self.seconds + 10.0  # it may have to wait, and its own limit keeps the output

    def question(self, arguments: Mapping[str, Any]) -> tuple[str, str] | None:
        """The whole command, the folders that it may write in, and the hosts that it may reach; None if it names
        none."""
        if arguments.get("job"):
            return None
        command, hosts = _unseen(arguments), self.reach.beyond(arguments.get("hosts", ()))
        written = [each.name for each in self.folders if each.write and _names(command, each)]
        asked = [f"write in {', '.join(written)}"] * bool(written) + [f"reach {', '.join(hosts)}"] * bool(hosts)
        if not asked:
            return None
        return f"Run this command, which may {' and '.join(asked)}?", shown(_command(arguments))

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Run the command, and return its end and its output: both streams, in the order in which they came. What
        it changes in the workspace is the turn's doing. What goes on in the background is begun, looked at or ended."""
        if job := arguments.get("job"):  # some models fill in everything: no command has the number 0
            return await self._about(context.session.key.caller, job, arguments["command"])
        if arguments.get("background"):
            return await self._begun(arguments, context)
        async with self._room:
            limits = await before_command(self.workspaces, context)
            try:
                told = await self._ended(arguments, context.session.key, limits, self.seconds)
            finally:
                remark = await after_command(self.workspaces, context)
        return "\n".join(filter(None, [told, remark]))

    async def _ended(
        self,
        arguments: Mapping[str, Any],
        key: SessionKey,
        limits: Limits,
        seconds: float,
        hear: Callable[[bytes], None] | None = None,
    ) -> str:
        """Run a command to its end. Who hears its output is told without it."""
        command = _unseen(arguments)
        if hear is not None:
            limits = replace(limits, cpu=round(limits.processes * seconds))
        box = self._sandbox(command, key, limits)
        async with self.reach.led(box, ("/bin/sh", "-c", command), arguments.get("hosts", ())) as (led, argv, refused):
            ended = await sandbox.run(led, argv, seconds=seconds, clock=self.clock, hear=hear)
        told = _outcome(ended, seconds) if hear else _told(ended, seconds, self.redact)
        return f"{told}\n{NOT_REACHED.format(hosts=', '.join(refused))}" if refused else told

    async def _begun(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Begin a command in the background. A helper, which may be gone by then, does so for its conversation."""
        command, key = _unseen(arguments), context.session.key
        if context.source is None:
            raise ToolError("Nothing can run in the background here.")
        refuse_more(context.newest_first())
        limits = await before_command(self.workspaces, context)

        async def work(output: KeptOutput) -> str:
            return await self._ended(arguments, key, limits, self.background_seconds, output.add)

        begun = await self.background.begin(key.caller, context.source, command, work)
        return BEGUN.format(name=begun.name, number=begun.number)

    async def _about(self, key: SessionKey, job: int, word: str) -> str:
        if word.strip() not in ("read", "end"):
            raise ToolError("With `job`, `command` is read or end; without it, a command is run.")
        return await (self.background.told if word.strip() == "read" else self.background.end)(key, job)

    def _sandbox(self, command: str, key: SessionKey, limits: Limits) -> Sandbox:
        seen = Lent(name=SEEN_AS, path=self.background.folder(key.caller))
        return Sandbox(
            folder=self.workspaces.folder(key),
            lent=[seen, *(replace(each, write=each.write and _names(command, each)) for each in self.folders)],
            shown=[Lent(name=name, path=path) for name, path in self.skills()],
            variables=[("TZ", os.environ["TZ"])] if "TZ" in os.environ else (),
            limits=limits,
        )


def _described(folders: Sequence[Lent], reach: WayOut, seconds: float) -> str:
    lent = "".join(f", {FOLDERS}/{each.name}{' (writing is asked for)' if each.write else ''}" for each in folders)
    return (
        f"Runs a command with /bin/sh in a sandbox {reach.described}, for at most {seconds:g} s: exit code and output. "
        f"Only {WORKSPACE}, the files of this conversation, is kept; installed programs are there{lent}. "
        "`background` gives a `job`; with that, command is read or end."
    )


def _names(command: str, folder: Lent) -> bool:
    """Whether a command names a folder. A command that gets there by other words finds it read-only."""
    return re.search(rf"{FOLDERS}/{re.escape(folder.name)}(?![a-z0-9_-])", command) is not None


class ShellTool(Struct, frozen=True, kw_only=True):
    """Runs a command with /bin/sh. Commands that begin with words in `allow` need no yes, unless a further word may be
    an option that writes. Each conversation has a folder in `folder`, in which its commands start. `redact` takes
    secrets out of their output."""

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

    folder: Path
    allow: Sequence[str]
    admins_only: bool
    seconds: float
    clock: Clock
    redact: Callable[[str], str]

    @property
    def timeout(self) -> float:
        """Its own limit comes first, and keeps the output."""
        return self.seconds + 10.0

    def question(self, arguments: Mapping[str, Any]) -> tuple[str, str] | None:
        """The whole command, with nothing hidden; None if it needs no yes."""
        command = _command(arguments)
        return None if self._is_allowed(command) else ("Run this command?", shown(command))

    def _is_allowed(self, command: str) -> bool:
        if not _PLAIN.fullmatch(command):
            return False
        words, starts = command.split(), [each.split() for each in self.allow]
        return any(words[: len(start)] == start and not any(map(_may_write, words[len(start) :])) for start in starts)

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Run the command, and return its end and its output: both streams, in the order in which they came."""
        command = _command(arguments)
        folder = self.folder / name_of(context.session.key)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ended = await program.run(
            ("/bin/sh", "-c", command),
            folder=folder,
            environment=_environment(folder),
            seconds=self.seconds,
            clock=self.clock,
        )
        return _told(ended, self.seconds, self.redact)


def _told(ended: program.ProgramResult, seconds: float, redact: Callable[[str], str]) -> str:
    outcome, text = _outcome(ended, seconds), redact(ended.output)
    return f"{outcome}\n{text}" if text else f"{outcome}, and it printed nothing"


def _outcome(ended: program.ProgramResult, seconds: float) -> str:
    if ended.late:
        return f"ended after {seconds:g} seconds, because it took longer"
    if ended.excess:
        return f"ended, because {ended.excess}"
    number = -ended.code if ended.code < 0 else ended.code - _BY_SIGNAL
    if number in _SIGNALS and ended.code != _BY_SIGNAL:
        return f"ended by signal {number}{f', because {_WHY[number]}' if number in _WHY else ''}"
    return f"exit code {ended.code}"


def _may_write(word: str) -> bool:
    """Whether a word may be an option that writes. A value may stand at it (`-ofile`), letters may stand together
    (`-uo`), and many programs take the beginning of a long name (`--outp`)."""
    name = word.lstrip("-").partition("=")[0].lower()
    if not word.startswith("-") or not name:
        return False
    if not word.startswith("--"):
        return not _WRITING_LETTERS.isdisjoint(name) or name.startswith(_WRITING)
    return name.startswith(_WRITING) or any(each.startswith(name) for each in _WRITING)


def shown(command: str) -> str:
    """A command in one line, without characters that are invisible or change the reading direction. They are spelled
    out in a way that nobody could have typed, so a new line never looks like the `\n` in somebody's quotes."""
    spelled = "".join(sign if sign.isprintable() and not _UNSEEN.match(sign) else _spelled(sign) for sign in command)
    return str(_FROM_THE_RIGHT.sub("\u2068\\g<0>\u2069", spelled))


def quoted_lines(text: str) -> list[str]:
    """A text of several lines in the same way, each after a mark that sets it apart."""
    return [f"| {shown(line)}" for line in text.strip().splitlines()]


def _spelled(sign: str) -> str:
    return f"‹{_NAMED.get(sign) or f'U+{ord(sign):04X}'}›"


def _command(arguments: Mapping[str, Any]) -> str:
    """A command that a person reads."""
    command = _unseen(arguments)
    if len(shown(command)) > _LONGEST:
        raise ToolError(f"A command has at most {_LONGEST:,} characters, so that it can be read; do it in steps.")
    return command


def _unseen(arguments: Mapping[str, Any]) -> str:
    command: str = arguments["command"].strip()
    if not command:
        raise ToolError("`command` is empty.")
    if "\0" in command:
        raise ToolError("A command cannot hold a zero byte.")
    if len(command.encode()) > _LONGEST_UNSEEN:
        raise ToolError(f"A command has at most {_LONGEST_UNSEEN:,} bytes; write a file and run that.")
    return command


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"PATH": os.defpath, **kept, "HOME": str(folder), "PWD": str(folder), "TERM": "dumb"}


def _tool(host: ToolHost) -> ShellTool | SandboxedShell | None:
    settings = host.settings(ShellSettings)
    if settings.enabled is False:
        return None
    if settings.sandbox == "auto" and host.background is not None and not sandbox.why_not():
        return SandboxedShell(
            workspaces=host.workspaces,
            folders=list(lent_of(settings.folders, host.own, "tools.shell.folders")),
            skills=lambda: host.skills.lent if host.skills else (),
            reach=WayOut(network=settings.network, hosts=settings.hosts, clock=host.clock),
            background=host.background,
            admins_only=settings.admins_only,
            seconds=settings.timeout,
            background_seconds=settings.background_timeout,
            clock=host.clock,
            redact=host.redact,
        )
    if settings.enabled == "auto":
        return None
    if sandbox.on_windows():
        raise ConfigError([f"tools.shell.enabled must be false or auto here: {sandbox.why_not()}"])
    return ShellTool(
        folder=host.home / UNBOXED,
        allow=settings.allow,
        admins_only=settings.admins_only,
        seconds=settings.timeout,
        clock=host.clock,
        redact=host.redact,
    )


def lent_of(folders: Mapping[str, FolderSettings], own: Sequence[Path], key: str) -> Iterator[Lent]:
    """The folders of a key, where they really are. Raises ConfigError for one that must not be lent, and if each
    sandbox would see the gateway's own."""
    if seen := [str(each) for each in own if each.is_relative_to(sandbox.SYSTEM)]:
        raise ConfigError(
            [f"every sandbox sees {sandbox.SYSTEM}, and so {seen[0]}: move it, or switch off {key.rpartition('.')[0]}"]
        )
    lent = [
        Lent(name=name, path=Path(each.path).expanduser().resolve(), write=each.write) for name, each in folders.items()
    ]
    for each in lent:
        if reason := sandbox.unlendable(each, lent, own):
            raise ConfigError([f"{key}.{each.name}.path {reason}"])
    yield from lent


# -- the way out of a sandbox --------------------------------------------------------------------------


_MOST_HOSTS: Final = 20  # hosts of one call
_HOSTS_NAMED: Final = 10  # hosts in the description
_HOST: Final = TypeAdapter[str](Host)
_PROXY: Final = "gateway.runtime.proxy"  # which most conversations do without


class WayOut(Struct, kw_only=True):
    """The way out of a tool's sandboxes. `hosts` are given only for a listed network. `proxy`: a ForwardProxy, made
    when a command first needs it."""

    network: Network = "none"
    hosts: Sequence[str] = ()
    clock: Clock
    proxy: Any = None

    @property
    def described(self) -> str:
        """What is in reach, in words that can follow "a sandbox"."""
        if self.network == "public":
            return "that reaches the public internet by HTTPS"
        listed = f"that reaches {', '.join(self.hosts[:_HOSTS_NAMED])}" if self.hosts else "without network"
        return f"{listed} (further `hosts` are asked for)"

    def beyond(self, hosts: Sequence[str]) -> Sequence[str]:
        """Those of a call's hosts that are not in reach. Raises ToolError for what names none."""
        try:
            asked = [_HOST.validate_python(each) for each in hosts]
        except ValidationError:
            raise ToolError("`hosts` are names, such as api.example.org, or git.example.org:8443.") from None
        if len(asked) > _MOST_HOSTS or "*" in asked:
            raise ToolError(f"Name the hosts one by one, {_MOST_HOSTS} at most.")
        reach = self._reach(self.hosts)
        places = [(each, *named(each)) for each in asked]
        return [each for each, host, port in places if not reach.includes(host, port or PORTS[-1])]

    def _reach(self, hosts: Sequence[str]) -> Reach:
        return Reach(hosts=hosts, everywhere=self.network == "public", setting="tools.shell.hosts")

    @asynccontextmanager
    async def led(
        self, box: Sandbox, command: Sequence[str], hosts: Sequence[str]
    ) -> AsyncIterator[tuple[Sandbox, Sequence[str], Collection[str]]]:
        """A sandbox and a command with a way to these hosts and those in reach, open until this is left; and those that
        are refused meanwhile."""
        reach = self._reach((*self.hosts, *self.beyond(hosts)))
        if not reach.hosts and not reach.everywhere:
            yield box, command, ()
            return
        if self.proxy is None:
            self.proxy = imported(f"{_PROXY}:ForwardProxy")(clock=self.clock)
        async with self.proxy.open(reach) as door:
            yield *imported(f"{_PROXY}:led_out")(box, command, door), door.refused


TOOLS = (_tool,)
