"""The laboratory of the bot on Telegram, in short, and whether its checks would notice.

`make chaos` does hundreds of these runs; `python -m tests.chaos.run telegram --runs 1 --seed N -v` shows one again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.runtime.clock import SystemClock
from tests.chaos.bots.model import reply_to
from tests.chaos.bots.run import Death
from tests.chaos.bots.script import Kill, Said
from tests.chaos.bots.stores import Row
from tests.chaos.campaign import campaign
from tests.chaos.telegram.check import problems
from tests.chaos.telegram.doubts import shown_as
from tests.chaos.telegram.evidence import Evidence, Heard, Street
from tests.chaos.telegram.laboratory import laboratories
from tests.chaos.telegram.script import Schedule, make_schedule
from tests.emulators.journal import Call
from tests.emulators.telegram import TelegramServer

RUNS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
ASKED = Said(process=0, at=0.0, down=True, place="anna", speaker="anna", kind="say", token="tok00abcde")


@pytest.mark.parametrize("seed", RUNS)
async def test_whatever_fails_each_message_is_answered_and_each_answer_is_seen_once(seed: int) -> None:
    schedule = make_schedule(seed)
    (result,) = [result async for result in campaign([schedule], laboratories, jobs=1)]

    assert result.problems == ()
    assert result.faults.total() > result.faults["SIGKILL"] == len(schedule.kills)


async def test_who_is_killed_between_storing_an_update_and_saying_so_gets_it_again_and_answers_it_once() -> None:
    said = tuple(
        Said(
            process=process,
            at=0.0,
            down=process == 0,
            place="anna",
            speaker="anna",
            kind="say",
            token=f"tok0{process}abcde",
        )
        for process in range(3)
    )
    kills = (Kill(point="accept.after", after=30.0), Kill(point="accept.after", passing=2, after=30.0))
    plan = Schedule(seed=0, said=said, kills=kills, faults=(), called=True)
    (result,) = [result async for result in campaign([plan], laboratories, jobs=1)]

    assert result.problems == ()
    assert result.faults["SIGKILL"] == 2


async def test_who_is_killed_in_the_middle_of_a_draft_shows_the_answer_once() -> None:
    asked = replace(ASKED, kind="fill")
    kills = tuple(Kill(draft=draft, after=30.0) for draft in (1, 2))
    # A machine that stands still for a moment has no drafts for it: the answer takes far longer than that.
    plan = Schedule(seed=0, said=(asked,), kills=kills, faults=(), drafts=True, slower=4.0)
    (result,) = [result async for result in campaign([plan], laboratories, jobs=1)]

    assert result.problems == ()
    assert result.faults["SIGKILL"] == 2
    assert result.counts["drafts"] >= 1


class Told:
    """A run as it would be told: Anna asked once, and these calls showed the answer."""

    def __init__(self, telegram: TelegramServer, folder: Path) -> None:
        street = Street.of(telegram, moves=False)
        street.hear(ASKED)
        self._telegram = telegram
        self._heard: Heard = street.heard[0]
        self.row = Row(
            id="o_1",
            chat=str(self._heard.message.chat.id),
            thread=None,
            kind="reply",
            text=reply_to("say", ASKED.token),
            answers=f"1:1:{self._heard.message.chat.id}:{self._heard.message.id}",
            state="sent",
            message="1",
            place=2,
        )
        schedule = Schedule(seed=0, said=(ASKED,), kills=(), faults=(), drafts=True)
        self.evidence = Evidence(schedule=schedule, street=street, folder=folder, exit_status=0, rows=(self.row,))

    def draft(self, text: str, chat: int | str = 0) -> Call:
        """The bot shows this draft."""
        call = self._telegram.cloud.journal.open("sendMessageDraft", str(chat or self.row.chat), {"text": text})
        call.done, call.answered, call.status = True, True, 200
        return call

    def show(self, text: str, *, answered: bool = True) -> Call:
        """The bot sends this; its answer may be lost."""
        chat, cloud = self._heard.message.chat, self._telegram.cloud
        call = cloud.journal.open("sendMessage", str(chat.id), {"text": text})
        call.result = cloud.world.post(chat, cloud.world.bot, {"text": text}).as_json()
        call.done, call.answered, call.status = True, answered, 200
        return call

    def problems(self) -> list[str]:
        """Return the verdicts of the checks."""
        return list(problems(self.evidence, Counter()))


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(TelegramServer(clock=SystemClock()), tmp_path)


def test_an_answer_that_is_seen_once_is_no_problem(told: Told) -> None:
    told.show(shown_as(told.row))
    assert told.problems() == []


def test_an_answer_that_is_seen_twice_needs_a_send_in_doubt(told: Told) -> None:
    told.show(shown_as(told.row))
    second = told.show(f"↻ {shown_as(told.row)}")
    assert "shown 2 times, with 0 sends in doubt" in told.problems()[0]
    second.answered = False
    assert told.problems() == []


def test_an_answer_that_is_seen_twice_needs_a_mark(told: Told) -> None:
    told.show(shown_as(told.row))
    told.show(shown_as(told.row), answered=False)
    assert "shown 2 times without a mark" in told.problems()[0]


def test_an_answer_that_is_never_seen_is_noticed(told: Told) -> None:
    assert "shown 0 times" in told.problems()[0]


def test_the_beginning_of_a_reply_may_stay_only_after_a_send_in_doubt(told: Told) -> None:
    beginning = told.show("tok00abcde is …")
    told.show(shown_as(told.row))
    assert "was left unfinished" in told.problems()[0]
    beginning.answered = False
    assert told.problems() == []


def test_a_message_without_an_answer_is_noticed(told: Told) -> None:
    told.evidence.rows = ()
    assert "was answered by 0 messages" in told.problems()[0]


def test_answers_out_of_the_order_of_emission_are_noticed(told: Told) -> None:
    notice = replace(told.row, id="o_2", place=1, kind="notice", text="I am still working on your earlier message")
    told.show(shown_as(told.row))
    told.show(notice.text)
    told.evidence.rows = (notice, told.row)
    assert any("was shown before what was emitted earlier" in problem for problem in told.problems())


def test_a_call_while_a_chat_wants_silence_is_noticed(told: Told) -> None:
    told.show(shown_as(told.row))
    journal = told.evidence.street.telegram.journal
    for text in ("asks for silence", "too soon"):
        call = journal.open("sendMessage", told.row.chat, {"text": text})
        call.status, call.answered = 429, True
    journal.violation("sendMessage", told.row.chat, "The chat was to be left alone for 2 more seconds.")
    first, second = list(journal.of("sendMessage", told.row.chat))[-2:]
    first.at = second.at - 100
    assert "The chat was to be left alone" in told.problems()[0]


def test_who_died_before_it_could_hear_of_the_silence_left_its_successor_in_the_dark(told: Told) -> None:
    told.show(shown_as(told.row))
    journal = told.evidence.street.telegram.journal
    for _ in range(2):
        call = journal.open("sendMessage", told.row.chat, {"text": "?"})
        call.status, call.answered = 429, True
    journal.violation("sendMessage", told.row.chat, "The chat was to be left alone for 2 more seconds.")
    asked, early = list(journal.of("sendMessage", told.row.chat))[-2:]
    asked.at = early.at - 100
    told.evidence.deaths = [Death(status=-9, at=asked.at + 3.0, last_call=asked.number, rows=())]
    assert "The chat was to be left alone" in told.problems()[0]
    told.evidence.stalls = [(asked.at + 0.1, asked.at + 3.0)]
    assert told.problems() == []


def test_a_draft_of_the_answer_is_no_problem(told: Told) -> None:
    told.draft("tok00abcde is")
    told.show(shown_as(told.row))
    assert told.problems() == []


def test_a_draft_that_is_shown_after_its_message_is_noticed(told: Told) -> None:
    message = told.show(shown_as(told.row))
    told.draft("tok00abcde is").at = message.at + 100
    assert "was shown a draft after its message" in told.problems()[0]


@pytest.mark.parametrize(
    ("chat", "text", "problem"),
    [
        (0, "tok01abcde is", "words of another conversation in a draft"),
        (-7, "tok00abcde is", "is a group and was shown a draft"),
    ],
)
def test_a_draft_in_the_wrong_place_is_noticed(told: Told, chat: int, text: str, problem: str) -> None:
    told.draft(text, chat)
    told.show(shown_as(told.row))
    assert problem in told.problems()[0]


def test_a_draft_that_nobody_chose_is_noticed(told: Told) -> None:
    told.evidence.schedule = replace(told.evidence.schedule, drafts=False)
    told.draft("tok00abcde is")
    told.show(shown_as(told.row))
    assert "that nobody chose" in told.problems()[0]
