"""What Slack's JSON means."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from adapters.slack import codec
from adapters.slack.adapter import SCOPES, account_of
from adapters.slack.calls import SlackCalls
from adapters.slack.commands import SlashCommands
from adapters.slack.platform import PLATFORM
from adapters.slack.reactions import reaction_inbound, show
from gateway.domain.adapter import MenuEntry, Sign
from gateway.runtime.errors import DeliveryRefused

ME = codec.Me(id="UBOT", bot="BBOT", team="T1", enterprise="E1")


def test_the_documents_manifest_asks_for_what_the_bot_uses() -> None:
    text = (Path(__file__).parents[3] / "docs" / "slack.md").read_text()
    manifest = yaml.safe_load(
        text.partition("```yaml\ndisplay_information")[2].partition("```")[0].join(("display_information", ""))
    )
    assert " ".join(manifest["oauth_config"]["scopes"]["bot"]) == SCOPES


def test_people_read_names_and_not_signs() -> None:
    said = "<@UBOT> ask <@U1> in <#C1|choir>, <!here>: <https://a.org|this> &lt;b&gt; <mailto:x@a.org|x@a.org> <@UBOT>"
    message = {"ts": "1.000001", "user": "U2", "text": said, "team": "T9"}
    place = codec.place_of(message, "C1")
    inbound = codec.message_inbound(message, place, ME, {"U1": "Ben", "U2": "Anna"})
    assert inbound is not None
    assert inbound.text == "ask @Ben in #choir, @here: this (https://a.org) <b> x@a.org"
    assert (inbound.source.within, inbound.source.roles, inbound.own) == (("T1", "E1"), ("T9",), None)


def test_what_is_forwarded_or_quoted_commands_nothing() -> None:
    shared = {"is_msg_unfurl": True, "text": "/new"}
    message = {"ts": "1.000001", "user": "U2", "text": "&gt; /forget\nlook", "attachments": [shared]}
    inbound = codec.message_inbound(message, codec.Place(channel="D1"), ME, {})
    assert inbound is not None
    assert (inbound.text, inbound.own) == ("> /forget\nlook\n[forwarded]\n/new", "look")
    assert inbound.command is None


def test_ids_are_numbers_in_the_order_of_time() -> None:
    assert codec.ts(codec.number("1795981218.440847")) == "1795981218.440847"
    assert codec.number("1795981218.440847") > codec.id_at(1795981218.0) == 1_795_981_218_000_000
    assert codec.id_at(-5.0) == 0


def test_commands_are_those_of_the_registry_by_either_way() -> None:
    commands = SlashCommands([MenuEntry(name="new", help="", aliases=("reset",)), MenuEntry(name="status", help="")])
    given = [
        ("/new", ""),
        ("/legato", "Reset now"),
        ("/legato", "/status"),
        ("/legato", "What is up?"),
        ("/legato", ""),
    ]
    typed = [commands.typed({"command": command, "text": text}) for command, text in given]
    assert typed == ["/new", "/Reset now", "/status", "What is up?", "/help"]


def test_names_in_lists() -> None:
    assert [PLATFORM.person_problem(each) for each in ("U012AB3CD", "W12345", "T1234", "*@C0456", "*")] == [None] * 5
    assert PLATFORM.person_problem("anna") is not None
    assert [PLATFORM.place_problem(each) for each in ("C0456", "T1234", "E1234", "C0456/12.000034", "*")] == [None] * 5
    assert account_of("xoxb-11-22-secret") == "11-22"


@pytest.mark.parametrize(
    ("sign", "asked"),
    [
        ("taken", [("reactions.add", "eyes")]),
        ("done", [("reactions.add", "white_check_mark"), ("reactions.remove", "eyes")]),
        ("failed", [("reactions.add", "warning"), ("reactions.remove", "eyes")]),
    ],
)
async def test_a_sign_stands_in_place_of_the_one_before(sign: Sign, asked: list[tuple[str, str]]) -> None:
    heard: list[tuple[str, str]] = []

    async def calls(method: str, **how: Any) -> None:
        assert (how["channel"], how["timestamp"]) == ("C1", "1.0")
        heard.append((method, how["name"]))
        raise DeliveryRefused("already there, or never")

    await show(cast(SlackCalls, calls), "C1", "1.0", sign)
    assert heard == asked


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("+1", "reaction_added", "+👍"),
        ("thumbsup::skin-tone-3", "reaction_removed", "-👍"),
        ("choir", "reaction_added", "+:choir:"),
    ],
)
def test_what_somebody_feels_is_about_a_message(name: str, kind: str, text: str) -> None:
    event = {"type": kind, "reaction": name, "user": "U1", "event_ts": "2.0", "item": {"ts": "1.0"}}
    inbound = reaction_inbound(event, codec.Place(channel="C1"), ME)
    assert (inbound.kind, inbound.text, inbound.reply_to, inbound.source.user) == ("reaction", text, "1.0", "U1")


def test_what_others_wrote_before_a_mention_is_quoted_with_its_writers() -> None:
    before = [
        {"type": "message", "user": "U2", "text": "The choir meets", "ts": "1.000001"},
        {"type": "message", "subtype": "channel_join", "user": "U2", "text": "joined", "ts": "2.000001"},
        {"type": "message", "user": "U3", "text": "", "ts": "3.000001"},
        {"type": "message", "user": "U3", "text": "on Monday", "ts": "4.000001"},
    ]
    found = codec.quoted(before, codec.Place(channel="C1"), ME, {"U2": "Anna"})
    assert [(each.source.user, each.source.user_name or "", each.text, each.at, each.place) for each in found] == [
        ("U2", "Anna", "The choir meets", 1.000001, "1.000001"),
        ("U3", "", "on Monday", 4.000001, "4.000001"),
    ]
