"""A rule ends only when its owner ends it: ordinary requests with "cancel" and "stop" end none."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.context.instructions import found
from gateway.context.standing import carried
from gateway.domain.message import user

DATA: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "withdrawals.yaml").read_text(encoding="utf-8"))
ENDS = [(rule, said) for rule, each in DATA["ends"].items() for said in each]


def left(rule: str, said: str) -> list[str]:
    """The rules that hold after a rule and a sentence."""
    return [each.text for each in carried([], [user(rule), user(said)])]


def test_the_lists_are_long_enough_and_each_rule_is_one() -> None:
    assert len(DATA["ordinary"]) >= 200
    assert len(ENDS) >= 60
    assert [rule for rule in DATA["rules"] if not found(user(rule))] == []
    assert set(DATA["ends"]) <= set(DATA["rules"])


def test_an_ordinary_request_ends_no_rule() -> None:
    ended = [(rule, said) for said in DATA["ordinary"] for rule in DATA["rules"] if rule not in left(rule, said)]
    assert ended == []


def test_a_withdrawal_ends_its_rule() -> None:
    missed = [(rule, said) for rule, said in ENDS if rule in left(rule, said)]
    assert len(ENDS) - len(missed) >= 0.95 * len(ENDS), missed


def test_words_about_its_subject_end_no_rule() -> None:
    asides = [(rule, said) for rule, each in DATA["asides"].items() for said in each]
    assert [(rule, said) for rule, said in asides if rule not in left(rule, said)] == []


def test_short_prohibitions_are_rules_and_end() -> None:
    assert left("No emojis please.", "Thanks.") == ["No emojis please."]
    assert left("Ne me tutoie jamais.", "Merci.") == ["Ne me tutoie jamais."]
    assert left("Don't use semicolons in the code.", "Semicolons are okay now.") == []


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("From now on, keep your answers short.", "Feel free to write longer answers again."),
        ("Always cite the source.", "You can skip the source now."),
        ("Nenne immer die Quelle.", "Die Quellen kannst du ab jetzt weglassen."),
        ("Verwende keine Emojis.", "Emojis sind ab jetzt okay."),
        ("Do not use slang.", "Slang is fine with me now."),
        ("لا تستخدم الرموز التعبيرية.", "يمكنك استخدام الرموز التعبيرية مرة أخرى."),
    ],
)
def test_a_permission_in_other_words_ends_its_rule(rule: str, said: str) -> None:
    assert left(rule, "Thanks.") == [rule]
    assert left(rule, said) == []


def test_what_others_may_be_asked_ends_no_rule() -> None:
    rule = "Don't use tables from now on."
    assert left(rule, "Feel free to ask Anna about the tables.") == [rule]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Never send an email without asking me.", "Feel free to send the email."),
        ("Never send an email without asking me.", "You can skip the email."),
        ("Always ask me before you send an email.", "Feel free to send the email."),
        ("Don't book hotels without checking with me.", "Feel free to book the hotel."),
        ("Schick nie eine Mail, ohne zu fragen.", "Du kannst die Mail wieder schicken."),
        ("Never use tables.", "The tables are fine now."),
        ("Don't use emojis.", "My boss is fine with emojis now."),
        ("Don't suggest recipes with sugar.", "My sugar is okay now."),
    ],
)
def test_a_word_about_one_thing_ends_no_rule(rule: str, said: str) -> None:
    assert left(rule, said) == [rule]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Never send an email without asking me.", "You can send an email without asking me again."),
        ("Never send an email without asking me.", "Stop asking me before you send an email."),
        ("Don't mention the budget.", "The budget is fine now."),
    ],
)
def test_a_word_about_the_rule_itself_ends_it(rule: str, said: str) -> None:
    assert left(rule, said) == []
