"""A Telegram client for one person at a terminal: see what the bot writes as it writes it, and be anybody."""

from __future__ import annotations

import asyncio
from typing import Final

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, VSplit, Window
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from tests.emulators.telegram.drawing import Fragments, draw_chat
from tests.emulators.telegram.server import TelegramServer
from tests.emulators.telegram.typist import Typist

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


class Terminal:
    """The screen: a chat, a line that says who and where one is, and a line to type in."""

    def __init__(self, server: TelegramServer, *, stdin: Input | None = None, stdout: Output | None = None) -> None:
        self._server = server
        self._person = Typist(server)
        self._scrolled = 0
        self._buffer = Buffer(multiline=False, accept_handler=self._typed)
        control = FormattedTextControl(self._chat, get_cursor_position=self._cursor, focusable=False)
        line = VSplit([Window(FormattedTextControl("> "), width=2), Window(BufferControl(self._buffer))], height=1)
        screen = HSplit([Window(control, wrap_lines=True), Window(FormattedTextControl(self._status), height=1), line])
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
            await self._server.journal.change()
            self._app.invalidate()

    def _typed(self, buffer: Buffer) -> bool:
        self._scrolled = 0
        if not self._person.enter(buffer.text):
            self._app.exit()
        return False

    def _chat(self) -> Fragments:
        chat = self._person.chat
        shown: Fragments = list(draw_chat(chat, self._person.me, self._server.bot, self._server.cloud.drafts(chat)))
        if not shown:
            shown.append(("class:note", f"{self._introduction}\n"))
        if self._person.said:
            shown.append(("class:note", f"{self._person.said}\n"))
        return shown

    @property
    def _introduction(self) -> str:
        return f"{configuration(self._server)}\nNobody has said anything yet. /? lists what you can do here."

    def _status(self) -> Fragments:
        chat, me = self._person.chat, self._person.me
        where = chat.title or "private chat"
        topic = chat.topics.get(self._person.topic or 0)
        shown: Fragments = [("class:status", f" {me.first_name} in {where}{f' / {topic}' if topic else ''} ")]
        shown.append(("class:status", f"  bot: {self._bot()}  "))
        if chat.action and chat.action_until > self._server.cloud.clock.monotonic():
            shown.append(("class:action", f" {chat.action} … "))
        return shown

    def _bot(self) -> str:
        calls = self._server.journal.calls
        if not calls:
            return "has not called yet"
        if self._server.cloud.webhook.target is not None:
            return "has a webhook"
        return "is listening" if self._server.cloud.updates.polled else f"last called {calls[-1].method}"

    def _cursor(self) -> Point:
        """The screen shows the line with the cursor: the last one, unless one has scrolled up."""
        lines = fragment_list_to_text(self._chat()).count("\n")
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


def configuration(server: TelegramServer) -> str:
    """What to write into config.yaml, which takes no token, and into .env, so that a bot talks to this server."""
    return (
        "# config.yaml\nadapters:\n"
        f'  telegram: {{enabled: true, token: "${{TELEGRAM_BOT_TOKEN}}", base_url: "{server.base_url}"}}\n\n'
        f"# .env beside it\nTELEGRAM_BOT_TOKEN={server.token}\n"
    )
