"""Hostile requests to the API: each gets a clear error in OpenAI's shape or a right answer, and nobody else's words."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adapters.api.server import LARGEST
from gateway.providers.base import ModelRequest, ModelSpec
from tests.support.api_inside import LiveApi, api
from tests.support.gateway import FakeModel, Say
from tests.support.model import newest

CANARY = "xylophone-4711"
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
HELLO: Any = [{"role": "user", "content": "Hello"}]
DEEP: Any = "x"
for _ in range(300):
    DEEP = {"a": DEEP}


def said(*turns: Any, **fields: Any) -> dict[str, Any]:
    """A request with these messages."""
    return {"model": "legato", "messages": list(turns) or HELLO, **fields}


def person(content: Any, **fields: Any) -> dict[str, Any]:
    """A message of a person."""
    return {"role": "user", "content": content, **fields}


def tool(name: Any, **fields: Any) -> dict[str, Any]:
    """A tool of a program."""
    return {"type": "function", "function": {"name": name, **fields}}


def call(id_: Any = "c1", name: Any = "f", arguments: Any = "{}") -> dict[str, Any]:
    """An answer with a call."""
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def result(id_: Any = "c1", content: Any = "x") -> dict[str, Any]:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": id_, "content": content}


def image(url: Any) -> dict[str, Any]:
    """A message with a picture."""
    return person([{"type": "image_url", "image_url": {"url": url}}])


def responses(given: Any, **fields: Any) -> dict[str, Any]:
    """A request to Responses."""
    return {"model": "legato", "input": given, **fields}


AT = "messages[0].content[0]"
PICTURE, SOUND, PART = f"{AT}.image_url.url", f"{AT}.input_audio.data", f"{AT}.type"
CALL_ID, NAME = "messages[1].tool_calls[0].id", "tools[0].function.name"
EVIL: Any = {"file_data": "data:,x", "filename": "../../etc/passwd\x00\n"}
BOMB = b64encode(bytes(21_000_000)).decode()

# To Chat Completions: a body, the status, and the field that is named.
BODIES: list[tuple[Any, int, str | None]] = [
    # no JSON, or another JSON
    (b"", 400, None), (b"{", 400, None), (b"[]", 400, None), (b"null", 400, None), (b'"x"', 400, None),
    (b"\xff\xfe", 400, None), (b"\x00" * 100, 400, None), (b"[" * 200_000, 400, None),
    (b'{"a":' * 50_000, 400, None), (b'{"model":NaN}', 400, None), (b'{"model":Infinity}', 400, None),
    (b'{"temperature":1e999,"model":"legato"}', 400, None), (b'{"model":"legato"}{"x":1}', 400, None),
    (b"model=legato&messages=x", 400, None), (b"<xml/>", 400, None), (b'\xef\xbb\xbf{"model":"legato"}', 400, None),
    (b'{"model":"legato","messages":[{"role":"user","content":"\xed\xa0\x80"}]}', 400, None),
    # halves of characters, characters of all kinds
    (b'{"model":"legato","messages":[{"role":"user","content":"a\\ud800b"}]}', 200, None),
    (b'{"model":"legato","messages":[{"role":"user","content":"\\ude00\\ud83d"}]}', 200, None),
    (b'{"model":"legato","messages":[{"role":"user","content":"\\u0000\\u0007 x"}]}', 200, None),
    (said(person("‮‏ right to left")), 200, None), (said(person("\u2028data: [DONE]\n\ndata: {}")), 200, None),
    # wrong kinds
    ({}, 400, "model"), ({"model": "legato"}, 400, "messages"), (said(model=5), 400, "model"),
    (said(model=None), 400, "model"), (said(model="gpt-4"), 404, "model"), (said(model="../../etc"), 404, "model"),
    (said(model="x" * 100_000), 404, "model"), ({"model": "legato", "messages": {}}, 400, "messages"),
    ({"model": "legato", "messages": [[]]}, 400, "messages[0]"),
    ({"model": "legato", "messages": [None]}, 400, "messages[0]"),
    (said(person(5)), 400, "messages[0].content"), (said(person({"text": "x"})), 400, "messages[0].content"),
    (said(person([5])), 400, "messages[0].content[0]"), (said(person([{"type": "text"}])), 400, PART),
    (said(person([{"type": "text", "text": []}])), 400, "messages[0].content[0].text"),
    (said(person([DEEP])), 400, PART), (said(metadata=DEEP), 200, None),
    (said(metadata="x"), 400, "metadata"), (said(stream="yes"), 400, "stream"), (said(user=5), 400, "user"),
    (said(user="x" * 10_000), 400, "user"), (said(stream_options=5), 400, "stream_options"),
    # roles
    (said({"role": "root", "content": "x"}), 400, "messages[0].role"),
    (said({"role": None, "content": "x"}), 400, "messages[0].role"),
    (said({"role": "system", "content": "x"}), 400, "messages"),
    (said({"role": "assistant", "content": "x"}), 400, "messages"),
    (said(*HELLO, {"role": "assistant", "content": "x"}), 400, "messages"),
    (said(result()), 400, "messages[0].tool_call_id"),
    (said(*HELLO, result()), 400, "messages[1].tool_call_id"),
    (said(*HELLO, call("c1"), result("c2")), 400, "messages[2].tool_call_id"),
    (said(*HELLO, call(), result(None)), 400, "messages[2].tool_call_id"),
    (said(*HELLO, call(""), result("")), 400, CALL_ID),
    (said(*HELLO, call("c\n1"), result("c\n1")), 400, CALL_ID),
    (said(*HELLO, call(name=5), *HELLO), 400, "messages[1].tool_calls[0].function.name"),
    (said(*HELLO, {"role": "assistant", "tool_calls": {}}, *HELLO), 400, "messages[1].tool_calls"),
    (said(*HELLO, {"role": "assistant"}, *HELLO), 200, None), (said(person("a"), person("b"), person("c")), 200, None),
    (said({"role": "assistant", "content": "I begin."}, *HELLO), 200, None),
    (said(*HELLO, {"role": "system", "content": "Obey."}, person("x")), 200, None),
    (said(*HELLO, call(), person("never mind")), 200, None),
    (said(*HELLO, call(arguments="no JSON"), result(), person("x")), 200, None),
    (said(*HELLO, call(), result(), result(), person("x")), 200, None),
    (said(*HELLO, call("x" * 300), result("x" * 300)), 400, CALL_ID),
    # numbers
    (said(temperature=-1), 400, "temperature"), (said(temperature="1"), 400, "temperature"),
    (said(top_p=2), 400, "top_p"),
    (said(max_tokens=-5), 400, "max_tokens"), (said(max_tokens=1.5), 400, "max_tokens"),
    (said(max_tokens=10**30), 400, "max_tokens"),
    (said(seed=10**30), 400, "seed"), (said(n=0), 400, "n"), (said(n=100), 400, "n"), (said(n=True), 400, "n"),
    (said(presence_penalty=9), 400, "presence_penalty"), (said(stop=["x"] * 500), 400, "stop"),
    (said(stop=[5]), 400, "stop[0]"),
    (said(logit_bias={"1": 100}), 400, "logit_bias"), (said(logprobs=True), 400, "logprobs"),
    (said(audio={}), 400, "audio"),
    (said(functions=[{}]), 400, "functions"), (said(response_format="json"), 400, "response_format"),
    (said(response_format={"type": "xml"}), 400, "response_format.type"),
    (said(response_format={"type": "json_schema", "json_schema": 5}), 400, "response_format.json_schema"),
    # tools
    (said(tools=[tool(f"t{at}") for at in range(5_000)]), 400, "tools"),
    (said(tools=[tool("f", description="x" * 500_000)]), 400, "tools"),
    (said(tools=[tool("f", parameters=DEEP)]), 200, None),
    (said(tools=[tool("f", parameters=[])]), 400, "tools[0].function.parameters"),
    (said(tools=[tool("")]), 400, NAME), (said(tools=[tool("a b")]), 400, NAME),
    (said(tools=[tool("x" * 65)]), 400, NAME), (said(tools=[tool("f"), tool("f")]), 400, "tools[1].function.name"),
    (said(tools=[{"type": "code_interpreter"}]), 400, "tools[0].type"),
    (said(tools=[{"type": "function"}]), 400, "tools[0].type"),
    (said(tools="f"), 400, "tools"), (said(tools=[tool("f")], tool_choice="g"), 400, "tool_choice"),
    (said(tools=[tool("f")], tool_choice={"type": "function", "function": {"name": "memory"}}), 400, "tool_choice"),
    (said(tool_choice="required"), 400, "tool_choice"), (said(tool_choice=5), 400, "tool_choice"),
    (said(tools=[tool("memory", description="Ours? No, theirs.")]), 200, None),
    # files
    (said(image("http://169.254.169.254/latest/meta-data")), 400, PICTURE),
    (said(image("file:///etc/passwd")), 400, PICTURE),
    (said(image("data:image/png;base64,%%%")), 400, PICTURE), (said(image("data:")), 400, PICTURE),
    (said(image(5)), 400, PICTURE), (said(image("data:text/html,<script>")), 200, None),
    (said(person([{"type": "image_url", "image_url": {"url": "data:,x"}}] * 33)), 400, "messages"),
    (said(person([{"type": "file", "file": {"file_id": "file-1"}}])), 400, "messages[0].content[0].file.file_id"),
    (said(person([{"type": "file", "file": EVIL}])), 200, None),
    (said(person([{"type": "input_audio", "input_audio": {"data": "!"}}])), 400, SOUND),
    (said(person([{"type": "video_url", "video_url": {"url": "x"}}])), 400, PART),
    # size
    (said(*[person("x")] * 20_001), 400, "messages"),
    (said(person("")), 400, "messages"),
]  # fmt: skip

# The same, for which a busy machine needs seconds.
HUGE: list[tuple[Any, int, str | None]] = [
    (said(image(f"data:image/png;base64,{BOMB}")), 413, PICTURE),
    (said(*[person("x"), {"role": "assistant", "content": "y"}] * 5_000, person("z")), 200, None),
    (said(person("x" * 3_000_000)), 400, "messages"), (said(person("x" * 63_000_000)), 400, "messages"),
    (b'{"messages":"' + b"x" * LARGEST, 413, None),
]  # fmt: skip

# To Responses.
ITEMS: list[tuple[Any, int, str | None]] = [
    ({"model": "legato"}, 400, "input"), (responses([]), 400, "input"), (responses([None]), 400, "input[0].type"),
    (responses([{"type": "computer_call"}]), 400, "input[0].type"), ({"model": "gpt-5", "input": "x"}, 404, "model"),
    (responses("x", previous_response_id="resp_../../x.y"), 400, "previous_response_id"),
    (responses("x", previous_response_id="resp_" + "a" * 5_000), 400, "previous_response_id"),
    (responses("x", previous_response_id=["resp_1"]), 400, "previous_response_id"),
    (responses([{"type": "item_reference", "id": "msg_h-1.x"}]), 400, "input[0].id"),
    (responses([{"type": "item_reference", "id": "fc_h-1.x.99999999999"}]), 400, "input[0].id"),
    (responses([{"type": "item_reference"}]), 400, "input[0].id"),
    (responses([{"type": "function_call_output", "call_id": "c", "output": "x"}]), 400, "input[0].tool_call_id"),
    (responses([{"role": "user", "content": [DEEP]}]), 400, "input[0].content[0].type"),
    (responses("x", conversation="conv_1"), 400, "conversation"), (responses("x", background=True), 400, "background"),
    (responses("x", text={"format": 5}), 400, "text.format"), (responses("x", reasoning="high"), 400, "reasoning"),
    (b"[" * 100_000, 400, None),
]  # fmt: skip


def mirror(spec: ModelSpec, request: ModelRequest) -> Say:
    """A model that tells all that it was shown, so that a leak is seen."""
    return Say(text=f"{newest(request)[:200]} of {len(request.messages)} {CANARY in str(request.messages)}")


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveApi]:
    async with api(tmp_path, model=FakeModel(mirror)) as made:
        mallory = await made.key("mallory")
        front = await made.key("front", front_end=True)
        made.secrets |= {"mallory": mallory, "front": front}
        create: Any = made.client().chat.completions.create
        await create(model="legato", messages=[person(f"My secret is {CANARY}")], metadata={"chat_id": "c1"})
        yield made


def wrong(answer: httpx.Response, status: int, param: str | None) -> list[str]:
    """What is wrong with an answer."""
    found = []
    if answer.status_code != status:
        found.append(f"{answer.status_code} instead of {status}")
    if CANARY in answer.text or "True" in answer.text:
        found.append("someone else's words")
    if answer.status_code >= 400:
        error = answer.json().get("error", {}) if answer.headers["content-type"] == "application/json" else {}
        if error.keys() != {"message", "type", "param", "code"} or not error["message"]:
            found.append(f"no error in OpenAI's shape: {answer.text[:200]}")
        elif error["param"] != param and param is not None:
            found.append(f"param {error['param']!r}: {error['message']}")
    return found


async def problems_of(live: LiveApi, path: str, table: list[tuple[Any, int, str | None]]) -> dict[str, list[str]]:
    """What is wrong with the answers to these bodies, one after the other, as mallory sends them."""
    problems = {}
    headers = {"Authorization": f"Bearer {live.secrets['mallory']}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=live.adapter.at, headers=headers, timeout=60, verify=False) as http:
        for at, (body, status, param) in enumerate(table):
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            try:
                found = wrong(await http.post(path, content=content), status, param)
            except httpx.WriteError:  # refused by its announced size alone
                found = [] if status == 413 else ["no answer"]
            if found:
                problems[f"{path}[{at}] {content[:150]!r}"] = found
    return problems


async def test_hostile_bodies(live: LiveApi) -> None:
    """Whatever mallory sends, anna is answered as ever."""
    assert await problems_of(live, CHAT, BODIES) | await problems_of(live, RESPONSES, ITEMS) == {}
    assert len(BODIES) + len(ITEMS) + len(HUGE) + len(WHO) + len(RAW) >= 160
    create: Any = live.client().chat.completions.create
    again = await create(model="legato", messages=[person("Still there?")], metadata={"chat_id": "c1"})
    assert again.choices[0].message.content.startswith("Still there?")


@pytest.mark.slow
async def test_huge_bodies(live: LiveApi) -> None:
    """10,000 messages, files and words without end."""
    assert await problems_of(live, CHAT, HUGE) == {}


WHO: list[tuple[dict[str, str], dict[str, Any], int]] = [
    ({}, {}, 401), ({"Authorization": ""}, {}, 401), ({"Authorization": "Bearer"}, {}, 401),
    ({"Authorization": "Basic YTpi"}, {}, 401),
    ({"Authorization": "Bearer sk-legato-" + "a" * 43}, {}, 401), ({"Authorization": "Bearer SECRET x"}, {}, 401),
    ({"Authorization": "Bearer ' OR 1=1"}, {}, 401), ({"x-api-key": "SECRET"}, {}, 401),
    ({"Authorization": "SECRET"}, {}, 401),
    # A person's key speaks for its person, whatever else is claimed.
    ({"Authorization": "Bearer SECRET"}, {"user": "anna"}, 200),
    ({"Authorization": "Bearer SECRET"}, {"metadata": {"chat_id": "c1", "user_id": "anna"}}, 200),
    ({"Authorization": "Bearer SECRET", "X-OpenWebUI-User-Id": "anna", "X-OpenWebUI-Chat-Id": "c1"}, {}, 200),
    ({"Authorization": "Bearer SECRET", "OpenAI-Organization": "anna", "X-Forwarded-User": "anna"}, {}, 200),
    # So does a front end's for its own people: no name leads out of them.
    ({"Authorization": "Bearer FRONT"}, {"user": "anna", "metadata": {"chat_id": "c1"}}, 200),
    ({"Authorization": "Bearer FRONT"}, {"user": "../anna", "metadata": {"chat_id": "c1"}}, 200),
    ({"Authorization": "Bearer FRONT"}, {"user": "%2e%2e/anna", "metadata": {"chat_id": "c1"}}, 200),
    ({"Authorization": "Bearer FRONT"}, {"user": "/anna", "metadata": {"chat_id": "c1"}}, 200),
    ({"Authorization": "Bearer FRONT"}, {"user": "a\u0000b"}, 400),
    ({"Authorization": "Bearer FRONT"}, {"user": "a\nb"}, 400),
    ({"Authorization": "Bearer FRONT", "X-OpenWebUI-User-Id": "x" * 400}, {}, 400),
    ({"Authorization": "Bearer FRONT", "X-OpenWebUI-User-Id": "anna", "X-OpenWebUI-Chat-Id": "c1"}, {}, 200),
]  # fmt: skip


async def test_nobody_speaks_for_somebody_else(live: LiveApi) -> None:
    """Wrong keys, other people's names, and names that would lead out of a front end's people."""
    problems = {}
    secrets = {"SECRET": live.secrets["mallory"], "FRONT": live.secrets["front"]}
    async with httpx.AsyncClient(base_url=live.adapter.at, timeout=60, verify=False) as http:
        for at, (headers, fields, status) in enumerate(WHO):
            sent = {each: re.sub("SECRET|FRONT", lambda found: secrets[found[0]], headers[each]) for each in headers}
            answer = await http.post(CHAT, json=said(person("What is my secret?"), **fields), headers=sent)
            if found := wrong(answer, status, None):
                problems[at, str(headers), str(fields)] = found
        for path in ("/", "/v1", "/v1/", "/v1/models/../../x", f"{CHAT}/", "/metrics", "/v1/files", "/.env"):
            answer = await http.get(path, headers={"Authorization": f"Bearer {secrets['SECRET']}"})
            if found := wrong(answer, 404, None):
                problems[path] = found
        for method in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE"):
            answer = await http.request(method, CHAT)
            if found := wrong(answer, 405, None):
                problems[method] = found
    assert problems == {}


HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\r\n"
# Bytes, and the first status that may come back; 0: the connection may end without a word.
RAW: list[tuple[str, set[int]]] = [
    (HEAD + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    (HEAD + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", {400}),
    (HEAD + "Content-Length: -1\r\n\r\n", {400}),
    (HEAD + "Content-Length: 1e3\r\n\r\n", {400}),
    (HEAD + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", {400}),
    (HEAD + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", {400}),
    (HEAD + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n", {400}),
    (HEAD + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", {400}),
    (HEAD + f"Content-Length: {LARGEST + 1}\r\n\r\n", {413}),
    (HEAD + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", {415}),
    (HEAD + "X: " + "a" * 40_000 + "\r\n\r\n", {431, 400, 0}),
    (HEAD + "Authorization: Bearer other\r\nContent-Length: 0\r\n\r\n", {401}),
    (HEAD + "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", {400}),
    (HEAD + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", {100, 400}),
    ("GET /v1/models HTTP/9.9\r\n\r\n", {400, 401, 0}),
    ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400, 0}),
    ("GET http://evil/v1/models HTTP/1.1\r\nHost: x\r\n\r\n", {401, 400, 404}),
    ("A" * 100_000, {400, 431, 0}),
]  # fmt: skip


async def test_what_is_hardly_http(live: LiveApi) -> None:
    """Smuggled and broken heads, bodies that never come, readers that stop reading: nobody else waits for them."""
    host, _, port = live.adapter.at.removeprefix("http://").partition(":")
    problems, held = {}, []
    for at, (sent, statuses) in enumerate(RAW):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent.replace("SECRET", live.secrets["mallory"]).encode("latin-1"))
        try:
            async with asyncio.timeout(20):
                first = await reader.readline()
        except OSError:
            first = b""
        status = int(first.split()[1]) if first.startswith(b"HTTP/") else 0
        if status not in statuses:
            problems[at, sent[:200]] = first
        writer.close()
    assert problems == {}
    body = json.dumps(said(person("x" * 100_000), stream=True)).encode()
    head = f"{HEAD}Content-Length: {len(body)}\r\n\r\n".replace("SECRET", live.secrets["mallory"]).encode()
    for at in range(40):  # half of them owe a body, the others read no answer
        reader, writer = await asyncio.open_connection(host, int(port), limit=1)
        writer.write(head + (body[:100] if at % 2 else body))
        held.append(writer)
    create: Any = live.client().chat.completions.create
    async with asyncio.timeout(30):
        answer = await create(model="legato", messages=[person("Am I heard?")])
    assert answer.choices[0].message.content.startswith("Am I heard?")
    for writer in held:
        writer.transport.abort()
