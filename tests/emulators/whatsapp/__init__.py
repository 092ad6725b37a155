"""A loopback WhatsApp: the Cloud API and its webhooks, with people, limits, the 24 hours and moods behind them.

    async with WhatsAppServer() as whatsapp:
        anna = whatsapp.person("Anna")
        ...  # a bot asks to be called: base_url = whatsapp.api_url
        whatsapp.say(anna, "Hello")
        await whatsapp.until(lambda: whatsapp.shown(anna))
        assert not whatsapp.violations

It was written from Meta's documentation, not from what any bot sends.
To try a bot by hand: `python -m tests.emulators whatsapp`.

`server` takes calls, on the state in `world`; `checks` is what Meta refuses in a message, and what people see of one;
`delivery` brings webhooks; `people` does what people do.
"""

from tests.emulators.faults import Disconnect, Flood, LoseAnswer, Refuse, Slow
from tests.emulators.whatsapp.server import WhatsAppServer
from tests.emulators.whatsapp.world import Message, Person, Settings

__all__ = [
    "Disconnect",
    "Flood",
    "LoseAnswer",
    "Message",
    "Person",
    "Refuse",
    "Settings",
    "Slow",
    "WhatsAppServer",
]
