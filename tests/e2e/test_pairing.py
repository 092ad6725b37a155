"""A stranger asks to be let in, an admin who knows them types their code: on Telegram, from a shell."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from gateway.domain.adapter import Limits
from gateway.domain.chat import Inbound, Source
from gateway.domain.turn import STOPPED
from gateway.people.access import Access, AccessSettings
from gateway.people.pairing import NAMELESS, Pairing, guest_book, set_guest_book
from gateway.people.welcome import WELCOME
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from gateway.store.sqlite import SqliteStore
from tests.emulators.telegram import TelegramServer
from tests.support.fakes import ManualClock
from tests.support.fast_clock import FastClock
from tests.support.gateway import FakeAdapter, Live, config_in, running
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.program import legato
from tests.support.telegram_live import on_telegram


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


def code_in(text: str) -> str:
    found = re.search(r"[2-9A-Z]{4}-[2-9A-Z]{4}", text)
    assert found, text
    return found[0]


async def test_a_stranger_is_given_a_code_and_let_in_by_it(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    his = telegram.people.private(bob)
    async with on_telegram(tmp_path, telegram, anna, pairing=True, admins=(f"telegram:{anna.id}",)) as bot:
        telegram.people.say(his, bob, "hello?")
        await bot.until(lambda: len(bot.shown(his)) == 1)
        code = code_in(bot.shown(his)[0])
        assert f"\n/pair {code} (from an admin, here)\nlegato access confirm {code} (in a shell)" in bot.shown(his)[0]
        telegram.people.say(his, bob, "hello??")  # he has one already
        bot.says("/pair")
        await bot.until(lambda: len(bot.shown()) == 1)
        assert f"telegram:{bob.id} “Bob”" in bot.shown()[0]
        assert code not in bot.shown()[0]
        bot.says(f"/pair {code.lower()}")
        await bot.until(lambda: bot.shown(his)[1:] == [WELCOME])
        telegram.people.say(his, bob, "at last")
        await bot.until(lambda: "echo: at last" in bot.shown(his))
        assert len(bot.model.requests) == 1  # nothing he said before was heard
        bot.says("/pair remove bob")
        await bot.until(lambda: any("for example: /pair remove telegram:12345678" in text for text in bot.shown()))
        bot.says(f"/pair remove telegram:{bob.id}")
        await bot.until(lambda: any("I shut" in text for text in bot.shown()))
        telegram.people.say(his, bob, "and now?")
        await bot.until(lambda: len(bot.shown(his)) == 4)
        assert code_in(bot.shown(his)[-1]) != code
        await bot.quiet()
    assert telegram.violations == []


async def test_what_runs_for_who_is_shown_out_is_ended_and_nothing_that_waits_is_answered(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob, gate = telegram.people.person("Anna"), telegram.people.person("Bob"), Gate()
    his = telegram.people.private(bob)
    model = FakeModel(in_turn(Say(text="one", gate=gate), Say(text="never")))
    admins = (f"telegram:{anna.id}",)
    async with on_telegram(tmp_path, telegram, anna, model=model, pairing=True, admins=admins) as bot:
        telegram.people.say(his, bob, "hello?")
        await bot.until(lambda: len(bot.shown(his)) == 1)
        bot.says(f"/pair {code_in(bot.shown(his)[0])}")
        await bot.until(lambda: WELCOME in bot.shown(his))
        for text in ("one", "two", "/title Mine"):
            telegram.people.say(his, bob, text)
        await gate.until_waiting()
        await bot.until(lambda: len(telegram.cloud.updates) == 0)
        bot.says(f"/pair remove telegram:{bob.id}")
        await bot.until(lambda: any("I shut" in text for text in bot.shown()))
        await bot.quiet()
        assert bot.shown(his)[2:] == [STOPPED]
        assert len(model.requests) == 1


async def test_it_holds_after_a_restart(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    his = telegram.people.private(bob)
    async with on_telegram(tmp_path, telegram, anna, pairing=True, admins=(f"telegram:{anna.id}",)) as bot:
        telegram.people.say(his, bob, "hello?")
        await bot.until(lambda: len(bot.shown(his)) == 1)
        bot.says(f"/pair {code_in(bot.shown(his)[0])}")
        await bot.until(lambda: WELCOME in bot.shown(his))
        await bot.quiet()
    async with on_telegram(tmp_path, telegram, anna, pairing=True) as bot:
        telegram.people.say(his, bob, "me again")
        await bot.until(lambda: "echo: me again" in bot.shown(his))


async def test_in_a_group_and_where_pairing_is_off_a_stranger_learns_nothing(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    group = telegram.people.group("Team", anna, bob)
    async with on_telegram(tmp_path, telegram, anna, pairing=True) as bot:
        telegram.people.say(group, bob, f"@{telegram.bot.username} let me in")
        bot.says("hello")
        await bot.until_shown("echo: hello")
        assert bot.shown(group) == []


async def test_who_writes_in_the_name_of_a_group_that_is_let_in_is_answered(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, people = telegram.people.person("Anna"), telegram.people
    group, news = people.group("Team", anna, bot="administrator"), people.group("News", anna, kind="channel")
    mention, admins = f"@{telegram.bot.username}", (f"telegram:{anna.id}",)
    async with on_telegram(
        tmp_path, telegram, anna, pairing=True, admins=admins, allow=(f"telegram:*@{group.id}",)
    ) as bot:
        people.repost(group, news, f"{mention} is new here")
        people.say_as(group, group, f"{mention} hello")
        people.say_as(group, news, f"{mention} good news")
        people.say_as(group, group, "not to the bot")
        people.say_as(group, group, f"/pair{mention}")
        await bot.until(lambda: len(bot.shown(group)) == 3)
        *_, refused = sorted(bot.shown(group), key=lambda text: text.startswith("Only an admin can let people in"))
        assert {*bot.shown(group)} == {"echo: hello", "echo: good news", refused}  # each in a lane of its own
        assert refused.startswith("Only an admin can let people in"), "a group has no admin's rights"
    assert telegram.violations == []


@pytest.mark.parametrize("pairing", [True, False])
async def test_who_writes_in_the_name_of_a_strange_group_is_told_once_how_to_be_heard(
    tmp_path: Path, telegram: TelegramServer, pairing: bool
) -> None:
    anna = telegram.people.person("Anna")
    group = telegram.people.group("Team", anna)
    told = [NAMELESS.format(platform="telegram", chat=group.id)] if pairing else []
    for start in range(1, 3):
        async with on_telegram(tmp_path, telegram, anna, pairing=pairing) as bot:
            for text in ("hello", "hello?"):
                telegram.people.say_as(group, group, f"@{telegram.bot.username} {text}")
            bot.says(f"start {start}")
            await bot.until_shown(*(f"echo: start {number + 1}" for number in range(start)))
            await bot.until(lambda: bot.shown(group) == told)
        assert len(bot.model.requests) == 1


async def test_admins_hear_of_somebody_who_writes_in_a_group_where_others_may_talk(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    group, other = telegram.people.group("Book club", anna, bob), telegram.people.group("Elsewhere", bob)
    mention = f"@{telegram.bot.username}"
    async with on_telegram(tmp_path, telegram, anna, pairing=True, admins=(f"telegram:{anna.id}",)) as bot:
        bot.says("hello")  # Telegram lets no bot begin to write to somebody
        await bot.until_shown("echo: hello")
        telegram.people.say(other, bob, f"{mention} is this bot mine?")
        bot.says(f"{mention} hello", group)
        await bot.until(lambda: len(bot.shown(group)) == 1)
        for _ in range(3):
            telegram.people.say(group, bob, f"{mention} me, too")
        await bot.until(lambda: len(bot.shown()) == 2)
        told = bot.shown()[1]
        assert told.startswith(f"Bob (telegram:{bob.id}) wrote to me in Book club. I did not answer")
        bot.says("/pair")
        await bot.until(lambda: f"telegram:{bob.id} “Bob” in Book club" in bot.shown()[-1])
        bot.says(f"/pair {code_in(told)}")
        await bot.until(lambda: bot.shown(group)[-1].startswith("Bob, you have been let in, "))
        telegram.people.say(group, bob, f"{mention} and now?")
        await bot.until(lambda: "echo: and now?" in bot.shown(group)[-1])
        assert bot.shown(other) == []
        assert len(bot.shown(group)) == 3
        assert len(bot.shown()) == 4
    assert telegram.violations == []


async def test_who_was_let_in_elsewhere_is_heard_at_once(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000.0)
    store = SqliteStore(tmp_path / "legato.db", clock=clock)
    await store.open()
    here, shell = (Pairing(access=Access(), store=store, clock=clock, rng=Random(seed)) for seed in range(2))
    bob = Source(platform="p", chat="b", chat_type="direct", user="b")
    assert not await here.lets_in(bob)
    await here.ask(Inbound(event_id="e", source=bob, text="hi"))
    (asking,) = (await shell.book()).asking
    assert not await here.lets_in(bob)
    await shell.confirm(asking.code)
    assert await here.lets_in(bob), "not a second later"
    await store.aclose()


async def test_only_an_admin_lets_people_in(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    his = telegram.people.private(bob)
    async with on_telegram(tmp_path, telegram, anna, pairing=True) as bot:  # Anna may talk, no more
        telegram.people.say(his, bob, "hello?")
        await bot.until(lambda: len(bot.shown(his)) == 1)
        bot.says(f"/pair {code_in(bot.shown(his)[0])}")
        await bot.until(lambda: len(bot.shown()) == 1)
        assert bot.shown()[0].startswith("Only an admin can let people in")
        assert not (await guest_book(bot.gateway.store)).guests


async def test_an_admins_slips_do_not_lock_the_door(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    his = telegram.people.private(bob)
    async with on_telegram(tmp_path, telegram, anna, pairing=True, admins=(f"telegram:{anna.id}",)) as bot:
        telegram.people.say(his, bob, "hello?")
        await bot.until(lambda: len(bot.shown(his)) == 1)
        for slip in ("remove", f"remove {bob.id}", "list", f"telegram:{bob.id}", "Bob"):
            bot.says(f"/pair {slip}")
        await bot.until(lambda: sum("A code has 8 letters" in text for text in bot.shown()) == 3)
        await bot.until(lambda: sum("Give the person as /pair shows them" in text for text in bot.shown()) == 2)
        bot.says(f"/pair {code_in(bot.shown(his)[0])}")
        await bot.until(lambda: WELCOME in bot.shown(his))


async def test_an_admin_lets_somebody_in_from_a_shell_while_the_gateway_runs(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    his = telegram.people.private(bob)
    async with on_telegram(tmp_path, telegram, anna, pairing=True) as bot:
        telegram.people.say(his, bob, "hello?")
        await bot.until(lambda: len(bot.shown(his)) == 1)
        status, out, errors = await legato(tmp_path, "access", "confirm", "WR4NGWAY")
        assert (status, out) == (1, "")
        assert "This code is wrong" in errors
        assert "legato access list lists the people who are waiting to be let in" in errors  # a shell knows no /pair
        assert "/pair" not in errors
        status, out, errors = await legato(tmp_path, "access", "remove", "bob")
        assert (status, out) == (1, "")
        # Somebody of a platform that is installed, whichever comes first.
        assert re.search(r"for example: legato access remove (discord|telegram):\d{8,}\n\Z", errors)
        status, out, _ = await legato(tmp_path, "access", "confirm", code_in(bot.shown(his)[0]))
        told = (
            f"Let in: telegram:{bob.id} “Bob”. The gateway tells this person within ten seconds, or as soon as Legato "
            f"runs.\n"
        )
        assert (status, out) == (0, told)
        await bot.gateway.people.welcome.pairing.book()  # a stranger is looked up once a second: that second is over
        telegram.people.say(his, bob, "hello!")  # he does not wait for it, and is told all the same, first
        await bot.until(lambda: bot.shown(his)[1:] == [WELCOME, "echo: hello!"])
        _, out, _ = await legato(tmp_path, "access", "list")
        assert f"Let in: telegram:{bob.id}" in out
        status, _, _ = await legato(tmp_path, "access", "remove", f"telegram:{bob.id}")
        assert status == 0


async def test_a_token_in_a_file_is_there_for_every_command(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text('adapters:\n  telegram: {enabled: true, token: "${BOT_TOKEN_OF_A_FILE}"}\n')
    status, _, errors = await legato(tmp_path, "access", "list")
    assert (status, "BOT_TOKEN_OF_A_FILE" in errors) == (2, True)
    (tmp_path / ".env").write_text("BOT_TOKEN_OF_A_FILE=42:abc\n")
    assert (await legato(tmp_path, "chat", given=b"hello\n"))[0] == 0  # makes the store
    status, out, errors = await legato(tmp_path, "access", "list")
    assert (status, errors) == (0, "")
    assert "42:abc" not in out


async def test_who_was_let_in_elsewhere_is_told_so_once(tmp_path: Path) -> None:
    config = config_in(tmp_path, access=AccessSettings(pairing=True))
    elsewhere = SqliteStore(tmp_path / "legato.db", clock=ManualClock(), read_only=True)
    pairing = Pairing(access=Access(), store=elsewhere, clock=SystemClock(), rng=Random(1))

    async def lets_in(live: Live, name: str) -> None:
        await live.adapter.receive(live.adapter.inbound("hello?", user=name, chat=name))
        await live.adapter.until(lambda: live.adapter.shown(name))
        assert (await pairing.confirm(code_in(live.adapter.shown(name)[0])))[0] == "let in"

    async with running(tmp_path, adapter=FakeAdapter("public", Limits()), config=config) as live:
        await elsewhere.open()
        await lets_in(live, "bob")
        await live.gateway.people.welcome.look()
        await live.adapter.until(lambda: live.adapter.shown("bob")[1:] == [WELCOME])
        await live.gateway.people.welcome.look()
        await lets_in(live, "ben")
        await live.quiet()  # else what was being shown is shown again by the next
    async with running(tmp_path, adapter=FakeAdapter("public", Limits()), config=config) as live:
        await live.adapter.until(lambda: live.adapter.shown("ben") == [WELCOME])
        await live.quiet()
    async with running(tmp_path, adapter=FakeAdapter("public", Limits()), config=config) as live:
        assert await live.ask("again", user="ben", chat="ben") == "echo: again"
        await live.quiet()
        rows = await live.store.outbox(None, 99)
        assert sorted(row.to.chat for row in rows if row.text == WELCOME) == ["ben", "bob"]
        assert {row.state for row in rows} == {"sent"}
    await elsewhere.aclose()


async def test_a_crash_between_a_greeting_and_its_note_greets_nobody_twice(tmp_path: Path) -> None:
    config = config_in(tmp_path, access=AccessSettings(pairing=True, admins=("public:u",), allow=("public:u",)))
    platform = FakeAdapter("public", Limits())
    async with running(tmp_path, adapter=platform, config=config) as live:
        await platform.receive(platform.inbound("hello?", user="bob", chat="bob"))
        await platform.until(lambda: platform.shown("bob"))
        pairing, store = live.gateway.people.welcome.pairing, live.store
        await live.ask(f"/pair {code_in(platform.shown('bob')[0])}")
        book = await guest_book(store)
        assert [guest.greeted for guest in book.guests] == [True]
        forgotten = tuple(replace(guest, greeted=False) for guest in book.guests)
        assert await set_guest_book(store, replace(book, guests=forgotten, version=book.version + 1))
        await live.gateway.people.welcome.look()
        await live.quiet()
        assert platform.shown("bob")[1:] == [WELCOME]
        assert [guest.greeted for guest in (await pairing.book()).guests] == [True]


async def test_a_message_that_comes_again_after_a_crash_is_told_once(tmp_path: Path) -> None:
    platform = FakeAdapter("public", Limits())
    config = config_in(tmp_path, access=AccessSettings(pairing=True))
    async with running(tmp_path, adapter=platform, config=config):
        same = platform.inbound("hello?", user="stranger", event="same")
        for _ in range(2):
            assert [each.status for each in await platform.receive(same)] == ["refused"]
        await platform.until(lambda: len(platform.sent) == 1)
        again = await platform.receive(same, platform.inbound("hm?", user="stranger"))
        assert [each.status for each in again] == ["refused", "refused"]
        assert len(platform.sent) == 1


async def test_strangers_who_write_without_end_cost_a_look_a_second(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000.0)
    store = SqliteStore(tmp_path / "legato.db", clock=clock)
    await store.open()
    looks = 0

    async def counted(folder: str) -> dict[str, str]:
        nonlocal looks
        looks += 1
        return await SqliteStore.notes(store, folder)

    store.notes = counted  # type: ignore[method-assign]
    pairing = Pairing(access=Access(), store=store, clock=clock, rng=Random(1))
    told = []
    for number in range(500):
        source = Source(platform="p", chat=f"{number}", chat_type="direct", user=f"{number}")
        assert not await pairing.lets_in(source)
        told.append(await pairing.ask(Inbound(event_id=f"e{number}", source=source, text="hi")))
    assert sum(each is not None for each in told) == 3
    assert looks == 1
    await store.aclose()
