"""What a page shows, in which order."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any, cast

import pytest

from adapters.web.log import Log, cut
from gateway.agent.tools.base import Question
from gateway.agent.tools.shell import ShellTool
from gateway.domain.chat import Button, ChatAddress, Outbound, OutboundState, SessionKey, Source
from gateway.domain.turn import BUSY
from gateway.domain.views import Branch, Deed, Said, Story, Views, Word
from gateway.runtime.aside import at_once
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace

WHO = Source(platform="web", chat="me", chat_type="direct", user="me")
NOON = 1_700_000_000.0


def answer(id_: str, at: float) -> Outbound:
    return Outbound(
        id=id_,
        key=SessionKey(platform="web", chat="me"),
        to=ChatAddress(platform="web", chat="me"),
        kind="reply",
        text=f"answer {id_}",
        state=OutboundState.SENT,
        created_at=at,
        answers=id_.replace("a", "s"),
    )


class Chat:
    """What was said and answered, oldest first."""

    def __init__(self, *said: Said, shown: list[Outbound]) -> None:
        self._said, self._shown, self.told = list(said), shown, Story()
        self.ended_ones: set[str] = set()

    async def said(self, source: Source, limit: int) -> list[Said]:
        return self._said[::-1][:limit]

    async def shown(self, source: Source, limit: int) -> list[Outbound]:
        return self._shown[::-1][:limit]

    async def ended(self, source: Source, event_id: str) -> bool:
        return event_id in self.ended_ones

    async def story(self, source: Source, since: float) -> Story:
        return self.told


async def shown(chat: Chat, most: int = 80) -> list[str]:
    state = await Log(aside=at_once).state(cast(Views, chat), WHO, most)
    return [entry.id for entry in state.entries]


def said(id_: str, at: float) -> Said:
    return Said(event_id=id_, text=f"said {id_}", at=at, files=())


async def test_what_the_model_said_before_each_tool_stands_where_its_calls_are_unfolded() -> None:
    chat, first = Chat(said("s1", NOON), shown=[]), Deed(tool="look", arguments="", result="", words="I look.")
    for deeds in ([first], [first, Deed(tool="write", arguments="", result="", words="I write.")]):
        chat.told = Story(deeds={"s1": deeds})
        entry = (await Log(aside=at_once).state(cast(Views, chat), WHO, 80)).entries[1]
        assert re.findall(r'<p class="plain" dir="auto">(.*?)</p>', entry.html) == [each.words for each in deeds]


async def test_a_stranger_is_shown_no_thoughts() -> None:
    deed = Deed(tool="look", told="looked about", arguments="", result="seen", thoughts="She is ill.")
    deeds = {"s1": [deed, Deed(tool="", arguments="", result="", thoughts="So I am kind.")]}
    words = [Word(session_id="s", id="1", role="user", text="hello", at=NOON, event="s1")]
    own, shared = [await Log(aside=at_once).words(words, deeds, own=own) for own in (True, False)]
    assert [each in own for each in ("She is ill.", "So I am kind.", "Looked about")] == [True, True, True]
    assert [each in shared for each in ("She is ill.", "So I am kind.", "Looked about")] == [False, False, True]


@pytest.mark.parametrize(("tool", "kept"), [("", True), ("look", False)])
async def test_only_names_of_tools_that_ran_are_cut_from_the_end_of_an_answer(tool: str, kept: bool) -> None:
    text = "So it goes:\n\n→ to the left"
    words = [Word(session_id="s", id="1", role="assistant", text=text, at=NOON, event="s1")]
    shown = await Log(aside=at_once).words(words, {"s1": [Deed(tool=tool, arguments="", result="", thoughts="Hm.")]})
    assert ("to the left" in shown) is kept


async def test_the_words_of_a_search_are_marked_in_the_message_that_was_found() -> None:
    texts = ("no train", "A *train* & [amp](https://train.example): $a_{train}$ `trains`")
    words = [
        Word(session_id="s", id=str(at), role="assistant", text=each, at=NOON + at) for at, each in enumerate(texts)
    ]
    shown = await Log(aside=at_once).words(words, {}, sought=("1", "amp train"))
    assert re.findall("<mark>(.*?)</mark>", shown) == ["train", "amp", "train"]
    assert 'href="https://train.example"' in shown
    assert "&amp; " in shown


async def test_an_address_in_what_a_person_said_is_a_link() -> None:
    chat = Chat(replace(said("s1", NOON), text="read https://a.example/<b>, *now*"), shown=[])
    (entry,) = (await Log(aside=at_once).state(cast(Views, chat), WHO, 80)).entries
    assert 'target="_blank">https://a.example/</a>&lt;b&gt;, *now*</p>' in entry.html


@pytest.mark.parametrize("command", ["ls -l && echo '?'", "a <b> ? c"])
async def test_a_command_that_is_asked_about_is_code_and_its_buttons_say_how_long_a_yes_holds(
    tmp_path: Path, command: str
) -> None:
    shell = ShellTool(folder=tmp_path, allow=(), admins_only=True, seconds=60.0, clock=SystemClock(), redact=str)
    question = Question.about(*(shell.question({"command": command}) or ("", "")))
    labels = (("Approve", "This session", "Always"), ("Deny",))
    buttons = tuple(tuple(Button(label=each, token=each) for each in line) for line in labels)
    text, code_at = f"{question.text}\n\nI wait for 5 minutes.", question.code_at
    row = replace(answer("q", NOON), kind="question", text=text, code_at=code_at, buttons=buttons)
    asked = (await Log(aside=at_once).of_row(row)).html
    assert f'<code data-language="command">{escape(command)}</code>' in asked
    assert '<p class="plain" dir="auto">Run this command?</p>' in asked
    assert '<p class="below">I wait for 5 minutes.</p>' in asked
    assert re.findall(r"<button[^>]*>(.*?)</button>", asked) == ["Allow once", "This session", "Always", "Deny"]
    decided = (
        await Log(aside=at_once).of_row(replace(row, text="Pay 5 €? Or 6?\n\nApproved.", buttons=(), code_at=0))
    ).html
    assert '<p class="plain" dir="auto">Pay 5 €? Or 6?</p><p class="below">Approved.</p>' in decided


async def test_words_and_answers_stand_in_the_order_of_their_times() -> None:
    chat = Chat(said("s1", NOON), said("s2", NOON + 9), shown=[answer("a1", NOON + 1), answer("a2", NOON + 10)])
    assert await shown(chat) == ["s1", "a1", "s2", "a2"]
    assert await shown(chat, 2) == ["s2", "a2"]


async def test_a_clock_that_was_set_back_sorts_nothing_into_the_past() -> None:
    early = NOON - 3_600
    chat: Any = Chat(
        said("s1", NOON),
        said("s2", early),
        said("s3", early + 9),
        shown=[answer("a1", NOON + 1), answer("a2", early + 1), answer("a3", early + 10)],
    )
    assert await shown(chat) == ["s1", "a1", "s2", "a2", "s3", "a3"]
    assert await shown(chat, 2) == ["s3", "a3"]  # as if nothing had been before


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/a",
        "https://bank.example@evil.example",
        r"https://evil.example\@bank.example",
        "http://[evil.example",
    ],
)
async def test_the_card_of_a_source_tells_where_it_leads(url: str) -> None:
    told = f"It is so.\n\nSources: [1. Your <b>bank</b>, bank.example]({url})"
    state = await Log(aside=at_once).state(
        cast(Views, Chat(said("s1", NOON), shown=[replace(answer("a1", NOON), text=told)])), WHO, 80
    )
    html = state.entries[-1].html
    assert re.search(r"<small>1 · \[?evil.example</small>", html)
    assert "Your &lt;b&gt;bank" in html


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("The provider refused the API key. Check model.api_key.", "/settings#model"),
        ("This bot's daily limit of $1 is reached (budgets.daily_usd). This model costs more.", "/settings#people"),
        ("There is no command /helo.", None),
    ],
)
async def test_an_error_leads_to_the_setting_that_ends_it(text: str, way: str | None) -> None:
    html = (await Log(aside=at_once).of_row(replace(answer("a1", NOON), kind="error", text=text))).html
    assert re.findall(r'class="mends"><a href="([^"]*)"', html) == ([way] if way else [])


@pytest.mark.parametrize(("failures", "told"), [([True], " · failed"), ([False], ""), ([False, True], " · 1 failed")])
async def test_a_call_of_a_tool_that_failed_says_so(failures: list[bool], told: str) -> None:
    chat: Any = Chat(said("s1", NOON), shown=[])
    chat.told = Story(deeds={"s1": [Deed(tool="shell", arguments="x", result="y", failed=each) for each in failures]})
    html = (await Log(aside=at_once).state(chat, WHO, 80)).entries[-1].html
    assert re.findall(r'<span class="failed">( · .*?)</span>', html) == ([told] if told else [])


async def test_the_number_of_a_source_leads_to_it() -> None:
    told = "It is so [1][2], not `a[1]` or [this [1]](https://b.example) [3].\n\nSources: [1. A & B, a.example](https://a.example/?x=1&y=2)"
    html = (await Log(aside=at_once).of_row(replace(answer("a1", NOON), text=told))).html
    cited = re.findall(r'<a class="cite"[^>]*>(.*?)</a>|<a[^>]*class="cite"[^>]*>(.*?)</a>', html)
    assert len(cited) == 1, html
    assert 'href="https://a.example/?x=1&amp;y=2"' in html
    assert "</a>[2]" in html
    assert "a[1]</code>" in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("one two six\nsee [the map](https://a.example)", "one two six … (44 characters)"),
        ("one two three four five six", "one two three … (27 characters)"),
        ("x" * 40, "x" * 16 + " … (40 characters)"),
    ],
)
def test_what_is_cut_ends_between_lines_or_words(text: str, shown: str) -> None:
    assert cut(text, 16) == shown


async def test_news_of_a_message_that_the_store_told_of_already_changes_nothing() -> None:
    two = Branch(number=2, of=2, before="s_1", after=None)
    chat = Chat(said("s1", NOON), said("s2", NOON + 5), shown=[answer("a1", NOON + 1), answer("a2", NOON + 6)])
    chat.told = Story(branches={"s2": two, "s3": two}, hidden=frozenset({"s1"}))
    log, views = Log(aside=at_once), cast(Views, chat)
    read = await log.state(views, WHO, 80)
    late = [said("s1", NOON), answer("a1", NOON + 1), said("s2", NOON + 5)]
    assert (await log.state(views, WHO, 80, read, late)).digest == read.digest
    grown = await log.state(views, WHO, 80, read, [said("s3", NOON + 9)])  # its turn ended while the store was read
    assert [("2/2" in each.html, each.id) for each in grown.entries] == [(True, "s2"), (False, "a2"), (True, "s3")]


async def test_the_versions_of_an_answer_stand_once_below_its_last_row() -> None:
    chat: Any = Chat(said("s1", NOON), shown=[])
    chat.told = Story(answers={"s1": Branch(number=2, of=2, before="s_1", after=None)})
    log, state, ids = Log(aside=at_once), None, []
    for row in (None, answer("a1", NOON + 1), replace(answer("b1", NOON + 2), answers="s1")):
        chat._shown += [row] if row else []
        state = await log.state(chat, WHO, 80, state, [row] if row else None)
        ids.append([entry.id for entry in state.entries if "2/2" in entry.html])
    assert ids == [["s1"], ["a1"], ["b1"]]


async def test_what_is_said_during_an_answer_stands_below_it_until_its_turn_comes() -> None:
    busy = replace(answer("n2", NOON + 4), kind="notice", answers="s2", text=BUSY)
    asks = replace(busy, id="n3", text="I am still waiting for your yes or no. Your new message waits for your answer.")
    chat: Any = Chat(said("s1", NOON), shown=[])
    log, draft = Log(aside=at_once), await Log(aside=at_once).of_row(answer("a1", NOON + 9), draft=True)
    first = await log.state(chat, WHO, 80)
    chat._said += [said("s2", NOON + 3), said("s3", NOON + 5)]
    chat._shown += [busy, asks]
    now = await log.state(chat, WHO, 80, first, [chat._said[1], busy])
    placed = sorted([*now.entries, draft], key=lambda entry: entry.place)
    assert [entry.id for entry in placed] == ["s1", "a1", "s2", "n3", "s3"]  # what says more than that it waits stays
    assert ["Waits until" in entry.html for entry in placed] == [False, False, True, False, True]
    chat._shown.remove(asks)
    chat.ended_ones, ends = {"s1"}, answer("a1", NOON + 9)
    chat._shown.append(ends)
    now = await log.state(chat, WHO, 80, now, [ends])
    assert [(entry.id, "Waits until" in entry.html) for entry in now.entries] == [
        ("s1", False),
        ("a1", False),
        ("s2", False),
        ("s3", True),
    ]
