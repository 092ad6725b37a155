"""People on Slack, as they see the bot: in direct messages, in channels, in threads."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.slack.adapter import LATER, PROMPTS
from gateway.app.config.models import Chat
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from tests.emulators.slack import Flood, LoseAnswer, Refuse, SlackServer, User
from tests.support.fast_clock import FastClock
from tests.support.live_bot import talk_in
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.slack_live import on_slack
from tests.support.tools import Payment, payments
from tests.support.waiting import eventually


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """Without its rate limits; who breaks one of its rules fails the test."""
    async with SlackServer(limited=False) as running:
        yield running
        assert [str(each) for each in running.violations] == []


@pytest.fixture
def anna(slack: SlackServer) -> User:
    """Somebody who may talk to the bot."""
    return slack.people.person("Anna")


async def test_a_mention_is_answered_in_a_thread_that_goes_on(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    ben, robot = slack.people.person("Ben"), slack.people.person("Robot", bot=True)
    place = slack.people.channel("choir", anna, ben, robot)
    async with on_slack(tmp_path, slack, anna, allow=(f"slack:{ben.id}",)) as bot:
        slack.people.say(place, ben, "I sing <alto>")
        slack.people.say(place, robot, "@Legato hear me")
        asked = bot.says("@Legato who sings *what*?", place)
        await bot.until(lambda: slack.shown(place, asked))
        heard = bot.model.spoken(0)
        assert talk_in(heard[0][1]) == ["Ben: “I sing <alto>”"]  # nobody let the robot in
        assert heard[-1][1].endswith("[Anna] who sings *what*?")
        slack.people.say(place, ben, "And tenor?", thread=asked)  # nobody has to name the bot in a thread of its own
        await bot.until(lambda: len(slack.shown(place, asked)) == 2)
        assert bot.model.spoken(1)[-1][1].endswith("[Ben] And tenor?")
        other = slack.people.say(place, ben, "Lunch?")
        slack.people.say(place, ben, "Pizza", thread=other)
        slack.people.say(place, slack.people.person("Eve"), "@Legato let me in", thread=asked)
        await bot.quiet()
        assert slack.shown(place) == slack.shown(place, other) == []
        assert len(slack.shown(place, asked)) == 2
    async with on_slack(tmp_path, slack, anna, rules={"threads": False}) as bot:
        slack.people.say(place, anna, "And bass?", thread=asked)  # the bot finds out anew whose the thread is
        bot.says("@Legato hello", place)
        await bot.until(lambda: len(slack.shown(place, asked)) == 3 and slack.shown(place))


async def test_code_tables_and_links_are_rich_text_that_pings_nobody(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    answer = (
        "# Plan\n<!channel> *see* [docs](https://example.org/a) or https://example.org/b.\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint('<@U1>')\n```\n> quoted\n\n**done**"
    )
    async with on_slack(tmp_path, slack, anna, model=FakeModel(in_turn(Say(text=answer)))) as bot:
        bot.says("Hello")
        await bot.until(lambda: slack.shown(bot.chat))
        (block,) = slack.shown(bot.chat)[0].blocks
        kinds = [each["type"].removeprefix("rich_text_") for each in block["elements"]]
        assert kinds == ["section", "preformatted", "preformatted", "quote", "section"]
        links = [each["url"] for group in block["elements"] for each in group["elements"] if each["type"] == "link"]
        assert links == ["https://example.org/a", "https://example.org/b"]


async def test_slash_commands_come_from_the_registry(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    place, eve = slack.people.channel("choir", anna), slack.people.person("Eve")
    async with on_slack(tmp_path, slack, anna) as bot:
        known = slack.people.command(bot.chat, anna, "/legato", "version")
        await bot.until(lambda: bot.shown())
        assert known.acknowledged.is_set()
        private = slack.people.command(place, anna, "/whoami")
        await bot.until(lambda: slack.whispered(anna))
        slack.people.command(bot.chat, anna, "/legato", "help")
        await bot.until(lambda: "/legato new" in bot.shown()[-1])  # as people type it there
        assert not re.search(r"(?<!legato )/(?!legato)[a-z]+", bot.shown()[-1]), bot.shown()[-1]
        slack.people.command(place, anna, "/legato", "What is up?")
        await bot.until(lambda: bot.shown(place) == ["echo: What is up?"])
        refused = slack.people.command(place, eve, "/new")
        await bot.until(lambda: refused.acknowledged.is_set())
        assert private.answer is None
        assert "text" in (refused.answer or {})
        assert not slack.whispered(eve)


async def test_a_tool_asks_with_buttons(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    payment = Payment()
    async with on_slack(tmp_path, slack, anna, model=FakeModel(in_turn(payments(42))), with_tools=[payment]) as bot:
        bot.says("pay")
        await bot.until(lambda: slack.shown(bot.chat) and slack.shown(bot.chat)[-1].buttons)
        asked = slack.shown(bot.chat)[-1]
        pressed = slack.people.press(asked, anna, "Approve")
        await bot.until(lambda: len(payment.paid) == 1 and not asked.buttons)
        await bot.until(pressed.acknowledged.is_set)
        assert [each.text for each in slack.whispered(anna)] == ["Approved."]


async def test_files_go_both_ways(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    async with on_slack(tmp_path, slack, anna) as bot:
        bot.says("Read this", files=(slack.people.file("notes.txt", b"Alto: Ben", "text/plain"),))
        await bot.until(lambda: bot.shown())
        assert "notes.txt" in bot.shown()[0]
        bot.says(" /export")
        await bot.until(lambda: any(each.files for each in slack.shown(bot.chat)))
        (sent,) = [file for each in slack.shown(bot.chat) for file in each.files]
        assert sent.content


async def test_a_corrected_message_is_answered_again_and_a_deleted_one_not(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one", gate=gate)))
    async with on_slack(tmp_path, slack, anna, model=model) as bot:
        bot.says("first")
        await gate.until_waiting()
        second, third = bot.says("secnd"), bot.says("third")
        await bot.until_waiting("secnd", "third")
        slack.people.edit(second, "second")
        slack.people.delete(third)
        await bot.until_waiting("second", "")
        gate.open()
        await bot.until_shown("one", "echo: second")
        slack.people.edit(second, "2nd")
        await bot.until_shown("one", "echo: second", "echo: [an earlier message, corrected]\n2nd")
        await bot.quiet()
    async with on_slack(tmp_path, slack, anna) as bot:
        slack.people.delete(third)  # which nobody answered
        slack.people.edit(second, "2nd.")  # of what was said before this process began
        await bot.until(lambda: bot.shown()[-1] == "echo: [an earlier message, corrected]\n2nd.")


async def test_what_its_writer_deletes_after_the_answer_is_forgotten(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    async def kept() -> list[str]:
        (talk,) = await bot.gateway.store.talks("slack", anna.id)
        (session,) = await bot.gateway.store.sessions(talk.key, 1)
        return [text_of(each) for each in await bot.gateway.store.transcript(session)]

    async def forgot(*left: str) -> bool:
        return await kept() == [text for said in left for text in (said, f"echo: {said}")]

    async with on_slack(tmp_path, slack, anna) as bot:
        code, other = bot.says("my code is 4711"), bot.says("it rains")
        await bot.until_shown("echo: my code is 4711", "echo: it rains")
        slack.people.delete(code)
        await eventually(lambda: forgot("it rains"))
    async with on_slack(tmp_path, slack, anna) as bot:
        bot.says("and now?")
        await bot.until(lambda: bot.shown()[-1] == "echo: and now?")
        slack.people.delete(other)  # this process never saw it
        await eventually(lambda: forgot("and now?"))


async def test_what_was_said_before_a_mention_goes_with_who_said_it(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    ben = slack.people.person("Ben")
    place = slack.people.channel("choir", anna, ben)
    async with on_slack(tmp_path, slack, anna, allow=(f"slack:{ben.id}",)) as bot:
        slack.people.say(place, ben, "my code is 4711")
        first = bot.says("@Legato who said that?", place)
        await bot.until(lambda: slack.shown(place, first))
        assert talk_in(bot.model.spoken(0)[-1][1]) == ["Ben: “my code is 4711”"]
        wish = slack.people.say(place, ben, "@Legato /forget everything")
        await bot.until(lambda: slack.shown(place, wish))
        slack.people.say(place, ben, "y", thread=wish)
        await bot.until(lambda: len(slack.shown(place, wish)) == 2)
        second = bot.says("@Legato and now?", place)
        await bot.until(lambda: slack.shown(place, second))
        bot.says("and here?", place, thread=first)
        await bot.until(lambda: len(slack.shown(place, first)) == 2)
        assert all("4711" not in text for each in bot.model.requests[1:] for text in map(text_of, each.messages))


async def test_what_breaks_on_the_way_is_neither_lost_nor_shown_twice(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    slack.settings.acknowledged_within, slack.settings.retries = 0.3, (0.0, 0.1, 0.1)
    slack.delivery.frames.add(LoseAnswer(), method="acknowledge events_api", times=2)
    slack.faults.add(LoseAnswer(seconds=0.0), method="chat.postMessage")
    slack.faults.add(Flood(seconds=1), method="chat.postMessage", nth=2)
    slack.faults.add(Refuse(status=503), method="chat.postMessage", nth=3)
    async with on_slack(tmp_path, slack, anna) as bot:
        bot.says("one")
        await bot.until_shown("echo: one")
        await slack.delivery.goodbye()
        bot.says("two")
        await bot.until_shown("echo: one", "echo: two")
        await slack.delivery.cut()
        bot.says("three")
        await bot.until_shown("echo: one", "echo: two", "echo: three")
        await bot.quiet()


async def test_a_missing_scope_is_named(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    slack.settings.scopes -= {"chat:write", "files:read"}
    async with on_slack(tmp_path, slack, anna) as bot:
        found = {each.what: each.detail for each in await bot.adapter.probe()}
        assert found["slack scopes"].startswith("the bot lacks chat:write, files:read; add them at")
        assert "slack socket" not in found
        slack.settings.app_token = "xapp-another"
        found = {each.what: each.detail for each in await bot.adapter.probe()}
        assert found["slack socket"].startswith("Slack rejects app_token (invalid_auth). Make an App-Level Token")
        bot.says("Hello")
        await bot.until(lambda: list(slack.journal.of("chat.postMessage")))
        await bot.quiet()
        row, *_ = [each for each in await bot.gateway.store.outbox(None, 9) if each.state == "refused"]
        assert "the bot lacks the scope chat:write: add it at https://api.slack.com/apps" in (row.error or "")


async def test_a_question_has_a_menu_and_a_form(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    asked = {"question": "What to sing?", "options": ["Bach", "Byrd", "Brahms"], "multiple": True}
    ask = Say(calls=[("ask_person", json.dumps(asked))])
    async with on_slack(tmp_path, slack, anna, model=FakeModel(in_turn(ask, Say(text="Good."), ask))) as bot:
        bot.says("Hello")
        await bot.until(lambda: slack.shown(bot.chat) and slack.shown(bot.chat)[-1].options)
        (message,) = slack.shown(bot.chat)
        send = next(each["text"]["text"] for each in message.buttons if each["action_id"].startswith("send"))
        slack.people.press(message, anna, send, chosen=("Bach", "Brahms"))
        await bot.until(lambda: "Good." in bot.shown())
        assert text_of(bot.model.requests[-1].messages[-1]) == "The person answered: Bach; Brahms"
        bot.says("Again")
        await bot.until(lambda: slack.shown(bot.chat)[-1].options)
        slack.people.press(slack.shown(bot.chat)[-1], anna, "In other words …")
        await bot.until(lambda: anna.form)
        slack.people.submit(anna, "Nothing\nat all")
        await bot.until(lambda: len(bot.model.requests) == 4)
        assert text_of(bot.model.requests[-1].messages[-1]) == "The person answered: Nothing\nat all"


async def test_in_a_thread_only_the_one_who_was_asked_answers_by_a_form_and_it_may_be_sent_after_a_restart(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    ben = slack.people.person("Ben")
    place = slack.people.channel("choir", anna, ben)
    ask = Say(calls=[("ask_person", json.dumps({"question": "Which key?"}))])
    who = {"allow": (f"slack:{ben.id}",)}
    async with on_slack(tmp_path, slack, anna, model=FakeModel(in_turn(ask)), **who) as bot:
        began = bot.says("@Legato sing", place)
        await bot.until(lambda: slack.shown(place, began))
        (question,) = slack.shown(place, began)
        for person in (anna, ben):
            slack.people.press(question, person, "In other words …")
        await bot.until(lambda: anna.form and ben.form)
        slack.people.submit(ben, "C major")
        await bot.until(lambda: [each.only_for for each in place.messages][-1] is ben)  # that it is not his to answer
    async with on_slack(tmp_path, slack, anna, model=FakeModel(in_turn(Say(text="Good."))), **who) as bot:
        slack.people.submit(anna, "A minor")
        await bot.until(lambda: "Good." in bot.shown(began))
        assert text_of(bot.model.requests[-1].messages[-1]) == "The person answered: A minor"


async def test_a_new_assistant_thread_offers_beginnings_and_is_a_conversation_of_its_own(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    eve, gate = slack.people.person("Eve"), Gate()
    slack.settings.scopes |= {"assistant:write"}
    async with on_slack(tmp_path, slack, anna, model=FakeModel(in_turn(Say(text="One", gate=gate), Say()))) as bot:
        slack.people.opens_assistant(eve)
        one, other = slack.people.opens_assistant(anna), slack.people.opens_assistant(anna)
        await bot.until(lambda: len(bot.chat.prompts) == 2)
        assert bot.chat.prompts[one.ts] == [*PROMPTS]
        bot.says(PROMPTS[0], thread=one)
        await bot.until(lambda: bot.chat.status == "is thinking…")
        gate.open()
        await bot.until(lambda: bot.shown(one) == ["One"])
        bot.says("And you?", thread=other)
        await bot.until(lambda: bot.shown(other))
        assert [text_of(each) for each in bot.model.requests[-1].messages[1:]] == ["And you?"]
        await bot.quiet()
        assert slack.people.direct(eve).prompts == {}
        assert bot.chat.status == ""


async def test_without_the_scope_for_them_an_assistant_thread_offers_no_beginnings(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    async with on_slack(tmp_path, slack, anna) as bot:
        thread = slack.people.opens_assistant(anna)
        await bot.until(lambda: list(slack.journal.of("assistant.threads.setSuggestedPrompts")))
        bot.says("Hello", thread=thread)
        await bot.until(lambda: bot.shown(thread) == ["echo: Hello"])


async def test_reactions_go_both_ways_also_in_threads(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    place, gate = slack.people.channel("choir", anna), Gate()
    model = FakeModel(in_turn(Say(text="Tuesday", gate=gate)))
    signs = SessionSettings(reactions=True)
    async with on_slack(tmp_path, slack, anna, model=model, sessions=signs) as bot:
        asked = bot.says("@Legato When?", place)
        await bot.until(lambda: [name for name, _ in asked.reactions] == ["eyes"])
        gate.open()
        await bot.until(lambda: [name for name, _ in asked.reactions] == ["white_check_mark"])
        await bot.quiet()
        (answer,) = slack.shown(place, asked)
        slack.people.react(answer, anna, "thumbsup::skin-tone-2")
        slack.people.react(answer, anna, "-1")
        slack.people.react(answer, anna, "-1", gone=True)
        bot.says("Sure?", place, thread=asked)
        await bot.until(lambda: len(model.requests) == 2)
        assert '[Anna reacted 👍 to: "Tuesday"]' in str(model.requests[1].messages[-1])


async def test_a_flood_of_reactions_asks_slack_once_and_strangers_not_at_all(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    eve, place = slack.people.person("Eve"), slack.people.channel("choir", anna)
    async with on_slack(tmp_path, slack, anna) as bot:
        asked = bot.says("@Legato When?", place)
        await bot.until(lambda: slack.shown(place, asked))
        await bot.quiet()
        (answer,) = slack.shown(place, asked)
        before = len([*slack.journal.of("conversations.replies")])
        for number in range(40):
            slack.people.react(answer, eve if number % 2 else anna, f"smile-{number}")
        bot.says("Sure?", place, thread=asked)
        await bot.until(lambda: len(bot.model.requests) == 2)
        assert bot.model.spoken(1)[-1][1].count(":smile-") > 0
        assert len([*slack.journal.of("conversations.replies")]) == before + 1


async def test_the_home_tab_says_how_it_is_to_who_may_talk(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    eve = slack.people.person("Eve")
    async with on_slack(tmp_path, slack, anna) as bot:
        for person in (eve, anna):
            slack.people.event(
                {
                    "type": "app_home_opened",
                    "user": person.id,
                    "channel": slack.people.direct(person).id,
                    "tab": "home",
                    "event_ts": slack.world.ts(),
                }
            )
        await bot.until(lambda: anna.home)
        await bot.quiet()
        assert eve.home == []


async def test_other_bots_are_answered_as_often_as_the_settings_say(
    tmp_path: Path, slack: SlackServer, anna: User
) -> None:
    robot = slack.people.person("Robot", bot=True)
    place, rules = slack.people.channel("choir", anna, robot), {"bots": 1, "threads": False}
    async with on_slack(tmp_path, slack, anna, rules=rules, allow=(f"slack:{robot.id}",)) as bot:
        for said in ("@Legato one", "@Legato two", "three"):
            slack.people.say(place, robot, said)
        bot.says("Well?", place)  # a person spoke, so the count begins anew
        slack.people.say(place, robot, "@Legato four")
        await bot.until(lambda: len(bot.shown(place)) == 2)
        await bot.quiet()
        assert [each.splitlines()[-1] for each in bot.shown(place)] == ["one", "four"]


async def test_a_channel_is_listened_to_as_its_rule_says(tmp_path: Path, slack: SlackServer, anna: User) -> None:
    place, other = slack.people.channel("choir", anna), slack.people.channel("office", anna)
    listens = {f"slack:{place.id}": Chat(listen="thread"), f"slack:{other.id}": Chat(listen="off")}
    async with on_slack(tmp_path, slack, anna, rules={"listen": "free"}, chats=listens) as bot:
        bot.says("@Legato hello", other)
        asked = bot.says("one", place)
        await bot.until(lambda: slack.shown(place, asked))
        await bot.quiet()
        assert slack.shown(other) == slack.shown(place) == []


async def test_a_command_is_acknowledged_in_time_however_slow_the_store_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, gate = FastClock(), Gate()
    async with SlackServer(limited=False, clock=clock) as slack:
        anna = slack.people.person("Anna")
        async with on_slack(tmp_path, slack, anna, clock=clock) as bot:
            accept = bot.gateway.store.accept

            async def slow(*given: Any, **how: Any) -> Any:
                await gate.pass_through()
                return await accept(*given, **how)

            monkeypatch.setattr(bot.gateway.store, "accept", slow)
            command = slack.people.command(bot.chat, anna, "/legato", "version")
            await bot.until(command.acknowledged.is_set)
            assert command.answer == {"text": LATER}
            gate.open()
            await bot.until(bot.shown)


async def test_it_says_that_socket_mode_is_switched_off(
    tmp_path: Path, slack: SlackServer, anna: User, capsys: pytest.CaptureFixture[str]
) -> None:
    async with on_slack(tmp_path, slack, anna) as bot:
        await slack.delivery.goodbye("link_disabled")
        await bot.until_ended()
    assert "Socket Mode is switched off for this app. Switch it on at https://" in capsys.readouterr().out
