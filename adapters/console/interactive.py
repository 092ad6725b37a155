"""The console for people: a prompt that stays at the bottom while answers arrive above it.

Completed lines go to the terminal's own scrollback, once; the line being written, and whether an
answer is being made, show just above the prompt, where they can be redrawn. Nothing that arrives
disturbs what is being typed.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Final, Literal

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import set_app
from prompt_toolkit.application.run_in_terminal import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from adapters.console import codec, screen
from adapters.console.codec import Request
from adapters.console.folder import filed
from adapters.console.intake import Intake
from adapters.console.platform import LIMITS
from adapters.console.rendering import LARGEST
from adapters.console.screen import ReplyFlow
from adapters.console.wrapping import Fragment, wrap
from gateway.domain.adapter import Accept, Doing
from gateway.domain.chat import ChatAddress, Inbound, Outbound, Source
from gateway.domain.platform import AdapterHost
from gateway.domain.wording import printable
from gateway.runtime.errors import Disconnected
from gateway.runtime.structs import replace

BATCH: Final = 64
NAME: Final = "Legato"
LEAVE: Final = ("/quit", "/exit", "quit", "exit")  # the bare words as in other shells
LEAVING: Final = "/quit, /exit or Ctrl-D leaves; Legato finishes the answer first"
LIVE_ROWS: Final = 5  # most screen rows of the line being written: the prompt must keep its place
REFRESH: Final = 1.0  # seconds between looks at the toolbar
REDRAW: Final = 0.03  # seconds, at least, between redraws while text streams
FINISHING: Final = "Finishing the answer first. Press Ctrl-C to leave now. The next start finishes the answer."
RESUMING: Final = "I am still answering your earlier message."
REMEMBERED: Final = 64  # ids of replies shown in full, against a partial that comes late
LONGEST_REMEMBERED: Final = 16 * 1024  # characters of what was typed: a pasted file is not worth it

_PROMPT: Final = ("class:prompt", "› ")
STYLE: Final = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "name": "ansicyan bold",
        "strong": "bold",
        "code": "ansigreen",
        "block": "ansigreen",
        "pygments": "ansidefault",
        "pygments.keyword": "ansiblue",
        "pygments.operator.word": "ansiblue",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansicyan",
        "pygments.comment": "ansibrightblack",
        "pygments.name.function": "bold",
        "pygments.name.class": "bold",
        "pygments.name.tag": "ansiblue",
        "pygments.name.attribute": "ansicyan",
        "pygments.generic.inserted": "ansigreen",
        "pygments.generic.deleted": "ansired",
        "quote": "ansibrightblack",
        "aside": "ansibrightblack",
        "error": "ansired",
        "question": "bold",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)


class CommandCompleter(Completer):
    """Completes the slash command that a message begins with."""

    def __init__(self, commands: Sequence[tuple[str, str]]) -> None:
        own = [(LEAVE[0], "leave; Legato finishes the answer first")]
        self._commands = sorted((f"/{name.lstrip('/')}", text) for name, text in [*commands, *own])

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The commands that go on as the text before the cursor does."""
        typed = document.text_before_cursor
        if typed.startswith("/") and not any(character.isspace() for character in typed):
            for name, text in self._commands:
                if name.startswith(typed.lower()):
                    yield Completion(name, start_position=-len(typed), display_meta=text)


class QuietHistory(FileHistory):
    """A history whose file may be missing, unwritable or on a full disk: typing matters more."""

    def __init__(self, path: Path) -> None:
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
        self._path = path
        super().__init__(str(path))

    def load_history_strings(self) -> list[str]:
        """Return the typed lines, newest first; nothing if the file cannot be read."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Remember `string` if it is short enough and the file can take it."""
        if len(string) <= LONGEST_REMEMBERED:
            with suppress(OSError):
                super().store_string(string)

    def forget(self, goes: Callable[[str], bool]) -> None:
        """Forget every text for which `goes` holds."""
        left = [text for text in self.load_history_strings() if not goes(text)]
        self._loaded_strings = [text for text in self._loaded_strings if not goes(text)]
        with suppress(OSError):
            self._path.write_bytes(b"")
        for text in reversed(left):
            self.store_string(text)


class InteractiveConsole:
    """`legato chat` in a terminal: one direct chat, "main", with the person at the keyboard.

    `input` and `output` are the terminal unless a test hands in others."""

    name = codec.PLATFORM
    account = "terminal"  # two processes at once would show each other's answers
    waits_for_account = False
    reader_sends = True
    watched = True
    is_terminal: Literal[True] = True
    limits = LIMITS

    def __init__(self, host: AdapterHost, *, input: Input | None = None, output: Output | None = None) -> None:
        self._host, self._ids, self._clock = host, host.ids, host.clock
        self._model = host.model  # the one that answers
        self._files = host.home / "files"
        self._history = QuietHistory(host.home / "history")
        self._intake = Intake(clock=host.clock, complain=self._complain)
        self._submitted: asyncio.Queue[Inbound | None] = asyncio.Queue()
        self._open: dict[str, None] = {}  # event ids not answered yet, oldest first
        self._help_id: str | None = None  # the latest /help
        self._stop_id: str | None = None  # the latest /stop that Ctrl-C sent
        self._working = False
        self._work = screen.Work()
        self._asked = False  # a question waits for the person
        self._live = ""  # the line being written
        self._live_code = False  # whether it belongs to a code block
        self._flows: dict[str, ReplyFlow] = {}
        self._shown: deque[str] = deque(maxlen=REMEMBERED)
        self._latest: str | None = None  # the reply whose lines came last
        self._welcomed = False
        self._spoken = False
        self._left = False
        self._resuming = False  # an answer is being made to what was said in an earlier run
        self._printing = asyncio.Lock()
        self._session = self._make_session(input, output)

    def _make_session(self, input: Input | None, output: Output | None) -> PromptSession[str]:
        session: PromptSession[str] = PromptSession(
            self._prompt,
            multiline=True,  # Enter sends all the same: see _keys
            prompt_continuation="  ",
            completer=CommandCompleter([(entry.name, entry.help) for entry in self._host.menu]),
            complete_while_typing=True,
            reserve_space_for_menu=6,
            history=self._history,
            key_bindings=self._keys(),
            bottom_toolbar=self._bottom,
            refresh_interval=REFRESH,
            style=STYLE,
            input=input,
            output=output,
        )
        session.app.min_redraw_interval = REDRAW
        return session

    # -- the port

    async def run(self, accept: Accept) -> None:
        """Talk until the person leaves (Ctrl-D, /quit), the terminal closes or the task is cancelled."""
        with patch_stdout():  # whatever else prints, prints above the prompt
            await self._print(await self._welcome())
            if self._host.fresh:
                self._submit(codec.FRESH)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._converse())
                await self._hand_over(accept)

    def forget_typed(self, goes: Callable[[str], bool]) -> None:
        self._history.forget(goes)

    async def send(self, outbound: Outbound) -> str:
        """Show a message, or what of it did not stream. Raises Disconnected if the terminal is gone."""
        self._note_answer(outbound)
        if outbound.kind == "command" and outbound.answers == self._help_id:
            outbound = replace(outbound, text=f"{outbound.text}\n\nIn this terminal\n  {LEAVING}")
        place = self._place(outbound.to)
        if outbound.kind in ("reply", "remark"):
            flow = self._flows.pop(outbound.id, None) or ReplyFlow()
            self._live = ""
            self._shown.append(outbound.id)
            again = flow.begun
            rest = self._headed(
                outbound.id, flow.finish(outbound.text, columns=self._columns()), again=again, place=place
            )
            fragments = [*rest, ("", "\n")]
        else:
            fragments = screen.whole(outbound.kind, outbound.text, place=place)
        self._latest = outbound.id
        if outbound.kind == "command":
            self._model = await self._host.model_of(self._here())
        await self._print(fragments)
        self._intake.sent(outbound.to.chat)
        return outbound.id

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        return await self.send(await asyncio.to_thread(filed, self._files, outbound, content))

    async def show_partial(self, outbound: Outbound) -> None:
        """Print the lines that the reply's text completes; show the one being written above the prompt."""
        if outbound.id in self._shown:
            return
        flow = self._flows.setdefault(outbound.id, ReplyFlow())
        if not flow.has_grown(outbound.text):
            return
        again = flow.begun
        rows = flow.advance(outbound.text, columns=self._columns())
        lines = self._headed(outbound.id, rows, again=again, place=self._place(outbound.to))
        self._live = flow.unfinished(outbound.text)
        self._live_code = flow.in_code
        if lines:
            with suppress(Disconnected):
                await self._print(lines)
        else:
            self._session.app.invalidate()

    def working(self, to: ChatAddress, doing: Doing, again_in: float) -> None:
        now = self._clock.monotonic()
        self._work = replace(self._work, doing=printable(doing.words), again_at=now + again_in if again_in else 0.0)
        self._session.app.invalidate()

    async def typing(self, to: ChatAddress, active: bool) -> None:
        if not active:
            self._work = screen.Work()
        elif not self._working:
            self._work = replace(self._work, since=self._clock.monotonic())
        self._working = active
        self._asked = self._asked and not active
        if active and not self._spoken and not self._resuming:
            self._resuming = True
            if self._welcomed:
                await self._print(screen.whole("notice", RESUMING))
        if not active:
            self._live = ""
            self._open.clear()  # what still waits in the lane says so again when its turn comes
        self._session.app.invalidate()

    def interrupted(self) -> bool:
        """Do what the key Ctrl-C does. While something is printed the terminal makes a signal of the key."""
        if not self._left:
            self._stop()
        return not self._left

    async def aclose(self) -> None:
        self._intake.abandon()
        if self._session.app.is_running and not self._session.app.is_done:
            self._session.app.exit(exception=EOFError())

    # -- what the person does

    async def _converse(self) -> None:
        """Prompt until the person leaves. What they say is handed over in the background, so typing never waits."""
        try:
            with self._session.input.raw_mode():  # between two prompts, too, the terminal must not echo
                while True:
                    async with self._printing:
                        pass  # a thread that prints a long answer ends first: the prompt would stand amid its lines
                    text = await self._session.prompt_async(handle_sigint=False, set_exception_handler=False)
                    if text.strip().lower() in LEAVE:
                        break
                    self._submit(text)
        except (EOFError, OSError):
            pass  # Ctrl-D, or the terminal went away
        finally:
            self._left = True
            self._submitted.put_nowait(None)
            self._intake.abandon()  # a person who leaves does not wait for a store that is down
        if self._working or self._open:
            last = FINISHING
        else:
            last = await self._host.farewell(self._here()) if self._spoken else ""
        if last:
            with suppress(Disconnected):
                await self._print(screen.whole("notice", last))

    def _submit(self, text: str) -> str:
        event_id = self._ids.new("line")
        self._spoken = True
        request = Request(text=codec.storable(text.rstrip("\n")))  # a paste often ends with a line end
        self._open[event_id] = None
        if text.split()[:1] == ["/help"]:
            self._help_id = event_id
        self._submitted.put_nowait(codec.inbound(request, event_id=event_id, sent_at=self._clock.now()))
        return event_id

    async def _hand_over(self, accept: Accept) -> None:
        """Hand the messages to the gateway, in order; return once the person has left."""
        leaving = False
        while not leaving:
            batch: list[Inbound] = []
            said = await self._submitted.get()
            while said is not None and len(batch) < BATCH - 1 and not self._submitted.empty():
                batch.append(said)
                said = self._submitted.get_nowait()
            leaving = said is None
            if said is not None:
                batch.append(said)
            if batch and (lost := await self._intake.offer(batch, accept)):
                await self._complain(f"Legato could not store {len(lost)} of your messages and will not answer them.")

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        writes = ~is_searching  # while Ctrl-R looks for an earlier line, these keys belong to the search

        @keys.add("enter", filter=writes)
        def send(event: KeyPressEvent) -> None:
            if event.current_buffer.text.strip():
                event.current_buffer.validate_and_handle()
            else:
                event.current_buffer.reset()

        @keys.add("escape", "enter", filter=writes)
        def new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        keys.add("c-c", filter=writes)(lambda _: self._stop())

        return keys

    def _stop(self) -> None:
        typed = self._session.default_buffer
        if self._working or self._open or self._asked:
            self._stop_id = self._submit("/stop")
        elif typed.text:
            typed.reset()
        else:
            hint = "· Nothing is running. Ctrl-D or /quit leaves.\n"
            self._session.app.create_background_task(self._print([("class:aside", hint)]))

    # -- what the person sees

    def _note_answer(self, outbound: Outbound) -> None:
        """Keep count of what is not answered yet; a reply also answers all that came before."""
        self._asked = outbound.kind == "question" or (self._asked and outbound.kind != "reply")
        answers = outbound.answers
        if answers is None or outbound.kind in ("notice", "remark", "question"):
            return
        if answers == self._stop_id:
            self._open.clear()
        elif outbound.kind == "reply" and answers in self._open:
            while next(iter(self._open)) != answers:
                del self._open[next(iter(self._open))]
        self._open.pop(answers, None)

    def _headed(self, outbound_id: str, lines: list[Fragment], *, again: bool, place: str | None) -> list[Fragment]:
        """A reply's next lines, under a heading if they are its first or follow something else."""
        if not lines or self._latest == outbound_id:
            return lines
        self._latest = outbound_id
        return [*screen.heading(NAME, again=again, place=place), *lines]

    def _place(self, to: ChatAddress) -> str | None:
        """Return a name for a message's chat, if that is not the chat at hand."""
        if (to.chat, to.thread) == (codec.DEFAULT_CHAT, None):
            return None
        return to.chat if to.thread is None else f"{to.chat}/{to.thread}"

    def _prompt(self) -> FormattedText:
        fragments: list[Fragment] = []
        if not self._session.app.is_done:  # what is left in the scrollback is only what was said
            if self._live:
                code = self._live_code
                for row in self._live_rows():
                    fragments += [("class:code", row)] if code else screen.inline(row)
                    fragments.append(("", "\n"))
            work = self._work if self._working else screen.Work()
            now = self._clock.monotonic()
            if (self._working or self._open) and not (self._live and work.is_plain(now)):
                fragments.append(("class:aside", screen.at_work(work, now)))
        return FormattedText([*fragments, _PROMPT])

    def _live_rows(self) -> list[str]:
        """The last rows of what is not printed yet."""
        columns, code = self._columns(), self._live_code
        shown: list[str] = []
        for line in self._live.rsplit("\n", LIVE_ROWS)[-LIVE_ROWS:]:
            shown += screen.fold(line, columns=columns, height=LIVE_ROWS, cells=get_cwidth, code=code)
        return shown[-LIVE_ROWS:]

    def _columns(self) -> int:
        return self._session.output.get_size().columns

    def _bottom(self) -> FormattedText:
        model, state = printable(self._model).replace("\n", " "), "working" if self._host.turns_running() else "ready"
        return FormattedText([("", f" {model}  ·  {state}  ·  /help  ·  Ctrl-D leaves")])

    def _here(self) -> Source:
        return codec.inbound(Request(text=""), event_id="", sent_at=self._clock.now()).source

    async def _welcome(self) -> list[Fragment]:
        """Return the model's name, the way out, and the answer that goes on from an earlier run."""
        greeting = "" if self._host.fresh else await self._host.greeting(self._here())
        self._model = await self._host.model_of(self._here())
        self._welcomed = True
        asides = [text for text in (greeting, RESUMING if self._resuming else "") if text]
        welcome: list[Fragment] = [
            ("class:name", NAME),
            ("", f" · chatting with {printable(self._host.model_in_full)}.\n"),
            ("class:aside", "/help lists the commands · Alt-Enter starts a new line · Ctrl-D leaves\n\n"),
            *(fragment for text in asides for fragment in screen.whole("notice", text)),
        ]
        return [*welcome, ("", "\n")] if asides else welcome

    async def _complain(self, text: str) -> None:
        with suppress(Disconnected):
            await self._print(screen.whole("error", text))

    async def _print(self, fragments: Sequence[Fragment]) -> None:
        """Print above the prompt, or where the cursor is when there is none. Raises Disconnected."""
        output = self._session.output
        long = sum(len(text) for _, text in fragments) > LARGEST  # it takes seconds: they are no one else's

        def write() -> None:
            wrapped = wrap(fragments, columns=self._columns(), cells=get_cwidth)
            # The prompt has let go of the terminal, which would show at once whatever is typed meanwhile.
            with self._session.input.raw_mode():
                print_formatted_text(output, FormattedText(wrapped), STYLE)

        async def printed() -> None:
            async with self._printing:
                await run_in_terminal(write, in_executor=long)

        try:
            with set_app(self._session.app):
                # Cancelled half-way, prompt_toolkit would make every later print wait for this one.
                await asyncio.shield(printed())
        except OSError as error:
            raise Disconnected(f"Legato cannot write to the terminal ({error.strerror}).") from error


# -- without a prompt ----------------------------------------------------------------------------------


_PLAIN: Final = "\x1b[0m"  # the end of all styles


def styled(text: str) -> str:
    """The Markdown of an answer, laid out for the terminal behind stdout, without a line end."""
    columns, rows = shutil.get_terminal_size()
    fragments = wrap(ReplyFlow().finish(text, columns=columns), columns=columns, cells=get_cwidth)
    written = StringIO()
    output = Vt100_Output(written, lambda: Size(rows=rows, columns=columns), enable_cpr=False)
    print_formatted_text(output, FormattedText(fragments), STYLE)
    return written.getvalue().replace("\r\n", "\n").removesuffix(_PLAIN).rstrip("\n") + _PLAIN
