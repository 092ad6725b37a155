"""The lines that somebody types. A known word after a slash does something, a slash command of the bot uses that
command, and every other line is said in the channel."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.emulators.discord.asked import Upload
from tests.emulators.discord.disturbing import Mishap, RateLimit
from tests.emulators.discord.drawing import draw_choices, numbered, numbered_buttons, places_of
from tests.emulators.discord.interactions import Interaction
from tests.emulators.discord.people import PIXEL
from tests.emulators.discord.refusals import Refusal
from tests.emulators.discord.server import DiscordServer
from tests.emulators.discord.world import Channel, Kind, Message, User
from tests.emulators.faults import Disconnect, LoseAnswer, Refuse, Slow

HELP: Final = """\
/as NAME                be somebody else
/dm                     the private chat with the bot
/guild NAME             make a server of everybody and the bot, or go there
/channel NAME           make a channel of the server, or go there; /forum NAME the same for a forum
/channels               list channels and threads
/thread NAME            open a thread, or go there; in a forum a post, of which NAME is title and text
/under N NAME           open a thread under message N
/reply N TEXT           answer message N
/edit N TEXT            change message N; /delete N deletes it
/press N                press button N
/react N EMOJI          react to message N
/file PATH              send a file; /photo [TEXT] sends a picture
/? COMMAND OPTION TEXT  see what the bot proposes for an option of its command
/block, /unblock        take no messages of bots, or take them again
/fault KIND             lose, slow, break, refuse, limit: what happens to the bot's next message
/gateway WHAT           drop, reconnect, invalidate, silence: what happens to the bot's connection
/quit                   leave
//…                     say something that begins with one of these
@Name becomes a mention. A slash command takes its options as NAME:VALUE; the rest of the line is its first option.
Everything else is said. Page keys scroll."""
FAULTS: Final[dict[str, Mishap]] = {
    "lose": LoseAnswer(seconds=30),
    "slow": Slow(seconds=10),
    "break": Disconnect(),
    "refuse": Refuse(),
    "limit": RateLimit(seconds=10),
}
_LINE: Final = re.compile(r"/([\w-]+|\?)\s*(.*)", re.DOTALL)
_NUMBERED: Final = re.compile(r"#?(\d+)\s*(.*)", re.DOTALL)
_OPTION: Final = re.compile(r"([\w-]+):\s*(.*?)(?=\s+[\w-]+:|$)", re.DOTALL)


class Typist:
    """The typing person and their place: first in a server with one channel."""

    def __init__(self, server: DiscordServer, name: str = "Anna") -> None:
        self._server, self._people = server, server.people
        self.me: User = self._people.person(name)
        self.guild = self._people.guild("Legato", self.me)
        self.channel: Channel = self._people.general(self.guild)
        self._said = ""
        self._asked: Interaction | None = None
        self._doings: dict[str, Callable[[str], None]] = {
            "?": self._help,
            "as": self._as,
            "dm": self._dm,
            "guild": self._guild,
            "channel": self._channel,
            "forum": self._forum,
            "channels": self._channels,
            "thread": self._thread,
            "under": self._under,
            "reply": self._reply,
            "edit": self._edit,
            "delete": self._delete,
            "press": self._press,
            "react": self._react,
            "file": self._file,
            "photo": self._photo,
            "block": self._block,
            "unblock": self._unblock,
            "fault": self._fault,
            "gateway": self._gateway,
        }

    @property
    def said(self) -> str:
        """Return the last words to the person; for a command or a press, whether the bot has answered."""
        asked = self._asked
        if asked is None:
            return self._said
        if self._people.failed(asked):
            return "The application did not respond."
        if asked.modal is not None:
            return f"The bot shows a form: {asked.modal['title']}"
        if asked.answer is None:
            return "(the bot has been asked)"
        return draw_choices(asked) if asked.kind == 4 else ""

    def enter(self, line: str) -> bool:
        """Do what a line says. False once the person wants to leave."""
        self._said, self._asked = "", None
        match = _LINE.fullmatch(line.strip())
        try:
            if match and match[1] == "quit":
                return False
            if match and match[1] in self._doings:
                self._doings[match[1]](match[2].strip())
            elif match and match[1] in self._people.commands(self.channel):
                self._use(match[1], match[2].strip())
            elif line.strip():
                self._say(line[1:] if line.startswith("//") else line)
        except (LookupError, ValueError, OSError, Refusal) as error:
            self._said = str(error).strip("'")
        return True

    def _say(self, text: str, **more: Any) -> None:
        self._people.say(self.channel, self.me, text, **more)

    # -- commands ----------------------------------------------------------------------------------

    def _use(self, name: str, rest: str) -> None:
        command = self._people.commands(self.channel)[name]
        self._asked = self._people.command(self.channel, self.me, name, **_options(command, rest))

    def _help(self, rest: str) -> None:
        if not rest:
            offered = self._people.commands(self.channel).values()
            lines = [f"/{each['name']}  {each['description']}" for each in offered]
            self._said = "\n".join([HELP, "", "The bot's commands:", *lines] if lines else [HELP])
            return
        name, option, *typed = [*rest.lstrip("/").split(maxsplit=2), ""]
        self._asked = self._people.complete(self.channel, self.me, name, option.rstrip(":"), typed[0] if typed else "")

    # -- who and where -----------------------------------------------------------------------------

    def _as(self, name: str) -> None:
        if not name:
            raise ValueError("Say who you want to be: /as NAME.")
        users = self._server.cloud.users.values()
        known = next((user for user in users if user.display.lower() == name.lower()), None)
        self.me = known or self._people.person(name)
        if self.me.id not in self.guild.members:
            self._people.join(self.guild, self.me)
        if self.channel.recipient is not None:
            self._dm("")

    def _dm(self, rest: str) -> None:
        self.channel = self._people.direct(self.me)

    def _guild(self, name: str) -> None:
        if not name:
            raise ValueError("Give the server a name: /guild NAME.")
        guilds = self._server.cloud.guilds.values()
        known = next((guild for guild in guilds if guild.name.lower() == name.lower()), None)
        everybody = [user for user in self._server.cloud.users.values() if not user.bot]
        everybody.sort(key=lambda user: user is not self.me)
        self.guild = known or self._people.guild(name, *everybody)
        self.channel = self._people.general(self.guild)

    def _channel(self, name: str, *, kind: Kind = Kind.TEXT) -> None:
        if not name:
            raise ValueError("Say which channel: /channel NAME.")
        known = self._find(name, lambda channel: not channel.is_thread)
        self.channel = known or self._people.channel(self.guild, name.lstrip("#"), kind=kind)

    def _forum(self, name: str) -> None:
        self._channel(name, kind=Kind.FORUM)

    def _channels(self, rest: str) -> None:
        self._said = places_of(self.guild.channels.values())

    def _thread(self, name: str) -> None:
        if not name:
            raise ValueError("Give the thread a name: /thread NAME.")
        known = self._find(name, lambda channel: channel.is_thread)
        place = self.channel.parent or self.channel
        if known is not None:
            self.channel = known
        elif place.kind is Kind.FORUM:
            self.channel = self._people.post(place, self.me, name, name)
        else:
            self.channel = self._people.thread(place, self.me, name)

    def _find(self, name: str, wanted: Callable[[Channel], bool]) -> Channel | None:
        found = (channel for channel in self.guild.channels.values() if wanted(channel))
        return next((channel for channel in found if channel.name.lower() == name.lstrip("#").lower()), None)

    def _under(self, rest: str) -> None:
        message, name = self._message(rest)
        self.channel = self._people.thread_from(message, self.me, name or "Thread")

    # -- messages ----------------------------------------------------------------------------------

    def _message(self, rest: str) -> tuple[Message, str]:
        match = _NUMBERED.fullmatch(rest)
        message = numbered(self.channel, self.me).get(int(match[1])) if match else None
        if match is None or message is None:
            raise LookupError("Name a message by the number after its #.")
        return message, match[2]

    def _reply(self, rest: str) -> None:
        message, text = self._message(rest)
        self._say(text, reply_to=message)

    def _own(self, rest: str) -> tuple[Message, str]:
        message, text = self._message(rest)
        if message.author is not self.me:
            raise ValueError("You can change only what you have said yourself.")
        return message, text

    def _edit(self, rest: str) -> None:
        self._people.edit(*self._own(rest))

    def _delete(self, rest: str) -> None:
        self._people.delete(self._own(rest)[0])

    def _react(self, rest: str) -> None:
        message, emoji = self._message(rest)
        self._people.react(message, self.me, emoji or "👍")

    def _press(self, rest: str) -> None:
        buttons = numbered_buttons(self.channel, self.me)
        if not rest.isdigit() or not 1 <= int(rest) <= len(buttons):
            raise LookupError("Name a button by its number.")
        message, button = buttons[int(rest) - 1]
        self._asked = self._people.press(message, self.me, button.get("label") or button.get("custom_id", ""))

    def _file(self, rest: str) -> None:
        path = Path(rest).expanduser()
        upload = Upload(name=path.name, content=path.read_bytes(), content_type="application/octet-stream")
        self._say("", files=[upload])

    def _photo(self, rest: str) -> None:
        self._say(rest, files=[Upload(name="photo.png", content=PIXEL, content_type="image/png")])

    # -- moods -------------------------------------------------------------------------------------

    def _block(self, rest: str) -> None:
        self._people.block(self.me)
        self._said = "No bot can write to you any more; /unblock takes that back."

    def _unblock(self, rest: str) -> None:
        self._people.block(self.me, blocked=False)

    def _fault(self, kind: str) -> None:
        if kind not in FAULTS:
            raise ValueError(f"The faults are {', '.join(FAULTS)}.")
        self._server.faults.add(FAULTS[kind], method="POST /channels/{channel}/messages")
        self._said = f"The bot's next message: {FAULTS[kind]}."

    def _gateway(self, what: str) -> None:
        doings: dict[str, Callable[[], None]] = {
            "drop": lambda: self._server.close(0),
            "reconnect": self._server.reconnect,
            "invalidate": self._server.invalidate,
            "silence": self._server.silence,
        }
        if what not in doings:
            raise ValueError(f"The connection can {', '.join(doings)}.")
        doings[what]()


def _options(command: dict[str, Any], rest: str) -> dict[str, Any]:
    """`name:value name:value`, or one value for the first option. Numbers and truth values become what they are."""
    known = {option["name"]: option for option in command.get("options") or ()}
    given = {match[1]: match[2] for match in _OPTION.finditer(rest) if match[1] in known}
    if rest and not given:
        if not known:
            raise LookupError(f"/{command['name']} takes no options.")
        given = {next(iter(known)): rest}
    return {name: _value(known[name]["type"], text) for name, text in given.items()}


def _value(kind: int, text: str) -> Any:
    if kind == 4:
        return int(text)
    if kind == 5:
        return text.lower() in ("true", "yes", "1")
    return float(text) if kind == 10 else text
