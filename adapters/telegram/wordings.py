"""The wordings of messages, so that an edit is told from an update without one.

Telegram sends `edited_message` also when something else about a message changed, which may be of no use to a bot
(https://core.telegram.org/bots/api#update). So the words and files of the messages read lately are remembered, and the
events that they came as.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from adapters.telegram.updates import Message, Update
from gateway.domain.chat import Inbound

_REMEMBERED: Final = 10_000  # messages
_WORDINGS: Final = 20  # of one message, beside its first
_EDITABLE: Final = 48 * 3_600.0  # seconds for which a person can edit a message

_Place = tuple[int, int]


class _Wording(Struct, frozen=True):
    events: tuple[str, ...]  # newest first
    words: int  # a hash
    update: int  # that brought them
    amended: tuple[str, ...]  # the events that it amended: it is read again where it could not be stored


class Wordings:
    """What was read lately, by chat and message."""

    def __init__(self) -> None:
        self._said: OrderedDict[_Place, _Wording] = OrderedDict()

    def earlier(self, update: Update) -> tuple[str, ...] | None:
        """The events of the message's earlier wordings, newest first; () for a new message, or one that is not
        remembered. None: the update changes no words."""
        message = update.edited_message
        if message is None:
            return ()
        said = self._said.get(_place(message))
        if said is not None and said.update == update.update_id:
            return said.amended
        if said is not None:
            return None if said.words == _words(message) else said.events
        return None if (message.edit_date or 0.0) - message.date > _EDITABLE else ()

    def note(self, update: Update, inbound: Inbound) -> None:
        """Remember what was read."""
        message = update.message or update.edited_message
        if message is None:
            return
        *newer, first = dict.fromkeys((inbound.event_id, *inbound.amends))
        place = _place(message)
        events = (*newer[:_WORDINGS], first)
        self._said[place] = _Wording(events, _words(message), update.update_id, inbound.amends)
        self._said.move_to_end(place)
        while len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)


def _place(message: Message) -> _Place:
    return (message.chat.id, message.message_id)


def _words(message: Message) -> int:
    files = (*message.photo[-1:], message.document, message.video, message.audio, message.voice, message.animation)
    return hash((message.text, message.caption, *(file.file_unique_id for file in files if file is not None)))
