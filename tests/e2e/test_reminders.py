"""Reminders through a whole gateway: asked for by command, button and model, fired once, whatever is killed."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.adapter import Limits
from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.expiry import ExpiryPolicy
from gateway.domain.message import text_of
from gateway.domain.pairing import GuestBook
from gateway.domain.reminder import ReminderRules
from gateway.domain.turn import SessionSettings
from gateway.people import reminders as people
from gateway.people.access import AccessSettings
from gateway.people.pairing import guest_book
from gateway.providers.plugin import ModelPrices
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.errors import ChatGone, ProviderUnavailable
from tests.support.asking import Buttoned
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, FakeModel, KillAt, Killed, Live, Say, config_in, echo, in_turn, running
from tests.support.waiting import eventually

MONDAY = datetime(2026, 11, 23, 13, 5, 30, tzinfo=UTC).timestamp()  # 14:05:30 in Berlin


def config(folder: Path, **sections: Any) -> Any:
    sessions = SessionSettings(expiry=ExpiryPolicy(timezone="Europe/Berlin"))
    return config_in(folder, **{"sessions": sessions, **sections})


def at_work(folder: Path, clock: ManualClock, **more: Any) -> Any:
    """A gateway of people in Berlin, whose sweeps the test makes."""
    return running(folder, clock=clock, config=more.pop("config", None) or config(folder), **more)


async def swept(live: Live, clock: ManualClock, seconds: float = 0.0) -> int:
    """Let time pass, and look for what is due."""
    await clock.advance(seconds)
    fired = await live.gateway.people.firing.fire_due()
    await live.quiet()
    return fired


def said(adapter: FakeAdapter) -> list[str]:
    return [row.text for row in adapter.sent if row.kind == "reminder"]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(MONDAY)


# -- by command ----------------------------------------------------------------------------------


async def test_a_person_is_reminded_once_and_sees_that_they_were(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        answer = await live.ask("/remind in 20 minutes drink the tea")
        assert answer.startswith(
            "1. I will remind you of this: drink the tea\nMon 23 Nov 2026, 14:25 (Europe/Berlin)\n"
        )
        assert "I used the time zone Europe/Berlin" in answer
        assert await swept(live, clock, 19 * 60) == 0
        assert await swept(live, clock, 61) == 1
        assert await swept(live, clock, 61) == 0
        assert said(live.adapter) == ["⏰ drink the tea\n(/reminders snooze 1 10m says it again later)"]
        listed = await live.ask("/reminders")
        assert "There are no upcoming reminders." in listed
        assert "1. drink the tea — fired Mon 23 Nov 2026, 14:25:31, shown 14:25:31" in listed


async def test_a_reminder_that_was_missed_is_said_late_at_the_next_start(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        await live.ask("/remind at 15:00 drink the tea")
        await live.ask("/remind every day at 15:00 walk")
    await clock.advance(3 * 86_400 + 3_600)
    async with at_work(tmp_path, clock) as live:
        await live.adapter.until(lambda: len(said(live.adapter)) == 2)
        texts = sorted(text.partition("\n")[0] for text in said(live.adapter))
        assert texts[0] == "⏰ drink the tea (late by 3 days)"
        assert re.fullmatch(r"⏰ walk \(late by \d+ minutes, 3 earlier times missed\)", texts[1])
        assert "every day, next Fri 27 Nov 2026, 15:00" in await live.ask("/reminders")


async def test_what_cannot_be_is_said_clearly(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        assert "/remind tomorrow at 9 call Ann" in await live.ask("/remind the milk")
        assert await live.ask("/remind today at 10 x") == (
            "2026-11-23 10:00 is in the past: it is Monday, 2026-11-23 14:05 now (Europe/Berlin)."
        )
        assert "too far away" in await live.ask("/remind in 1000000 years x")
        assert await live.ask("/remind tomorrow") == people.EMPTY
        assert "A reminder may have at most 1,500 characters" in await live.ask(f"/remind tomorrow {'x' * 2_000}")
        assert "/remind in 20 minutes tea" in await live.ask("/remind")
        assert "/schedule every weekday at 8" in await live.ask("/schedule")
        assert "There is no reminder 7 here" in await live.ask("/reminders cancel 7")
        assert "/reminders lists your reminders. After /reminders" in await live.ask("/reminders whatever")
        assert (await live.ask("/reminders")).startswith("You have no reminders here.")


async def test_a_person_changes_what_waits(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        await live.ask("/remind every day at 15:00 walk")
        await live.ask("/remind tomorrow at 9 call Ann")
        assert "Wed 25 Nov 2026, 15:00" not in await live.ask("/reminders")
        assert "next Tue 24 Nov 2026, 15:00" in await live.ask("/reminders skip 1")
        assert "Mon 23 Nov 2026, 16:05" in await live.ask("/reminders snooze 2 2h")
        assert "change <n> <another text or time>" in await live.ask("/reminders change 2")
        assert (await live.ask("/reminders change 2 call Bob")).startswith("2. call Bob — Mon 23 Nov 2026, 16:05")
        assert "2. call Bob — Mon 23 Nov 2026, 17:30" in await live.ask("/reminders change 2 today at 17:30")
        assert "Tue 24 Nov 2026, 11:00" in await live.ask("/reminders snooze 2 until tomorrow at 11:00")
        assert (await live.ask("/reminders cancel 2")) == "2. call Bob is cancelled."
        assert (await live.ask("/reminders cancel 2")) == "Reminder 2 is already over, so I did nothing."
        assert (await live.ask("/reminders resume 1")) == people.OVER
        assert await swept(live, clock, 86_400) == 0
        assert await swept(live, clock, 3_600) == 1


async def test_each_person_has_a_time_zone(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        await live.ask("/remind tomorrow at nine call Ann")
        assert await live.ask("/timezone tokyo") == (
            "Your time zone is Asia/Tokyo, where it is Mon 23 Nov 2026, 22:05 now.\n"
            "Your earlier reminders (1) keep their old time zone. /reminders shows their times."
        )
        assert "call Ann — Tue 24 Nov 2026, 09:00 (Europe/Berlin)" in await live.ask("/reminders")
        assert (await live.ask("/timezone new york")).startswith("Your time zone is America/New_York, ")
        await live.ask("/timezone Asia/Tokyo")
        assert 'There is no time zone "Mars"' in await live.ask("/timezone Mars")
        answer = await live.ask("/remind at 23:00 sleep")
        assert "Mon 23 Nov 2026, 23:00 (Asia/Tokyo)" in answer
        assert "I used the time zone" not in answer
        assert "Asia/Tokyo, where it is Mon 23 Nov 2026, 22:05 now." in await live.ask("/timezone")
        other = await live.ask("/timezone", chat="d", user="v")
        assert other == "Your time zone is Europe/Berlin, where it is Mon 23 Nov 2026, 14:05 now."


async def test_a_person_has_no_more_than_so_many(tmp_path: Path, clock: ManualClock) -> None:
    few = config(tmp_path, reminders=ReminderRules(per_person=1))
    async with at_work(tmp_path, clock, config=few) as live:
        await live.ask("/remind tomorrow one")
        assert "You already have 1 reminder here" in await live.ask("/remind tomorrow another")


async def test_reminders_outlive_the_conversation(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        await live.ask("hello")
        await live.ask("/remind in 20 minutes tea")
        await live.ask("/new")
        assert "1. tea" in await live.ask("/reminders")
        assert await swept(live, clock, 1_200) == 1


# -- who and where -------------------------------------------------------------------------------


async def test_nobody_who_was_shown_out_is_reminded(tmp_path: Path, clock: ManualClock) -> None:
    public = config(tmp_path, access=AccessSettings(allow=("fake:u", "fake:boss")))
    adapter = FakeAdapter(limits=Limits())
    async with at_work(tmp_path, clock, config=public, adapter=adapter) as live:
        await live.ask("/remind in 20 minutes tea")
        await live.ask("/remind every day at 15:00 walk")
        await live.ask("/schedule in 20 minutes news?")
    closed = config(tmp_path, access=AccessSettings(allow=("fake:boss",)))
    adapter = FakeAdapter(limits=Limits())
    await clock.advance(7_200)
    async with at_work(tmp_path, clock, config=closed, adapter=adapter) as live:
        await live.quiet()
        assert adapter.sent == []
        assert live.model.requests == []
        assert await guest_book(live.store) == GuestBook()
    async with at_work(tmp_path, clock, config=public, adapter=FakeAdapter(limits=Limits())) as live:
        assert await swept(live, clock, 86_400) == 1  # let in again, they hear of what is still to come
        assert said(live.adapter)[0].startswith("⏰ walk")


async def test_reminders_of_a_chat_that_is_gone_wait_for_it(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        await live.ask("/remind in 20 minutes tea")
        await live.ask("/remind in 30 minutes cake")
        live.adapter.failures = [ChatGone("the person has blocked the bot")]
        await swept(live, clock, 1_200)
        assert await swept(live, clock, 3_600) == 0
        await live.ask("I am back")
        assert await swept(live, clock) == 1
        assert said(live.adapter)[0].startswith("⏰ cake (late by 50 minutes)")
        assert "not shown: the person has blocked the bot" in await live.ask("/reminders")


async def test_in_a_group_each_changes_their_own_and_the_person_is_named(tmp_path: Path, clock: ManualClock) -> None:
    where: dict[str, Any] = {"chat": "g", "chat_type": "group"}
    shared = config(tmp_path, sessions=SessionSettings(groups="shared", expiry=ExpiryPolicy(timezone="Europe/Berlin")))
    shared = shared.replace(access=AccessSettings(allow=("fake:u", "fake:v")))
    async with at_work(tmp_path, clock, config=shared, adapter=FakeAdapter(limits=Limits())) as live:
        await live.ask("/remind in 20 minutes tea", user_name="Ann", **where)
        assert await live.ask("/reminders cancel 1", user="v", **where) == people.NOT_YOURS
        await swept(live, clock, 1_200)
        assert said(live.adapter)[0].startswith("⏰ Ann: tea")


# -- buttons -------------------------------------------------------------------------------------


async def fired(
    live: Live, clock: ManualClock, adapter: Buttoned, asked: str = "/remind in 20 minutes tea"
) -> Outbound:
    await live.ask(asked)
    await swept(live, clock, 86_400)
    return next(row for row in adapter.sent if row.kind == "reminder")


async def test_a_button_snoozes_and_then_the_message_has_none(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Buttoned(Limits(trusted=True))
    async with at_work(tmp_path, clock, adapter=adapter) as live:
        row = await fired(live, clock, adapter)
        assert [[button.label for button in line] for line in row.buttons] == [["Done", "10 min", "1 hour"]]
        assert all(len(button.token) <= 64 for line in row.buttons for button in line)
        accepted = await adapter.press(row, "10 min")
        assert accepted.told == "Again at Tue 24 Nov 2026, 14:15 (Europe/Berlin)."
        now = await adapter.became(row, "Again at")
        assert now.buttons == ()
        assert await swept(live, clock, 599) == 0
        assert await swept(live, clock, 1) == 1
        assert len(said(adapter)) == 2


async def test_the_buttons_of_what_comes_again(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Buttoned(Limits(trusted=True))
    async with at_work(tmp_path, clock, adapter=adapter) as live:
        row = await fired(live, clock, adapter, "/remind every day at 14:00 walk")
        assert [[button.label for button in line] for line in row.buttons][1] == ["Skip next", "Cancel"]
        assert (await adapter.press(row, "Skip next")).told == (
            "The next time is Thu 26 Nov 2026, 14:00 (Europe/Berlin)."
        )
        assert (await adapter.press(row, "Done")).told == "✓ Done."
        assert (await adapter.press(row, "Cancel")).told == "Cancelled."
        assert (await adapter.press(row, "Cancel")).told == people.OVER
        assert (await adapter.press(row, "1 hour")).told == people.OVER
        assert await swept(live, clock, 30 * 86_400) == 0


async def test_a_button_is_its_persons(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Buttoned()
    people_ = config(tmp_path, access=AccessSettings(allow=("fake:u", "fake:v"), admins=("fake:boss",)))
    async with at_work(tmp_path, clock, adapter=adapter, config=people_) as live:
        row = await fired(live, clock, adapter)
        assert (await adapter.press(row, "1 hour", user="v")).told == people.NOT_YOURS
        token = row.buttons[0][1].token
        for forged in (
            token[:-1] + "-",
            f"{token} x y",
            "remind",
            "remind 10m",
            token.replace("10m", "99m"),
            "remind é",
        ):
            (accepted,) = await adapter.receive(adapter.inbound(forged, kind="press"))
            assert accepted.told in (people.GONE, "Again at Tue 24 Nov 2026, 14:15 (Europe/Berlin).", people.OVER), (
                forged
            )
        (elsewhere,) = await adapter.receive(adapter.inbound(token, kind="press", chat="d"))
        assert elsewhere.told == people.GONE
        assert (await adapter.press(row, "1 hour", user="boss")).told.startswith("Again at")


# -- what the model knows of it --------------------------------------------------------------------


LATE_TEA = "⏰ tea (late by 23 h 40 min)"


def heard(live: Live) -> list[tuple[str, str]]:
    """Return the model's latest request, without the system prompt."""
    return [(each["role"], text_of(each)) for each in live.model.requests[-1].messages[1:]]


async def test_the_model_sees_once_what_a_reminder_said(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Buttoned(Limits(trusted=True))
    async with at_work(tmp_path, clock, adapter=adapter) as live:
        await live.ask("hello")
        await fired(live, clock, adapter)
        await live.ask("done!")
        now = [("user", "hello"), ("assistant", "echo: hello"), ("assistant", LATE_TEA), ("user", "done!")]
        assert heard(live) == now
        await live.ask("and now?")
        assert heard(live) == [*now, ("assistant", "echo: done!"), ("user", "and now?")]
        assert "⏰ tea" in await live.ask("/recall tea")


async def test_a_crash_shows_the_model_a_reminder_once(tmp_path: Path, clock: ManualClock) -> None:
    kill = KillAt("turn.step_recorded", nth=0)
    async with at_work(tmp_path, clock, points=kill) as live:
        await live.ask("/remind in 20 minutes tea")
        await swept(live, clock, 1_260)
        live.model.script = in_turn(Say(calls=[("reminders", '{"action": "list"}')]), Say(text="Good."))
        kill.arm()
        await live.tell("done!")
        await kill.passed.wait()
    async with at_work(tmp_path, clock) as live:
        await live.adapter.until(lambda: any(row.kind == "reply" for row in live.adapter.sent))
        texts = [text.partition("\n")[0] for _, text in heard(live)]
        assert texts[:2] == ["⏰ tea", "done!"]
        assert texts.count("⏰ tea") == 1


# -- prompts that run by the clock ---------------------------------------------------------------


async def test_a_prompt_runs_by_itself_and_its_answer_is_its_receipt(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        answer = await live.ask("/schedule every weekday at 8 what is new?")
        assert answer.startswith(
            "1. I will answer this prompt: what is new?\nevery weekday, next Tue 24 Nov 2026, 08:00"
        )
        assert await swept(live, clock, 18 * 3_600) == 1
        assert live.model.spoken()[-1] == (
            "user",
            "[scheduled every weekday by the person; it is Tue 24 Nov 2026, 08:05 (Europe/Berlin) now, late by 6 "
            "minutes; nobody waits at the screen]\nwhat is new?",
        )
        assert live.adapter.sent[-1].kind == "reply"
        listed = await live.ask("/reminders")
        assert "1. (prompt) what is new? — every weekday, next Wed 25 Nov 2026, 08:00" in listed
        assert "shown 08:05:30" in listed


async def test_a_streak_of_failures_is_told_once_and_then_it_is_paused(tmp_path: Path, clock: ManualClock) -> None:
    model = FakeModel(in_turn(*[ProviderUnavailable("The model is away.")] * 3))
    async with at_work(tmp_path, clock, model=model) as live:
        await live.ask("/schedule every day at 8 news?")
        for _ in range(5):
            await swept(live, clock, 86_400)
        shown = [(row.kind, row.text) for row in live.adapter.sent[1:]]
        assert [kind for kind, _ in shown] == ["error", "notice", "error", "notice"]
        assert shown[1][1].startswith("The scheduled prompt 1 failed. I will keep trying, but will not tell you again")
        assert shown[3][1].startswith("I paused the scheduled prompt 1, because it failed 3 times in a row.")
        assert "paused after 3 failures in a row (/reminders resume 1)" in await live.ask("/reminders")
        assert "1. news? goes on — every day, next" in await live.ask("/reminders resume 1")
        await swept(live, clock, 86_400)
        assert live.adapter.sent[-1].text.endswith("news?")


PRICED = ModelEntry(
    provider="openai",
    name="priced",
    base_url="http://127.0.0.1:9/v1",
    context_length=20_000,
    max_output_tokens=100,
    prices=ModelPrices(input=100, output=100),
)


async def test_a_run_has_a_budget(tmp_path: Path, clock: ManualClock) -> None:
    poor = config(tmp_path, model=PRICED, reminders=ReminderRules(budget_usd=0.001))
    async with at_work(tmp_path, clock, config=poor) as live:
        await live.ask("/schedule every day at 8 news?")
        await swept(live, clock, 86_400)
        (refused,) = [row for row in live.adapter.sent if row.kind == "error"]
        assert refused.text.startswith("The scheduled prompt's spend cap of $0.0010 does not allow another answer")
        assert live.model.requests == []
        assert await live.ask("hello") == "echo: hello"  # which has no such cap


async def test_the_budget_of_a_run_needs_no_known_price(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        await live.ask("/schedule in 20 minutes news?")
        await swept(live, clock, 1_200)
        assert live.adapter.sent[-1].text.endswith("news?")


# -- cron expressions ----------------------------------------------------------------------------


async def test_a_cron_expression_fires_once_in_the_night_that_has_its_time_twice(
    tmp_path: Path, clock: ManualClock
) -> None:
    clock.jump(datetime(2026, 10, 24, 12, tzinfo=UTC).timestamp() - MONDAY)
    async with at_work(tmp_path, clock) as live:
        answer = await live.ask('/remind cron "30 2 * * *" take the pill')
        assert answer.startswith(
            "1. I will remind you of this: take the pill\nat 02:30 every day, next Sun 25 Oct 2026, 02:30 ("
        )
        assert await live.ask('/remind cron "*/2 * * * *" x') == people.TOO_OFTEN.format(least="5 minutes")
        assert (await live.ask('/remind cron "0 30 2 * * *" x')).startswith("A cron expression here has no seconds")
        assert await swept(live, clock, 12.5 * 3_600) == 1
        assert await swept(live, clock, 3_600) == 0  # 02:30 again
        await live.ask('/schedule cron "0 9 * * mon-fri" news?')
        assert "at 10:15 on Monday to Friday, next" in await live.ask('/reminders change 2 cron "15 10 * * 1-5"')
        assert "Your earlier reminders (1, 2) keep their old time zone" in await live.ask("/timezone Tokyo")
    await clock.advance(4 * 86_400 + 7_200)
    async with at_work(tmp_path, clock) as live:
        await live.adapter.until(lambda: len(live.adapter.sent) == 2)
        assert said(live.adapter)[0].startswith("⏰ take the pill (late by 2 h, 3 earlier times missed)")
        (prompt,) = [text for role, text in live.model.spoken() if text.endswith("news?")]
        assert prompt.startswith("[scheduled at 10:15 on Monday to Friday by the person; it is Thu 29 Oct 2026, ")
        listed = await live.ask("/reminders")
        assert "1. take the pill — at 02:30 every day, next Fri 30 Oct 2026, 02:30 (Europe/Berlin)" in listed


async def test_the_model_makes_a_reminder_by_a_cron_expression(tmp_path: Path, clock: ManualClock) -> None:
    work = {"text": "stand up", "rule": "cron 0 9 * * 1-5"}
    bad = {"text": "stand up", "rule": "0 0 9 * * 1-5"}
    model = FakeModel(
        in_turn(use(action="create", **bad), use(action="create", when="2026-12-01", **work), Say(text="done"))
    )
    adapter = Buttoned(Limits(trusted=True))
    async with at_work(tmp_path, clock, model=model, adapter=adapter) as live:
        event = await live.tell("remind me at nine on workdays")
        question = await adapter.question()
        assert question.text.startswith("Remind you at 09:00 on Monday to Friday, from 2026-12-01 on: stand up?")
        await adapter.press(question, "Approve")
        await live.answer(event)
    assert called(model)[0].startswith("Error: A cron expression here has no seconds and no years")
    assert called(model)[1].endswith("(at 09:00 on Monday to Friday, next Tue 1 Dec 2026, 09:00 (Europe/Berlin))")


# -- by the model --------------------------------------------------------------------------------


def called(model: FakeModel) -> list[str]:
    """Return the tool's results, newest last."""
    return [text for role, text in model.spoken() if role == "tool"]


def use(**arguments: Any) -> Say:
    return Say(calls=[("reminders", json.dumps(arguments))])


async def test_the_model_makes_lists_and_changes_reminders(tmp_path: Path, clock: ManualClock) -> None:
    model = FakeModel(
        in_turn(
            use(action="create", text="call mom", when="tomorrow 09:00"),
            use(action="create", text="call mom", when="tomorrow 09:00"),
            use(action="create", text="walk", when="15:00", rule="FREQ=DAILY", when_late="skip"),
            use(action="change", number=2, text="run"),
            use(action="snooze", number=1, when="in 10 minutes"),
            use(action="skip", number=2),
            use(action="timezone", timezone="Asia/Tokyo"),
            use(action="cancel", number=1),
            use(action="list"),
            Say(text="done"),
        )
    )
    adapter = Buttoned(Limits(trusted=True))
    async with at_work(tmp_path, clock, model=model, adapter=adapter) as live:
        event = await live.tell("remind me")
        question = await adapter.question()
        assert question.text.startswith("Remind you every day at 15:00: walk?\n\nWithout an answer ")
        await adapter.press(question, "Approve")
        assert (await live.answer(event)).text == "done"
    now = "It is Mon 23 Nov 2026, 14:05 (Europe/Berlin) now. "
    created = f"{now}Stored: number 1: call mom (Tue 24 Nov 2026, 09:00 (Europe/Berlin))"
    assert called(model)[:2] == [created, created]  # the same call of one turn is one reminder
    assert called(model)[2].endswith("number 2: walk (every day, next Mon 23 Nov 2026, 15:00 (Europe/Berlin))")
    assert called(model)[3].endswith("number 2: run (every day, next Mon 23 Nov 2026, 15:00 (Europe/Berlin))")
    assert called(model)[4].endswith("number 1: call mom (Mon 23 Nov 2026, 14:15 (Europe/Berlin))")
    assert called(model)[5].endswith("number 2: run (every day, next Tue 24 Nov 2026, 15:00 (Europe/Berlin))")
    assert called(model)[6].endswith("The person's time zone is Asia/Tokyo.")
    assert called(model)[8].splitlines()[1:] == [
        "number 2: run (every day, next Tue 24 Nov 2026, 15:00 (Europe/Berlin))",
        "number 1: call mom (cancelled)",
    ]


async def test_what_comes_again_needs_a_yes_to_its_whole_reading(tmp_path: Path, clock: ManualClock) -> None:
    bins = {"text": "bins", "rule": "FREQ=MONTHLY;BYMONTHDAY=1,15", "when": "2026-12-01T17:30"}
    model = FakeModel(in_turn(use(action="create", **bins), Say(text="as you like")))
    adapter = Buttoned(Limits(trusted=True))
    async with at_work(tmp_path, clock, model=model, adapter=adapter) as live:
        event = await live.tell("每月1号和15号17:30倒垃圾")
        question = await adapter.question()
        reading = "Remind you every month on the 1st and the 15th at 17:30, from 2026-12-01 on: bins?"
        assert question.text.startswith(reading)
        await adapter.press(question, "Deny")
        await live.answer(event)
        assert called(model)[0].startswith("Denied: ")
        assert (await live.ask("/reminders")).startswith("You have no reminders here.")


# -- words that the grammar does not read --------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "handed_on"),
    [
        (
            "/remind morgen um 9 Uhr Mama anrufen",
            "remind me as I say. Ask me first if my words do not say when, or not ",
        ),
        ("/remind every day but Sunday at 17:30 bins", "clearly: every day but Sunday at 17:30 bins"),
        ("/schedule 每天早上8点 新闻", "schedule this prompt for yourself (kind `ask`)"),
        ("/reminders change 1 morgen um 10", "change reminder 1 as I say. "),
        ("/reminders snooze 1 bis morgen", "snooze reminder 1 as I say. "),
    ],
)
async def test_other_wordings_go_to_a_model_with_tools(
    tmp_path: Path, clock: ManualClock, command: str, handed_on: str
) -> None:
    model = FakeModel(echo)
    entry = ModelEntry(provider="openai", name="fake", base_url="http://127.0.0.1:9", api_key="k")  # type: ignore[call-arg]
    async with at_work(tmp_path, clock, model=model, config=config(tmp_path, model=entry)) as live:
        await live.ask("/remind tomorrow at 9: tea")
        assert handed_on in await live.ask(command)
        assert "tea — Tue 24 Nov 2026, 09:00" in await live.ask("/reminders")


@pytest.mark.parametrize("command", ["/remind morgen um 9 Uhr Mama anrufen", "/schedule завтра в 9 новости"])
async def test_without_such_a_model_a_sentence_says_how_to_write_it(
    tmp_path: Path, clock: ManualClock, command: str
) -> None:
    async with at_work(tmp_path, clock) as live:
        name = command.partition(" ")[0]
        assert await live.ask(command) == (
            "I found no time in your message. Put the time at the beginning or the end, in English or as an ISO date. "
            f"For example: {name} tomorrow at 9 call Ann. Or: {name} 2027-01-31 08:00 pay the rent."
        )


async def test_a_rule_that_an_earlier_version_stored_goes_on(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        await live.ask("/remind every day at 15:00 walk")
        store = live.gateway.people.reminders.store
        (walk,) = await store.reminders(SessionKey(platform="fake", chat="c"), 10)
        assert walk.rule == "FREQ=DAILY"
        await store.change_reminder(walk.changed(rule="2 week on mon,thu", start="2026-11-23T15:00:00"), [])
        assert "walk — every 2 weeks on Monday and Thursday, next Mon 23 Nov" in await live.ask("/reminders")
        assert await swept(live, clock, 3_600) == 1
        assert "next Thu 26 Nov 2026, 15:00" in await live.ask("/reminders")
        await swept(live, clock, 3 * 86_400)
        assert "next Mon 7 Dec 2026, 15:00" in await live.ask("/reminders")


async def test_a_zone_that_is_said_is_meant(tmp_path: Path, clock: ManualClock) -> None:
    async with at_work(tmp_path, clock) as live:
        assert "Tue 1 Dec 2026, 10:00 (Europe/Berlin)" in await live.ask("/remind 2026-12-01T09:00Z pay")
        assert "every day, next Tue 24 Nov 2026, 09:00 (UTC)" in await live.ask("/remind every day at 9 UTC pills")
        answer = await live.ask("/remind at 9am PST call")
        assert answer.startswith('"PST" may mean several time zones. Name a place or the hours from UTC')


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"action": "create", "text": "x"}, "`when` is missing"),
        ({"action": "create", "when": "tomorrow at 9"}, "Also say what the reminder is about"),
        (
            {"action": "create", "when": "soon", "text": "x"},
            "'soon' is no time that I can read. It is Monday, 2026-11-23 14:05",
        ),
        (
            {"action": "create", "when": "2026-11-01 09:00", "text": "x"},
            "is in the past: it is Monday, 2026-11-23 14:05",
        ),
        ({"action": "create", "when": "tomorrow 9:00", "text": "x", "timezone": "Mars"}, "is not a time zone"),
        ({"action": "timezone", "timezone": "../../etc/passwd"}, "There is no time zone"),
        ({"action": "cancel"}, "`number` says which one"),
        ({"action": "cancel", "number": 10**30}, "There is no reminder"),
    ],
)
async def test_the_model_is_told_what_is_wrong(
    tmp_path: Path, clock: ManualClock, arguments: dict[str, Any], error: str
) -> None:
    model = FakeModel(in_turn(use(**arguments), Say(text="done")))
    async with at_work(tmp_path, clock, model=model) as live:
        await live.ask("remind me")
    assert re.match(rf"Error: .*{re.escape(error)}", called(model)[0])


# -- killed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["reminder.due", "reminder.fired", "outbox.before_send", "outbox.marked"])
async def test_a_process_that_dies_while_it_fires_reminds_once(tmp_path: Path, clock: ManualClock, point: Any) -> None:
    kill = KillAt(point, nth=0)
    async with at_work(tmp_path, clock, points=kill) as live:
        await live.ask("/remind in 20 minutes tea")
        await live.ask("/remind every hour walk")
        await live.quiet()
        await clock.advance(1_200)
        kill.arm()
        with suppress(Killed):
            await live.gateway.people.firing.fire_due()
        await kill.passed.wait()
        shown, died = said(live.adapter), clock.now()
    clock.jump(died - clock.now())  # what is left of a killed process is given as much time as the machine needs
    async with at_work(tmp_path, clock) as live:
        await swept(live, clock)
        shown += said(live.adapter)
    assert [text.partition("\n")[0].removeprefix("↻ ") for text in shown] == ["⏰ tea"]


async def test_a_process_that_dies_amid_a_prompt_counts_one_failure(tmp_path: Path, clock: ManualClock) -> None:
    kill = KillAt("turn.session_opened", nth=0)
    async with at_work(tmp_path, clock, points=kill) as live:
        await live.ask("/schedule every day at 8 news?")
        kill.arm()
        await clock.advance(86_400)
        await live.gateway.people.firing.fire_due()
        await kill.passed.wait()
    model = FakeModel(in_turn(ProviderUnavailable("away"), then=echo))
    async with at_work(tmp_path, clock, model=model) as live:
        await eventually(lambda: any(row.kind == "notice" for row in live.adapter.sent))
        assert "(prompt) news? — every day, next" in await live.ask("/reminders")
        assert [row.kind for row in live.adapter.sent[:2]] == ["error", "notice"]
