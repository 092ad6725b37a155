"""A screen for one person at a terminal: a chat as it changes, a line of status, and a line to type in."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, VSplit, Window
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from tests.emulators.journal import Journal

_STYLE: Final = Style.from_dict(
    {
        "bot": "bold ansigreen",
        "me": "bold ansiblue",
        "other": "bold ansimagenta",
        "note": "ansibrightblack",
        "code": "ansicyan",
        "link": "underline ansiblue",
        "quote": "italic ansibrightblack",
        "button": "reverse",
        "status": "reverse",
        "action": "reverse italic",
    }
)
_PAGE: Final = 15  # lines that a page key scrolls


class View(Protocol):
    """The screen and its typist. `enter` does what a line says: False once the person wants to leave."""

    def enter(self, line: str) -> bool: ...

    def chat(self) -> StyleAndTextTuples: ...

    def status(self) -> StyleAndTextTuples: ...


class Screen:
    """The screen of one view; every change that the journal tells of draws it again."""

    def __init__(
        self, view: View, journal: Journal, *, stdin: Input | None = None, stdout: Output | None = None
    ) -> None:
        self._view, self._journal = view, journal
        self._scrolled = 0
        self._buffer = Buffer(multiline=False, accept_handler=self._typed)
        control = FormattedTextControl(view.chat, get_cursor_position=self._cursor, focusable=False)
        line = VSplit([Window(FormattedTextControl("> "), width=2), Window(BufferControl(self._buffer))], height=1)
        screen = HSplit([Window(control, wrap_lines=True), Window(FormattedTextControl(view.status), height=1), line])
        self._app: Application[None] = Application(
            layout=Layout(screen, focused_element=self._buffer),
            key_bindings=self._keys(),
            style=_STYLE,
            full_screen=True,
            refresh_interval=0.5,
            input=stdin,
            output=stdout,
        )

    async def run(self) -> None:
        """Until the person leaves."""
        watching = asyncio.get_running_loop().create_task(self._redraw())
        try:
            await self._app.run_async()
        finally:
            watching.cancel()

    async def _redraw(self) -> None:
        while True:
            await self._journal.change()
            self._app.invalidate()

    def _typed(self, buffer: Buffer) -> bool:
        self._scrolled = 0
        if not self._view.enter(buffer.text):
            self._app.exit()
        return False

    def _cursor(self) -> Point:
        """The screen shows the line with the cursor: the last one, unless one has scrolled up."""
        lines = fragment_list_to_text(self._view.chat()).count("\n")
        self._scrolled = max(0, min(self._scrolled, lines))
        return Point(0, lines - self._scrolled)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("pageup")
        def _up(_: KeyPressEvent) -> None:
            self._scrolled += _PAGE

        @keys.add("pagedown")
        def _down(_: KeyPressEvent) -> None:
            self._scrolled -= _PAGE

        @keys.add("c-c")
        @keys.add("c-d")
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit()

        return keys
