"""What a program asks for with its message: settings for one turn, and tools that it runs itself."""

from pathlib import Path
from typing import Any

import pytest

from gateway.domain.chat import Outbound, Terms
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from gateway.providers.base import ModelRequest
from gateway.providers.plugin import ServedModel
from tests.support.gateway import FakeModel, Gate, KillAt, Live, Say, config_in, in_turn, running


def schema(name: str) -> dict[str, Any]:
    """A tool of a program."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


WEATHER = Terms(tools=(schema("get_weather"), schema("set_light")))


async def answered(live: Live, text: str, terms: Terms, **where: Any) -> Outbound:
    """The answer to a message with terms."""
    return await live.answer(await live.tell(text, terms=terms, **where))


def calls_of(row: Outbound) -> dict[str, str]:
    """The calls that a program is handed, by their ids."""
    assert row.returns is not None
    return {call["id"]: call["function"]["name"] for call in row.returns.calls}


def offered(request: ModelRequest) -> list[str]:
    """The names of the tools in a request."""
    return [tool["function"]["name"] for tool in request.tools]


def results(request: ModelRequest) -> dict[str, str]:
    """The results in a request, by the call's id."""
    return {each["tool_call_id"]: text_of(each) for each in request.messages if each["role"] == "tool"}


BOTH = Say(text="I look.", calls=[("clock", "{}"), ("get_weather", '{"town":"Bonn"}'), ("set_light", "{}")])


@pytest.mark.parametrize("killed", [False, True], ids=["calm", "killed"])
async def test_a_programs_own_tools_are_handed_to_it(tmp_path: Path, *, killed: bool) -> None:
    """Beside a call of ours, which runs: the turn ends with the others, and goes on with their results, also in
    another process; one that died in between hands out the same calls."""
    if killed:
        kill = KillAt("turn.step_recorded")
        async with running(tmp_path, model=FakeModel(in_turn(BOTH)), points=kill) as live:
            await live.tell("How is it?", terms=WEATHER, event="one")
            await kill.passed.wait()
        async with running(tmp_path, model=FakeModel(in_turn())) as live:
            row = await live.answer("one")
            assert live.model.requests == []
    else:
        async with running(tmp_path, model=FakeModel(in_turn(BOTH))) as live:
            row = await answered(live, "How is it?", WEATHER, event="one")
            assert offered(live.model.requests[0])[-2:] == ["get_weather", "set_light"]
            assert "clock" in offered(live.model.requests[0])
    assert row.text == "I look."
    assert list(calls_of(row).values()) == ["get_weather", "set_light"]
    assert row.returns is not None
    assert row.returns.finish == "tool_calls"
    weather, light = calls_of(row)
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="It is dry.")))) as live:
        answer = await answered(live, "", Terms(tools=WEATHER.tools, results=((weather, "dry"), ("other", "x"))))
        (request,) = live.model.requests
        assert answer.text == "It is dry."
        assert answer.returns is not None
        assert (answer.returns.finish, answer.returns.calls) == ("stop", ())
        assert answer.returns.usage.output_tokens > 0
        found = results(request)
        assert (found[weather], len(found)) == ("dry", 3)
        assert "no result" in found[light]
        late = await answered(live, "", Terms(results=((light, "on"),)))
        assert late.kind == "error"
        assert "went on without the tool calls of this answer" in late.text


async def test_words_behind_results_and_words_instead_of_them(tmp_path: Path) -> None:
    """A person may say something with the results, or never mind them."""
    call = Say(calls=[("get_weather", "{}")])
    async with running(tmp_path, model=FakeModel(in_turn(call, Say(text="Dry."), call, Say(text="Fine.")))) as live:
        (one,) = calls_of(await answered(live, "How is it?", WEATHER))
        assert (await answered(live, "Be brief.", Terms(results=((one, "dry"),)))).text == "Dry."
        assert [each["role"] for each in live.model.requests[-1].messages[-2:]] == ["tool", "user"]
        await answered(live, "And now?", WEATHER)
        assert (await answered(live, "Never mind.", WEATHER)).text == "Fine."
        assert len(results(live.model.requests[-1])) == 2


async def test_a_program_may_insist_on_its_tools_and_have_one_of_our_names(tmp_path: Path) -> None:
    """Then ours of that name rests, and where a call must come, only the program's tools are on offer."""
    own = Terms(tools=(schema("clock"),))
    call = Say(calls=[("clock", "{}")])
    async with running(tmp_path, model=FakeModel(in_turn(call, call))) as live:
        assert list(calls_of(await answered(live, "How late?", own)).values()) == ["clock"]
        assert offered(live.model.requests[0]).count("clock") == 1
        must = Terms(tools=own.tools, must_call=True)
        assert list(calls_of(await answered(live, "Again.", must)).values()) == ["clock"]
        assert offered(live.model.requests[1]) == ["clock"]
        assert live.model.requests[1].tool_choice == "required"


async def test_settings_hold_for_one_turn(tmp_path: Path) -> None:
    """They reach the model, nothing stands behind an answer for a program, and what no model takes is named."""
    served = config_in(tmp_path, model=ServedModel(provider="openai", name="fake", max_output_tokens=500))
    chosen = {"temperature": 0.5, "stop": ["END"], "response_format": {"type": "json_object"}}
    model = FakeModel(in_turn(Say(text="{}"), Say(text="Cut", stop="length"), Say(text="Plain.")))
    async with running(tmp_path, config=served, model=model) as live:
        assert (await answered(live, "JSON", Terms(settings=chosen, max_tokens=50))).text == "{}"
        row = await answered(live, "More", Terms(max_tokens=5_000))
        assert row.returns is not None
        assert row.returns.finish == "length"
        plain = await live.answer(await live.tell("Plain?"))
        assert plain.returns is None
        first, second, third = live.model.requests
        assert (first.chosen, first.max_tokens) == (chosen, 50)
        assert (second.chosen, second.max_tokens) == ({}, 500)
        assert (third.chosen, third.max_tokens) == ({}, 500)
        assert not live.adapter.shown("c", "notice")
    (tmp_path / "b").mkdir()
    async with running(tmp_path / "b") as live:
        refused = await answered(live, "JSON", Terms(settings={"stop": ["END"], "seed": 1}))
        assert (refused.kind, "accepts stop. " in refused.text) == ("error", True)


async def test_each_request_of_a_program_has_an_answer_of_its_own(tmp_path: Path) -> None:
    """Also where what people say during a turn is answered as one."""
    gate = Gate()
    config = config_in(tmp_path, sessions=SessionSettings(busy_mode="collect"))
    async with running(tmp_path, config=config, model=FakeModel(in_turn(Say(text="One.", gate=gate)))) as live:
        first = await live.tell("1", terms=Terms())
        await gate.until_waiting()
        others = [await live.tell(word, terms=Terms()) for word in ("2", "3")]
        gate.open()
        assert [(await live.answer(each)).text for each in (first, *others)] == ["One.", "echo: 2", "echo: 3"]
