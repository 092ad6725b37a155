"""A loopback Bot API server with Telegram behind it: chats, people, limits and moods.

    async with TelegramServer(limits=Limits()) as telegram:
        anna = telegram.people.person("Anna")
        chat = telegram.people.private(anna)
        bot = Bot(telegram.token, base_url=telegram.base_url, base_file_url=telegram.base_file_url)
        telegram.people.say(chat, anna, "Hello")
        await telegram.until(lambda: telegram.shown(chat))
        assert not telegram.violations

It was written from the documentation of the Bot API and the public source of its server, not from what any bot sends.
To try a bot by hand: `python -m tests.emulators telegram`.

`server` takes calls; `methods` are those of the Bot API, on the state in `cloud`; `access`, `entities`, `markdown` and
`markup` are what Telegram checks; `flood` and `faults` say no for other reasons; `updates` and `webhook` tell the bot
what happened; `people` and `membership` make it happen, from a test, over HTTP (`inspection`) or by hand (`terminal`).
"""

from tests.emulators.faults import Disconnect, Flood, LoseAnswer, Refuse, Seeded, Slow
from tests.emulators.telegram.cloud import Settings
from tests.emulators.telegram.flood import Limits
from tests.emulators.telegram.server import TelegramServer
from tests.emulators.telegram.world import Chat, Message, User

__all__ = [
    "Chat",
    "Disconnect",
    "Flood",
    "Limits",
    "LoseAnswer",
    "Message",
    "Refuse",
    "Seeded",
    "Settings",
    "Slow",
    "TelegramServer",
    "User",
]
