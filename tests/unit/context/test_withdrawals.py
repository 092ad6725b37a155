"""A rule ends only when its owner ends it: ordinary requests with "cancel" and "stop" end none."""

from pathlib import Path
from typing import Any

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
    assert [(rule, said) for rule, said in ENDS if rule in left(rule, said)] == []


def test_a_rule_ends_by_its_own_words() -> None:
    quoting = [
        (rule, form.format(rule)) for rule in DATA["rules"] for form in ("Forget this rule: {}", "forget the rule “{}”")
    ]
    assert [(rule, said) for rule, said in quoting if left(rule, said)] == []
    new = "From now on answer in lists and forget the rule about tables."
    assert left("Never use tables.", new) == [new]


def test_words_about_its_subject_end_no_rule() -> None:
    asides = [(rule, said) for rule, each in DATA["asides"].items() for said in each]
    assert [(rule, said) for rule, said in asides if rule not in left(rule, said)] == []


def test_short_prohibitions_are_rules_and_end() -> None:
    assert left("No emojis please.", "Thanks.") == ["No emojis please."]
    assert left("Ne me tutoie jamais.", "Merci.") == ["Ne me tutoie jamais."]
    assert left("Don't use semicolons in the code.", "Semicolons are okay now.") == []
