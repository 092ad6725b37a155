"""Polls: https://core.telegram.org/bots/api#sendpoll and #stoppoll. Bots cannot ask for one; whoever answers it shows
its counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from tests.emulators.telegram import access
from tests.emulators.telegram.cloud import Cloud
from tests.emulators.telegram.parameters import Parameters
from tests.emulators.telegram.refusals import bad

LONGEST_QUESTION: Final = 300
LONGEST_ANSWER: Final = 100
MOST_ANSWERS: Final = 12
_IDS: Final = itertools.count(5_000_000_000_000_000_001)


def send_poll(cloud: Cloud, parameters: Parameters) -> Any:
    """`sendPoll`."""
    question, given = parameters.text("question"), parameters.structure("options", "options")
    if not 1 <= len(question) <= LONGEST_QUESTION:
        raise bad(f"Poll question length must not exceed {LONGEST_QUESTION}" if question else "Poll question is empty")
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise bad("Expected an Array of InputPollOption")
    if not 1 <= len(given) <= MOST_ANSWERS:
        raise bad("Poll must have at least 1 option" if not given else f"Poll can't have more than {MOST_ANSWERS}")
    if any(not 1 <= len(str(each.get("text", ""))) <= LONGEST_ANSWER for each in given):
        raise bad(f"Poll options length must not exceed {LONGEST_ANSWER}")
    chat = access.chat_of(cloud, parameters, writing=True)
    place = access.place_of(cloud, chat, parameters)
    poll = {
        "id": str(next(_IDS)),
        "question": question,
        "options": [{"text": str(each["text"]), "voter_count": 0} for each in given],
        "total_voter_count": 0,
        "is_closed": False,
        "is_anonymous": True,
        "type": "regular",
        "allows_multiple_answers": parameters.flag("allows_multiple_answers"),
    }
    return cloud.show(chat, {"poll": poll}, reply_markup=access.markup_of(parameters), **place).as_json()


def stop_poll(cloud: Cloud, parameters: Parameters) -> Any:
    """`stopPoll`."""
    chat = access.chat_of(cloud, parameters, writing=True)
    message = access.message_of(chat, parameters, "message with poll to stop")
    if "poll" not in message.content or message.sender is not cloud.world.bot:
        raise bad("message with poll to stop not found")
    if message.content["poll"]["is_closed"]:
        raise bad("poll has already been closed")
    message.content["poll"]["is_closed"] = True
    cloud.journal.changed()
    return message.content["poll"]


METHODS: Final[dict[str, Callable[[Cloud, Parameters], Any]]] = {"sendPoll": send_poll, "stopPoll": stop_poll}
