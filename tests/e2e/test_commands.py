"""Every command on its way and off it, who sees what, and what a crash in the middle may not do twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway import __version__
from gateway.app.plugins import all_commands
from gateway.commands.runner import BROKEN
from gateway.commands.sessions import farewell, greeting
from gateway.domain.adapter import Limits
from gateway.domain.chat import SessionKey
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from gateway.people.access import AccessSettings
from gateway.providers.plugin import ModelPrices, ModelSettings
from gateway.runtime.errors import ProviderUnavailable
from gateway.runtime.tokens import TokenCounter
from gateway.store.sqlite.backend import SqliteBackend
from tests.support.gateway import (
    FakeAdapter,
    FakeModel,
    Live,
    RecordingEngine,
    Say,
    config_in,
    in_turn,
    running,
)


async def transcript(live: Live, **where: str) -> list[str]:
    """The texts of the present session."""
    tip = await live.tip(**where)
    return [] if tip is None else [text_of(m) for m in await live.store.transcript(tip)]


# -- commands that only look -------------------------------------------------------------------


async def test_commands_cost_no_model_call_and_help_all_lists_them(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        listed = await live.ask("/help all")
        for lines in (group.splitlines()[1:] for group in listed.split("\n\n")[1:]):
            assert len({re.match(r"/.*?  +", line).end() for line in lines}) == 1, "the texts of a group are aligned"
        for command in all_commands().commands:
            assert f"/{command.name}" in listed
            assert command.help in listed
            event = await live.tell(f"/{command.name}", chat=command.name)  # one chat may not send so many in a minute
            answer = await live.answer(event)
            assert answer.kind in ("command", "error")
            assert answer.text.strip()
            assert answer.answers == event
        assert live.model.requests == []


async def test_start_version_and_whoami(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert (await live.ask("/start")).startswith("Hello")
        assert __version__ in await live.ask("/version")
        assert "fake:u (Ada) in chat c" in await live.ask("/whoami", user_name="Ada")


async def test_who_comes_back_is_told_where_they_are(tmp_path: Path) -> None:
    priced = ModelSettings(provider="offline", name="fake", prices=ModelPrices(input=1_000, output=1_000))
    async with running(tmp_path, config=config_in(tmp_path, model=priced)) as live:
        key = SessionKey(platform="fake", chat="c")
        assert await greeting(live.store, key) == ""
        await live.ask("How tall is the tower?")
        assert await greeting(live.store, key) == "We go on with “How tall is the tower?”. /new starts a fresh session."
        await live.ask("/title Towers")
        assert await greeting(live.store, key) == "We go on with “Towers”. /new starts a fresh session."
        last = await farewell(live.store, key)
        found = re.fullmatch(
            r"“Towers”: 2 messages, [\d,]+ tokens, \$0\.103\d\. Run `legato chat` to go on from here\. From another"
            r" session, send (/resume \S+) to come back to this session\.",
            last,
        )
        assert found is not None
        await live.ask("/new")
        await live.ask("something else")
        assert (await live.ask(found[1])).startswith("I went back to “Towers” (2 messages).")


async def test_a_command_may_be_written_in_many_ways(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        for text in ("/VERSION", "/version@legato_bot", "  /version  ", "/version\nplease"):
            assert __version__ in await live.ask(text)
        for text in ("/", "/usr/bin is a folder", "//", "/1st", "a /version"):
            assert await live.ask(text) == f"echo: {text}"


async def test_an_unknown_command_names_the_nearest_and_never_reaches_the_model(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert await live.ask("/statis") == "There is no command /statis. Did you mean /status? See /help all."
        assert await live.ask("/qqqqqq now") == "There is no command /qqqqqq. See /help all."
        assert live.model.requests == []
        assert await live.tip() is None


async def test_context_draws_the_window_and_says_when_it_is_condensed(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert "empty" in await live.ask("/context")
        live.model.script = in_turn(Say(text="hi", prompt=8_000))
        await live.ask("hello")
        drawn = await live.ask("/context")
        bar, tokens, *rows, count, next_ = drawn.split("\n")
        assert bar == f"[{'█' * 5}{'░' * 15}] 25% of my window"
        assert re.fullmatch(r"~8,0\d\d of 32,000 tokens:", tokens)
        assert [row.split("  ")[1] for row in rows] == ["system prompt", "tools", "conversation"]
        assert count == "The conversation has 2 messages, which I never compressed."
        assert re.fullmatch(r"I compress the conversation at 24,480 tokens, about 16,[\d]{3} from now\.", next_)


async def test_the_prompt_and_the_tools_are_counted_again_once_counts_are_exact(tmp_path: Path) -> None:
    async def counted(live: Live) -> tuple[int, int]:
        """The tokens of the tools, and with the system prompt."""
        tip = await live.tip()
        assert tip is not None
        talk = await live.gateway.agents.sessions.glance(tip)
        return talk.schema_tokens, talk.overhead

    async with running(tmp_path, counter=TokenCounter(roughly=0.9)) as live:
        await live.ask("hello")
        rough = await counted(live)
        await live.ask("a long text " * 500)
        again = await counted(live)
    async with running(tmp_path) as live:
        exact = await counted(live)
    assert again == exact
    assert rough[0] > exact[0]
    assert rough[1] - rough[0] > exact[1] - exact[0]


async def test_the_summarisers_call_is_in_the_ledger_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        for number in range(8):
            await live.ask(f"message {number} " + "with quite some words in it " * 60)
        await live.ask("/compress")
    async with running(tmp_path) as live:
        purposes = {total.label: total.calls for total in await live.store.usage(0.0, "purpose")}
    assert purposes == {"turn": 8, "compression": 1}


@pytest.mark.parametrize("name", ["m" * 40_000, "m\x1b]0;x\x07", "m\u202e", "m\x00"])
async def test_a_model_is_called_by_what_can_be_shown_in_a_line(tmp_path: Path, name: str) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello")
        assert (await live.ask(f"/model {name}")).startswith("There is no model m")
        assert await live.ask("/model") == "This session uses fake (a window of 32,000 tokens)."
        assert len(await live.ask(f"/recall {name * 2}".ljust(40_000, "x"))) < 300


async def test_model_shows_and_switches_the_sessions_model(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert "first session will use fake" in await live.ask("/model")
        await live.ask("hello")
        assert await live.ask("/model") == "This session uses fake (a window of 32,000 tokens)."
        assert "now uses other" in await live.ask("/model other")
        await live.ask("hello again")
        assert live.model.specs[-1].name == "other"
        await live.ask("/new")
        await live.ask("in the next session, too")
        assert live.model.specs[-1].name == "other"


async def test_recall_finds_originals_and_says_when_it_finds_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, engine=lambda: RecordingEngine([])) as live:
        assert "for example" in await live.ask("/recall")
        await live.ask("the locker code is 4711")
        await live.ask("我们的预算是五万元")
        await live.ask("/compress")
        await live.ask("/new")
        assert "the locker code is 4711" in await live.ask("/recall locker 4711")
        assert "我们的预算是五万元" in await live.ask("/recall 预算")
        await live.ask("the locker code is 4711")
        assert (await live.ask("/recall locker 4711")).count("you: the locker code is 4711") == 1
        assert await live.ask("/recall submarine") == "I found nothing about “submarine”. Try other words."


# -- sessions ----------------------------------------------------------------------------------


async def test_title_names_the_session_and_sessions_lists_it(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert "no session to name" in await live.ask("/title Trip")
        await live.ask("plan a trip to the coast")
        assert "“plan a trip to the coast”" in await live.ask("/title")
        assert await live.ask("/title  Trip \n to  Brittany") == "This session is now “Trip to Brittany”."
        assert await live.ask("/sessions") == (
            "You are in “Trip to Brittany” (2 messages). There are no earlier sessions yet."
        )
        await live.ask("/new")
        assert await live.ask("/title") == "This session has no name yet. To name this session, send /title <name>."
        listed = await live.ask("/sessions")
        assert listed == (
            "1. Trip to Brittany (2 messages, just now)\n/resume <number> goes back to a session in this list, as in "
            "/resume 1."
        )


async def test_resume_goes_on_from_an_earlier_session_by_number_and_by_id(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("about cats")
        cats = await live.tip()
        await live.ask("/new")
        await live.ask("about dogs")
        assert cats is not None
        assert "about cats" in await live.ask("/resume")
        assert await live.ask("/resume 1") == (
            "I went back to “about cats” (2 messages). The session ended with:\nYou: about cats\nMe: echo: about cats"
        )
        await live.ask("more")
        assert live.model.spoken() == [("user", "about cats"), ("assistant", "echo: about cats"), ("user", "more")]
        assert "went back" in await live.ask(f"/resume {cats.id}")
        assert await transcript(live) == ["about cats", "echo: about cats"]


async def test_sessions_marks_the_present_one_and_tells_those_of_one_name_apart(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello there")
        await live.ask("Plan a trip to the coast. It should be cheap")
        await live.ask("and by train?")
        await live.ask("/branch")
        await live.ask("or by bus?")
        await live.ask("/new")
        await live.ask("How tall is the tower?")
        assert (await live.ask("/sessions")).splitlines() == [
            "You are in “How tall is the tower?” (2 messages).",
            "1. Plan a trip to the coast (8 messages, just now)",
            "   last: or by bus?",
            "2. Plan a trip to the coast (6 messages, just now)",
            "   last: and by train?",
            "/resume <number> goes back to a session in this list, as in /resume 1.",
        ]


async def test_a_session_that_was_gone_on_from_is_listed_once(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("all about cats")
        await live.ask("/new")
        await live.ask("all about dogs")
        await live.ask("/resume 1")
        await live.ask("more")
        await live.ask("/resume 1")
        assert (await live.ask("/sessions")).splitlines()[:2] == [
            "You are in “all about dogs” (2 messages).",
            "1. all about cats (4 messages, just now)",
        ]


async def test_an_old_id_resumes_the_tip_of_its_lineage(tmp_path: Path) -> None:
    async with running(tmp_path, engine=lambda: RecordingEngine([])) as live:
        await live.ask("one")
        root = await live.tip()
        await live.ask("two")
        await live.ask("/compress")
        await live.ask("three")
        await live.ask("/new")
        assert root is not None
        assert "(4 messages). The session ended with:" in await live.ask(f"/resume {root.id}")
        assert await transcript(live) == ["notes on what was said", "echo: two", "three", "echo: three"]


@pytest.mark.parametrize("wanted", ["0", "7", "s_00000000000000", "nonsense", "²", "9" * 50])
async def test_resume_says_what_it_cannot_find_and_leaves_the_session_alone(tmp_path: Path, wanted: str) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello")
        before = await live.tip()
        assert "There is no session" in await live.ask(f"/resume {wanted}")
        assert await live.tip() == before


async def test_resume_of_the_present_session_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello")
        tip = await live.tip()
        assert tip is not None
        assert "already" in await live.ask(f"/resume {tip.id}")


async def test_branch_goes_on_in_a_copy(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert "nothing to copy" in await live.ask("/branch")
        await live.ask("hello")
        trunk = await live.tip()
        assert "in a copy" in await live.ask("/branch What if")
        await live.ask("only here")
        branch = await live.tip()
        assert trunk is not None
        assert branch is not None
        assert branch.title == "What if"
        assert branch.parent_id == trunk.id
        assert await transcript(live) == ["hello", "echo: hello", "only here", "echo: only here"]
        await live.ask(f"/resume {trunk.id}")
        assert await transcript(live) == ["hello", "echo: hello"]


async def test_undo_takes_exchanges_back_and_loses_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert "nothing to undo" in await live.ask("/undo")
        for text in ("one", "two", "three"):
            await live.ask(text)
        assert await live.ask("/undo") == "I undid the last exchange: “three”. To go back, see /sessions."
        assert await transcript(live) == ["one", "echo: one", "two", "echo: two"]
        assert "2 exchanges, which began with: “one”" in await live.ask("/undo 5")
        assert await transcript(live) == []
        assert "nothing to undo" in await live.ask("/undo")
        await live.ask("afresh")
        assert live.model.spoken() == [("user", "afresh")]
        assert "three" in await live.ask("/recall three")


@pytest.mark.parametrize("count", ["0", "-1", "two", "1.5", "²", "99999"])
async def test_undo_of_no_number_says_how(tmp_path: Path, count: str) -> None:
    async with running(tmp_path) as live:
        await live.ask("one")
        assert "for example: /undo 2" in await live.ask(f"/undo {count}")
        assert len(await transcript(live)) == 2


async def test_retry_asks_the_same_again(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(text="first try"), Say(text="second try")))
    async with running(tmp_path, model=model) as live:
        assert "nothing to retry" in await live.ask("/retry")
        assert await live.ask("tell me") == "first try"
        assert await live.ask("/retry") == "second try"
        assert await transcript(live) == ["tell me", "second try"]
        assert model.spoken() == [("user", "tell me")]


async def test_retry_after_a_failure_asks_again(tmp_path: Path) -> None:
    model = FakeModel(in_turn(ProviderUnavailable("The provider is down.")))
    async with running(tmp_path, model=model) as live:
        assert (await live.ask("tell me")).startswith("The provider is down.")
        assert await live.ask("/retry") == "echo: tell me"
        assert await transcript(live) == ["tell me", "echo: tell me"]


async def test_compress_without_a_conversation_and_with_unknown_options(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert await live.ask("/compress") == "There is nothing to compress yet."
        await live.ask("hello")
        assert await live.ask("/compress") == "There is nothing to compress yet."
        assert "For example" in await live.ask("/compress --everything")
        assert live.model.summaries == 0


async def test_compress_condenses_with_the_real_engine_and_says_how_far(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        for number in range(12):
            await live.ask(f"message {number} " + "with quite some words in it " * 60)
        parent = await live.tip()
        answer = await live.ask("/compress words")
        assert re.search(
            r"^Compressed: 24 → \d+ messages\n~[\d,]+ → ~[\d,]+ tokens\n(?:.*\n)?"
            r"To undo this, send /compress undo\.$",
            answer,
        )
        child = await live.tip()
        assert parent is not None
        assert child is not None
        assert (child.parent_id, child.compaction_count) == (parent.id, 1)
        assert live.model.summaries == 1


async def test_compress_with_a_summariser_that_is_down_says_so_and_loses_nothing(tmp_path: Path) -> None:
    model = FakeModel(summary=lambda *_: Say(error=ProviderUnavailable("The provider has a problem.")))
    async with running(tmp_path, model=model) as live:
        for number in range(12):
            await live.ask(f"message {number} " + "with quite some words in it " * 60)
        answer = await live.ask("/compress")
        assert "so I wrote it by simple rules" in answer
        assert "The provider has a problem" in answer
        assert "message 3" in await live.ask("/recall message 3")
        assert (await live.ask("go on")) == "echo: go on"


async def test_steer_and_queue_want_text(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert "for example: /steer" in await live.ask("/steer")
        assert "for example: /queue" in await live.ask("/queue")
        assert await live.ask("/queue and then this") == "echo: and then this"
        assert await live.ask("/steer with nothing running") == "echo: with nothing running"
        assert await live.ask("/stop") == "Nothing is running."


# -- who sees what -----------------------------------------------------------------------------


async def test_nobody_sees_or_reaches_the_sessions_of_another_key(tmp_path: Path) -> None:
    ada = {"chat": "room", "user": "ada", "chat_type": "group"}
    bob = {"chat": "room", "user": "bob", "chat_type": "group"}
    async with running(tmp_path) as live:
        await live.ask("the secret is heliotrope", **ada)
        theirs = await live.tip(**ada)
        await live.ask("/new", **ada)
        await live.ask("hello", **bob)
        assert theirs is not None
        said = await live.ask("/sessions", **bob)
        assert said == "You are in “hello” (2 messages). There are no earlier sessions yet."
        assert await live.ask("/recall heliotrope", **bob) == "I found nothing about “heliotrope”. Try other words."
        assert await live.ask("/recall heliotrope") == "I found nothing about “heliotrope”. Try other words."
        known = await live.ask(f"/resume {theirs.id}", **bob)
        unknown = await live.ask("/resume s_0000000000000000", **bob)
        assert known.replace(theirs.id, "X") == unknown.replace("s_0000000000000000", "X")
        assert "0 calls" in await live.ask("/usage")
        await live.ask("what is the secret?", **bob)
        assert "heliotrope" not in str(live.model.requests[-1].messages)
        assert "the secret is heliotrope" in await live.ask("/recall heliotrope", **ada)
        assert "1 call," in (await live.ask("/usage", **ada)).splitlines()[-1]


async def test_a_search_says_how_much_it_cannot_find_yet_and_asks_no_more_once_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [0, 1, 1_234]

    async def unindexed(_: object) -> int:
        return counts.pop()

    monkeypatch.setattr(SqliteBackend, "unindexed", unindexed)
    model = FakeModel(in_turn(Say(calls=[("search_history", '{"words": "heliotrope"}')]), Say(text="done")))
    async with running(tmp_path, model=model) as live:
        await live.ask("what do you find?")
        nothing = "Nothing was found for 'heliotrope'."
        assert model.spoken()[-1] == ("tool", f"{nothing}\n\n1,234 older messages are not searchable yet.")
        assert (await live.ask("/recall find")).endswith("\n\n1 older message is not searchable yet.")
        for _ in range(3):
            assert await live.ask("/recall heliotrope") == "I found nothing about “heliotrope”. Try other words."
    assert counts == []


async def test_a_tool_of_the_model_searches_only_the_callers_own_history(tmp_path: Path) -> None:
    model = FakeModel()
    async with running(tmp_path, model=model) as live:
        await live.ask("the secret is heliotrope", chat="one")
        model.script = in_turn(Say(calls=[("search_history", '{"words": "heliotrope"}')]), Say(text="done"))
        await live.ask("find it", chat="two")
        assert model.spoken()[-1] == ("tool", "Nothing was found for 'heliotrope'.")
        model.script = in_turn(Say(calls=[("search_history", '{"words": "heliotrope"}')]), Say(text="done"))
        await live.ask("find it", chat="one")
        assert "the secret is heliotrope" in model.spoken()[-1][1]


async def test_a_stranger_costs_nothing_and_learns_nothing(tmp_path: Path) -> None:
    adapter = FakeAdapter(limits=Limits())
    config = config_in(tmp_path, access=AccessSettings(allow=("fake:ada", "fake:bob@room"), pairing=False))
    async with running(tmp_path, config=config, adapter=adapter) as live:
        stranger = adapter.inbound("hello", user="eve")
        outside = adapter.inbound("/status", user="bob", chat="elsewhere")
        assert [each.status for each in await adapter.receive(stranger, outside)] == ["refused", "refused"]
        assert await live.ask("hello", user="ada") == "echo: hello"
        assert await live.ask("hello", user="bob", chat="room") == "echo: hello"
        assert len(live.model.requests) == 2
        assert {row.to.chat for row in adapter.sent} == {"c", "room"}
        assert all(row.answers not in (stranger.event_id, outside.event_id) for row in adapter.sent)


async def test_in_a_shared_thread_the_model_reads_who_spoke(tmp_path: Path) -> None:
    thread = {"chat": "room", "thread": "t1", "chat_type": "thread"}
    async with running(tmp_path) as live:
        await live.ask("hello", user="1", user_name="Ada", **thread)
        await live.ask("hi", user="2", user_name="Bob", **thread)
        assert [text for role, text in live.model.spoken() if role == "user"] == ["[Ada] hello", "[Bob] hi"]


# -- strange arguments and shared chats -------------------------------------------------------------


async def test_nobody_retries_under_their_own_name_what_another_said(tmp_path: Path) -> None:
    config = config_in(tmp_path, sessions=SessionSettings(groups="shared"))
    async with running(tmp_path, config=config) as live:
        place = {"chat": "g", "chat_type": "group"}
        await live.ask("I am allergic to plums", user="anna", **place)
        assert (await live.ask("/retry", user="bob", **place)).startswith("Someone else sent that message")
        assert await live.ask("/retry", user="anna", **place) == "echo: [anna] I am allergic to plums"
        await live.ask("and I to nuts", user="bob", **place)
        assert await live.ask("/retry", user="bob", **place) == "echo: [bob] and I to nuts"


async def test_a_retry_in_a_shared_session_names_the_speaker_once(tmp_path: Path) -> None:
    model = FakeModel()
    config = config_in(tmp_path, sessions=SessionSettings(groups="shared"))
    async with running(tmp_path, config=config, model=model) as live:
        where = {"chat_type": "group", "user_name": "Ada"}
        await live.ask("what is it?", **where)
        await live.ask("/retry", **where)
        assert model.spoken() == [("user", "[Ada] what is it?")]


@pytest.mark.parametrize("command", ["/resume {n}", "/undo {n}"])
async def test_a_number_too_long_to_be_one_is_answered_with_a_sentence(tmp_path: Path, command: str) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello")
        answer = await live.ask(command.format(n="9" * 6_000))
        assert answer != BROKEN
        assert len(answer) < 200


@pytest.mark.parametrize("space", ["\t", "\u3000", "\u00a0", "\n"])
async def test_a_command_ends_at_any_white_space(tmp_path: Path, space: str) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello")
        assert await live.ask(f"/title{space}会议") == "This session is now “会议”."
