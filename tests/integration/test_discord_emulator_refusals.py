"""The emulator refuses as Discord does, in Discord's words; discord.py reads them as it reads Discord's."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import discord
import pytest

from tests.emulators.discord import Channel, DiscordServer, Kind, Permission, Settings, User
from tests.emulators.discord.buckets import Limits
from tests.support.discord_client import client_of, connected
from tests.support.fakes import ManualClock

DAY = 86_400.0
BUTTON = {"type": 2, "style": 1, "label": "Yes", "custom_id": "yes"}


def _row(*buttons: Mapping[str, Any]) -> dict[str, Any]:
    return {"components": [{"type": 1, "components": list(buttons)}]}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def server(clock: ManualClock) -> AsyncIterator[DiscordServer]:
    async with DiscordServer(Settings(identify_every=0, heartbeat=DAY), limits=None, clock=clock) as running:
        yield running


class Bot:
    """Requests as they are, without a library's help."""

    def __init__(self, server: DiscordServer, session: aiohttp.ClientSession) -> None:
        self._server, self._session = server, session

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of the answer."""
        headers = {"Authorization": f"Bot {self._server.token}"}
        async with self._session.request(method, self._server.api_url + path, json=body, headers=headers) as answer:
            return answer.status, await answer.json() if answer.content_type == "application/json" else None

    async def post(self, channel: Channel, **form: Any) -> tuple[int, Any]:
        """Write a message."""
        return await self.ask("POST", f"/channels/{channel.id}/messages", form)


@pytest.fixture
async def bot(server: DiscordServer) -> AsyncIterator[Bot]:
    async with aiohttp.ClientSession() as session:
        yield Bot(server, session)


@pytest.mark.parametrize(
    ("form", "path", "code"),
    [
        ({"content": "x" * 2001}, "content", "BASE_TYPE_MAX_LENGTH"),
        ({"content": "x", "nonce": "n" * 26}, "nonce", "BASE_TYPE_MAX_LENGTH"),
        ({"content": "x", **_row(*[{**BUTTON, "custom_id": str(n)} for n in range(6)])}, "components.0.components", ""),
        ({"content": "x", **_row({**BUTTON, "custom_id": "i" * 101})}, "components.0.components.0.custom_id", ""),
        ({"content": "x", **_row({**BUTTON, "label": "l" * 81})}, "components.0.components.0.label", ""),
        ({"content": "x", **_row(BUTTON, BUTTON)}, "components.0.components.1.custom_id", ""),
        ({"content": "x", "components": [BUTTON]}, "components.0.type", "UNION_TYPE_CHOICES"),
        ({"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["1"]}}, "allowed_mentions", ""),
        ({"content": "x", "message_reference": {"message_id": "1"}}, "message_reference", "REPLIES_UNKNOWN_MESSAGE"),
        ({"content": "x", "embeds": [{}] * 11}, "embeds", "BASE_TYPE_BAD_LENGTH"),
    ],
)
async def test_an_invalid_form_is_refused_by_field(
    server: DiscordServer, bot: Bot, place: Channel, form: dict[str, Any], path: str, code: str
) -> None:
    status, body = await bot.post(place, **form)
    assert (status, body["code"]) == (400, 50035)
    errors = body["errors"]
    for name in path.split("."):
        errors = errors[name]
    assert errors["_errors"][0]["code"].startswith(code)
    assert server.shown(place) == []
    assert len(server.violations) == 1


@pytest.mark.parametrize("content", ["", "  \n "])
async def test_an_empty_message_is_refused(bot: Bot, place: Channel, content: str) -> None:
    status, body = await bot.post(place, content=content)
    assert (status, body["code"]) == (400, 50006)


async def test_what_is_not_there_and_what_is_closed(server: DiscordServer, bot: Bot, anna: User) -> None:
    people = server.people
    guild = people.guild("Choir", anna)
    hidden, mute, forum = (
        people.channel(guild, "h"),
        people.channel(guild, "m"),
        people.channel(guild, "f", kind=Kind.FORUM),
    )
    people.forbid(hidden, Permission.VIEW_CHANNEL)
    people.forbid(mute, Permission.SEND_MESSAGES)
    elsewhere = people.general(people.guild("Band", anna, with_bot=False))
    private = people.direct(anna)
    people.block(anna)
    said = people.say(mute, anna, "Hi")
    mine = f"/channels/{mute.id}/messages"
    for answer, expected in (
        (await bot.ask("GET", "/channels/1"), (404, 10003)),
        (await bot.ask("GET", f"{mine}/1"), (404, 10008)),
        (await bot.ask("GET", "/users/1"), (404, 10013)),
        (await bot.post(hidden, content="x"), (403, 50001)),
        (await bot.post(elsewhere, content="x"), (403, 50001)),
        (await bot.post(mute, content="x"), (403, 50013)),
        (await bot.post(private, content="x"), (403, 50007)),
        (await bot.post(forum, content="x"), (400, 50008)),
        (await bot.ask("PATCH", f"{mine}/{said.id}", {"content": "x"}), (403, 50005)),
        (await bot.ask("DELETE", f"{mine}/{said.id}"), (403, 50013)),
    ):
        assert (answer[0], answer[1]["code"]) == expected


async def test_a_nonce_is_kept_for_minutes(server: DiscordServer, clock: ManualClock, bot: Bot, place: Channel) -> None:
    first = await bot.post(place, content="Once", nonce="o_1", enforce_nonce=True)
    again = await bot.post(place, content="Twice", nonce="o_1", enforce_nonce=True)
    assert first[1]["id"] == again[1]["id"]
    assert [message.content for message in server.shown(place)] == ["Once"]
    await bot.post(place, content="Not asked", nonce="o_1")
    await clock.advance(server.settings.nonces + 1)
    await bot.post(place, content="Twice", nonce="o_1", enforce_nonce=True)
    assert [message.content for message in server.shown(place)] == ["Once", "Not asked", "Twice"]


async def test_an_old_message_takes_few_edits(clock: ManualClock, bot: Bot, place: Channel) -> None:
    _, message = await bot.post(place, content="0")
    path = f"/channels/{place.id}/messages/{message['id']}"
    assert {(await bot.ask("PATCH", path, {"content": str(n)}))[0] for n in range(9)} == {200}
    await clock.advance(3601)
    answers = [await bot.ask("PATCH", path, {"content": str(n)}) for n in range(6)]
    assert [status for status, _ in answers] == [200] * 5 + [429]
    assert answers[-1][1]["code"] == 30046
    assert answers[-1][1]["retry_after"] > 0


async def test_mentions_reach_whom_the_bot_allows(server: DiscordServer, bot: Bot, anna: User, place: Channel) -> None:
    assert place.guild is not None
    bert = server.people.person("Bert")
    server.people.join(place.guild, bert)
    text = f"<@{anna.id}> <@{bert.id}> `<@{server.bot.id}>` @everyone"
    for allowed, pinged in (
        (None, {anna.id, bert.id}),
        ({"parse": []}, set()),
        ({"parse": [], "users": [str(anna.id)]}, {anna.id}),
    ):
        form = {} if allowed is None else {"allowed_mentions": allowed}
        await bot.post(place, content=text, **form)
        assert server.shown(place)[-1].pings == pinged


@pytest.mark.parametrize(
    ("commands", "code"),
    [
        ([{"name": f"c{n}", "description": "d"} for n in range(101)], 30032),
        ([{"name": "Upper", "description": "d"}], 50035),
        ([{"name": "n" * 33, "description": "d"}], 50035),
        ([{"name": "n", "description": "d" * 101}], 50035),
        ([{"name": "n", "description": ""}], 50035),
        ([{"name": "n", "description": "d"}] * 2, 50035),
        (
            [
                {
                    "name": "n",
                    "description": "d",
                    "options": [
                        {"type": 3, "name": "a", "description": "d"},
                        {"type": 3, "name": "b", "description": "d", "required": True},
                    ],
                }
            ],
            50035,
        ),
    ],
)
async def test_commands_that_break_a_limit_change_nothing(
    server: DiscordServer, bot: Bot, place: Channel, commands: list[dict[str, Any]], code: int
) -> None:
    path = f"/applications/{server.cloud.application}/commands"
    await bot.ask("PUT", path, [{"name": "old", "description": "Still here"}])
    status, body = await bot.ask("PUT", path, commands)
    assert (status, body["code"]) == (400, code)
    assert list(server.people.commands(place)) == ["old"]


async def test_commands_can_be_made_only_200_times_a_day(
    server: DiscordServer, clock: ManualClock, bot: Bot, place: Channel
) -> None:
    path = f"/applications/{server.cloud.application}/commands"
    for batch in range(2):
        fresh = [{"name": f"c{batch}_{n}", "description": "d"} for n in range(100)]
        assert (await bot.ask("PUT", path, fresh))[0] == 200
    assert (await bot.ask("PUT", path, fresh))[0] == 200, "the same ones are none that are made"
    status, body = await bot.ask("PUT", path, [{"name": "one", "description": "more"}])
    assert (status, body["code"]) == (429, 30034)
    await clock.advance(DAY + 1)
    assert (await bot.ask("PUT", path, [{"name": "one", "description": "more"}]))[0] == 200


async def test_files_are_kept_and_their_links_expire(
    server: DiscordServer, clock: ManualClock, anna: User, place: Channel
) -> None:
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with connected(server, client_of(heard)):
        server.people.say(place, anna, "@Legato go")
        message = await heard.get()
        sent = await message.reply(file=discord.File(io.BytesIO(b"some words"), filename="my notes.txt"))
        (attachment,) = sent.attachments
        assert attachment.filename == "my_notes.txt"
        assert await attachment.read() == b"some words"
        await clock.advance(DAY + 2)
        with pytest.raises(discord.NotFound):
            await attachment.read()
        (fresh,) = (await message.channel.fetch_message(sent.id)).attachments
        assert await fresh.read() == b"some words"
        with pytest.raises(discord.HTTPException) as refused:
            await message.reply(file=discord.File(io.BytesIO(bytes((10 << 20) + 1)), filename="big"))
        assert (refused.value.status, refused.value.code) == (413, 40005)


async def test_requests_are_counted_by_route_and_channel() -> None:
    clock = ManualClock()
    limits = Limits(overall=8)
    async with (
        DiscordServer(Settings(heartbeat=DAY), limits=limits, clock=clock) as server,
        aiohttp.ClientSession() as session,
    ):
        bot = Bot(server, session)
        anna = server.people.person("Anna")
        guild = server.people.guild("Choir", anna)
        one, two = server.people.general(guild), server.people.channel(guild, "two")
        answers = [await bot.post(one, content="x") for _ in range(6)]
        assert [status for status, _ in answers] == [200] * 5 + [429]
        assert answers[-1][1] == {"message": answers[-1][1]["message"], "retry_after": 5.0, "global": False, "code": 0}
        assert (await bot.post(two, content="x"))[0] == 200, "another channel, another bucket"
        answers = [await bot.ask("GET", "/gateway"), await bot.ask("GET", "/users/@me")]
        assert answers[-1][0] == 429
        assert answers[-1][1]["global"] is True
        await clock.advance(5.1)
        assert (await bot.post(one, content="x"))[0] == 200
        server.ban(60)
        assert await bot.post(one, content="x") == (429, None), "what Cloudflare says is no JSON"
