"""A rule ends only when its owner ends it: ordinary requests with "cancel" and "stop" end none."""

from pathlib import Path
from typing import Any

import yaml

from gateway.context.instructions import found
from gateway.context.listing import Room
from gateway.context.standing import Instruction, carried, earlier, listed, with_later
from gateway.domain.message import Message, note_of, noted, text_of, user
from tests.support.transcripts import COUNTER, compressor, conversation, stored, summaries

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


def test_words_about_its_subject_end_no_rule() -> None:
    asides = [(rule, said) for rule, each in DATA["asides"].items() for said in each]
    assert [(rule, said) for rule, said in asides if rule not in left(rule, said)] == []


def test_short_prohibitions_are_rules_and_end() -> None:
    assert left("No emojis please.", "Thanks.") == ["No emojis please."]
    assert left("Ne me tutoie jamais.", "Merci.") == ["Ne me tutoie jamais."]
    assert left("Don't use semicolons in the code.", "Semicolons are okay now.") == []


def since(rule: str, *said: Message) -> str:
    """What stands behind a rule that was given at 1.0."""
    [each] = with_later([Instruction(text=rule, at=1.0)], said)
    return each.later


def test_words_that_no_pattern_knows_stand_behind_their_rule() -> None:
    told = [(rule, said) for rule, said in DATA["since"] if since(rule, noted(user(said), at=2.0)) == said]
    assert len(DATA["since"]) >= 70
    assert len(told) >= 0.75 * len(DATA["since"])


def test_what_stands_behind_a_rule_is_the_newest_of_its_author() -> None:
    rule, mended = "Never use tables.", noted(user("Tables have grown on me."), at=2.0)
    assert since(rule, mended, noted(user("Tables are fine by me, too, you know."), at=3.0)).startswith(
        "Tables are fine"
    )
    assert since(rule, noted(user("Tables are ugly."), at=0.5), noted(user("[Bo] I like tables."), at=2.0)) == ""
    assert since(rule, noted(user("> Tables are great, said Bo."), at=2.0)) == ""
    assert since("Ask me before you send mail.", noted(user("Send the mail."), at=2.0)) == ""


def test_no_rule_is_lost_for_what_stands_behind_others() -> None:
    rules = [Instruction(text=f"Never deploy service number {number}.", later="It is old.") for number in range(9)]
    bare = listed([Instruction(text=each.text) for each in rules], str, Room(4_000, COUNTER))
    for room in (COUNTER.text(bare) + 14, COUNTER.text(bare) + 60):
        shown = listed(rules, str, Room(room, COUNTER))
        assert [line.partition(" – ")[0] for line in shown.splitlines()] == bare.splitlines()
        assert COUNTER.text(shown) <= room
    assert " – said since: “It is old.”" in shown
    assert len(listed(rules, str, Room(4_000, COUNTER, len(bare) + 20))) <= len(bare) + 20


async def test_they_are_in_the_notes_of_later_compactions_too() -> None:
    opening = conversation(12)
    told = [user("From now on never use emojis."), user("Emojis grew on me.")]
    transcript, engine = (
        [
            *opening[:5],
            *(noted(each, at=at) for at, each in enumerate(stored(told), 1)),
            *opening[5:],
            *conversation(20),
        ],
        compressor(None),
    )
    for _ in range(3):
        result = await engine.compress(transcript, force=True)
        [summary] = summaries(result)
        assert "- From now on never use emojis. – said since: “Emojis grew on me.”" in text_of(summary).splitlines()
        assert [each.later for each in earlier(note_of(summary))] == ["Emojis grew on me."]
        transcript = [*result, *conversation(20)]
