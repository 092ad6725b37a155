"""People on Discord, as they see the bot: in chats of two, in channels, in threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.config.models import Chat
from gateway.domain.message import text_of
from gateway.domain.notes import without_quotes
from gateway.runtime.errors import EmptyAnswer
from tests.emulators.discord import Channel, DiscordServer, Kind, User
from tests.support.discord_live import FORGET, on_discord
from tests.support.live_bot import talk_in
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.tools import Payment, payments


async def test_a_person_writes_and_is_answered(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        (message,) = discord.shown(bot.chat)
        assert message.answered is None


async def test_in_a_channel_it_answers_who_names_it_or_answers_it(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        bot.says("nobody asks", place)
        asked = bot.says("@Legato what is it?", place)
        await bot.until_shown("echo: what is it?", chat=place)
        (message,) = discord.shown(place)
        assert message.answered is asked
        assert [each.name for each in message.mentions] == ["anna"]
        bot.says("and now?", place, reply_to=message)
        await bot.until(lambda: len(discord.shown(place)) == 2)
        assert '[in reply to you: "echo: what is it?"]\nand now?' in bot.shown(place)[1]


async def test_it_is_shown_what_was_said_before_it_was_named_and_stores_none_of_that(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    ben = discord.people.person("Ben")
    async with on_discord(tmp_path, discord, anna, chats={"discord:*": Chat(context=50)}) as bot:
        discord.people.say(place, ben, "I sing [alto]")
        bot.says("and I bass", place)
        bot.says("@Legato who sings what?", place)
        await bot.until(lambda: discord.shown(place))
        ((_, heard),) = bot.model.spoken(0)
        assert talk_in(heard) == ["Ben: “I sing (alto)”", "Anna: “and I bass”"]
        assert without_quotes(heard) == "who sings what?"
        bot.says("@Legato thanks", place)
        await bot.until(lambda: len(discord.shown(place)) == 2)
        assert bot.model.spoken(1)[0] == ("user", "who sings what?")
        assert talk_in(bot.model.spoken(1)[-1][1]) == talk_in(heard)


@pytest.mark.parametrize("long", [False, True])
async def test_in_a_thread_it_is_shown_the_message_that_the_thread_began_from(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, long: bool
) -> None:
    thread = discord.people.thread_from(discord.people.say(place, anna, "Who sings alto?"), anna, "Alto")
    for number in range(25 * long):
        discord.people.say(thread, anna, str(number))
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 20}) as bot:
        bot.says("@Legato please answer", thread)
        await bot.until(lambda: discord.shown(thread))
        first, *others = talk_in(bot.model.spoken(0)[0][1])
        assert first.startswith("Anna: “Who sings alto?")
        assert len(others) == 20 * long


async def test_a_thread_from_its_own_answer_shows_it_that_answer(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        bot.says("@Legato one", place)
        await bot.until_shown("echo: one", chat=place)
        thread = discord.people.thread_from(discord.shown(place)[0], anna, "More")
        bot.says("@Legato go on", thread)
        await bot.until(lambda: len(discord.shown(thread)) == 2)  # the first stands for what the thread began from
        assert talk_in(bot.model.spoken(1)[-1][1]) == ["you: “echo: one”"]


async def test_names_of_channels_and_roles_are_those_that_people_see(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    assert place.guild is not None
    role = discord.people.role(place.guild, "altos")
    elsewhere = discord.people.general(discord.people.guild("Secret", anna))
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        bot.says(f"@Legato are the <@&{role.id}> in <#{place.id}> or in <#{elsewhere.id}>?", place)
        await bot.until_shown(f"echo: are the @altos in #general or in #{elsewhere.id}?", chat=place)


async def test_the_card_of_another_bot_is_read(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    robot = discord.people.person("Robot", bot=True)
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        card = {"title": "Build failed", "description": "3 tests", "fields": [{"name": "Branch", "value": "main"}]}
        said = discord.people.say(place, robot, "", embeds=[card])
        bot.says("@Legato why?", place, reply_to=said)
        await bot.until(lambda: discord.shown(place))
        ((_, heard),) = bot.model.spoken(0)
        assert heard == '[in reply to robot: "(card: Build failed | 3 tests | Branch: main)"]\nwhy?'


async def test_a_channel_may_be_free_or_silent(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    assert place.guild is not None
    quiet = discord.people.channel(place.guild, "quiet")
    rules = {"free": (str(place.id),), "off": (str(quiet.id),)}
    async with on_discord(tmp_path, discord, anna, rules=rules) as bot:
        bot.says("@Legato psst", quiet)
        bot.says("Hello all", place)
        await bot.until_shown("echo: Hello all", chat=place)
        await bot.quiet()
        assert discord.shown(quiet) == []


async def test_a_channel_may_have_a_thread_for_each_question(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna, rules={"thread": (str(place.id),)}) as bot:
        asked = bot.says("What do we sing on Sunday?", place)
        await bot.until(lambda: asked.thread is not None and discord.shown(asked.thread))
        thread = asked.thread
        assert thread is not None
        assert thread.name == "What do we sing on Sunday?"
        assert discord.shown(place) == []
        bot.says("And on Monday?", thread)
        await bot.until(lambda: len(discord.shown(thread)) == 2)
        assert [role for role, _ in bot.model.spoken(1)] == ["user", "assistant", "user"]
        assert bot.model.spoken(1)[-1] == ("user", "[Anna] And on Monday?")


async def test_a_post_in_a_forum_is_answered_in_it(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    assert place.guild is not None
    forum = discord.people.channel(place.guild, "questions", kind=Kind.FORUM)
    async with on_discord(tmp_path, discord, anna, rules={"free": (str(forum.id),)}) as bot:
        post = discord.people.post(forum, anna, "Sunday", "What do we sing?")
        await bot.until_shown("echo: [Anna] What do we sing?", chat=post)


async def test_an_answer_grows_in_one_message_and_ends_in_parts(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    gate = Gate()
    code = "\n".join(f"print({number})" for number in range(300))
    model = FakeModel(in_turn(Say(first="Look", gate=gate, text=f" here:\n\n```python\n{code}\n```\nThat is all.")))
    async with on_discord(tmp_path, discord, anna, model=model) as bot:
        bot.says("Count")
        await bot.until_shown("Look …")
        gate.open()
        await bot.until(lambda: len(discord.shown(bot.chat)) > 1 and "That is all." in bot.shown()[-1])
        first, *others = discord.shown(bot.chat)
        assert first.texts[0] == "Look …"
        assert all(len(text) <= 2_000 and text.count("```") == 2 for text in bot.shown())
        assert all(each.content.startswith("```python\n") for each in others)
        shown = "\n".join(bot.shown())
        assert [f"print({number})" in shown for number in range(300)] == [True] * 300


async def test_a_person_corrects_a_message(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        said = bot.says("Helo")
        await bot.until_shown("echo: Helo")
        discord.people.edit(said, "Hello")
        await bot.until_shown("echo: Helo", "echo: [an earlier message, corrected]\nHello")


async def test_a_message_that_waits_is_answered_as_it_was_changed(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one", gate=gate), Say(text="two"), Say(text="three")))
    async with on_discord(tmp_path, discord, anna, model=model) as bot:
        bot.says("first")
        await gate.until_waiting()
        second = bot.says("secnd")
        await bot.until_waiting("secnd")
        discord.people.edit(second, "second, changed")
        discord.people.edit(second, "second, changed again")
        discord.people.edit(bot.says("thrd"), "third, changed at once")
        await bot.until_waiting("second, changed again", "third, changed at once")
        gate.open()
        await bot.until_shown("one", "two", "three")
        asked = [text_of(request.messages[-1]) for request in model.requests]
        assert asked == ["first", "second, changed again", "third, changed at once"]


async def test_a_correction_that_waits_is_answered_as_it_was_changed(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one", gate=gate), Say(text="two")))
    async with on_discord(tmp_path, discord, anna, model=model) as bot:
        said = bot.says("first")
        await gate.until_waiting()
        discord.people.edit(said, "frst")
        await bot.until_waiting("[an earlier message, corrected]\nfrst")
        discord.people.edit(said, "First")
        await bot.until_waiting("[an earlier message, corrected]\nFirst")
        gate.open()
        await bot.until_shown("one", "two")


async def test_a_link_or_a_pin_makes_no_correction_of_an_earlier_edit(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one", gate=gate), Say(text="two"), Say(text="three")))
    async with on_discord(tmp_path, discord, anna, model=model, rules={"quoted": 0}) as bot:
        first = bot.says("@Legato first", place)
        await gate.until_waiting()
        second = bot.says("@Legato see htps://example.org", place)
        await bot.until_waiting("see htps://example.org", chat=place)
        discord.people.edit(second, "@Legato see https://example.org")
        await bot.until_waiting("see https://example.org", chat=place)
        discord.people.edit(bot.says("@Legato secnd", place), "@Legato changed at once")
        await bot.until_waiting("see https://example.org", "changed at once", chat=place)
        gate.open()
        await bot.until_shown("one", "two", "three", chat=place)
        for message in (first, *place.visible):
            if message.author is anna:
                discord.people.preview(message, {"title": "Example"})
                discord.people.pin(message)
        bot.says("@Legato last", place)
        await bot.until_shown("one", "two", "three", "echo: last", chat=place)
        await bot.quiet()
        assert len(model.requests) == 4


async def test_an_edit_from_before_a_restart_is_none_after_it(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        answered = bot.says("Helo")
        await bot.until_shown("echo: Helo")
    discord.people.edit(answered, "Hello")
    missed = discord.people.say(discord.people.direct(anna), anna, "By")
    discord.people.edit(missed, "Bye")
    async with on_discord(tmp_path, discord, anna) as bot:
        await bot.until_shown("echo: Helo", "echo: Bye")
        for message in (answered, missed):
            discord.people.preview(message, {"title": "Example"})
        bot.says("Last")
        await bot.until_shown("echo: Helo", "echo: Bye", "echo: Last")
        discord.people.edit(answered, "Hello!")
        corrected = "echo: [an earlier message, corrected]\nHello!\n[card: Example]"
        await bot.until_shown("echo: Helo", "echo: Bye", "echo: Last", corrected)
        discord.people.pin(answered)
        await bot.quiet()
        assert len(bot.shown()) == 4


async def test_a_message_that_waits_and_is_deleted_is_not_answered(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one", gate=gate), Say(text="two")))
    async with on_discord(tmp_path, discord, anna, model=model, rules={"quoted": 0}) as bot:
        first = bot.says("@Legato first", place)
        await gate.until_waiting()
        others = [bot.says(f"@Legato {word}", place) for word in ("second", "fourth", "fifth")]
        await bot.until_waiting("second", "fourth", "fifth", chat=place)
        discord.people.delete(first)  # whose turn runs
        discord.people.delete(others[0])
        discord.people.delete(*others[1:])  # as moderators do
        bot.says("@Legato third", place)
        await bot.until_waiting("", "", "", FORGET, "third", chat=place)
        gate.open()
        await bot.until_shown("one", "two", chat=place)
        said = [[text_of(each) for each in request.messages[1:]] for request in model.requests]
        assert said == [["first"], ["third"]]
        await bot.quiet()


async def test_of_a_long_message_in_two_parts_the_deletion_of_one_is_understood(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        first, second = "a" * 2_000, "b, my code is 4711"
        bot.says(first)
        rest = bot.says(second)
        await bot.until(lambda: len(bot.model.requests) == 2)
        assert text_of(bot.model.requests[-1].messages[-1]) == first + second
        await bot.quiet()
        discord.people.delete(rest)
        bot.says("And now?")
        await bot.until(lambda: bot.shown()[-1] == "echo: And now?")
        said = [text_of(each) for each in bot.model.requests[-1].messages[1:]]
        assert said == ["Hello", "echo: Hello", "And now?"]


def robot_said(number: int) -> str:
    return f"echo: [written by another bot]\n{number}"


async def test_other_bots_are_answered_as_often_as_the_rules_say(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    robot = discord.people.person("Robot", bot=True)
    allow = (f"discord:{robot.id}",)
    async with on_discord(tmp_path, discord, anna, allow=allow, rules={"bots": 2, "quoted": 0}) as bot:
        for number in range(4):
            discord.people.say(place, robot, f"@Legato {number}")
        await bot.until_shown(robot_said(0), robot_said(1), chat=place)
        bot.says("enough", place)
        discord.people.say(place, robot, "@Legato 4")
        await bot.until_shown(robot_said(0), robot_said(1), robot_said(4), chat=place)


async def test_a_role_lets_people_in_and_a_stranger_learns_nothing(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    ben, eve = discord.people.person("Ben"), discord.people.person("Eve")
    assert place.guild is not None
    for person in (ben, eve):
        discord.people.join(place.guild, person)
    role = discord.people.role(place.guild, "singers", ben)
    async with on_discord(tmp_path, discord, anna, allow=(f"discord:role-{role.id}",), rules={"quoted": 0}) as bot:
        discord.people.say(place, eve, "@Legato let me in")
        discord.people.say(place, ben, "@Legato hello")
        await bot.until_shown("echo: hello", chat=place)
        await bot.quiet()
        assert bot.shown(place) == ["echo: hello"]


async def test_a_stranger_is_given_a_code_between_two(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    ben = discord.people.person("Ben")
    admins = (f"discord:{anna.id}",)
    async with on_discord(tmp_path, discord, anna, pairing=True, admins=admins) as bot:
        private = discord.people.direct(ben)
        discord.people.say(private, ben, "Hello?")
        await bot.until(lambda: discord.shown(private))
        code = bot.shown(private)[0].split("code")[1].split(": ")[1].split()[0]
        bot.says(f"/pair {code}")
        await bot.until(lambda: len(discord.shown(private)) == 2)
        assert bot.shown(private)[1].startswith("You have been let in")


async def test_admins_hear_of_somebody_who_writes_where_others_may_talk(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    bob = discord.people.person("Bob")
    place = discord.people.general(discord.people.guild("Choir", anna, bob))
    async with on_discord(tmp_path, discord, anna, pairing=True, admins=(f"discord:{anna.id}",)) as bot:
        bot.says("@Legato hello", place)
        await bot.until(lambda: len(bot.shown(place)) == 1)
        for _ in range(2):
            discord.people.say(place, bob, "@Legato me, too")
        await bot.until(lambda: len(bot.shown()) == 1)  # in Anna's direct messages, which nobody had opened
        assert bot.shown()[0].startswith(f"Bob (discord:{bob.id}) wrote to me in ")
        assert len(bot.shown(place)) == 1


async def test_a_question_has_buttons_that_work_after_a_restart(
    tmp_path: Path, discord: DiscordServer, anna: User
) -> None:
    tool = Payment()
    model = FakeModel(in_turn(payments(50), then=lambda *_: Say(text="Done.")))
    async with on_discord(tmp_path, discord, anna, model=model, with_tools=[tool]) as bot:
        bot.says("Pay")
        await bot.until(lambda: discord.shown(bot.chat) and discord.shown(bot.chat)[-1].buttons)
    async with on_discord(tmp_path, discord, anna, model=model, with_tools=[tool]) as bot:
        question = discord.shown(bot.chat)[-1]
        press = discord.people.press(question, anna, "Approve")
        await bot.until(lambda: bot.shown()[-1:] == ["Done."] and press.answer is not None)
        assert tool.paid == [50]
        assert not question.buttons


async def test_a_question_names_its_own_buttons(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with on_discord(tmp_path, discord, anna, model=FakeModel()) as bot:
        bot.says("my code is 4711")
        await bot.until(lambda: len(bot.shown()) == 1)
        bot.says("/forget last")
        await bot.until(lambda: discord.shown(bot.chat)[-1].buttons)
        question = discord.shown(bot.chat)[-1]
        discord.people.press(question, anna, "Keep")
        await bot.until(lambda: bot.shown()[-1:] == ["Nothing was forgotten."])


async def test_a_check_says_what_there_is_to_know(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        await bot.until(lambda: "new" in discord.people.commands(place))
        found = {each.what: (each.ok, each.detail) for each in await bot.adapter.probe()}
    assert found["discord"] == (True, "Legato (bot 424242424242424242)")
    assert found["discord servers"] == (True, "1: Choir")
    assert found["discord commands"][1].endswith(" offered")
    assert "discord Message Content" not in found


async def test_a_check_of_a_token_that_is_wrong(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with on_discord(tmp_path, discord, anna, connected=False, token=f"{discord.token}x") as bot:
        (finding,) = await bot.adapter.probe()
        assert not finding.ok
        assert "Reset the token at https://discord.com/developers/applications (page Bot)" in finding.detail
        await bot.until_ended()  # it has tried the token, too
        discord.journal.violations.clear()


@pytest.mark.parametrize(("first", "text"), [("", ""), (" \n", ""), ("\n", "\u200b")])
async def test_an_answer_without_a_word_is_told_as_that_and_shows_nothing_else(
    tmp_path: Path, discord: DiscordServer, anna: User, first: str, text: str
) -> None:
    model = FakeModel(in_turn(*(Say(first=first, text=text) for _ in range(2))))
    async with on_discord(tmp_path, discord, anna, model=model) as bot:
        bot.says("hello")
        await bot.until_shown(str(EmptyAnswer()))
        await bot.quiet()
        assert bot.shown() == [str(EmptyAnswer())]
