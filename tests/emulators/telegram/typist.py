"""The lines that somebody types. A known word after a slash does something; every other line is said in the chat, and
other commands are the bot's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.emulators.faults import Disconnect, Fault, Flood, LoseAnswer, Refuse, Slow
from tests.emulators.telegram.cloud import Press
from tests.emulators.telegram.drawing import numbered_buttons
from tests.emulators.telegram.people import PIXEL
from tests.emulators.telegram.refusals import Refusal
from tests.emulators.telegram.server import TelegramServer
from tests.emulators.telegram.world import Chat, Message, User
from tests.emulators.transcription import opus

HELP: Final = """\
/as NAME            be somebody else, in their private chat
/group TITLE        make a group of everybody and the bot, or go there
/forum TITLE        the same with topics
/topic NAME         open a topic of a forum, or go there; without a name leave it
/private            back to the private chat
/reply N TEXT       answer message N
/edit N TEXT        change message N
/press N            press button N
/react N EMOJI      react to message N
/photo [CAPTION]    send a photo; /voice, /video, /sticker too
/file PATH          send a document
/album N [CAPTION]  send N photos at once
/block, /unblock    what it says
/fault KIND         lose, slow, break, refuse or flood: what happens to the bot's next message
/quit               leave
//…                 say something that begins with one of these
Everything else is said. Page keys scroll."""
FAULTS: Final[dict[str, Fault]] = {
    "lose": LoseAnswer(seconds=30),
    "slow": Slow(seconds=10),
    "break": Disconnect(),
    "refuse": Refuse(),
    "flood": Flood(seconds=10),
}
_COMMAND = re.compile(r"/(\w+|\?)\s*(.*)", re.DOTALL)
_NUMBERED = re.compile(r"#?(\d+)\s*(.*)", re.DOTALL)


class Typist:
    """The typing person and their place."""

    def __init__(self, server: TelegramServer, name: str = "Anna") -> None:
        self._server, self._people = server, server.people
        self.me: User = self._people.person(name, username=name.lower())
        self.chat: Chat = self._people.private(self.me)
        self.topic: int | None = None
        self._said = ""
        self._pressed: Press | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "?": self._help,
            "as": self._as,
            "group": self._group,
            "forum": self._forum,
            "topic": self._topic,
            "private": self._private,
            "reply": self._reply,
            "edit": self._edit,
            "press": self._press,
            "react": self._react,
            "file": self._file,
            "album": self._album,
            "block": self._block,
            "unblock": self._unblock,
            "fault": self._fault,
        }

    @property
    def said(self) -> str:
        """Return the last words to the person; for a press, the bot's answer."""
        if self._pressed is None:
            return self._said
        if self._pressed.answer is None:
            return "(the button is being pressed)"
        return str(self._pressed.answer["text"])

    def enter(self, line: str) -> bool:
        """Do what a line says. False once the person wants to leave."""
        self._said, self._pressed = "", None
        match = _COMMAND.fullmatch(line.strip())
        try:
            if match and match[1] == "quit":
                return False
            if match and match[1] in self._commands:
                self._commands[match[1]](match[2])
            elif match and match[1] in ("photo", "voice", "video", "sticker"):
                content = opus(2, match[2].encode()) if match[1] == "voice" else PIXEL
                self._people.file(self.chat, self.me, match[1], content, caption=match[2], topic=self.topic)
            elif line.strip():
                text = line[1:] if line.startswith("//") else line
                self._people.say(self.chat, self.me, text, topic=self.topic)
        except (LookupError, ValueError, OSError, Refusal) as error:
            self._said = str(error)
        return True

    def _help(self, rest: str) -> None:
        self._said = HELP

    # -- who and where ----------------------------------------------------------------------------

    def _as(self, name: str) -> None:
        if not name:
            raise ValueError("Say who you want to be: /as NAME.")
        people = (user for user in self._server.cloud.world.users.values() if not user.is_bot)
        known = next((user for user in people if user.first_name.lower() == name.lower()), None)
        self.me = known or self._people.person(name, username=re.sub(r"\W", "", name.lower()))
        if self.chat.grouplike:
            self.chat.members.setdefault(self.me.id, "member")
        else:
            self._private("")

    def _private(self, rest: str) -> None:
        self.chat, self.topic = self._people.private(self.me), None

    def _group(self, title: str, *, forum: bool = False) -> None:
        if not title:
            raise ValueError("Give the group a title: /group TITLE.")
        groups = (chat for chat in self._server.chats.values() if chat.title.lower() == title.lower())
        everybody = [user for user in self._server.cloud.world.users.values() if not user.is_bot]
        everybody.sort(key=lambda user: user is not self.me)
        self.chat = next(groups, None) or self._people.group(title, *everybody, forum=forum)
        self.topic = None

    def _forum(self, title: str) -> None:
        self._group(title, forum=True)

    def _topic(self, name: str) -> None:
        if not self.chat.is_forum:
            raise ValueError("There are no topics here: make a forum with /forum TITLE.")
        known = {title.lower(): number for number, title in self.chat.topics.items()}
        self.topic = known.get(name.lower()) if name else None
        if name and self.topic is None:
            self.topic = self._people.topic(self.chat, self.me, name)

    # -- messages ---------------------------------------------------------------------------------

    def _message(self, rest: str) -> tuple[Message, str]:
        match = _NUMBERED.fullmatch(rest)
        message = self.chat.messages.get(int(match[1])) if match else None
        if match is None or message is None:
            raise LookupError("Name a message by the number after its #.")
        return message, match[2]

    def _reply(self, rest: str) -> None:
        message, text = self._message(rest)
        self._people.say(self.chat, self.me, text, reply_to=message)

    def _edit(self, rest: str) -> None:
        message, text = self._message(rest)
        if message.sender is not self.me:
            raise ValueError("You can change only what you have said yourself.")
        self._people.edit(message, text)

    def _react(self, rest: str) -> None:
        message, emoji = self._message(rest)
        self._people.react(message, self.me, emoji or "👍")

    def _press(self, rest: str) -> None:
        buttons = numbered_buttons(self.chat)
        if not rest.isdigit() or not 1 <= int(rest) <= len(buttons):
            raise LookupError("Name a button by its number.")
        message, button = buttons[int(rest) - 1]
        self._pressed = self._people.press(message, self.me, button["text"])

    def _file(self, rest: str) -> None:
        path = Path(rest).expanduser()
        self._people.file(self.chat, self.me, "document", path.read_bytes(), name=path.name, topic=self.topic)

    def _album(self, rest: str) -> None:
        match = _NUMBERED.fullmatch(rest)
        count = min(int(match[1]), 10) if match else 2
        caption = match[2] if match else rest
        self._people.album(self.chat, self.me, [PIXEL] * count, caption=caption, topic=self.topic)

    # -- moods ------------------------------------------------------------------------------------

    def _block(self, rest: str) -> None:
        self._people.block(self.me)
        self._said = "You have blocked the bot; writing to it takes that back."

    def _unblock(self, rest: str) -> None:
        self._people.unblock(self.me)

    def _fault(self, kind: str) -> None:
        if kind not in FAULTS:
            raise ValueError(f"The faults are {', '.join(FAULTS)}.")
        self._server.faults.add(FAULTS[kind], method="sendMessage")
        self._said = f"The bot's next message: {FAULTS[kind]}."
