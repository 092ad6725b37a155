"""Questions of people to a store: search in any script, usage totals, figures."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.domain.chat import SessionKey
from gateway.domain.message import Message, assistant, note_of, noted, text_of, tool_result, user
from gateway.domain.usage import CanonicalUsage, LedgerEntry, Purpose
from gateway.domain.wording import utc
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Backlog, Opening, Patch, Pile, StepRecord
from gateway.words import text as searched
from tests.support.store_kit import (
    START,
    Bench,
    contents,
    exchange,
    finish,
    in_session,
    key,
    new_session,
    outbound,
    put,
    step,
    transcript,
)

pytest_plugins = ["tests.support.stores"]


async def found(store: Store, words: str, chat: str | None = None, limit: int = 20) -> list[object]:
    """The texts that a search shows."""
    passages = await store.search(words, None if chat is None else key(chat), limit)
    return contents([turn.message for passage in passages for turn in passage.turns])


async def test_nobody_waits_while_the_words_of_a_long_message_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, session = await in_session(store)
    here, readers, read = threading.get_ident(), set[int](), searched.terms

    def terms(said: str) -> list[str]:
        readers.add(threading.get_ident())
        return read(said)

    monkeypatch.setattr(searched, "terms", terms)
    said = step(user("tea " * 20_000), assistant("milk " * 20_000))
    await store.record_step(claim.lease, session.ref, claim.item, said)
    await store.finish_turn(claim.lease, session.ref, claim.item, step(user("ice " * 20_000)), "answered", [])
    assert here not in readers
    monkeypatch.undo()
    for word in ("tea", "milk", "ice"):
        assert len(await found(store, word)) >= 1


async def hits_of(store: Store, words: str, chat: str | None = "1") -> list[str]:
    """The texts of the finds alone, best first."""
    passages = await store.search(words, None if chat is None else key(chat), 10)
    return [text_of(passage.hit.message) for passage in passages]


def filler() -> list[Message]:
    """Return messages that stand between two unrelated ones."""
    return [user(f"nothing in particular, {word}") for word in ("first", "second", "third", "fourth", "fifth")]


SCRIPTS = [
    ("请检查上下文窗口的大小", "窗口", True),
    ("请检查上下文窗口的大小", "上下文", True),
    ("请检查上下文窗口的大小", "小", True),
    ("请检查上下文窗口的大小", "请", True),
    ("请检查上下文窗口的大小", "大窗", False),
    ("请检查上下文窗口的大小", "窗口 大小", True),
    ("上下二字，下文再说", "上下文", True),
    ("上下二字，下文再说", "「上下文」", False),
    ("东京タワーに行く", "タワー", True),
    ("한국어 문장입니다", "문장", True),
    ("ภาษาไทย", "ไทย", True),
    ("The Quick brown-fox", "quick FOX", True),
    ("The Quick brown-fox", "bro", False),
    ("The Quick brown-fox", "Which foxes were quick?", True),
    ("The Quick brown-fox", '"quick brown"', True),
    ("The Quick brown-fox", '"brown quick"', False),
    ("Wir fahren nach Köln", "wann fährt ihr nach koln", True),
    ("Мы купили билеты", "какой билет", True),
    ("full width ＡＢＣ１２", "abc12", True),
    ("naïve café", "CAFÉ", True),
    ("set MAX_RETRIES=3", "max_retries", True),
    ('say "hello" (world) OR NOT*', '"hello" AND (world*', True),
    ('say "hello" (world) OR NOT*', '"hello world"', False),
    ("混合 mixed 文字 text", "文字 mixed", True),
    ("anything", "", False),
    ("anything", "!?。 \x00", False),
    ("half \ud83d pair", "pair \ud83d", True),
    ("हिन्दी में", "हिन्दी", True),
]


async def test_words_are_found_in_any_script(store: Store) -> None:
    """Among texts of every other script, in its chat and in all chats."""
    chats = {text: str(number) for number, text in enumerate(dict.fromkeys(text for text, _, _ in SCRIPTS), start=1)}
    for text, chat in chats.items():
        claim, session = await in_session(store, session_id=f"s{chat}", chat=chat)
        await store.record_step(claim.lease, session.ref, claim.item, step(user(text)))
    wrong = []
    for text, words, hit in SCRIPTS:
        everywhere, there = await found(store, words), await found(store, words, chats[text])
        if (text in everywhere, there) != (hit, [text] if hit else []):
            wrong.append((text, words, everywhere, there))
    assert wrong == []


async def test_what_is_spelled_wrong_or_is_a_part_of_a_word_is_found(bench: Bench) -> None:
    store = await bench.open()
    others = [user(f"number {number}: nothing about it at all") for number in range(20)]
    said = ["I am allergic to shellfish.", "Die Haftpflichtversicherung kostet 84 Euro.", "Shelfish people bore me."]
    await in_session(store, *(user(each) for each in said), *others)
    await in_session(store, user("the shellfsih of someone else"), chat="2", session_id="s2")
    for asked, found in {
        "what about shellfsih?": said[0],
        "was zahlen wir für die Versicherung?": said[1],
        "Versicherungsnummer Haftpflicht": said[1],
        "shelfish": said[2],  # a word that stands there is meant as it is
    }.items():
        (best, *_) = await store.search(asked, key(), 3)
        assert contents([best.hit.message]) == [found], asked
    assert await store.search("bicycle", key(), 3) == []
    store = await bench.crash(store)
    assert contents([(await store.search("shellfsih", key(), 1))[0].hit.message]) == [said[0]]


async def test_what_people_say_where_others_ask_is_found_behind_the_word_itself(store: Store) -> None:
    others = [user(f"number {number}: nothing about it at all") for number in range(20)]
    said = [
        "My Volvo is at the garage again.",
        "Rosenkohl kriege ich einfach nicht runter.",
        "Carrots are cheap this week.",
        "I never drive at night.",
    ]
    await in_session(store, *(user(each) for each in said), *others)
    for asked, found in {
        "which car have I got?": [said[0], said[3]],
        "welches Gemüse mag ich überhaupt nicht?": [said[1]],
        "what do I drive?": [said[3], said[0]],  # the word itself first
        "any tomatoes?": [],  # both are vegetables, and neither is the other
    }.items():
        hits = [each.hit.message for each in await store.search(asked, key(), 5)]
        assert sorted(contents(hits)) == sorted(found), asked
    (best, *_) = await store.search("what do I drive?", key(), 5)
    assert contents([best.hit.message]) == [said[3]]


async def test_a_name_before_every_message_does_not_stand_for_an_answer(store: Store) -> None:
    said = ["[Theo] Grandpa turned ninety-two.", "[Theo] The old bus was late again."]
    others = [user(f"[Theo] number {number}: nothing about it at all") for number in range(40)]
    await in_session(store, user(said[0]), *others, user(said[1]))
    assert {*(await hits_of(store, "How old is Theo's grandfather?"))[:2]} == {*said}


async def test_the_members_of_a_list_are_found_although_they_look_alike(store: Store) -> None:
    listed = [f"Ana came home from {town} today." for town in ("Oslo", "Vigo", "Bari", "Łódź")]
    things = ("roof leaks", "cat slept", "post came", "bread rose", "rain stopped", "clock struck", "choir sang")
    others = [f"At home the {each}, says Ana." for each in things]
    await in_session(store, *(each for text in others + listed for each in (user(text), *filler())))
    assert {*listed} <= {*(await hits_of(store, "Which towns did Ana come home from?"))[:5]}


async def test_what_looks_alike_and_holds_only_a_name_of_the_question_makes_room_for_others(store: Store) -> None:
    towns = [f"Boris came home from {town} today." for town in ("Oslo", "Vigo", "Bari", "Łódź", "Graz", "Pisa", "Cork")]
    answer = "My aunt Boris took in a rescued greyhound last weekend."
    await in_session(store, *(each for text in (answer, *towns) for each in (user(text), *filler())))
    assert answer in (await hits_of(store, "What animals does Boris keep?"))[:5]


async def test_quoted_words_that_no_message_holds_together_are_looked_for_apart(store: Store) -> None:
    await in_session(store, user("the blue key is in the drawer"), user("nothing of that"))
    (best, *_) = await store.search('who spoke of the "key blue" in the drawer?', key(), 1)
    assert contents([best.hit.message]) == ["the blue key is in the drawer"]
    assert await store.search('"key blue"', key(), 1) == []  # nothing else was asked for


async def test_what_holds_a_quotation_comes_first_and_the_rest_fills_the_list(store: Store) -> None:
    claim, session = await in_session(store)
    said = [
        *(user(each) for each in ("the door was painted", "a blue door stood open", *["small talk"] * 9)),
        *(
            user(each)
            for each in ("他说「明天见」就走了", *["small talk"] * 9, "the blue car", *["small talk"] * 9, "明天下雨")
        ),
    ]
    await store.record_step(claim.lease, session.ref, claim.item, step(*said))
    for asked, first, others in (
        ("what did I say about “blue door”?", "a blue door stood open", {"the blue car"}),
        ("他说「明天见」的时候是明天吗？", "他说「明天见」就走了", {"明天下雨"}),
    ):
        hits = contents([each.hit.message for each in await store.search(asked, key(), 5)])
        assert (hits[0], others <= set(hits[1:])) == (first, True)
        shown = contents([turn.message for each in await store.search(asked, key(), 5) for turn in each.turns])
        assert len([each for each in shown if each == first]) == 1


@pytest.mark.parametrize(
    ("old", "new", "asked"),
    [
        ("The budget for the kitchen is 8,000 euros.", "We raised the kitchen budget to 11,500.", "from what?"),
        ("My phone plan costs 25 a month.", "New phone plan: 14 a month.", "How much was the phone plan before?"),
        ("Die Miete beträgt 780 Euro.", "Die Miete steigt auf 860 Euro.", "Wie hoch war die Miete vorher?"),
        ("我的会议在星期二上午。", "会议改到星期五下午了。", "会议原来是什么时候？"),
        # The old state shares no word with the question, but does so with the change.
        (
            "Our flat in Lindengasse has no lift.",
            "The flat in Lindengasse is gone, we live in Hafenweg now.",
            "Before Hafenweg?",
        ),
    ],
)
async def test_a_question_for_what_was_before_finds_both_and_the_old_first(
    store: Store, old: str, new: str, asked: str
) -> None:
    claim, session = await in_session(store)
    said = [*filler(), user(old), *filler(), user(new), *filler()]
    await store.record_step(claim.lease, session.ref, claim.item, step(*said))
    asked = f"What was the kitchen budget changed {asked}" if asked == "from what?" else asked
    assert (await hits_of(store, asked))[:2] == [old, new]


async def test_only_originals_are_found_and_once(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    stored = await store.record_step(
        claim.lease,
        session.ref,
        claim.item,
        step(
            user("the plan is mine", at=START + 3),
            assistant("the plan is yours"),
            tool_result("c1", "the plan of a tool"),
            tool_result("c2", "user: the plan is mine", recalled=True),
            tool_result("c3", "the plan of a tool, stubbed", derived_from=["1"]),
            user("the plan summarised", summary=True),
            user("the plan stubbed", derived_from=["1"]),
            assistant("the plan fell back", fallback=True, summary=True),
            {"role": "system", "content": "the plan of the system"},
            {"role": "user", "content": [{"type": "text", "text": "the plan in parts"}]},
        ),
    )
    opening = Opening(session=new_session("s2"), transcript=stored)
    await store.end_session(claim.lease, session.ref, "switched", START, opening)
    expected = ["the plan is mine", "the plan is yours", stored[9]["content"], "the plan of a tool"]
    assert await found(store, "plan") == expected
    store = await bench.crash(store)
    assert await found(store, "plan") == expected
    hit = (await store.search("mine", key(), 1))[0].hit
    assert (hit.session_id, hit.at, hit.message) == ("s1", START + 3, stored[0])


async def test_what_tools_returned_is_found_where_what_was_said_leaves_room(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    rows = "\n".join(f"2026-03-01 ERROR worker-{n}: req-{n:06x} refused" for n in range(20_000))
    middle = len(rows) // 2
    await store.record_step(
        claim.lease,
        session.ref,
        claim.item,
        step(
            tool_result(
                "c1",
                f"银杏 backup script = /opt/a-1.sh\n{rows}\nthe last words: quicksilver",
                identifiers=["/opt/a-1.sh"],
            ),
            user("Which backup script?"),
            tool_result("c2", "no backup script here"),
            assistant("I do not know any backup script."),
            tool_result("c3", f"{rows[:middle]}\nthe very middle\n{rows[middle:]}", identifiers=["BLD-4711"]),
        ),
    )
    for chat in ("1", None):
        hits = await found(store, "backup script", chat)
        assert [str(hit)[:12] for hit in hits] == ["Which backup", "I do not kno", "no backup sc", "银杏 backup sc"]
        assert await found(store, "backup script", chat, limit=2) == hits[:3]
        assert len(await hits_of(store, "quicksilver", chat)) == 1
        assert (await hits_of(store, "银杏 a-1.sh", chat))[0].startswith("银杏")
        assert len(await hits_of(store, "bld-4711", chat)) == 1
        assert len(await hits_of(store, "refused", chat)) == 2
        assert await found(store, "very middle", chat) == []  # of a megabyte the ends are read
    assert await found(store, "backup script", "2") == []
    store = await bench.crash(store)
    assert len(await hits_of(store, "quicksilver", "1")) == 1


async def test_a_result_is_shown_among_what_was_said_around_it(store: Store) -> None:
    claim, session = await in_session(store)
    said = [*filler(), user("I took the kettle."), tool_result("c1", '{"order": "W1839032"}'), assistant("It was $85.")]
    await store.record_step(claim.lease, session.ref, claim.item, step(*said, *filler()))
    for chat in (key(), None):
        (best, *_) = await store.search("W1839032", chat, 5)
        assert contents([turn.message for turn in best.turns])[1:4] == contents(said[-3:])
        assert best.hit.message["role"] == "tool"


async def test_a_message_answers_together_with_those_around_it(store: Store) -> None:
    claim, session = await in_session(store)
    names = ("Mia Rossi", "Raj Patel", "Noah Silva", "Yusuf Khan")
    for at, name in enumerate(names):
        said = [
            user(f"Hello, {name} here."),
            assistant("What can I do?"),
            user("Just a moment."),
            assistant("Take it."),
        ]
        said.append(user(f"My router {at} blinks since noon."))
        await store.record_step(claim.lease, session.ref, claim.item, step(*said, *filler()))
    for chat in ("1", None):
        hits = await hits_of(store, "Which router does Noah Silva have?", chat)
        assert next(hit for hit in hits if "router" in hit) == "My router 2 blinks since noon."


async def test_who_asks_comes_behind_who_knows(store: Store) -> None:
    claim, session = await in_session(store)
    said = [user("When is the harbour concert?"), *filler(), user("The harbour concert is on the ninth."), *filler()]
    await store.record_step(claim.lease, session.ref, claim.item, step(*said))
    assert (await hits_of(store, "when is the harbour concert"))[0] == "The harbour concert is on the ninth."


async def test_what_says_almost_the_same_leaves_places_to_others(store: Store) -> None:
    claim, session = await in_session(store)
    rule = user(
        "From now on name the price in euros first when somebody wants to know about night buses or about ferries."
    )
    again = [message for _ in range(8) for message in (user("Tell me about night buses, please."), *filler())]
    await store.record_step(claim.lease, session.ref, claim.item, step(rule, *filler(), *again))
    assert rule["content"] in (await hits_of(store, "tell me about night buses"))[:3]


async def test_a_search_stays_within_its_key_and_limit(store: Store) -> None:
    for chat in ("1", "2"):
        claim, session = await in_session(store, session_id="s" + chat, chat=chat)
        for number in range(3):
            await store.record_step(claim.lease, session.ref, claim.item, step(user(f"窗口 {chat}-{number}")))
    assert await found(store, "窗口 1-1", "1") == ["窗口 1-0", "窗口 1-1", "窗口 1-2"]
    assert await found(store, "窗口", "2", limit=2) == ["窗口 2-0", "窗口 2-1", "窗口 2-2"]
    assert sorted(map(str, await found(store, "窗口"))) == [f"窗口 {chat}-{n}" for chat in (1, 2) for n in range(3)]
    assert await found(store, "窗口", "3") == []
    assert await found(store, "窗口", "1", limit=0) == []


async def test_a_run_is_found_behind_many_near_misses(store: Store) -> None:
    claim, session = await in_session(store)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("甲乙丙")))
    await store.record_step(claim.lease, session.ref, claim.item, step(*[user("甲乙，乙丙")] * 120))
    best = (await store.search("甲乙丙", key(), 1))[0]
    assert best.hit.message["content"] == "甲乙丙"


async def test_an_answer_stands_beside_its_question(store: Store) -> None:
    claim, session = await in_session(store)
    said = [user(f"small talk number {n}") for n in range(40)]
    said[20:20] = [user("When does our train to Lisbon leave?"), assistant("At 9:40, from platform 4.")]
    await store.record_step(claim.lease, session.ref, claim.item, step(*said))
    (best, *_) = await store.search("What time was the Lisbon train leaving?", key(), 3)
    assert contents([turn.message for turn in best.turns]) == [
        "small talk number 18",
        "small talk number 19",
        "When does our train to Lisbon leave?",
        "At 9:40, from platform 4.",
        "small talk number 20",
    ]
    assert best.best == 2


async def test_the_best_comes_first_and_nothing_comes_twice(store: Store) -> None:
    claim, session = await in_session(store)
    said = [user(f"weather report {n}: rain and wind") for n in range(30)]
    said[5] = user("The invoice INV-7731 was paid on Monday.")
    said[25] = user("Which invoices are open?")
    await store.record_step(claim.lease, session.ref, claim.item, step(*said))
    passages = await store.search("Was invoice INV-7731 paid?", key(), 5)
    assert [passage.hit.message["content"] for passage in passages] == [said[5]["content"], said[25]["content"]]
    assert passages[0].score > passages[1].score
    shown = [note_of(turn.message)["id"] for passage in passages for turn in passage.turns]
    assert len(shown) == len(set(shown))


async def test_a_message_of_the_day_that_the_question_names_comes_first(store: Store) -> None:
    claim, session = await in_session(store)
    days = [START - each * 86_400 for each in (40, 30, 3, 0)]
    said = [noted(user("We talked about the budget."), at=day) for day in days]
    filler = [user(f"something else {n}") for n in range(6)]
    for each in said:
        await store.record_step(claim.lease, session.ref, claim.item, step(each, *filler))
    for day in days:
        named = datetime.fromtimestamp(day, UTC).strftime("%Y-%m-%d")
        assert (await store.search(f"What did we say about the budget on {named}?", key(), 1))[0].hit.at == day


async def test_what_failed_is_not_found(store: Store) -> None:
    claim, session = await in_session(store)
    await finish(store, claim)
    with pytest.raises(Exception, match="lane"):
        await store.record_step(claim.lease, session.ref, claim.item, step(user("ghost")))
    assert await found(store, "ghost") == []


async def test_usage_is_totalled_most_expensive_first(store: Store) -> None:
    def entry(model: str, cost: float | None, at: float = START, purpose: Purpose = "turn") -> LedgerEntry:
        used = CanonicalUsage(input_tokens=10, output_tokens=1, cache_write_tokens=2)
        return LedgerEntry(at=at, purpose=purpose, provider="p", model=model, usage=used, cost_usd=cost)

    first, one = await in_session(store)
    second, two = await in_session(store, session_id="s2", chat="2")
    for claim, session, entries in (
        (first, one, [entry("a", 1.0), entry("b", 3.0), entry("b", None, purpose="compression")]),
        (second, two, [entry("a", 0.5), entry("a", 100.0, at=START - 50)]),
    ):
        record = StepRecord(messages=(), patch=Patch(at=START), ledger=entries)
        await store.record_step(claim.lease, session.ref, claim.item, record)
    models = await store.usage(START, "model")
    assert [(total.label, total.calls, total.cost_usd, total.unpriced_calls) for total in models] == [
        ("b", 2, 3.0, 1),
        ("a", 2, 1.5, 0),
    ]
    assert models[0].usage == CanonicalUsage(input_tokens=20, output_tokens=2, cache_write_tokens=4)
    assert [total.label for total in await store.usage(START, "purpose")] == ["turn", "compression"]
    assert [total.label for total in await store.usage(START - 99, "session")] == ["s2", "s1"]
    assert [(t.label, t.calls) for t in await store.usage(START, "platform")] == [("test", 4)]
    assert [(t.label, t.calls) for t in await store.usage(START, "day")] == [(utc(START)[:10], 4)]
    assert sum(t.calls for t in await store.usage(START, "key") if SessionKey.parse(t.label).platform == "test") == 4
    assert [(t.label, t.calls) for t in await store.usage(START, "model", session_id="s2")] == [("a", 1)]
    assert [(t.label, t.calls) for t in await store.usage(START, "session", key=key("1"))] == [("s1", 3)]
    assert await store.usage(START, "model", session_id="nobody") == []


async def test_usage_from_the_middle_of_a_day_on(store: Store) -> None:
    used = CanonicalUsage(input_tokens=10, output_tokens=1)
    day, calls = START // 86_400 * 86_400, list[LedgerEntry]()
    for days, hours, cost in ((0, 1, 1.0), (0, 12, 2.0), (1, 0, 4.0), (1, 23, None), (2, 5, 8.0)):
        at = day + (days * 24 + hours) * 3_600
        calls.append(LedgerEntry(at=at, purpose="turn", provider="p", model="m", usage=used, cost_usd=cost))
    claim, session = await in_session(store)
    record = StepRecord(messages=(), patch=Patch(at=START), ledger=calls)
    await store.record_step(claim.lease, session.ref, claim.item, record)
    for since, cost, count, unpriced in (
        (day - 1, 15.0, 5, 1),
        (day, 15.0, 5, 1),
        (day + 12 * 3_600, 14.0, 4, 1),
        (day + 13 * 3_600, 12.0, 3, 1),
        (day + 86_400.5, 8.0, 2, 1),
        (day + 2 * 86_400, 8.0, 1, 0),
    ):
        for by in ("model", "purpose", "platform"):
            (total,) = await store.usage(since, by)
            assert (total.cost_usd, total.calls, total.unpriced_calls) == (cost, count, unpriced), (since, by)
            assert total.usage == CanonicalUsage(input_tokens=10 * count, output_tokens=count)
    days = await store.usage(day + 12 * 3_600, "day")
    assert [(t.label, t.calls) for t in days] == [(utc(day + n * 86_400)[:10], c) for n, c in ((2, 1), (1, 2), (0, 1))]
    assert await store.usage(day + 3 * 86_400, "model") == []


async def test_a_call_that_belongs_to_no_turn_is_counted_too(store: Store) -> None:
    claim, session = await in_session(store)
    usage = CanonicalUsage(input_tokens=7, output_tokens=2)
    call = LedgerEntry(at=START, purpose="compression", provider="p", model="m", usage=usage, cost_usd=0.25)
    await finish(store, claim)
    await store.charge(session, [call, call])
    (total,) = await store.usage(START, "purpose", session_id=session.id)
    assert (total.label, total.calls, total.usage.input_tokens, total.cost_usd) == ("compression", 2, 14, 0.5)
    assert len(await store.usage(START, "model", key=key())) == 1
    assert await store.usage(START, "model", key=key("other")) == []


async def test_figures_count_everything(store: Store) -> None:
    claim, _ = await in_session(store)
    await put(store, "e2")
    await put(store, "e3", chat="2")
    end = await store.finish_turn(claim.lease, None, claim.item, None, "dead", [outbound("o1"), outbound("o2")])
    await store.mark_sent(end.outbound[0].id, "m")
    figures = await store.status()
    assert (figures.waiting, figures.unsent, figures.dead, figures.sessions) == (2, 1, 1, 1)


async def test_a_backlog_says_what_waits_and_since_when(store: Store, bench: Bench) -> None:
    assert await store.backlog() == Backlog()
    begun = bench.clock.now()
    claim, _ = await in_session(store)
    await bench.clock.advance(10.0)
    await put(store, "e2")  # behind the one that runs
    await bench.clock.advance(10.0)
    await put(store, "e3", chat="2")
    found = await store.backlog()
    assert (found.waiting["test"].count, found.unsent, found.dead) == (3, {}, 0)
    assert found.idle == {"test": START}  # the lane of e3 alone is nobody's
    assert found.waiting["test"].oldest is not None
    rows = [outbound("o1", created_at=begun), outbound("o2", created_at=begun + 5)]
    end = await store.finish_turn(claim.lease, None, claim.item, None, "dead", rows)
    await store.emit([outbound("o3", chat="2", created_at=begun - 5)])
    found = await store.backlog()
    assert (found.waiting["test"].count, found.dead) == (2, 1)
    assert sum(pile.count for pile in found.unsent.values()) == 3
    assert found.unsent["test", "sending"] == Pile(count=2, oldest=begun - 5)
    await store.mark_retry(end.outbound[0].id, 60.0, ambiguous=False)
    found = await store.backlog()
    assert found.unsent["test", "sending"] == Pile(count=1, oldest=begun - 5)
    assert found.unsent["test", "pending"].count == 2


async def test_what_was_given_up_is_listed_until_it_is_buried(store: Store) -> None:
    assert await store.dead(10) == []
    for number in ("1", "2"):
        await put(store, f"e{number}", chat=number)
        claim = await store.claim_next("w")
        await store.finish_turn(claim.lease, None, claim.item, None, "dead", [])
    newest, oldest = await store.dead(10)
    assert [(each.key.chat, each.inbound.text, each.attempts) for each in (newest, oldest)] == [
        ("2", "hello", 1),
        ("1", "hello", 1),
    ]
    assert await store.dead(1) == [newest]
    assert [await store.bury(newest), await store.bury(newest)] == [True, False]
    assert await store.dead(10) == [oldest]
    assert ((await store.status()).dead, (await store.backlog()).dead) == (1, 1)


async def test_a_common_word_lists_the_newest_and_a_rare_one_all(store: Store) -> None:
    claim, session = await in_session(store)
    for first in range(0, 4_500, 500):
        said = [user(f"needle {n}{' rare' if n % 500 == 0 else ''}", tokens=2) for n in range(first, first + 500)]
        await store.record_step(claim.lease, session.ref, claim.item, step(*said))
    newest = await store.search("needle", key(), 10)
    assert min(int(str(each.hit.message["content"]).split()[1]) for each in newest) > 4_300
    both = [each.hit.message["content"] for each in await store.search("rare needle", key(), 9)]
    assert sorted(map(str, both)) == sorted(f"needle {n} rare" for n in range(0, 4_500, 500))
    best = (await store.search("needle 4", key(), 1))[0]
    assert best.hit.message["content"] == "needle 4"
    (held,) = await store.holding(["needle 7"], key(), 2)
    assert [each.message["content"] for each in held] == ["needle 7"]


async def test_the_first_and_the_newest_messages_that_hold_a_value(store: Store) -> None:
    claim, session = await in_session(store, user("the plan /srv/a.csv"), tool_result("c", "a.csv in srv, and 王小明"))
    await put(store, "e2", chat="2")
    said = [user(f"{n}: INV-4711 and 王小明 in /srv/b.csv", tokens=2) for n in range(6)]
    await store.record_step(claim.lease, session.ref, claim.item, step(*said))

    async def holding(*values: str, chat: str = "1") -> list[list[str]]:
        found = await store.holding(values, key(chat), 2)
        return [[str(text_of(each.message)) for each in some] for some in found]

    first, *_, before, last = [text_of(message) for message in said]
    assert await holding("INV-4711", "/srv/a.csv", "INV-4712", "--", "王小明") == [
        [first, before, last],
        ["the plan /srv/a.csv"],
        [],
        [],
        ["a.csv in srv, and 王小明", before, last],
    ]
    assert await holding("INV-4711", chat="2") == [[]]
    assert await holding() == []


async def test_a_message_is_read_among_its_neighbours_by_its_own_key_alone(store: Store) -> None:
    _, session = await in_session(store, *exchange(1), tool_result("c", "found it"), *exchange(2), *exchange(3))
    ids = [note_of(message)["id"] for message in await transcript(store, session.id)]

    async def around(message_id: str, reach: int) -> list[Any]:
        return contents([turn.message for turn in await store.around(key(), message_id, reach)])

    assert await around(ids[3], 1) == ["answer 1", "question 2", "answer 2"]
    assert await around(ids[0], 2) == ["question 1", "answer 1", "question 2"]
    assert await around(ids[-1], 0) == ["answer 3"]
    assert await around(ids[2], 1) == ["answer 1", "found it", "question 2"]
    assert await store.around(key("2"), ids[3], 1) == []
    for nobody in ("0", "7" * 20, "99p03"):
        assert await around(nobody, 3) == []


async def test_the_conversations_of_a_chat_are_its_threads_and_nobody_elses(store: Store) -> None:
    mine = [SessionKey(platform="test", chat="1", thread=thread) for thread in (None, "a", "b/c=d")]
    others = [
        SessionKey(platform="test", chat="1", thread="a", helper="h1"),
        SessionKey(platform="test", chat="1", user="u"),
        *(SessionKey(platform="test", chat=chat) for chat in ("11", "1/thread=a", "1%", "0")),
        SessionKey(platform="tes", chat="1", thread="a"),
    ]
    for number, each in enumerate([*mine, *others, mine[1]]):
        opening = Opening(session=replace(new_session(f"s{number}"), key=each), transcript=(user("hello"),))
        assert await store.import_sessions([opening]) == [True]
    newest = list(dict.fromkeys(each.key for each in await store.sessions(None, 99) if each.key in mine))
    assert set(newest) == set(mine)
    assert await store.conversations(key(), 9) == newest
    assert await store.conversations(key(), 1) == newest[:1]
    assert await store.conversations(key("2"), 9) == []


async def test_all_chats_that_a_person_has_alone_are_listed_and_searched_as_one(store: Store) -> None:
    mine = [SessionKey(platform="test", chat="1", thread=thread) for thread in (None, "~a", "~b")]
    others = [
        *(SessionKey(platform="test", chat="1", thread=thread) for thread in ("a", "7")),
        SessionKey(platform="test", chat="1", thread="~a", helper="h1"),
        SessionKey(platform="test", chat="1", thread="~a", user="u"),
        SessionKey(platform="test", chat="2", thread="~a"),
    ]
    for number, each in enumerate([*mine, *others, mine[1]]):
        opening = Opening(session=replace(new_session(f"s{number}"), key=each), transcript=(user(f"hello {number}"),))
        assert await store.import_sessions([opening]) == [True]
    newest = [each.id for each in await store.sessions(None, 99) if each.key in mine]
    assert [each.id for each in await store.own_sessions(key(), 99)] == newest
    for each in mine:
        found = await store.search("hello", each, 9)
        assert {hit.hit.session_id for hit in found} == {"s0", "s1", "s2", f"s{len(mine) + len(others)}"}
        (one, *_) = [hit.hit.message for hit in found if hit.hit.session_id == "s2"]
        assert contents([turn.message for turn in await store.around(each, note_of(one)["id"], 0)]) == ["hello 2"]
    assert [hit.hit.session_id for hit in await store.search("hello", others[0], 9)] == ["s3"]
    assert await store.own_sessions(key("3"), 9) == []
