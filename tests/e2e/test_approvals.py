"""A tool that a person must allow: who is asked, who may answer, and what a crash leaves of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.app.config.models import ToolSettings
from gateway.context.policy import HygieneRules
from gateway.domain.adapter import Limits
from gateway.domain.chat import SessionKey
from gateway.domain.turn import BUSY, SessionSettings, TurnSettings
from gateway.people.approvals import GONE, NOT_YOURS, WITHDRAWN
from gateway.turns.reception import ASKING
from tests.support.asking import CommandContext, results, scene
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, Gate, KillAt, Say, echo, in_turn, running
from tests.support.tools import payments
from tests.support.waiting import eventually


async def test_a_tool_waits_for_the_press_of_its_button(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        assert question.text.startswith("Pay 50 €?\n\nWithout an answer within 5 minutes")
        assert here.tool.paid == []
        accepted = await here.adapter.press(question, "Approve")
        assert (accepted.status, accepted.told) == ("new", "Approved.")
        assert (await live.answer(event)).text == "done"
        assert here.tool.paid == [50]
        now = await here.adapter.became(question, "Approved.")
        assert (now.text, now.buttons) == ("Pay 50 €?\n\nApproved.", ())


async def test_a_call_that_needs_no_yes_asks_nobody(tmp_path: Path) -> None:
    here = scene(tmp_path, 5)
    async with here.open() as live:
        assert await live.ask("pay") == "done"
    assert here.tool.paid == [5]
    assert here.adapter.shown("c", "question") == []


async def test_a_no_is_what_the_model_reads(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        await here.adapter.press(await here.adapter.question(), "Deny")
        await live.answer(event)
    assert here.tool.paid == []
    assert results(here.model)[0].startswith("Denied: The person said no to this, so it was not done.")


@pytest.mark.parametrize(("command", "paid"), [("/approve", [50]), ("/deny", []), ("y", [50]), ("No.", [])])
async def test_it_can_be_answered_by_a_command_or_a_word(tmp_path: Path, command: str, paid: list[int]) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        assert await live.ask(command) == ("Approved." if paid else "Denied.")
        await live.answer(event)
        assert here.tool.paid == paid
        await here.adapter.became(question, "Approved." if paid else "Denied.")
        nothing = "Nothing here is waiting for your yes or no." if command.startswith("/") else f"echo: {command}"
        assert await live.ask(command) == nothing


async def test_a_word_answers_nobody_elses_question(tmp_path: Path) -> None:
    here = scene(tmp_path, 50, sessions=SessionSettings(groups="shared"))
    where: dict[str, Any] = {"chat": "g", "chat_type": "group"}
    async with here.open() as live:
        event = await live.tell("pay", **where)
        question = await here.adapter.question()
        assert question.text.startswith("Pay 50 €?\n\nWithout an answer ")
        await live.tell("y", user="v", **where)
        boss = await live.tell("y", user="boss", **where)
        refused = await live.ask("/approve", user="boss", **where)
        assert refused == "Say which question you mean, as in /approve 1, or send /approve all:\n1. Pay 50 €?"
        assert here.tool.paid == []
        await live.ask("/approve 1", user="boss", **where)
        await live.answer(event)
        assert here.tool.paid == [50]
        assert (await live.answer(boss)).text.startswith("echo: [boss] y")


@pytest.mark.parametrize("command", ["/approve", "/approve 1", "/approve all", "y"])
async def test_what_was_sent_before_the_question_could_be_read_answers_another_one(
    tmp_path: Path, clock: ManualClock, command: str
) -> None:
    here = CommandContext(tmp_path, payments(50), payments(60), Say(text="done"))
    async with here.open(clock=clock) as live:
        await live.tell("pay")
        await here.adapter.question()
        await clock.advance(10)
        await live.ask("/stop")
        event = await live.tell("pay more")
        await here.adapter.question(2)
        refused = await live.ask(command, sent_at=clock.now() + 1.5)
        assert refused.endswith("Please answer now:\n1. Pay 60 €?")
        assert here.tool.paid == []
        await live.ask(command, sent_at=clock.now() + 2.5)
        assert (await live.answer(event)).text == "done"
        assert here.tool.paid == [60]


async def test_without_an_answer_it_is_a_no(tmp_path: Path) -> None:
    here = scene(tmp_path, 50, tools=ToolSettings(approval_deadline=90), turns=TurnSettings(inactivity=20))
    clock = ManualClock()
    async with here.open(clock=clock) as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        assert "within 90 seconds" in question.text
        await clock.advance(89)  # the turn's own patience is much shorter
        assert here.adapter.answer_to(event) is None
        await clock.advance(1)
        await live.answer(event)
        assert here.tool.paid == []
        assert results(here.model)[0].startswith("Denied: Nobody said yes in time")
        await here.adapter.became(question, "Nobody answered in time")
        late = await here.adapter.press(question, "Approve")
        assert late.told == GONE


async def test_a_press_after_the_deadline_is_too_late_even_if_nobody_has_noticed(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    clock = ManualClock()
    async with here.open(clock=clock) as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        clock.jump(301)
        accepted = await here.adapter.press(question, "Approve")
        assert accepted.told == "Your answer came too late, so I did nothing. Please ask me again."
        await live.answer(event)
        assert here.tool.paid == []


async def test_somebody_elses_press_does_nothing_and_an_admins_counts(tmp_path: Path) -> None:
    here = scene(tmp_path, 50, sessions=SessionSettings(groups="shared"))
    where: dict[str, Any] = {"chat": "g", "chat_type": "group"}
    async with here.open() as live:
        event = await live.tell("pay", **where)
        question = await here.adapter.question()
        for user in ("v", "stranger"):
            assert (await here.adapter.press(question, "Approve", user=user, **where)).told == NOT_YOURS
        assert await live.ask("/approve", user="v", **where) == "Nothing here is waiting for your yes or no."
        assert here.tool.paid == []
        assert (await here.adapter.press(question, "Approve", user="boss", **where)).told == "Approved."
        await live.answer(event)
        assert here.tool.paid == [50]


async def test_a_button_means_nothing_in_another_chat_or_with_another_token(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        assert (await here.adapter.press(question, "Approve", user="u", chat="other")).told == GONE
        for forged in ("approve a_0000000000000000", "approve", "", "pay 50", "approve " + "x" * 2_000):
            (accepted,) = await here.adapter.receive(here.adapter.inbound(forged, kind="press"))
            assert accepted.told == GONE
        assert here.tool.paid == []
        await here.adapter.press(question, "Deny")
        await live.answer(event)


async def test_a_press_that_is_delivered_again_or_replayed_does_nothing(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        await here.adapter.press(question, "Deny", event="press-1")
        assert (await here.adapter.press(question, "Approve", event="press-1")).status == "duplicate"
        await live.answer(event)
        assert (await here.adapter.press(question, "Approve")).told == GONE
        assert here.tool.paid == []


async def test_of_two_questions_each_has_its_own_answer(tmp_path: Path) -> None:
    here = scene(tmp_path, 50, 60)
    async with here.open() as live:
        event = await live.tell("pay both")
        first, second = await here.adapter.question(1), await here.adapter.question(2)
        assert "/approve" not in second.text  # its buttons say it
        assert "\n1. Pay 50 €?\n2. Pay 60 €?" in await live.ask("/approve")
        assert (await live.ask("/approve 7")).startswith(
            "There is no question with the number 7 here. Say which question"
        )
        assert (await here.adapter.press(second, "Approve")).told == "Approved."
        assert here.tool.paid == []  # they run in the order the model asked for
        assert await live.ask("/deny 1") == "Denied."
        await live.answer(event)
        assert here.tool.paid == [60]
        assert [text.split(":")[0].split(".")[0] for text in results(here.model)] == ["Denied", "Paid 60 €"]
        await here.adapter.became(first, "Denied.")


async def test_status_says_what_is_waited_for_and_stop_ends_it(tmp_path: Path) -> None:
    here = scene(tmp_path, 50, 60)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question(2)
        status = await live.ask("/status")
        assert "waiting for your yes or no" in status
        assert "I am waiting for your /approve or /deny:\n1. Pay 50 €?\n2. Pay 60 €?" in status
        await live.ask("/stop")
        await here.adapter.became(question, WITHDRAWN)
        assert (await here.adapter.press(question, "Approve")).told == GONE
        assert here.tool.paid == []
        assert await live.ask("and now?") == "done"
        assert results(here.model) == ["The turn was ended before this call was allowed, so it was not done."] * 2
        assert here.adapter.answer_to(event) is None


async def test_the_same_call_id_in_another_step_is_another_question(tmp_path: Path) -> None:
    """Some servers count their calls from 0 in every answer."""
    here = CommandContext(tmp_path, payments(50), payments(70), Say(text="done"))
    here.model._calls = iter(lambda: 0, None)  # type: ignore[assignment]
    async with here.open() as live:
        event = await live.tell("pay twice")
        await here.adapter.press(await here.adapter.question(1), "Approve")
        second = await here.adapter.question(2)
        assert here.tool.paid == [50]
        await here.adapter.press(second, "Deny")
        await live.answer(event)
        assert here.tool.paid == [50]


async def test_a_turn_that_is_made_again_finds_its_question(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        live.gateway.stop(grace=0)
    async with here.open() as live:
        await here.adapter.press(question, "Approve")
        await live.answer(event)
    assert here.tool.paid == [50]
    assert len(here.adapter.shown("c", "question")) == 1


async def test_who_stops_the_gateway_does_not_wait_for_a_person(tmp_path: Path) -> None:
    """The clock stands still: no grace ever ends."""
    here = scene(tmp_path, 50)
    clock = ManualClock()
    async with here.open(clock=clock) as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        live.gateway.stop()
        await eventually(lambda: not live.gateway.lanes.active)
    async with here.open(clock=clock) as live:
        await here.adapter.press(question, "Approve")
        await live.answer(event)
    assert here.tool.paid == [50]


async def test_a_yes_that_came_while_nothing_ran_counts(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        (asked,) = await live.store.approvals(question.to)
        live.gateway.stop(grace=0)
        await live.gateway.lanes.stop(0)
        await live.store.decide(asked, "approved", "u", asked.asked_at, [])
    async with here.open() as live:
        await live.answer(event)
    assert here.tool.paid == [50]


async def test_what_was_allowed_and_begun_is_not_run_again(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    kill = KillAt("turn.tools_ran")
    async with here.open(points=kill) as live:
        event = await live.tell("pay")
        await here.adapter.press(await here.adapter.question(), "Approve")
        await kill.passed.wait()
    assert here.tool.paid == [50]
    async with here.open() as live:
        await live.answer(event)
    assert here.tool.paid == [50]
    assert "its outcome is unknown" in results(here.model)[0]


async def test_what_ended_before_the_wait_is_not_unknown_after_a_crash(tmp_path: Path) -> None:
    here = scene(tmp_path, 5, 50, 6)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        await here.tool.until(lambda: here.tool.paid == [5])
        live.gateway.stop(grace=0)
    async with here.open() as live:
        assert here.tool.paid == [5]
        await here.adapter.press(question, "Approve")
        await live.answer(event)
    assert here.tool.paid == [5, 50, 6]
    assert results(here.model) == ["Paid 5 €.", "Paid 50 €.", "Paid 6 €."]


async def test_a_yes_in_other_words_is_told_how_to_say_it(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        await here.adapter.question()
        yes = await live.tell("yes, do it")
        await here.adapter.until(lambda: ASKING in here.adapter.shown("c", "notice"))
        assert here.tool.paid == []
        await live.ask("/approve")
        await live.answer(event)
        assert (await live.answer(yes)).text == "echo: yes, do it"


async def test_what_the_model_said_before_is_shown_once_whatever_a_restart_does(tmp_path: Path) -> None:
    here = CommandContext(tmp_path, Say(text="I would like to pay.", calls=payments(50, 60).calls), Say(text="done"))
    async with here.open() as live:
        event = await live.tell("pay")
        await here.adapter.question(2)
        live.gateway.stop(grace=0)
    async with here.open() as live:
        await live.ask("/approve all")
        assert (await live.answer(event)).text == "done"
    assert here.adapter.shown("c", "remark") == ["I would like to pay."]
    kinds = [row.kind for row in here.adapter.sent]
    assert kinds.index("remark") < kinds.index("question") < kinds.index("reply")


async def test_where_there_are_no_buttons_the_text_says_how(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    plain = FakeAdapter(limits=Limits(trusted=True))
    async with running(tmp_path, model=here.model, adapter=plain, tools=[here.tool]) as live:
        event = await live.tell("pay")
        await plain.until(lambda: plain.shown("c", "question"))
        assert [row.buttons for row in plain.sent if row.kind == "question"] == [()]
        await live.ask("/approve")
        await live.answer(event)
        await live.quiet()
        # What cannot be edited is not said again.
        assert len(plain.shown("c", "question")) == 1
    assert here.tool.paid == [50]


async def test_a_tool_for_admins_runs_in_nobody_elses_turn(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    here.tool.admins_only = True  # type: ignore[misc]
    async with here.open() as live:
        assert await live.ask("pay") == "done"
        assert here.adapter.shown("c", "question") == []
        assert results(here.model)[0].startswith("Error: Only an admin of this bot")
        here.model.script = in_turn(payments(70), Say(text="paid"))
        event = await live.tell("pay", user="boss", chat="b")
        await here.adapter.press(await here.adapter.question(), "Approve", user="boss", chat="b")
        await live.answer(event)
    assert here.tool.paid == [70]


async def test_a_tool_that_fails_to_say_what_it_asks_is_not_run(tmp_path: Path) -> None:
    here = CommandContext(tmp_path, Say(calls=[("pay", "{}"), ("pay", "no json")]), Say(text="done"))
    async with here.open() as live:
        assert await live.ask("pay") == "done"
    assert here.tool.paid == []
    assert [text[:6] for text in results(here.model)] == ["Error:", "Error:"]


# -- what comes between a question and its answer ---------------------------------------------------


async def test_a_question_outlives_a_conversation_that_is_too_long_at_the_restart(tmp_path: Path) -> None:
    """As with a model whose window is smaller: what is condensed before a turn must not close its open call."""
    here = scene(tmp_path, 50)
    paying, here.model.script = here.model.script, echo
    async with here.open() as live:
        for number in range(12):
            await live.ask(f"{number} " + "of many words " * 400)
        here.model.script = paying
        event = await live.tell("pay")
        question = await here.adapter.question()
        live.gateway.stop(grace=0)
    here.sections = {"hygiene": HygieneRules(max_messages=10)}
    async with here.open() as live:
        await here.adapter.press(question, "Approve")
        await live.answer(event)
    assert here.tool.paid == [50]
    assert results(here.model) == ["Paid 50 €."]
    assert len(here.adapter.shown("c", "question")) == 1


async def test_a_turn_whose_lane_was_lost_takes_no_news_from_the_one_that_has_it(tmp_path: Path) -> None:
    """Both may wait in one process for a while, and the older one ends first."""
    async with scene(tmp_path).open() as live:
        approvals, key = live.gateway.people.approvals, SessionKey(platform="fake", chat="c")
        older, newer = approvals.listening(key), approvals.listening(key)
        older.__enter__()
        wait = newer.__enter__()
        older.__exit__(None, None, None)
        approvals.heard(key)
        assert wait.news.is_set()
        newer.__exit__(None, None, None)


async def test_a_flood_of_questions_is_no_flood_of_messages(tmp_path: Path) -> None:
    """A platform shows twenty messages a minute in a group, and /stop's answer would come behind them all."""
    here = scene(tmp_path, *[50] * 12)
    async with here.open() as live:
        event = await live.tell("pay")
        await here.adapter.question(10)
        await live.ask("/approve all")
        await live.answer(event)
    assert len(here.adapter.shown("c", "question")) == 10
    assert here.tool.paid == [50] * 10
    assert ["nobody was asked" in text for text in results(here.model)] == [False] * 10 + [True] * 2


async def test_who_was_told_that_the_bot_is_busy_is_told_of_a_question_all_the_same(tmp_path: Path) -> None:
    gate = Gate()
    here = CommandContext(tmp_path, Say(text="one", gate=gate), payments(50), Say(text="done"))
    async with here.open() as live:
        first = await live.tell("hello")
        await gate.until_waiting()
        event = await live.tell("pay")
        await here.adapter.until(lambda: here.adapter.shown("c", "notice") == [BUSY])
        gate.open()
        await live.answer(first)
        await here.adapter.question()
        await live.tell("what is this?")
        await here.adapter.until(lambda: here.adapter.shown("c", "notice") == [BUSY, ASKING])
        await live.ask("n")
        await live.answer(event)


async def test_a_command_that_waits_behind_a_question_is_told_so(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        await live.tell("pay")
        await here.adapter.question()
        await live.ask("/status")
        assert here.adapter.shown("c", "notice") == []
        named = await live.tell("/title payments")
        await here.adapter.until(lambda: here.adapter.shown("c", "notice") == [ASKING])
        await live.ask("/deny")
        await live.answer(named)


async def test_a_fresh_start_ends_a_turn_that_waits_for_a_yes(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        await live.tell("pay")
        question = await here.adapter.question()
        assert "fresh" in await live.ask("/reset")
        assert "Stopped before the answer was finished." in here.adapter.shown("c", "notice")
        await here.adapter.became(question, WITHDRAWN)
    assert here.tool.paid == []


async def test_nobody_else_ends_it_that_way(tmp_path: Path) -> None:
    here = scene(tmp_path, 50, sessions=SessionSettings(groups="shared"))
    where: dict[str, Any] = {"chat": "g", "chat_type": "group"}
    async with here.open() as live:
        event = await live.tell("pay", **where)
        await here.adapter.question()
        fresh = await live.tell("/new", user="v", **where)
        await live.ask("/approve 1", **where)
        await live.answer(event)
        await live.answer(fresh)
    assert here.tool.paid == [50]


async def test_an_admin_is_not_told_of_others_questions_as_if_they_held_up_their_own(tmp_path: Path) -> None:
    gate = Gate()
    said = [payments(50), Say(text="thought", gate=gate)]
    here = CommandContext(tmp_path, *said, sessions=SessionSettings(groups="per_user"))
    where: dict[str, Any] = {"chat": "g", "chat_type": "group"}
    async with here.open() as live:
        await live.tell("pay", **where)
        await here.adapter.question()
        first = await live.tell("think", user="boss", **where)
        await gate.until_waiting()
        await live.tell("and then", user="boss", **where)
        await here.adapter.until(lambda: here.adapter.shown("g", "notice"))
        assert here.adapter.shown("g", "notice") == [BUSY]
        gate.open()
        await live.answer(first)
        await live.ask("/deny", **where)
