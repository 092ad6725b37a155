"""Which sentences are plain facts, which fact takes the place of another, and that summaries carry them."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.context.dating import Days
from gateway.context.facts import HEADING, PersonalFact, carried, found, listed
from gateway.context.listing import Room
from gateway.context.personal import DECIDED, LASTING, NAMED, PLAIN, TOLD, told
from gateway.context.readable import well_formed
from gateway.domain.message import note_of, noted, text_of, user
from tests.support.transcripts import COUNTER, Extractive, compressor, conversation, stored, summaries

FACTS = [
    "I am allergic to shellfish.",
    "By the way, my daughter plays the oboe.",
    "I thought about it again and I decided against the oak flooring.",
    "We have two cats, Momo and Tarte.",
    "Our shop is closed on Mondays.",
    "Penicillin gives me a rash.",
    "I can't drive at night any more.",
    "Ich bin Linkshänder.",
    "Meine Tochter heißt Wilma.",
    "Soy vegetariana desde hace diez años.",
    "Je suis allergique aux noix.",
    "我对花生过敏。",
    "У меня двое детей.",
    "I'm left-handed.",
    "I can't stand coriander.",
    "أنا نباتي منذ عشر سنوات.",
    "私は左利きです。",
    "I keep bees on the roof.",
    "No bebo alcohol.",
    "Sono celiaca.",
    "Я вегетарианка.",
]
# What is kept of a sentence that asks or wishes for something.
PARTS = [
    ("Since my brother moved to Lyon, we write letters, so could you help me?", "my brother moved to Lyon"),
    (
        "What would you cook for my flatmate Aurelio, who can't have gluten?",
        "my flatmate Aurelio, who can't have gluten",
    ),
    ("I'm trying to cook more at home because I'm diabetic.", "I'm diabetic"),
    ("Since I lost my hearing in one ear, how do I use a phone?", "I lost my hearing in one ear"),
    ("After my stroke I write with my left hand, is there a better pen?", "my stroke I write with my left hand"),
    ("What do I tell my landlady, who lives downstairs, about it?", "my landlady, who lives downstairs"),
    ("As a night nurse, what could I eat?", "a night nurse"),
    ("Kannst du etwas ohne Milch vorschlagen, weil ich keine Laktose vertrage?", "ich keine Laktose vertrage"),
    ("Qu'est-ce que je peux cuisiner, ma fille est allergique aux noix ?", "ma fille est allergique aux noix"),
]
NONE = [
    "When is my cousin's, again?",
    "我弟弟的婚礼是哪天？",
    "I'm not sure about that.",
    "I think we should try the second one.",
    "I have a question about the invoice.",
    "I keep waking up at four.",
    "I lost track of the argument.",
    "I keep the change.",
    "I lost my way.",
    "I lost my place in the text.",
    "I lost my internet connection.",
    "That looks good.",
    "The page is blank.",
    "It does not work.",
    "The second one wins.",
    "All good here.",
    "The tests pass now.",
    "明天再说吧。",
    "这个不行啊。",
    "太好了谢谢你",
    "Das klingt gut.",
    "Das passt so.",
    "Eso suena bien.",
    "Soy yo de nuevo.",
    "Soy yo.",
    "My bad, I meant the other list.",
    "Can you tell me whether my order is on its way?",
    "Okay, we can do it like that.",
    "I'm back.",
    "Sounds like a solid plan to me!",
    "Ich bin mir nicht sicher, schau nochmal.",
    "Tengo una pregunta sobre la factura.",
    "我有个问题。",
    "I'm considering the second one but I need help weighing the risks.",
    "I'm kinda worried that the others will not like it.",
    "I'd love to see more of the old town.",
    "I have three hours for this.",
    "هل يمكنك مساعدتي؟",
    "Θα έρθεις μαζί μας στο πάρκο αύριο το πρωί;",
]
REPLACED = [
    ("My use is light, maybe 4 hours a month.", "My use is light, maybe 18 hours a month."),
    ("My favourite colour is blue.", "My favourite colour is green now."),
    ("My daughter takes the bus 14 to school.", "My daughter takes the bus 27 to school now."),
    ("I work at the library.", "I no longer work at the library."),
    ("I don't eat pork.", "I don't eat pork."),
]
KEPT = [
    ("My favourite colour is blue.", "My favourite colour is green."),  # in order: what stands below holds
    ("I am allergic to nuts.", "I am allergic to shellfish."),
    ("My daughter is nine.", "My daughter is in the second form."),
    ("My sister lives in Rome.", "My brother lives in Rome."),
    ("My daughter plays the oboe.", "My daughter plays handball."),
]


@pytest.mark.parametrize("said", FACTS)
def test_a_statement_about_oneself_is_a_fact(said: str) -> None:
    assert told(said)


@pytest.mark.parametrize(("said", "part"), PARTS)
def test_of_a_question_and_of_a_wish_the_clause_that_tells_something_is_kept(said: str, part: str) -> None:
    assert [each.text for each in found(user(said))] == [part]


@pytest.mark.parametrize("said", NONE)
def test_talk_of_the_moment_is_none(said: str) -> None:
    assert not told(said)


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_the_newest_wins(older: str, newer: str) -> None:
    assert [each.text for each in carried((), stored([user(older), user(newer)]))] == [newer]


@pytest.mark.parametrize(("older", "newer"), KEPT)
def test_what_is_another_thing_replaces_nothing(older: str, newer: str) -> None:
    assert {each.text for each in carried((), stored([user(older), user(newer)]))} == {older, newer}


def test_who_somebody_is_counts_most_and_a_statement_without_a_name_least() -> None:
    said = [
        "I am allergic to nuts.",
        "Our shop is closed on Mondays.",
        "We chose the green tiles.",
        "Trains to Ulm are full.",
        "It rains at the lake today.",
    ]
    assert [kept.worth for each in said if (kept := told(each))] == [LASTING, PLAIN, DECIDED, NAMED, TOLD]


def test_a_sentence_does_not_end_in_an_abbreviation() -> None:
    assert [each.text for each in found(user("We see Dr. Achterberg on Mondays. Fine."))] == [
        "We see Dr. Achterberg on Mondays."
    ]


def test_only_a_persons_own_words_are_read() -> None:
    assert [each.text for each in found(noted(user("I live in Rome.\n\nI live in Ulm."), own="I live in Rome."))] == [
        "I live in Rome."
    ]
    assert found(user("> I am allergic to nuts.\n```\nmy name is x and y\n```")) == []
    assert found(user("Never suggest places where I live near the sea.")) == []  # a rule is no fact


def test_nobody_replaces_what_another_person_said() -> None:
    held = carried((), stored([user("[Anna] I live in Rome."), user("[Bo] I live in Ulm.")]))
    assert {each.line for each in held} == {"- [Anna] I live in Rome.", "- [Bo] I live in Ulm."}


def test_where_not_all_fit_the_lasting_and_the_newest_stay() -> None:
    old = PersonalFact(text="I am allergic to nuts.", weight=LASTING)
    said = carried([old], stored([user(f"We finished house number {number} in May.") for number in range(30)]))
    text = listed(said, Days(0.0), Room(90, COUNTER))
    assert COUNTER.text(text) <= 90
    assert "allergic" in text
    assert "number 29 " in text
    assert "number 0 " not in text
    assert listed(said, Days(0.0), Room(20, COUNTER)) == ""
    assert carried(carried([old], []), [])[0].weight == LASTING  # what lasts does not fade
    plain = carried((), stored([user("Our shop is closed on Mondays.")]))
    assert carried(plain, [])[0].weight < PLAIN


def test_a_short_fact_stands_where_a_better_one_is_too_long() -> None:
    better = PersonalFact(text="I am allergic to nuts and milk.", weight=LASTING)
    short = PersonalFact(text="I live in Rome.", weight=(NAMED + PLAIN) / 2)
    met = 0
    for room in range(60):
        one, other, both = (
            listed(each, Days(0.0), Room(room, COUNTER)) for each in ([better], [short], [better, short])
        )
        if not one:
            assert both == other
            met += bool(other)
    assert met, "a room that has place for the short one alone"


@pytest.mark.parametrize("summariser", [Extractive(60), None], ids=["a model", "by rule"])
async def test_they_are_carried_word_for_word_from_summary_to_summary(summariser: Any) -> None:
    messages = conversation(30)
    transcript = stored([*messages[:5], user("[Anna] Hello. I am allergic to nuts. My plan runs out on May 4.")])
    transcript += stored(messages[5:])
    engine = compressor(summariser)
    for number in range(4):
        result = await engine.compress([noted(m, at=1.7e9 + 60 * n) for n, m in enumerate(transcript)], force=True)
        [summary] = summaries(result)
        text = text_of(summary)
        assert text.count(HEADING) == 1
        assert "- [Anna] I am allergic to nuts." in text, number
        more = [user("[Anna] Correction, my plan runs out on June 9.")] if number == 1 else []
        transcript = [*result, *stored([*more, *conversation(20)])]
    assert "- [Anna] Correction, my plan runs out on June 9." in text
    assert not any(each.endswith("out on May 4.") for each in text.splitlines())
    assert {each.by for each in well_formed(note_of(summary).get("facts"), PersonalFact)} >= {"Anna"}


@pytest.mark.parametrize("note", [None, 5, [5, {}, {"text": 7}, {"text": ""}], [{"text": "x", "by": 5, "weight": "y"}]])
def test_a_note_of_any_shape_is_read(note: Any) -> None:
    assert all(each == PersonalFact(text="x", weight=PLAIN) for each in well_formed(note, PersonalFact))


async def test_a_credential_in_one_is_redacted() -> None:
    talk = stored([*conversation(5), user("My door password is hunter2 by the way."), *conversation(30)])
    engine = compressor(Extractive(60), redact=lambda text: text.replace("hunter2", "[REDACTED]"))
    [summary] = summaries(await engine.compress(talk, force=True))
    text = text_of(summary)
    assert HEADING in text
    assert "hunter2" not in text
    assert "hunter2" not in str(note_of(summary)["facts"])


def test_two_words_with_a_name_tell_nothing_and_three_do() -> None:
    assert told("Robert Meyer") is None
    assert told("Call Mr. Robert") == ("Call Mr. Robert", NAMED)


def test_other_statements_are_kept_and_fill_the_room_that_nothing_else_takes() -> None:
    said = ["The second warehouse closes at the end of summer.", "The cellar must stay below a certain warmth."]
    kept = carried([], [user(each) for each in said])
    assert [each.text for each in kept] == said
    whole = listed(kept, Days(0.0), Room(500, COUNTER))
    assert listed(kept, Days(0.0), Room(COUNTER.text(whole) + 6, COUNTER)) == whole


def test_what_took_the_place_of_another_is_worth_more_than_what_was_only_told() -> None:
    said = ["Встреча с юристом в понедельник в десять.", "Юрист заболел, встреча с юристом теперь в четверг."]
    assert [(each.text, each.weight) for each in carried([], map(user, said))] == [(said[1], NAMED)]


def test_what_is_only_said_again_is_worth_no_more() -> None:
    said = "The cellar must always stay rather cool."
    assert [(each.text, each.weight) for each in carried([], [user(said)] * 3)] == [(said, TOLD)]
