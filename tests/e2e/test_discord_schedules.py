"""The laboratory of the bot on Discord, in short, and whether its checks would notice.

`make chaos` does hundreds of these runs; `python -m tests.chaos.run discord --runs 1 --seed N -v` shows one again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.runtime.clock import SystemClock
from tests.chaos.bots.model import reply_to
from tests.chaos.bots.run import Death
from tests.chaos.bots.script import Said
from tests.chaos.bots.stores import Row
from tests.chaos.campaign import campaign
from tests.chaos.discord.check import problems, shown_as
from tests.chaos.discord.evidence import Evidence, Given, Town
from tests.chaos.discord.laboratory import laboratories
from tests.chaos.discord.script import EDIT, SEND, Schedule, make_schedule
from tests.emulators.discord import DiscordServer, Message
from tests.emulators.discord.interactions import Asking
from tests.emulators.journal import Call

RUNS = [0, pytest.param(1, marks=pytest.mark.slow)]
ASKED = Said(process=0, at=0.0, down=True, place="anna", speaker="anna", kind="say", token="tok00abcde")


@pytest.mark.parametrize("seed", RUNS)
async def test_whatever_breaks_each_message_is_answered_and_each_answer_is_seen_once(seed: int) -> None:
    schedule = make_schedule(seed)
    (result,) = [result async for result in campaign([schedule], laboratories, jobs=1)]

    assert result.problems == ()
    assert result.faults.total() > result.faults["SIGKILL"] == len(schedule.kills)


class Told:
    """A run as it would be told: Anna asked once, and these calls showed the answer."""

    def __init__(self, discord: DiscordServer, folder: Path) -> None:
        town = Town.of(discord)
        town.hear(ASKED)
        self._discord, self._channel = discord, town.places["anna"]
        heard = town.heard[0]
        self.row = Row(
            id="o_1",
            chat=str(self._channel.id),
            thread=None,
            kind="reply",
            text=reply_to("say", ASKED.token),
            answers=f"1:alone:{heard.message.author.id}:{heard.message.id}",
            state="sent",
            message="1",
            place=2,
        )
        schedule = Schedule(seed=0, said=(ASKED,), kills=(), faults=())
        self.evidence = Evidence(schedule=schedule, town=town, folder=folder, exit_status=0, rows=(self.row,))

    def show(self, text: str, *, answered: bool = True) -> Call:
        """The bot sends this; its answer may be lost."""
        cloud = self._discord.cloud
        message = Message(id=cloud.ids.new(), channel=self._channel, author=cloud.bot, content=text)
        self._channel.messages[message.id] = message
        return self._called(SEND, text, answered=answered, result={"id": str(message.id)})

    def finish(self, text: str) -> None:
        """The bot changes its newest message into this."""
        next(reversed(self._channel.messages.values())).content = text
        self._called(EDIT, text)

    def _called(self, method: str, text: str, *, answered: bool = True, result: object = None) -> Call:
        call = self._discord.journal.open(method, str(self._channel.id), {"body": {"content": text}})
        call.done, call.answered, call.status, call.result = True, answered, 200, result
        return call

    def problems(self) -> list[str]:
        """Return the verdicts of the checks."""
        return list(problems(self.evidence, Counter()))


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(DiscordServer(clock=SystemClock()), tmp_path)


def test_an_answer_that_is_seen_once_is_no_problem(told: Told) -> None:
    told.show("tok00abcde is …")
    told.finish(shown_as(told.row))
    assert told.problems() == []


def test_no_answer_is_seen_twice_while_discord_remembers_nonces(told: Told) -> None:
    told.show(shown_as(told.row), answered=False)
    told.show(shown_as(told.row))
    (problem,) = told.problems()
    assert "shown too often (1 times)" in problem
    told.evidence.schedule = replace(told.evidence.schedule, nonces=False)
    assert told.problems() == []


def test_without_nonces_a_second_copy_needs_a_send_in_doubt(told: Told) -> None:
    told.evidence.schedule = replace(told.evidence.schedule, nonces=False)
    told.show(shown_as(told.row))
    told.show(shown_as(told.row))
    assert "shown too often" in told.problems()[0]


def test_an_answer_that_is_never_seen_is_noticed(told: Told) -> None:
    assert "shown 0 times, not 1" in told.problems()[0]


def test_a_beginning_that_was_left_is_noticed(told: Told) -> None:
    told.show("tok00abcde is …")
    told.show(shown_as(told.row))
    assert "left it unfinished" in told.problems()[0]


def test_a_message_without_an_answer_is_noticed(told: Told) -> None:
    told.evidence.rows = ()
    assert "was answered by 0 messages" in told.problems()[0]


def test_an_answer_in_another_place_is_noticed(told: Told) -> None:
    told.show(shown_as(told.row))
    told.evidence.rows = (replace(told.row, chat="7"),)
    assert "was answered elsewhere" in told.problems()[0]


def test_answers_out_of_the_order_of_emission_are_noticed(told: Told) -> None:
    notice = replace(told.row, id="o_2", place=1, kind="notice", text="I am still working on your earlier message")
    told.show(shown_as(told.row))
    told.show(notice.text)
    told.evidence.rows = (notice, told.row)
    assert any("was shown before what was emitted earlier" in problem for problem in told.problems())


def test_what_discord_refuses_is_noticed(told: Told) -> None:
    told.show(shown_as(told.row))
    told.evidence.town.discord.journal.violation(SEND, "7", "Invalid Form Body")
    assert "Invalid Form Body" in told.problems()[0]


def given(told: Told, *, events: int) -> Row:
    """Anna gave /version besides, and there are so many answers to it."""
    town = told.evidence.town
    anna, place = town.people["anna"], town.places["anna"]
    said = Said(process=0, at=0.0, down=False, place="anna", speaker="anna", kind="slash version")
    interaction = town.discord.cloud.interactions.start(Asking.COMMAND, anna, place, {"name": "version"})
    town.given.append(Given(said=said, interaction=interaction, process=0))
    told.show(shown_as(told.row))
    row = replace(told.row, kind="command", text="Legato 1", answers=f"1:alone:{anna.id}:i{interaction.id}:token")
    told.evidence.rows += tuple(replace(row, id=f"o_{number}", place=9 + number) for number in range(events))
    for _ in range(events):
        told.show("Legato 1")
    return row


def test_a_slash_command_that_is_answered_once_is_no_problem(told: Told) -> None:
    given(told, events=1)
    assert told.problems() == []


def test_a_slash_command_without_an_answer_or_with_two_is_noticed(told: Told) -> None:
    given(told, events=0)
    assert told.problems() == ["/version was not answered, though its process lived"]
    told.evidence.town.given.clear()
    row = given(told, events=2)
    assert "/version has 2 answers" in told.problems()
    told.evidence.rows = (told.row, replace(row, state="refused"))
    assert any("the answer to /version is refused" in problem for problem in told.problems())


def test_a_slash_command_that_was_stored_and_not_answered_is_noticed_whatever_died(told: Told) -> None:
    row = given(told, events=0)
    told.evidence.deaths = [Death(status=-9, at=0.0, last_call=0, rows=())]
    assert told.problems() == []
    told.evidence.stored = frozenset({row.answers or ""})
    assert told.problems() == ["/version was stored, and not answered"]


def test_what_was_paid_twice_or_never_is_noticed(told: Told) -> None:
    told.evidence.town.heard[0] = replace(told.evidence.town.heard[0], said=replace(ASKED, kind="pay"))
    told.show(shown_as(told.row))
    told.evidence.paid = (ASKED.token,)
    assert told.problems() == []
    told.evidence.paid = (ASKED.token, ASKED.token)
    assert told.problems() == ["tok00abcde was paid 2 times"]
    told.evidence.paid = ()
    assert told.problems() == ["tok00abcde was paid 0 times"]


def test_a_question_with_two_decisions_is_noticed(told: Told) -> None:
    told.show(shown_as(told.row))
    asked = replace(told.row, id="o_2", kind="question", text="Pay?", place=3)
    decided = replace(asked, edits="o_2", text="Approved.", place=4)
    told.show("Pay?")
    told.finish("Approved.")
    told.evidence.rows = (told.row, asked, replace(decided, id="o_3"))
    assert told.problems() == []
    told.evidence.rows += (replace(decided, id="o_4"),)
    assert "Pay? was decided 2 times" in told.problems()
