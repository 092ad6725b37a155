"""A loopback Slack: its Web API, Socket Mode and signed requests, with people, channels, limits and moods behind them.

    async with SlackServer() as slack:
        anna = slack.people.person("Anna")
        ...  # a bot connects: base_url = slack.api_url
        slack.people.say(slack.people.direct(anna), anna, "Hello")
        await slack.until(lambda: slack.shown(slack.people.direct(anna)))
        assert not slack.violations

It was written from Slack's documentation, not from what any bot sends.
To try a bot by hand: `python -m tests.emulators slack`.

`server` takes calls; `methods` are those of the Web API, on the state in `world`; `blocks` is what Slack refuses in a
message; `delivery` tells the bot what happened; `people` makes it happen.
"""

from tests.emulators.faults import Disconnect, Flood, LoseAnswer, Refuse, Seeded, Slow
from tests.emulators.slack.server import SlackServer
from tests.emulators.slack.world import Channel, Message, Settings, User

__all__ = [
    "Channel",
    "Disconnect",
    "Flood",
    "LoseAnswer",
    "Message",
    "Refuse",
    "Seeded",
    "Settings",
    "SlackServer",
    "Slow",
    "User",
]
