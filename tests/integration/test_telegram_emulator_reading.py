"""The ways of python-telegram-bot to get its updates from the emulator: by polling and at a webhook."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
import telegram
from aiohttp import web
from telegram.error import BadRequest, Conflict
from telegram.ext import Updater

from tests.emulators.telegram import Settings, TelegramServer
from tests.emulators.telegram.specimens import specimens
from tests.emulators.telegram.updates import DAY, KINDS
from tests.emulators.telegram.webhook import SECRET_HEADER
from tests.support.telegram_client import client, emulated
from tests.support.waiting import eventually


def somebody(server, name="Anna"):
    user = server.people.person(name)
    return user, server.people.private(user)


def texts(updates):
    return [update.effective_message.text for update in updates]


# Polling


async def test_an_update_comes_again_until_a_later_offset_is_asked_for():
    async with emulated() as (server, bot):
        anna, chat = somebody(server)
        for text in ("one", "two", "three"):
            server.people.say(chat, anna, text)
        first = await bot.get_updates(limit=2)
        assert texts(first) == texts(await bot.get_updates(limit=2)) == ["one", "two"]
        assert texts(await bot.get_updates(offset=first[1].update_id)) == ["two", "three"]
        assert texts(await bot.get_updates(offset=first[1].update_id + 1)) == ["three"]
        assert texts(await bot.get_updates()) == ["three"]


async def test_a_negative_offset_forgets_all_but_the_last():
    async with emulated() as (server, bot):
        anna, chat = somebody(server)
        for text in ("one", "two", "three"):
            server.people.say(chat, anna, text)
        assert texts(await bot.get_updates(offset=-1)) == texts(await bot.get_updates()) == ["three"]


async def test_an_offset_from_nowhere_confirms_nothing():
    async with emulated() as (server, bot):
        anna, chat = somebody(server)
        server.people.say(chat, anna, "one")
        assert texts(await bot.get_updates(offset=2_000_000_000)) == ["one"]


async def test_a_long_poll_ends_with_what_comes():
    async with emulated() as (server, bot), asyncio.TaskGroup() as group:
        anna, chat = somebody(server)
        poll = group.create_task(bot.get_updates(timeout=50))
        await server.until(lambda: any(server.journal.of("getUpdates")))
        server.people.say(chat, anna, "finally")
        assert texts(await poll) == ["finally"]


async def test_a_long_poll_ends_when_its_time_is_over(clock):
    async with emulated(clock=clock) as (_, bot), asyncio.TaskGroup() as group:
        poll = group.create_task(bot.get_updates(timeout=30))
        await clock.until_pending()
        await clock.advance(30)
        assert await poll == ()


async def test_updates_are_kept_for_a_day(clock):
    async with emulated(clock=clock) as (server, bot):
        anna, chat = somebody(server)
        server.people.say(chat, anna, "old")
        await clock.advance(DAY - 1)
        server.people.say(chat, anna, "new")
        assert texts(await bot.get_updates()) == ["old", "new"]
        await clock.advance(1)
        assert texts(await bot.get_updates()) == ["new"]


async def test_only_what_is_asked_for_is_sent():
    async with emulated() as (server, bot):
        anna, chat = somebody(server)
        await bot.get_updates(allowed_updates=["edited_message"])
        message = server.people.say(chat, anna, "one")
        server.people.edit(message, "two")
        assert texts(await bot.get_updates()) == ["two"]
        await bot.get_updates(allowed_updates=[])
        server.people.react(message, anna, "👍")  # not among the kinds that come unasked
        server.people.say(chat, anna, "three")
        assert texts(await bot.get_updates()) == ["two", "three"]


async def test_the_second_poller_takes_over():
    async with emulated() as (server, bot), client(server) as other:
        anna, chat = somebody(server)
        polls = server.journal.of
        first = asyncio.create_task(bot.get_updates(timeout=50))
        await server.until(lambda: any(polls("getUpdates")))
        second = asyncio.create_task(other.get_updates(timeout=50))
        with pytest.raises(Conflict, match="terminated by other getUpdates request; make sure that only one bot"):
            await first
        server.people.say(chat, anna, "mine")
        assert texts(await second) == ["mine"]


async def test_fighting_pollers_are_slowed_down(clock):
    async with emulated(clock=clock, settings=Settings(pacing=True)) as (server, bot):
        await bot.set_webhook(f"{server.url}/nobody")
        with pytest.raises(Conflict, match="while webhook is active"):
            await bot.get_updates()
        slow = asyncio.create_task(bot.get_updates())
        await clock.until_pending()
        await clock.advance(3)
        with pytest.raises(Conflict, match="while webhook is active"):
            await slow


async def test_every_kind_of_update_is_understood_by_the_client():
    async with emulated() as (server, bot):
        anna, chat = somebody(server)
        await bot.get_updates(allowed_updates=KINDS)
        sent = list(specimens(chat, anna, 1_700_000_000))
        for kind, body in sent:
            server.people.update(kind, body)
        updates = await bot.get_updates()
        assert sorted(kind for kind, _ in sent) == sorted(KINDS) == sorted(telegram.Update.ALL_TYPES)
        for (kind, _), update in zip(sent, updates, strict=True):
            assert getattr(update, kind) is not None


async def test_the_clients_own_updater_polls():
    queue: asyncio.Queue[telegram.Update] = asyncio.Queue()
    async with emulated() as (server, bot), Updater(bot, update_queue=queue) as updater:
        anna, chat = somebody(server)
        server.people.say(chat, anna, "before")
        await updater.start_polling(timeout=10)
        server.people.say(chat, anna, "while")
        assert texts([await queue.get(), await queue.get()]) == ["before", "while"]
        await updater.stop()
        assert len(server.cloud.updates) == 0


# Webhook


class Receiver:
    """Somebody's web server: keeps what is posted, and answers what `answers` says next, or 200."""

    def __init__(self):
        self.updates = []
        self.secrets = []
        self.answers = []
        self.url = ""

    async def take(self, request):
        self.secrets.append(request.headers.get(SECRET_HEADER))
        status, headers = self.answers.pop(0) if self.answers else (200, {})
        if status == 200:
            self.updates.append(telegram.Update.de_json(await request.json()))
        return web.Response(status=status, headers=headers)


@asynccontextmanager
async def receiver():
    """A receiver on a port of its own."""
    place = Receiver()
    app = web.Application()
    app.router.add_post("/hook", place.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    place.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield place
    finally:
        await runner.cleanup()


async def delivered(server, place, count):
    """Wait until so many updates were taken and confirmed."""
    await eventually(lambda: len(place.updates) == count and not len(server.cloud.updates))


async def test_updates_are_posted_with_the_secret():
    async with emulated() as (server, bot), receiver() as place:
        anna, chat = somebody(server)
        server.people.say(chat, anna, "waited")
        await bot.set_webhook(place.url, secret_token="s3cret", max_connections=1)
        server.people.say(chat, anna, "came")
        await delivered(server, place, 2)
        assert (texts(place.updates), place.secrets) == (["waited", "came"], ["s3cret", "s3cret"])
        info = await bot.get_webhook_info()
        assert (info.url, info.max_connections, info.pending_update_count) == (place.url, 1, 0)


async def test_what_is_refused_is_posted_again_in_order(clock):
    async with emulated(clock=clock) as (server, bot), receiver() as place:
        anna, chat = somebody(server)
        place.answers = [(500, {}), (500, {}), (503, {"Retry-After": "7"})]
        await bot.set_webhook(place.url)
        server.people.say(chat, anna, "one")
        server.people.say(chat, anna, "two")
        for seconds in (2, 7):
            await clock.until_pending()
            assert clock.pending == (seconds,)
            await clock.advance(seconds)
        await delivered(server, place, 2)
        assert texts(place.updates) == ["one", "two"]
        assert "503" in (await bot.get_webhook_info()).last_error_message


async def test_nobody_at_home_is_told_in_the_info(clock):
    async with emulated(clock=clock) as (server, bot):
        anna, chat = somebody(server)
        await bot.set_webhook("http://127.0.0.1:9/hook")
        server.people.say(chat, anna, "one")
        await clock.until_pending()
        info = await bot.get_webhook_info()
        assert (info.last_error_message, info.pending_update_count) == ("Connection refused", 1)


async def test_a_webhook_and_polling_exclude_each_other():
    async with emulated() as (_, bot), receiver() as place:
        await bot.set_webhook(place.url)
        with pytest.raises(Conflict, match="can't use getUpdates method while webhook is active"):
            await bot.get_updates()
        await bot.delete_webhook()
        assert await bot.get_updates() == ()


async def test_a_webhook_ends_the_poll_that_waits():
    async with emulated() as (server, bot), receiver() as place:
        poll = asyncio.create_task(bot.get_updates(timeout=50))
        await server.until(lambda: any(server.journal.of("getUpdates")))
        await bot.set_webhook(place.url)
        with pytest.raises(Conflict, match="terminated by setWebhook request"):
            await poll


async def test_pending_updates_are_dropped_only_if_so_wished():
    async with emulated() as (server, bot):
        anna, chat = somebody(server)
        server.people.say(chat, anna, "one")
        await bot.delete_webhook()
        assert len(server.cloud.updates) == 1
        await bot.delete_webhook(drop_pending_updates=True)
        assert len(server.cloud.updates) == 0


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [
        ("http://example.com/hook", {}, "An HTTPS URL must be provided for webhook"),
        ("https://example.com:8444/hook", {}, "only on ports 80, 88, 443 or 8443"),
        ("https://127.0.0.1/hook", {"secret_token": "not allowed"}, "secret token contains unallowed characters"),
        ("https://127.0.0.1/hook", {"secret_token": "x" * 257}, "secret token is too long"),
    ],
)
async def test_webhooks_that_are_refused(url, options, reason):
    async with emulated() as (_, bot):
        with pytest.raises(BadRequest, match=f"(?i){reason}"):
            await bot.set_webhook(url, **options)


async def test_update_ids_begin_anywhere():
    async with TelegramServer(seed=1) as one, TelegramServer(seed=2) as other:
        starts = set()
        for server in (one, other):
            anna, chat = somebody(server)
            server.people.say(chat, anna, "x")
            starts.add(server.cloud.updates.waiting()[0].id)
        assert len(starts) == 2
