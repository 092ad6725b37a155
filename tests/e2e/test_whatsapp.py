"""People on WhatsApp, as they see the bot."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.domain.message import text_of
from gateway.domain.turn import BUSY, SessionSettings
from gateway.people.welcome import WELCOME
from tests.emulators.whatsapp import Flood, LoseAnswer, Person, Refuse, Settings, WhatsAppServer
from tests.emulators.whatsapp.delivery import signature
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.tools import Payment, payments
from tests.support.whatsapp_live import on_whatsapp


@pytest.fixture
async def whatsapp() -> AsyncIterator[WhatsAppServer]:
    """Without its rate limits; who breaks one of its rules fails the test."""
    async with WhatsAppServer(limited=False, clock=FastClock()) as running:
        yield running
        assert [str(each) for each in running.violations] == []


@pytest.fixture
def anna(whatsapp: WhatsAppServer) -> Person:
    """Somebody who may talk to the bot."""
    return whatsapp.person("Anna")


async def test_a_story_of_one_day(tmp_path: Path, whatsapp: WhatsAppServer, anna: Person) -> None:
    gate, eve = Gate(), whatsapp.person("Eve")
    model = FakeModel(in_turn(Say(first="**Look**", gate=gate, text=" `here`."), Say(text="Yes.")))
    hello = whatsapp.say(anna, "Hello")  # nobody listens yet
    signs = SessionSettings(reactions=True)
    async with on_whatsapp(tmp_path, whatsapp, anna, model=model, sessions=signs) as bot:
        await gate.until_waiting()
        await bot.until(lambda: hello.read and hello.signs == {"bot": "👀"})  # typing says that it is read, too
        meanwhile = bot.says("Are you there?")
        await bot.until(lambda: bot.whatsapp.delivery.told[-1].taken.is_set())
        gate.open()
        await bot.until_shown("Look here.", "Yes.")
        first, second = (each for each in whatsapp.of_bot(anna) if each.text != BUSY)
        assert (first.text, first.quotes, second.quotes) == ("*Look* `here`.", hello.id, "")  # more was said meanwhile
        await bot.until(lambda: hello.signs == meanwhile.signs == {"bot": "✅"})
        bot.says("What do you mean?", reply=first)
        await bot.until(lambda: len(model.requests) == 3)
        assert model.spoken(2)[-1] == ("user", '[in reply to you: "**Look** `here`."]\nWhat do you mean?')
        bot.says("Let me in", eve)
        whatsapp.react(anna, second, "👎")
        whatsapp.react(anna, second, "👍")
        await bot.quiet()
        asked = bot.says("Sure?")
        await bot.until(lambda: len(model.requests) == 4)
        assert '[Anna reacted 👍 to: "Yes."]' in str(model.requests[3].messages[-1])
        await bot.quiet()
        whatsapp.edit(asked, "Really?")
        await bot.until(lambda: len(model.requests) == 5)
        assert model.spoken(4)[-1][1].endswith("Really?")
        bot.says("/help")
        await bot.until(lambda: "/new" in bot.shown()[-1])
        assert whatsapp.of_bot(eve) == []
    bot.says("Are you there now?")  # nobody is
    async with on_whatsapp(tmp_path, whatsapp, anna) as bot:
        await bot.until(lambda: bot.shown()[-1] == "echo: Are you there now?")


async def test_it_asks_with_buttons_and_lists(tmp_path: Path, whatsapp: WhatsAppServer, anna: Person) -> None:
    payment = Payment()
    asked = {"question": "What to sing? " + "la " * 60, "options": ["Bach", "Byrd, or whoever else sang then"]}
    ask = Say(calls=[("ask_person", json.dumps(asked))])
    model = FakeModel(in_turn(payments(42), Say(text="Paid."), ask))
    async with on_whatsapp(tmp_path, whatsapp, anna, model=model, with_tools=[payment]) as bot:
        bot.says("pay")
        await bot.until(lambda: whatsapp.of_bot(anna) and whatsapp.of_bot(anna)[-1].buttons)
        question = whatsapp.of_bot(anna)[-1]
        assert list(question.buttons) == ["Approve", "This session", "Always", "Deny"]
        pressed = whatsapp.press(anna, question, "Approve")
        await bot.until(lambda: len(payment.paid) == 1 and "Paid." in bot.shown())
        told = next(each for each in whatsapp.of_bot(anna) if each.text == "Approved.")
        assert told.quotes == pressed.id
        whatsapp.press(anna, question, "Deny")  # which stands there still, as nothing can be changed
        await bot.until(lambda: bot.shown()[-1].startswith("This question is already closed"))
        bot.says("Again")
        await bot.until(lambda: whatsapp.of_bot(anna)[-1].buttons)
        chosen = whatsapp.of_bot(anna)[-1]
        assert chosen.body["interactive"]["type"] == "list"
        whatsapp.press(anna, chosen, next(each for each in chosen.buttons if each.startswith("Byrd")))
        await bot.until(lambda: len(model.requests) == 4)
        assert text_of(model.requests[-1].messages[-1]) == f"The person answered: {asked['options'][1]}"


async def test_files_go_both_ways(tmp_path: Path, whatsapp: WhatsAppServer, anna: Person) -> None:
    async with on_whatsapp(tmp_path, whatsapp, anna) as bot:
        notes = whatsapp.file(b"Alto: Ben", "text/plain")
        part = {"id": notes, "mime_type": "text/plain", "filename": "notes.txt", "caption": "Read this"}
        whatsapp.send(anna, {"type": "document", "document": part})
        await bot.until(lambda: bot.shown())
        assert "notes.txt" in bot.shown()[0]
        assert "Alto: Ben" in str(bot.model.requests[0].messages[-1])
        place = {"latitude": 52.5, "longitude": 13.4, "name": "Home", "address": "Street 1"}
        whatsapp.send(anna, {"type": "location", "location": place})
        card = {"name": {"formatted_name": "Ben"}, "phones": [{"phone": "+49 1"}]}
        whatsapp.send(anna, {"type": "contacts", "contacts": [card]}, forwarded=True)
        await bot.until(lambda: len(bot.shown()) == 3)
        assert bot.shown()[1:] == [
            "echo: [location: Home, Street 1, 52.500000, 13.400000]",
            "echo: [forwarded]\n[contact: Ben, +49 1]",
        ]
        whatsapp.send(anna, {"type": "unsupported", "unsupported": {"type": "poll"}, "errors": [{"code": 131051}]})
        await bot.until(lambda: "cannot" in bot.shown()[-1] or len(bot.shown()) == 4)
        bot.says("/export")
        await bot.until(lambda: any(each.kind == "document" for each in whatsapp.of_bot(anna)))
        (file,) = [each for each in whatsapp.of_bot(anna) if each.kind == "document"]
        sent = file.body["document"]
        assert sent["filename"].endswith(".md")
        assert whatsapp.world.media[sent["id"]].content
        bot.says("Thanks", reply=file)
        await bot.until(lambda: bot.shown()[-1].endswith("Thanks"))
        assert '""' not in bot.shown()[-1], "a file without words is not quoted"


async def test_what_breaks_on_the_way_is_neither_lost_nor_shown_twice(
    tmp_path: Path, whatsapp: WhatsAppServer, anna: Person
) -> None:
    whatsapp.delivery.faults.add(LoseAnswer(), method="webhook messages", times=2)
    whatsapp.faults.add(LoseAnswer(seconds=0.0), method="messages")
    whatsapp.faults.add(Refuse(status=503), method="messages", nth=2)
    async with on_whatsapp(tmp_path, whatsapp, anna) as bot:
        for number, said in enumerate(("one", "two", "three"), 1):
            if number == 3:
                whatsapp.faults.add(Refuse(status=400, body=json.dumps({"error": {"code": 131016}})), method="messages")
            bot.says(said)
            await bot.until(lambda number=number: len(bot.shown()) == number)
        await bot.quiet()
        assert bot.shown() == ["echo: one", "↻ echo: two", "echo: three"]  # nobody knew of the second


async def test_who_is_let_in_is_told_so(tmp_path: Path, whatsapp: WhatsAppServer, anna: Person) -> None:
    bob = whatsapp.person("Bob")
    async with on_whatsapp(tmp_path, whatsapp, anna, pairing=True, admins=(f"whatsapp:{anna.address}",)) as bot:
        bot.says("Hello?", bob)
        await bot.until(lambda: len(bot.shown(bob)) == 1)
        (code,) = set(re.findall("[2-9A-Z]{4}-[2-9A-Z]{4}", bot.shown(bob)[0]))
        bot.says(f"/pair {code}")
        await bot.until(lambda: bot.shown(bob)[1:] == [WELCOME])


async def test_meta_calls_and_nobody_else_can(tmp_path: Path) -> None:
    settings = Settings(numbers=("900000000000001", "900000000000002"), expires_at=1_800_000_000)
    async with WhatsAppServer(settings, limited=False) as whatsapp:
        anna, ben = whatsapp.person("Anna"), whatsapp.person("Ben", hidden=True)
        async with on_whatsapp(tmp_path, whatsapp, anna, allow=(f"whatsapp:{ben.id}",)) as bot:
            bot.says("one")
            bot.says("two", number="900000000000002")
            bot.says("three", ben)
            await bot.until_shown("echo: one")
            await bot.until(lambda: whatsapp.shown(anna, "900000000000002") == ["echo: two"])
            await bot.until(lambda: whatsapp.shown(ben) == ["echo: three"])
            body = json.dumps({"object": "whatsapp_business_account", "entry": []}).encode()
            async with aiohttp.ClientSession() as stranger:
                url = settings.callback_url
                for headers in ({}, {"X-Hub-Signature-256": signature("another", body)}, {"X-Hub-Signature-256": "é"}):
                    async with stranger.post(url, data=body, headers=headers) as refused:
                        assert refused.status == 401
                async with stranger.get(url, params={"hub.verify_token": "guess", "hub.challenge": "1"}) as refused:
                    assert refused.status == 403
            here: Any = {"metadata": {"phone_number_id": settings.numbers[0]}}
            values = [
                {"metadata": {}},
                [7],
                {"metadata": 7},
                {**here, "messages": 7},
                {**here, "statuses": {"id": "x"}},
            ]
            odd: list[Any] = [{"entry": [7, {"changes": [{"field": "messages", "value": value}]}]} for value in values]
            for each in ({}, {"entry": 7}, {"entry": [{"changes": 7}]}, *odd):
                assert await whatsapp.delivery.post(json.dumps(each).encode()) == 200
            assert await whatsapp.delivery.post(b" " * 3_000_000 + body) == 200, "Meta sends as much at once"
            assert await whatsapp.delivery.post(b" " * 4_000_000 + body) == 413
            found = {each.what: each for each in await bot.adapter.probe()}
            assert found["whatsapp"].detail == "+1 555-000-1111 (Legato), quality GREEN"
            assert found["whatsapp webhook"].ok
            assert found["whatsapp token"].detail.startswith("the token ends on 2027-01-15")
            settings.token = "another"
            found = {each.what: each for each in await bot.adapter.probe()}
            assert found["whatsapp"].detail.startswith("Meta rejects the token in adapters.whatsapp")
            settings.token = "EAAGlegatotoken"
            settings.secret = "another"
            found = {each.what: each for each in await bot.adapter.probe()}
            assert "copy the App secret at" in found["whatsapp secret"].detail


class _Jumping(FastClock):
    """Time that can be put forward."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


async def test_what_takes_long_to_store_is_stored_all_the_same(
    tmp_path: Path, whatsapp: WhatsAppServer, anna: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a command that was cut off while it was stored, nobody would know that it is to be answered."""
    gate, stored = Gate(), asyncio.Event()

    async def slow(_: Any) -> None:
        await gate.pass_through()
        stored.set()

    async with on_whatsapp(tmp_path, whatsapp, anna) as bot:
        await bot.until(lambda: whatsapp.settings.callback_url)
        monkeypatch.setattr(bot.adapter._endpoint, "_heard", slow)
        assert await whatsapp.delivery.post(b"{}") == 503
        gate.open()
        await stored.wait()


async def test_after_a_day_only_a_template_arrives(tmp_path: Path) -> None:
    clock = _Jumping()
    async with WhatsAppServer(limited=False, clock=clock) as whatsapp:
        anna = whatsapp.person("Anna")
        async with on_whatsapp(tmp_path, whatsapp, anna) as bot:
            bot.says("/remind in 30 hours tea")
            await bot.until(lambda: bot.shown())
            assert "I can write to you here only for 24 hours after your last message." in bot.shown()[0]
            bot.says("/remind in 2 hours milk")
            await bot.until(lambda: len(bot.shown()) == 2)
            assert "only for" not in bot.shown()[1]
            clock.ahead = 2.5 * 3_600
            await bot.until(lambda: len(bot.shown()) == 3)
            assert "milk" in bot.shown()[2]
            clock.ahead = 31 * 3_600
            await bot.until_withheld(1)
            bot.says("Anything new?")
            await bot.until(lambda: len(bot.shown()) == 5)
            assert any("I could not show 1 answer here" in each for each in bot.shown()[3:])
        template = {"template": {"name": "news", "language": "en"}}
        async with on_whatsapp(tmp_path, whatsapp, anna, rules=template) as bot:
            bot.says("/remind in 30 hours call **Ben**\nand Bob")
            await bot.until(lambda: "call" in bot.shown()[-1])
            assert "only for" not in bot.shown()[-1]
            clock.ahead = 62 * 3_600
            await bot.until(lambda: whatsapp.of_bot(anna)[-1].kind == "template")
            assert "call **Ben** · and Bob" in whatsapp.of_bot(anna)[-1].text
            whatsapp.settings.templates = ()
            found = {each.what: each.detail for each in await bot.adapter.probe()}
            assert found["whatsapp template"].startswith("news: unknown in en; see https://")
        assert [str(each) for each in whatsapp.violations] == []


async def test_a_list_turns_its_pages(tmp_path: Path, whatsapp: WhatsAppServer, anna: Person) -> None:
    async with on_whatsapp(tmp_path, whatsapp, anna) as bot:
        for number in range(10):
            bot.says(f"/new number {number}")
            bot.says(f"talk {number}")
            await bot.until(lambda number=number: bot.shown() and bot.shown()[-1] == f"echo: talk {number}")
        bot.says("/sessions")
        await bot.until(lambda: whatsapp.of_bot(anna)[-1].buttons)
        first = whatsapp.of_bot(anna)[-1]
        assert len(first.buttons) == 9
        whatsapp.press(anna, first, "▸")
        await bot.until(lambda: whatsapp.of_bot(anna)[-1] is not first and whatsapp.of_bot(anna)[-1].buttons)
        assert "◂" in whatsapp.of_bot(anna)[-1].buttons


async def test_what_failed_comes_again_where_that_helps_and_else_is_marked(tmp_path: Path) -> None:
    clock = FastClock(pace=30.0)  # a minute of pauses, and no answer that takes long
    async with WhatsAppServer(limited=False, clock=clock) as whatsapp:
        anna = whatsapp.person("Anna")
        async with on_whatsapp(tmp_path, whatsapp, anna, patience=300.0) as bot:
            anna.failing = [131000, 131056]
            whatsapp.delivery.faults.add(LoseAnswer(), method="webhook statuses")  # so Meta tells of it twice
            asked = bot.says("zero")
            await bot.until_shown("echo: zero")
            assert whatsapp.of_bot(anna)[-1].quotes == asked.id
            anna.failing = [131000] * 9
            asked = bot.says("for ever")
            await bot.until(lambda: asked.signs == {"bot": "⚠️"})
            assert len(anna.failing) == 5
            anna.failing = []
            anna.blocked = True
            asked = bot.says("one")
            await bot.until(lambda: asked.signs == {"bot": "⚠️"})
            assert bot.shown() == ["echo: zero"]
            anna.blocked = False
            whatsapp.faults.add(Flood(), method="messages")
            bot.says("two")
            await bot.until(lambda: "echo: two" in bot.shown())
        assert [str(each) for each in whatsapp.violations] == []


async def test_each_kind_of_what_cannot_be_read_is_told_once(
    tmp_path: Path, whatsapp: WhatsAppServer, anna: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    async with on_whatsapp(tmp_path, whatsapp, anna) as bot:
        for kind in ("edit", "edit", "revoke"):
            whatsapp.send(anna, {"type": kind})
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
    assert re.findall("event_unreadable .*kind=(.+)", capsys.readouterr().out) == ["edit", "revoke"]
