"""The messages that the bot answers, by place and by rule."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.discord.codec import Me, Place
from adapters.discord.listening import Listening
from adapters.discord.platform import PLATFORM, DiscordSettings
from gateway.domain.place import ListenRules

ME = Me(id="42")
ANNA, ROBOT = {"id": "1"}, {"id": "2", "bot": True}
CHANNEL = Place(channel="7", guild="9", within=("5",))
THREAD = Place(channel="70", guild="9", within=("7", "5"), is_thread=True)
MENTION = {"mentions": [{"id": "42"}]}
REPLY = {"type": 19, "referenced_message": {"author": {"id": "42"}}}


PLACES = ListenRules({"7": "off", "8": "thread", "guild-9": "free", "*": "off"})


@pytest.mark.parametrize(
    ("place", "rules", "mode"),
    [
        (CHANNEL, {}, "off"),
        (CHANNEL, {"free": ("7",)}, "off"),  # of one place, `chats` has the last word
        (THREAD, {"mention": ("70",)}, "mention"),  # the narrower place counts
        (Place(channel="8", guild="1"), {}, "thread"),
        (Place(channel="6", guild="9"), {}, "free"),
        (Place(channel="6", guild="9", within=("5",)), {"mention": ("5",)}, "mention"),
        (Place(channel="6", guild="1"), {"listen": "free"}, "off"),
    ],
)
def test_what_is_said_of_single_chats_counts(place: Place, rules: dict[str, Any], mode: str) -> None:
    listening = Listening(DiscordSettings(**rules), PLACES)
    assert listening.mode(place) == mode
    assert listening.reads_content


def hears(place: Place = CHANNEL, author: Any = ANNA, rules: Any = None, **message: Any) -> bool:
    listening = Listening(DiscordSettings(**(rules or {})))
    return listening.hears({"type": 0, "content": "", "author": author, **message}, place, ME)


@pytest.mark.parametrize(
    ("message", "heard"),
    [
        ({}, False),
        (MENTION, True),
        (REPLY, True),
        ({"mentions": [{"id": "3"}]}, False),
        ({"mention_roles": ["88"]}, True),
        ({"mention_everyone": True}, False),
        ({**MENTION, "type": 7}, False),
        ({**MENTION, "webhook_id": "5"}, False),
    ],
)
def test_a_channel_by_default(message: dict[str, Any], heard: bool) -> None:
    place = Place(channel="7", guild="9", my_role="88")
    assert hears(place, **message) is heard


@pytest.mark.parametrize(
    ("rules", "place", "heard"),
    [
        ({"free": ("7",)}, CHANNEL, True),
        ({"free": ("7",)}, THREAD, True),
        ({"free": ("5",)}, CHANNEL, True),
        ({"free": ("5",), "mention": ("7",)}, CHANNEL, False),
        ({"thread": ("7",)}, CHANNEL, True),
        ({"listen": "free"}, CHANNEL, True),
        ({"listen": "free", "off": ("7",)}, CHANNEL, False),
        ({"listen": "off"}, Place(channel="8"), True),  # between two
    ],
)
def test_the_narrowest_rule_counts(rules: dict[str, Any], place: Place, heard: bool) -> None:
    assert hears(place, rules=rules) is heard


def test_in_its_own_thread_it_answers_everything() -> None:
    assert hears(Place(channel="70", guild="9", within=("7",), is_thread=True, own=True))
    assert not hears(Place(channel="70", guild="9", within=("7",), is_thread=True, own=True), rules={"off": ("7",)})


def test_it_never_answers_itself() -> None:
    assert not hears(author={"id": "42", "bot": True}, rules={"listen": "free", "bots": 9}, content="<@42>")


def test_a_bot_is_answered_only_if_its_text_names_the_bot_and_only_so_often() -> None:
    listening = Listening(DiscordSettings(bots=2))

    def heard(author: Any, **message: Any) -> bool:
        return listening.hears({"type": 0, "content": "", "author": author, **message}, CHANNEL, ME)

    assert not heard(ROBOT, **MENTION)  # the ping of a reply
    assert [heard(ROBOT, content="<@42> hi") for _ in range(3)] == [True, True, False]
    assert not heard(ANNA)
    assert heard(ROBOT, content="<@42> hi")


def test_threads_are_opened_where_the_rule_says_and_never_in_threads() -> None:
    listening = Listening(DiscordSettings(thread=("7",)))
    assert listening.opens_thread(CHANNEL)
    assert not listening.opens_thread(THREAD)
    assert not listening.opens_thread(Place(channel="8"))
    assert not Listening(DiscordSettings(free=("7",))).opens_thread(CHANNEL)


def test_a_channel_has_one_rule() -> None:
    ((keys, text),) = DiscordSettings(free=("7",), off=("7",)).contradictions()
    assert keys == ("off", "free")
    assert text == "names the channel 7, and free names it, too: name the channel in one list only"


@pytest.mark.parametrize("name", ["1", "*", "1@2", "*@*", "*@guild-3", "role-4", "role-4@guild-3"])
def test_names_of_people_and_places(name: str) -> None:
    assert PLATFORM.person_problem(name) is None


@pytest.mark.parametrize("name", ["anna", "guild-3", "1@role-4", "@1", ""])
def test_names_that_nobody_can_have(name: str) -> None:
    assert (PLATFORM.person_problem(name) or "").startswith("must give a number")
