"""What the pages and their charts say of what they are given: no server, no browser."""

from __future__ import annotations

import re

import pytest

from adapters.web.charts import bar, columns, lineage
from adapters.web.markup import Html, joined
from adapters.web.pages import Frame, Role, Seen, inside, login, search, session, side, window
from gateway.domain.views import Coming, Cost, Filled, Hour, LineageLink, Memo, Pass, Running, WindowShares, Word
from gateway.runtime.structs import replace

ASSETS = {"page.css": "/page.css", "icon.svg": "/icon.svg", "page.js": "/page.js"}
NOON = 1_700_000_000.0
LOST = Word(id="m1", session_id="s1", role="user", text="the gate code", at=NOON)
PASS = Pass(
    at=NOON,
    trigger="auto",
    messages=(9, 3),
    tokens=(900, 300),
    work="no model was asked",
    notes="- notes",
    corrected=("“It costs 54” became “It costs 45”",),
    kept=(),
    dropped=(LOST,),
    last=True,
)


def frame(role: Role) -> Frame:
    return Frame(person="anna", csrf="c", role=role, assets=ASSETS, fresh_id="i", stages={}, model="m", embedded=False)


def shares(*parts: int, threshold: int = 75, automatic: bool = True) -> WindowShares:
    return WindowShares(
        window=100,
        used=sum(parts),
        parts=tuple(zip(("system prompt", "memory", "rules (1)", "tools"), parts, strict=False)),
        threshold=threshold,
        automatic=automatic,
        messages=2,
        compactions=0,
    )


def cost(day: int, usd: float, tokens: int = 10) -> Cost:
    return Cost(label=str(NOON + 86_400 * day), calls=1, tokens=tokens, usd=usd)


def full_window(role: Role) -> Html:
    memory = [Memo(number=3, text="likes tea", said_at=NOON, said_by="anna")]
    reminders = [Coming(number=2, text="call Bo", when="tomorrow", made_by="anna")]
    return joined(window(shares(50), [PASS], ["be brief"], memory, reminders, (), frame(role)))


def rects(svg: Html) -> list[tuple[str, ...]]:
    return re.findall(r'<rect x="([\d.]+)" width="([\d.]+)"', svg)


def seen(
    *costs: Cost,
    budget: float | None = None,
    problems: tuple[dict[str, str], ...] = (),
    waiting: int = 0,
    moves: bool = True,
    reader: str = "reads",
) -> Seen:
    report = {
        "moves": moves,
        "problems": problems,
        "store": {"oldest_item": None, "kind": "sqlite"},
        "inbox": {"waiting": waiting},
        "outbox": {"unsent": 0, "platforms": {"telegram": {"pending": 2}}},
        "platforms": {"telegram": {"reader": reader, "last_update": None, "last_answer": "2026-11-29T12:00:00+00:00"}},
    }
    hours = [
        Hour(began_at=NOON, turns=3, within=5.0, usd=0.5, tokens=50, fullest=0.5),
        Hour(began_at=NOON + 3_600, turns=1, within=None, tokens=100, fullest=1.0),
    ]
    costs = costs or (cost(0, 0.0),)
    return Seen(
        report=report,
        hours=hours,
        turns=[],
        stuck=[],
        filled=[],
        costs=(costs, [], []),
        budget=budget,
        chains=[],
        settings=[],
        titles={"telegram": "Telegram"},
    )


def test_an_empty_window_says_how_it_is_filled() -> None:
    empty = joined(window(None, [], [], [], [], (), frame("person")))
    for said in (
        "The window is empty",
        "I have not compressed this chat.",
        "There are no rules yet. A rule holds",
        "I remember nothing yet.",
        "There are no reminders yet.",
    ):
        assert said in empty
    assert "Add a rule" in empty
    assert "Compress now" not in empty
    assert "Shared links" not in empty


def test_a_copy_of_a_compacted_session_says_where_its_compactions_are() -> None:
    copied = joined(window(replace(shares(50), compactions=1), [], [], [], [], (), frame("person")))
    assert "Nothing was compressed since /resume or /branch." in copied
    assert "I have not compressed this chat." not in copied


def test_what_fills_the_window_stands_there_with_the_commands_that_change_it() -> None:
    whole = full_window("person")
    for said in ("be brief", "likes tea", "call Bo", "the gate code", "9 → 3 messages, ~900 → ~300 tokens (auto)"):
        assert said in whole
    commands = set(re.findall(r'name="(?:text|command)" value="([^"]*)"', whole))
    assert commands >= {"/unpin be brief", "/memory correct 3", "/memory forget 3", "/reminders change 2"}
    assert commands >= {"/reminders cancel 2", "/compress undo", "/pin the gate code", "/compress", "/title"}
    assert not re.search("None|Nothing|is empty", whole)


def test_a_reader_is_shown_the_same_and_offered_nothing() -> None:
    read = full_window("reader")
    assert "likes tea" in read
    assert "call Bo" in read
    assert not re.search("<button|<form|<input", read)


@pytest.mark.parametrize(
    ("begins", "whole", "links"),
    [(0, 2, []), (0, 5, ["?from=2"]), (2, 5, ["?from=0", "?from=4"]), (3, 5, ["?from=1"]), (1, 3, ["?from=0"])],
)
def test_a_part_of_a_conversation_leads_to_the_others_and_no_further(begins: int, whole: int, links: list[str]) -> None:
    html = joined(session(Html("a, b"), begins, begins + 2, whole))
    assert list(dict.fromkeys(re.findall(r'href="(\?from=\d+)"', html))) == links
    assert (f"{begins + 1} to {begins + 2} of {whole} messages" in html) is bool(links)


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("Vienna train", "a **train** to\nvienna", "a <mark>train</mark> to <mark>vienna</mark>"),
        ("rain", "a train in the rain", "a train in the <mark>rain</mark>"),
        ("火车", "去维也纳的火车", "去维也纳的<mark>火车</mark>"),
        ("what for", "found by its meaning", "found by its meaning"),
        ('"', "<b>&", "&lt;b&amp;"),
        ("end", f"{'word ' * 100}the end", f"…{'word ' * 13}the <mark>end</mark>"),
        ("word", "word " * 100, f"{'<mark>word</mark> ' * 52}…"),
    ],
)
def test_what_was_found_stands_in_a_line_with_the_words_marked(query: str, text: str, shown: str) -> None:
    html = joined(search(query, [(replace(LOST, text=text), "A talk")]))
    assert '<b dir="auto">A talk</b>' in html
    assert f'<span dir="auto">{shown}</span>' in html


def test_a_hit_leads_to_its_message_with_the_words_to_be_marked() -> None:
    assert 'href="/s/s1?at=m1&amp;q=train+%26+%E7%81%AB%E8%BD%A6#m-m1"' in joined(
        search("train & 火车", [(LOST, "A talk")])
    )


def test_exact_finds_stand_before_similar_ones() -> None:
    texts = ("a railway", "the train", "a train to Vienna, by train", "Vienna")
    html = joined(search("train vienna", [(replace(LOST, text=text), text) for text in texts]))
    assert re.findall(r'<b dir="auto">([^<]*)</b>', html) == [texts[2], texts[1], texts[3], texts[0]]


@pytest.mark.parametrize(
    "before", ["今天我们谈了很多别的事情" * 40, f"https://example.org/{'a' * 900}/", f"{'a' * 900}. "]
)
def test_what_was_asked_for_is_seen_however_far_away_the_next_space_is(before: str) -> None:
    html = joined(search("护照", [(replace(LOST, text=f"{before}我的护照号码是E1234{'然后' * 300} 好"), "A talk")]))
    assert "<mark>护照</mark>" in html


@pytest.mark.parametrize(("query", "told"), [("", "What are you looking for?"), ("x", "Nothing was found")])
def test_a_search_that_finds_nothing_says_so(query: str, told: str) -> None:
    assert told in joined(search(query, []))


@pytest.mark.parametrize(("role", "offered"), [("reader", False), ("person", False), ("admin", True)])
def test_only_an_admin_is_led_to_the_operators_page(role: Role, offered: bool) -> None:
    assert ('href="/inside"' in side(frame(role), Html(""))) is offered


def test_the_login_offers_the_ways_that_are_set_up() -> None:
    def shown(*, passwords: bool, links: bool, problem: str = "") -> str:
        return login(ASSETS, passwords=passwords, links=links, problem=problem, name="", to="/").decode()

    alone, both, far = (
        shown(passwords=False, links=True),
        shown(passwords=True, links=True),
        shown(passwords=True, links=False),
    )
    for there in (alone, both):
        assert "legato access link" in there
    assert "<form" not in alone
    assert "<details" not in alone
    assert both.index("<form") < both.index("<details") < both.index("legato access link")  # most have a password
    assert "legato access link" not in far
    assert "Wrong name" in shown(passwords=True, links=False, problem="Wrong name")


def test_the_operator_is_told_what_is_wrong_and_what_is_unknown() -> None:
    trouble: dict[str, str] = {"kind": "model_away", "text": "it is down", "since": "2026-11-29T12:00:00+00:00"}
    well, ill = joined(inside(seen(), "")), joined(inside(seen(problems=(trouble,)), "Done."))
    held_up = joined(inside(seen(problems=(trouble,), moves=False, reader="unreached"), ""))
    assert ("All is well: nothing waits." in well, "it is down" in well) == (True, False)
    assert ("All is well" in ill, "it is down" in ill, "Done." in ill) == (False, True, True)
    assert "Legato answers messages, but something is wrong:" in ill
    assert 'model away, since <time datetime="2026-11-29T12:00:00' in ill
    assert ("Legato cannot answer messages at the moment:" in held_up, "Cannot be reached" in held_up) == (True, True)
    assert "All is well: 2 messages being answered." in joined(inside(seen(waiting=2), ""))
    assert "&quot;oldest_item&quot;: null" in well
    asking = Running(key="web/chat=anna/thread=Tea%20%2F%20cake", doing="waiting", step=2, seconds=9, asks=True)
    asked = joined(inside(replace(seen(waiting=2), turns=[asking]), ""))
    assert "All is well: 1 message being answered, 1 message waiting for a person&" in asked
    assert "web · anna · Tea / cake" in asked


def test_the_operator_sees_four_figures_and_each_platform() -> None:
    told = joined(inside(seen(cost(0, 3.0), cost(1, 2.0)), ""))
    figures = re.findall(r"<small>([^<]+)</small><strong>([^<]+)</strong>", told)
    assert figures == [
        ("Answers since the start", "4"),
        ("Almost all answers within", "longer than 5 minutes"),
        ("Spent today", "$2.00"),
        ("Fullest window", "0%"),
    ]
    for line in ("3 answers, 95 % of them within 5 s", "22:13 UTC: $0.5000, 50 tokens", "22:13 UTC: at most 50% full"):
        assert line in told
    assert re.search(r"<b>Telegram</b><span class=\"well\">Connected</span>.*2 to be shown", told)


def test_answers_of_a_whole_day_are_called_so() -> None:
    day = replace(seen(), hours=[Hour(began_at=NOON + 3_600 * hour, turns=1, within=5.0) for hour in range(24)])
    assert "<small>Answers in 24 hours</small><strong>24</strong>" in joined(inside(day, ""))


def test_the_operator_sees_todays_cost_beside_the_budget() -> None:
    assert "There is no limit" in joined(inside(seen(cost(0, 3.0), cost(1, 2.0)), ""))
    assert "Today: $2.0000 of the $5.00" in joined(inside(seen(cost(0, 3.0), cost(1, 2.0), budget=5.0), ""))


def test_the_parts_of_a_bar_stand_side_by_side_and_end_with_it() -> None:
    assert rects(bar(shares(20, 30))) == [("0.00", "20.00"), ("20.00", "30.00")]
    assert rects(bar(shares(70, 60, 5))) == [("0.00", "70.00"), ("70.00", "30.00"), ("100.00", "0.00")]


def test_a_bar_is_marked_where_compaction_comes_by_itself() -> None:
    assert 'x1="75.00"' in bar(shares(20))
    assert "mark" not in bar(shares(20, automatic=False))
    assert "mark" not in bar(shares(20, threshold=0))


def test_days_without_prices_are_shown_by_their_tokens() -> None:
    free = joined(inside(seen(cost(0, 0.0, 50), cost(1, 0.0, 100)), ""))
    assert "<small>Tokens today</small><strong>100</strong>" in free
    assert re.findall(r'height="([\d.]+)" class="part"', free)[-2:] == ["13.00", "26.00"]
    assert "The last 2 days" in free


def test_a_half_full_window_is_half_a_column() -> None:
    html = columns([0.5], ["09:00 UTC: at most 50% full"], "Fullest window", 1.0)
    assert 'height="13.00" class="part"' in html


def test_of_a_long_lineage_the_end_is_drawn() -> None:
    links = [LineageLink(id=f"s{n}", started_at=NOON, messages=n, before=10 * n, after=n) for n in range(9)]
    drawn = lineage(links)
    assert re.findall(r"<title>(s\d)", drawn) == [f"s{n}" for n in range(2, 9)]
    assert re.findall(r"(\d+) → \d+", drawn) == [str(10 * n) for n in range(3, 9)]
    assert "9 sessions" in drawn


def test_the_fullest_window_is_a_share_of_its_own_window() -> None:
    half = Filled(key="telegram/chat=1", id="s1", used=500, window=1_000, messages=3, last_active_at=NOON)
    more = replace(half, id="s2", used=400, window=10_000)
    told = joined(inside(replace(seen(), filled=[more, half]), ""))
    assert "<strong>50%</strong>" in told
    assert "Telegram · 1</td>" in told
    assert "<strong>0%</strong>" in joined(inside(seen(), ""))


def test_hours_before_the_first_are_drawn_empty() -> None:
    html = columns([3.0], ["09:00 UTC: 3 turns"], "Turns")
    assert html.count('class="ground"') == 13
    assert html.count('class="part"') == 1
