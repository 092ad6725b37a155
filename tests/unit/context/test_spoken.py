"""Rules in the midst of ordinary talk, in nine languages: how many are known, and how much else passes for one.

The patterns were made with `spoken.yaml` in sight. `unseen.yaml` was written before them, and first looked at when they
were done: then 72 of its 75 rules were known, 3 of 76 wishes for one time and 4 of 80 ordinary sentences passed for
one, and 56 of 64 withdrawals ended theirs (before: 57, 16, 12, 36). `second.yaml` and `third.yaml` were written before
the patterns were changed again, with `second.yaml` in sight: of each 40 rules, 10 and 7 were known before, and 40 and
35 are now. Of 155 ordinary sentences in `third.yaml`, which hold 125 that look like rules, 2 pass for one. Withdrawals
ended 16 and 13 of 30 rules before, and 23 and 18 after it. `fourth.yaml` joins four lists:
of what nobody had looked at when the patterns were changed for one, 10, 6 and 11 of 15 rules were known, and 13, 5, 11
and 13 of 20 ended (before all of it 5, 3 and 7, and 13, 5, 8 and 9), and no ordinary sentence passed for a rule or
ended one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from gateway.context import facts
from gateway.context.instructions import stands
from gateway.context.standing import HEADING, MOST, Instruction, carried
from gateway.domain.message import noted, text_of, user
from gateway.domain.rule import states_rule
from tests.support.transcripts import compressor, conversation, stored, summaries

SPOKEN, UNSEEN, SECOND, THIRD, FOURTH = (
    yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))
    for name in ("spoken.yaml", "unseen.yaml", "second.yaml", "third.yaml", "fourth.yaml")
)
LISTS: Final[list[dict[str, Any]]] = [SPOKEN, UNSEEN, SECOND, THIRD, FOURTH]

ONCE: Final = """\
Translate your answer into French.
Write your answer in one sentence.
Send me your answer by Friday.
Shorten your response please.
Please expand your answer.
Check your reply again.
Thank you for your answers.
Explain each thing you said.
Show me every file you changed.
List every file you created today.
Please answer every question you can find on this page.
Danke für deine Antworten.
Deine Antworten helfen mir sehr.
Mir gefallen deine Antworten.
Gracias por tus respuestas.
Me gustan tus respuestas.
Merci pour vos réponses.
J'aime tes réponses.
Before you go, tell me how much it costs.
Before you start, tell me how long it takes.
I don't want you to lose money.
I don't want you to miss the game tonight.
"""


@pytest.mark.parametrize(
    ("said", "most"), [(SPOKEN, 0.03), (UNSEEN, 0.0), (SECOND, 0.0), (THIRD, 0.03), (FOURTH, 0.08)]
)
def test_rules_are_known_and_little_else_passes_for_one(said: dict[str, Any], most: float) -> None:
    missed = [each for each in said["rules"] if not stands(each)]
    taken = [each for each in said["ordinary"] if stands(each)]
    once = [each for each in said["once"] if stands(each)]
    assert len(missed) <= most * len(said["rules"]), missed
    assert len(taken) <= max(1, 0.02 * len(said["ordinary"])), taken
    assert len(once) <= 0.04 * len(said["once"]), once


@pytest.mark.parametrize("said", ONCE.splitlines())
def test_a_wish_for_one_answer_is_no_rule(said: str) -> None:
    assert not stands(said)


@pytest.mark.parametrize(
    "said",
    [
        "Put a date on all your reports.",
        "Add the source to any answer.",
        "Siempre que te pregunte algo, responde corto.",
    ],
)
def test_a_wish_for_all_of_them_is_a_rule(said: str) -> None:
    assert stands(said)


@pytest.mark.parametrize("said", LISTS)
def test_ordinary_talk_is_never_pinned_and_ends_no_rule(said: dict[str, Any]) -> None:
    others = [*said["ordinary"], *said["once"]]
    assert [each for each in others if states_rule(each)] == []
    for start in range(0, len(said["rules"]), MOST):
        held = carried([Instruction(text=rule) for rule in said["rules"][start : start + MOST]], ())
        for some in range(0, len(others), 20):  # so few that all of them are read
            assert carried(held, (), [*map(user, others[some : some + 20])]) == held


@pytest.mark.parametrize(
    ("said", "most"), [(SPOKEN, 0.02), (UNSEEN, 0.02), (SECOND, 0.04), (THIRD, 0.0), (FOURTH, 0.08)]
)
def test_nearly_every_withdrawal_ends_its_rule(said: dict[str, Any], most: float) -> None:
    left = [(rule, end) for rule, end in said["ended"] if carried([Instruction(text=rule)], (), [user(end)])]
    assert len(left) <= most * len(said["ended"]), left


async def test_what_is_said_in_arabic_survives_compactions_by_rule() -> None:
    rules = [
        "من الآن فصاعدًا أجب بالعربية فقط.",
        "دائماً اكتب الأسعار باليورو.",
        "لا تذكر اسم زوجتي.",
        "عندما أرسل لك نصا صحح الأخطاء أولا.",
    ]
    lives = ["أسكن في شارع النخيل رقم 14.", "اسم ابنتي ليلى.", "عندي حساسية من الفول السوداني."]
    asked, withdrawn = "هل تعرف أين أسكن؟", "يمكنك ذكر اسم زوجتي من جديد."
    opening = conversation(12)
    told = [user(said) for said in (*rules, *lives, asked)]
    transcript, engine = stored([*opening[:5], *told, *opening[5:], *conversation(20)]), compressor(None)
    for number in range(4):
        timed = [noted(message, at=1.7e9 + 60 * place) for place, message in enumerate(transcript)]
        result = await engine.compress(timed, force=True)
        [summary] = summaries(result)
        lines = [line.partition(" – said since")[0] for line in text_of(summary).splitlines()]
        assert HEADING in lines
        assert facts.HEADING in lines
        held = [rule for rule in (*rules, *lives) if f"- {rule}" in lines]
        assert held == [*rules[: 2 if number > 1 else 3], rules[3], *lives], number
        assert f"- {asked}" not in lines
        more = [user(withdrawn)] if number == 1 else []
        transcript = [*result, *stored([*more, *conversation(20)])]
