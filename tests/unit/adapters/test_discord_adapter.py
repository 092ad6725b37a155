"""The adapter's knowledge without a question to Discord."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from discord.errors import HTTPException
from pydantic import SecretStr

from adapters.discord.adapter import DiscordAdapter, account_of, components
from adapters.discord.codec import SILENT, VOICE, snowflake
from adapters.discord.commands import SlashCommands
from adapters.discord.connection import CLOSING_SECONDS, SILENT_SECONDS, ApiClient, DiscordClient
from adapters.discord.files import upload
from adapters.discord.platform import DiscordSettings
from gateway.app.plugins import all_commands
from gateway.domain.adapter import MenuEntry
from gateway.domain.chat import VOICE as SPOKEN
from gateway.domain.chat import Button, ChatAddress, KeptFile, Outbound, SessionKey
from gateway.domain.command import Parameter
from gateway.runtime.errors import MessageGone
from tests.support.fakes import ManualClock
from tests.support.hosts import host

TOKEN = "NDI0MjQyNDI0MjQyNDI0MjQy.EMULAT.x"


def row(text: str = "Hello", **more: Any) -> Outbound:
    key = SessionKey(platform="discord", chat="7")
    to = ChatAddress(platform="discord", chat="7")
    return Outbound(id="o_1", key=key, to=to, kind="reply", text=text, **more)


@pytest.mark.parametrize("token", [TOKEN, f" {TOKEN}\n"])
def test_the_account_is_the_id_that_the_token_begins_with(token: str) -> None:
    assert account_of(token) == "424242424242424242"


def test_of_another_token_the_account_is_a_name_that_says_nothing_of_it() -> None:
    name = account_of("no token at all")
    assert name == account_of("no token at all") != account_of("another")
    assert "token" not in name


async def test_a_message_that_is_old_is_sent_anew() -> None:
    clock = ManualClock()
    adapter = DiscordAdapter(DiscordSettings(token=SecretStr(TOKEN)), host(clock))
    old = snowflake(clock.now() - 4_000)
    for name in (str(old), f"@{old}"):
        with pytest.raises(MessageGone):
            await adapter.edit(row(), name)
    await adapter.aclose()


def test_buttons_carry_their_own_tokens() -> None:
    rows = ((Button(label="Approve", token="approve a_1"), Button(label="x" * 90, token="deny a_1")),)
    ((line),) = components(rows)
    assert [(each["label"], each["custom_id"]) for each in line["components"]] == [
        ("Approve", "approve a_1"),
        ("x" * 80, "deny a_1"),
    ]
    assert components(()) == []


def test_all_commands_are_declared_as_discord_takes_them() -> None:
    declared = SlashCommands([each.entry for each in all_commands().commands]).declared()
    assert len({each["name"] for each in declared}) == len(declared) <= 100
    for command in declared:
        assert 1 <= len(command["description"]) <= 100
        options = command["options"]
        assert [each["required"] for each in options] == sorted((each["required"] for each in options), reverse=True)
        assert all(1 <= len(each["description"]) <= 100 for each in options)
    assert {each["name"] for each in declared if "default_member_permissions" in each} == {"home", "mcp", "pair"}


def test_each_name_of_a_command_is_a_command() -> None:
    declared = {
        each["name"]: each for each in SlashCommands([each.entry for each in all_commands().commands]).declared()
    }
    assert declared["reset"] == {**declared["new"], "name": "reset"}
    assert declared["pins"]["options"] == declared["pin"]["options"]
    plugins = [MenuEntry(name=f"c{number}", help="a plug-in's") for number in range(200)]
    declared_too = SlashCommands([MenuEntry(name="new", help="x", aliases=("reset",)), *plugins]).declared()
    assert [each["name"] for each in declared_too[:3]] == ["new", "reset", "c0"]
    assert len(declared_too) == 100


def test_what_is_chosen_reads_like_what_is_typed() -> None:
    entry = MenuEntry(
        name="paint",
        help="Paint.",
        parameters=(
            Parameter(name="Wet", help="wet", kind="flag", form="--wet"),
            Parameter(name="colour", help="which", choices=("red", "blue")),
        ),
    )
    commands = SlashCommands([entry])
    chosen = [{"name": "colour", "value": "red"}, {"name": "wet", "value": True}]
    assert commands.typed({"name": "paint", "options": chosen}) == "/paint --wet red"
    assert commands.typed({"name": "paint", "options": [{"name": "wet", "value": False}]}) == "/paint"
    assert commands.typed({"name": "gone"}) == "/gone"
    (option,) = [each for each in commands.declared()[0]["options"] if each["name"] == "colour"]
    assert option["choices"] == [{"name": "red", "value": "red"}, {"name": "blue", "value": "blue"}]


def test_a_zombie_is_replaced_within_a_minute_and_no_slow_acknowledgement_is_taken_for_one() -> None:
    heartbeat, handshake, pause = 41.25, 5.0, 1.0  # seconds between two that Discord asks for; of a slow connection
    assert heartbeat < SILENT_SECONDS
    assert SILENT_SECONDS + CLOSING_SECONDS + pause + handshake < 60.0


@pytest.mark.parametrize(
    ("sockets", "where", "socket"),
    [
        ("ab", {"guild_id": 1 << 22}, "b"),
        ("ab", {"guild_id": 2 << 22}, "a"),
        ("ab", {"guild_id": None}, "a"),
        ("ab", {"shard_id": 1}, "b"),
        (["a", None], {"shard_id": 1}, "own"),
        ("", {"guild_id": 1 << 22}, "own"),
    ],
)
def test_a_voice_channel_is_entered_over_the_socket_of_its_guild(
    sockets: Any, where: dict[str, Any], socket: str
) -> None:
    client = SimpleNamespace(_shards=[SimpleNamespace(ws=each) for each in sockets], ws="own")
    assert DiscordClient._get_websocket(cast(Any, client), **where) == cast(Any, socket)


class Refused(HTTPException):
    """What Discord answers to a voice message that is none."""

    def __init__(self, code: int) -> None:
        super().__init__(cast(Any, SimpleNamespace(status=400, reason="Bad Request")), {"code": code})


@pytest.mark.parametrize(
    ("buttons", "refused", "flags"),
    [((), None, [SILENT | VOICE]), (({"type": 1},), None, [SILENT | 4]), ((), 50161, [SILENT | VOICE, SILENT | 4])],
)
async def test_a_recording_that_stands_alone_is_a_voice_message(
    buttons: tuple[Any, ...], refused: int | None, flags: list[int]
) -> None:
    request = AsyncMock(side_effect=[Refused(refused), {"id": "1"}] if refused else [{"id": "1"}])
    payload = {"content": "", "embeds": [], "flags": SILENT | 4, "components": [*buttons], "nonce": "n"}
    file = KeptFile(ref=f"{SPOKEN}r", digest="", name="a.ogg", mime="audio/ogg", size=1, at=0.0)
    await upload(cast(ApiClient, SimpleNamespace(request=request)), "5", [(file, b"OggS")], payload)
    told = [json.loads(call.kwargs["form"][0]["value"]) for call in request.await_args_list]
    assert [each["flags"] for each in told] == flags
    assert [{"content", "embeds", "components"} & {*each} for each in told if each["flags"] & VOICE] in ([], [set()])
    assert told[-1].get("components", []) == [*buttons]


async def test_a_file_comes_with_the_flags_and_the_buttons_of_its_message() -> None:
    request = AsyncMock(return_value={"id": "1"})
    payload = {"content": "see", "flags": 1 << 12, "components": [{"type": 1}], "nonce": "n"}
    file = KeptFile(ref="r", digest="", name="a.txt", mime="text/plain", size=1, at=0.0)
    await upload(cast(ApiClient, SimpleNamespace(request=request)), "5", [(file, b"x")], payload)
    told = json.loads(request.await_args.kwargs["form"][0]["value"])  # type: ignore[union-attr]
    assert {name: told[name] for name in payload} == payload
    assert [each["filename"] for each in told["attachments"]] == ["a.txt"]
