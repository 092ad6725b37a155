"""OpenAI's own client before the API: settings, files, tools of the program, and streams."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from openai import BadRequestError, InternalServerError, NotFoundError

from gateway.app.config.models import SearchSettings
from gateway.domain.message import text_of
from gateway.providers.openai import OpenAIModel
from gateway.providers.plugin import ServedModel
from tests.emulators.embeddings import EmbeddingServer
from tests.support.api_inside import api
from tests.support.gateway import FakeModel, Say, config_in, echo, in_turn
from tests.support.pictures import png

WEATHER: Any = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"town": {"type": "string"}}}},
}
HELLO: Any = [{"role": "user", "content": "How is it in Bonn?"}]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_programs_tools_run_at_the_program(tmp_path: Path, *, stream: bool) -> None:
    """The calls come back as the API has them; the next request brings what they came to, also to another process."""
    call = Say(text="I look.", calls=[("clock", "{}"), ("get_weather", '{"town":"Bonn"}')])
    said: list[Any] = [*HELLO]
    async with api(tmp_path, model=FakeModel(in_turn(call))) as live:
        create = live.client().chat.completions.create
        more: Any = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        answer = await create(model="legato", messages=said, tools=[WEATHER], **more)
        if stream:
            chunks = [each async for each in answer]
            assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == "I look."
            (made,) = [each for chunk in chunks if chunk.choices for each in chunk.choices[0].delta.tool_calls or ()]
            assert [each.choices[0].finish_reason for each in chunks if each.choices][-1] == "tool_calls"
            usage = chunks[-1].usage
        else:
            (made,) = answer.choices[0].message.tool_calls
            assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("tool_calls", "I look.")
            usage = answer.usage
        assert usage.completion_tokens > 0
        assert (made.function.name, made.function.arguments) == ("get_weather", '{"town":"Bonn"}')
    function = {"name": made.function.name, "arguments": made.function.arguments}
    asked = {"id": made.id, "type": "function", "function": function}
    said += [{"role": "assistant", "content": "I look.", "tool_calls": [asked]}]
    said += [{"role": "tool", "tool_call_id": made.id, "content": "dry"}]
    async with api(tmp_path, model=FakeModel(in_turn(Say(text="It is dry.")))) as live:
        create = live.client().chat.completions.create
        answer = await create(model="legato", messages=said, tools=[WEATHER])
        assert answer.choices[0].message.content == "It is dry."
        (request,) = live.model.requests
        assert [each["role"] for each in request.messages] == ["system", "user", "assistant", "tool", "tool"]
        assert text_of(request.messages[-1]) == "dry"


async def test_results_of_a_conversation_that_was_never_seen(tmp_path: Path) -> None:
    """A client brings a history with calls that another server asked for."""
    calls = [{"id": f"c{at}", "type": "function", "function": WEATHER["function"] | {"arguments": "{}"}} for at in "12"]
    said: list[Any] = [*HELLO, {"role": "assistant", "tool_calls": calls}]
    said += [{"role": "tool", "tool_call_id": f"c{at}", "content": f"dry {at}"} for at in "12"]
    async with api(tmp_path, model=FakeModel(in_turn(Say(text="Dry.")))) as live:
        await live.client().chat.completions.create(model="legato", messages=said)
        messages = live.model.requests[0].messages
        assert [each["role"] for each in messages] == ["system", "user", "assistant", "tool", "tool"]
        assert [text_of(each) for each in messages[-2:]] == ["dry 1", "dry 2"]


async def test_what_is_asked_for_reaches_the_model_or_is_refused_by_name(tmp_path: Path) -> None:
    """Settings, a cap of the output, and what no turn can follow."""
    async with api(tmp_path, model=FakeModel(in_turn(Say(text="{}"), Say(text="Cut", stop="length")))) as live:
        create: Any = live.client().chat.completions.create
        await create(
            model="legato", messages=HELLO, temperature=0.3, stop="END", response_format={"type": "json_object"}
        )
        chosen = {"temperature": 0.3, "stop": ["END"], "response_format": {"type": "json_object"}}
        assert live.model.requests[0].chosen == chosen
        again = await create(model="legato", messages=[{"role": "user", "content": "More"}], max_completion_tokens=9)
        assert (again.choices[0].finish_reason, live.model.requests[1].max_tokens) == ("length", 9)
        with pytest.raises(BadRequestError) as refused:
            await create(model="legato", messages=HELLO, logit_bias={"1": 5})
        assert refused.value.param == "logit_bias"
        with pytest.raises(NotFoundError):
            await create(model="gpt-none", messages=HELLO)


async def test_files_come_as_data_and_from_nowhere_else(tmp_path: Path) -> None:
    """A picture reaches a model that sees; a text file is read; a link is refused by its field."""
    picture = f"data:image/png;base64,{b64encode(png(8, 8)).decode()}"
    note = f"data:text/plain;base64,{b64encode(b'The code is 4711.').decode()}"
    parts: Any = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": picture}},
        {"type": "file", "file": {"filename": "note.txt", "file_data": note}},
    ]
    config = config_in(tmp_path, model=ServedModel(provider="openai", name="fake", pictures=True))
    async with api(tmp_path, config=config) as live:
        create: Any = live.client().chat.completions.create
        await create(model="legato", messages=[{"role": "user", "content": parts}])
        shown = live.model.requests[0].messages[-1]
        assert "The code is 4711." in text_of(shown)
        assert [part["type"] for part in shown["content"] if part["type"] != "text"] == ["image_url"]
        link = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
        with pytest.raises(BadRequestError) as refused:
            await create(model="legato", messages=[{"role": "user", "content": link}])
        assert refused.value.param == "messages[0].content[0].image_url.url"


FUNCTION: Any = {"type": "function", **WEATHER["function"], "strict": False}


async def test_responses_go_on_from_each_other(tmp_path: Path) -> None:
    """Words, instructions, a call of the program's tool, its result behind the response that asked for it."""
    script = in_turn(Say(text="Hello."), Say(calls=[("get_weather", "{}")]), Say(text="It is dry."))
    async with api(tmp_path, model=FakeModel(script)) as live:
        strange: Any = live.client(await live.key("mallory")).responses.create
        create: Any = live.client().responses.create
        first = await create(model="legato", input="Hi", instructions="Be brief.", max_output_tokens=50)
        assert (first.output_text, first.status) == ("Hello.", "completed")
        assert live.model.requests[0].max_tokens == 50
        second = await create(model="legato", input="And Bonn?", previous_response_id=first.id, tools=[FUNCTION])
        (made,) = second.output
        assert (made.type, made.name) == ("function_call", "get_weather")
        result = [{"type": "function_call_output", "call_id": made.call_id, "output": "dry"}]
        third = await create(model="legato", input=result, previous_response_id=second.id, tools=[FUNCTION])
        assert (third.output_text, third.previous_response_id) == ("It is dry.", second.id)
        assert [each["role"] for each in live.model.requests[-1].messages] == [
            *("system", "user", "assistant", "user", "assistant", "tool")
        ]
        assert third.usage.total_tokens > 0
        for someone, id_ in ((strange, first.id), (create, "resp_x.y"), (create, "resp_1")):
            with pytest.raises(BadRequestError) as refused:
                await someone(model="legato", input="What was said?", previous_response_id=id_)
            assert refused.value.code == "previous_response_not_found"


async def test_a_response_is_streamed_in_openais_events(tmp_path: Path) -> None:
    """Their client puts the same response together from them; what it refers to later is found."""
    script = in_turn(Say(text="I look.", calls=[("get_weather", '{"town":"Bonn"}')]), Say(text="Dry."))
    async with api(tmp_path, model=FakeModel(script)) as live:
        client: Any = live.client()
        async with client.responses.stream(model="legato", input="How is it?", tools=[FUNCTION]) as stream:
            kinds = [event.type async for event in stream]
            whole = await stream.get_final_response()
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"
        assert "response.function_call_arguments.done" in kinds
        words, call = whole.output
        assert (whole.output_text, call.arguments) == ("I look.", '{"town":"Bonn"}')
        items = [
            {"role": "user", "content": [{"type": "input_text", "text": "How is it?"}]},
            {"type": "item_reference", "id": words.id},
            {"type": "item_reference", "id": call.id},
            {"type": "function_call_output", "call_id": call.call_id, "output": "dry"},
        ]
        assert (await client.responses.create(model="legato", input=items)).output_text == "Dry."
        assert len(live.model.requests[-1].messages) == 4
        with pytest.raises(BadRequestError) as refused:
            await client.responses.create(model="legato", input=[{"type": "item_reference", "id": "msg_h.x"}, items[0]])
        assert refused.value.param == "input[0].id"
        with pytest.raises(BadRequestError) as refused:
            await client.responses.create(model="legato", input="x", text={"format": {"type": "grammar"}})
        assert refused.value.param == "text.format.type"


async def test_embeddings_are_passed_on_where_there_is_a_model(tmp_path: Path) -> None:
    """To the model for searches; the person pays. Without one, and for what it cannot do, a clear error."""
    async with EmbeddingServer() as server, api(bare_folder(tmp_path)) as bare:
        search = SearchSettings(embeddings=OpenAIModel(provider="ollama", name="tiny", base_url=server.url))
        with pytest.raises(NotFoundError) as missing:
            await bare.client().embeddings.create(model="any", input="x")
        assert "search.embeddings" in str(missing.value)
        served = ServedModel(provider="openai", name="fake")
        async with api(tmp_path, config=config_in(tmp_path, model=served, search=search)) as live:
            create: Any = live.client().embeddings.create
            packed = await create(model="any", input=["a red car", "the weather"])
            plain = await create(model="any", input=["a red car", "the weather"], encoding_format="float")
            assert packed.data[1].embedding == pytest.approx(plain.data[1].embedding, abs=1e-6)
            assert (len(plain.data), plain.model) == (2, "tiny")
            assert "embedding" in {each.label for each in await live.gateway.store.usage(0, "purpose")}
            for wrong in ({"input": []}, {"input": [1, 2]}, {"input": "x", "dimensions": 5}):
                with pytest.raises(BadRequestError):
                    await create(model="any", **wrong)
            server.refusal = 503
            with pytest.raises(InternalServerError):
                await create(model="any", input="x")


def bare_folder(folder: Path) -> Path:
    """A folder for another gateway."""
    (folder / "bare").mkdir()
    return folder / "bare"


async def test_a_branch_knows_nothing_of_what_it_leaves(tmp_path: Path) -> None:
    """Also not by the notes of a compaction, which were made when it was said."""
    notes = Say(
        text="## Active Task\nSee to fact 11: the boats.\n## Goal\nTalk.\n## Critical Context\nBoats lie there."
    )
    async with api(tmp_path, model=FakeModel(echo, summary=lambda *_: notes)) as live:
        ask, history = live.client().chat.completions.create, list[Any]()

        async def say(text: str) -> None:
            history.append({"role": "user", "content": text})
            made = await ask(model="legato", messages=history, metadata={"chat_id": "c1"})
            history.append({"role": "assistant", "content": made.choices[0].message.content})

        for number in range(12):
            await say(f"fact {number}: " + "the boats lie in the harbour. " * 20)
        await say("/compress")
        assert "Compressed" in history[-1]["content"]
        del history[22:]
        await say("another fact")
        said = json.dumps(list(live.model.requests[-1].messages))
        assert "fact 10:" in said
        assert "fact 11:" not in said
