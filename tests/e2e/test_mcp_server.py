"""Legato as an MCP server, through the real program: over HTTP by key and on the standard streams, beside the gateway
that runs, on both stores. Two people with a key each never see a word of one another."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import httpx2
import pytest
from msgspec import Struct

from gateway.app.config.models import SearchSettings, StoreSettings
from gateway.app.store import configured_store
from gateway.domain.adapter import AnswerMcp
from gateway.domain.chat import ChatAddress, SessionKey
from gateway.domain.keys import Key
from gateway.providers.openai import OpenAIModel
from tests.emulators.embeddings import EmbeddingServer
from tests.support.forks import ROOT
from tests.support.gateway import FakeAdapter, config_in
from tests.support.gateway import running as gateway_running
from tests.support.program import environment, legato, started
from tests.support.redis_server import free_port, running
from tests.support.waiting import eventually

if TYPE_CHECKING:  # every process collects this file, and the library takes a second
    from mcp import Client

ANN: Final = "Biscuit"
BEN: Final = "Rumpelstilzchen"


class World(Struct, kw_only=True):
    """A program that runs in `folder`, and the keys of two people: Ann's own, and one for Ben as Telegram knows him."""

    folder: Path
    url: str
    store: str
    ann: str
    ben: str

    @asynccontextmanager
    async def over_http(self, key: str, **how: Any) -> AsyncIterator[Client]:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http), **how) as client,
        ):
            yield client

    @asynccontextmanager
    async def on_streams(self, *arguments: str, **variables: str) -> AsyncIterator[Client]:
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        given = StdioServerParameters(
            command=sys.executable,
            args=["-m", "gateway", "mcp", *arguments],
            env=environment(**variables),
            cwd=self.folder,
        )
        # Of itself it takes what stood for standard error when the library was loaded, which a test may have caught.
        async with Client(stdio_client(given, errlog=sys.__stderr__)) as client:
            yield client

    async def post(self, body: bytes, key: str | None = None, **headers: str) -> tuple[int, str]:
        """A request as no library would make it."""
        given = {"Authorization": f"Bearer {self.ann if key is None else key}", **_HEADERS, **headers}
        async with aiohttp.ClientSession() as http, http.post(self.url, data=body, headers=given) as answer:
            return answer.status, await answer.text()


_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a store."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'legato.db'}"
        return
    folder = tmp_path / "redis"
    folder.mkdir()
    with running(folder) as server:
        yield server.url


@pytest.fixture
async def world(tmp_path: Path, store: str) -> AsyncIterator[World]:
    """Ann and Ben have said something, and the program runs."""
    port = free_port()
    config = config_in(tmp_path, store=StoreSettings(url=store))
    for platform, user, words in (("api", "ann", f"my cat is called {ANN}"), ("telegram", "1001", f"I met {BEN}")):
        opened = configured_store(config)
        async with gateway_running(tmp_path, config=config, adapter=FakeAdapter(platform), store=opened) as live:
            await live.ask(words, user=user, chat=user)
            await live.ask(f"another thing: {words}", user=user, chat=user, thread="t1")
    settings = {"store": {"url": store}, "adapters": {"api": {"enabled": True, "port": port}}}
    (tmp_path / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    keys = []
    for arguments in (("ann",), ("laptop", "--for", "telegram:1001")):
        status, out, err = await legato(tmp_path, "keys", "add", *arguments)
        assert status == 0, err
        keys.append(out.strip())
    program = await started(tmp_path, "run")
    try:
        url = f"http://127.0.0.1:{port}/mcp"
        await eventually(lambda: _listens(port))
        yield World(folder=tmp_path, url=url, store=store, ann=keys[0], ben=keys[1])
    finally:
        program.send_signal(signal.SIGTERM)
        _, errors = await program.communicate()
        assert program.returncode == 0, errors.decode()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def call(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a result, with a mark before that of an error."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    return f"{'Error: ' if result.is_error else ''}{content.text}"


async def raw(folder: Path, arguments: Sequence[str], *requests: bytes) -> list[str]:
    """The answers to requests on the standard streams, without a library."""
    program = await started(folder, "mcp", *arguments)
    assert program.stdin is not None
    assert program.stdout is not None
    lines = []
    for request in (HELLO, *requests):
        program.stdin.write(request + b"\n")
        lines.append((await program.stdout.readline()).decode())
    await program.communicate()
    assert program.returncode == 0
    return lines[1:]


async def rows_of(world: World, chat: ChatAddress) -> list[str]:
    config = config_in(world.folder, store=StoreSettings(url=world.store))
    opened = configured_store(config, read_only=True)
    await opened.open()
    try:
        return [row.text for row in await opened.outbox(chat, 10) if row.kind == "notice"]
    finally:
        await opened.aclose()


async def test_a_program_reads_remembers_and_sends_for_its_person_alone(world: World) -> None:
    async with world.over_http(world.ann) as ann, world.over_http(world.ben, mode="legacy") as ben:
        names = [tool.name for tool in (await ann.list_tools()).tools]
        assert names == ["search_history", "read_history", "recall", "remember", "send"]
        found = await call(ann, "search_history", words="What is the name of my cat?")
        assert f"user: my cat is called {ANN}" in found
        assert f"another thing: my cat is called {ANN}" in found  # each thread of the chat is theirs
        place = next(line for line in found.splitlines() if line.endswith(f"user: my cat is called {ANN}"))
        read = await call(ann, "read_history", message=place.split()[0], before=0, after=1)
        assert [line.split()[4] for line in read.splitlines()] == ["user:", "assistant:"]
        assert await call(ann, "remember", text=f"Has a cat, {ANN}.") == f"Remembered: Has a cat, {ANN}."
        assert (await call(ann, "recall", words="cat")).endswith(
            f"Has a cat, {ANN}. [the words of the program with the key ann]"
        )
        # Ben has nothing of it
        for words in (ANN, "cat", f'"{ANN}"', "called"):
            assert ANN not in (await call(ben, "search_history", words=words)).replace(repr(words), "")
        assert await call(ben, "recall") == "Nothing is remembered of that."
        assert (await call(ben, "read_history", message=place.split()[0])).startswith("Error: There is no message ")
        assert f"user: I met {BEN}" in await call(ben, "search_history", words=BEN)
        assert (await call(ann, "search_history", words=BEN)) == f"Nothing was found for {BEN!r}."
        assert await call(ben, "remember", text=f"Met {BEN}.") == f"Remembered: Met {BEN}."
    # the same on the standard streams, beside the program that runs
    async with world.on_streams(LEGATO_KEY=world.ann) as ann:
        assert f"user: my cat is called {ANN}" in await call(ann, "search_history", words="cat")
        assert await call(ann, "remember", text="Likes tea.") == "Remembered: Likes tea."
        facts = await call(ann, "recall")
        assert (ANN in facts, "tea" in facts, BEN in facts) == (True, True, False)
        assert (await call(ann, "send", text="The build is green.")).startswith("The text is stored")
    async with world.over_http(world.ann) as ann:
        assert "Likes tea." in await call(ann, "recall")
    recalled, nothing = await raw(
        world.folder, ["--for", "telegram:1001"], use("recall"), use("search_history", words=ANN)
    )
    assert f"Met {BEN}. [the words of the program with the key laptop]" in recalled
    assert f"Nothing was found for {ANN!r}." in nothing

    async def shown() -> bool:
        return await rows_of(world, ChatAddress(platform="api", chat="ann")) == ["The build is green."]

    await eventually(shown)
    assert await rows_of(world, ChatAddress(platform="telegram", chat="1001")) == []


async def test_the_terminal_has_a_server_before_anything_else_is_there(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    nothing, remembered, facts = await raw(
        tmp_path, [], use("search_history", words="tea"), use("remember", text="Likes tea."), use("recall")
    )
    assert "Nothing was found for 'tea'." in nothing
    assert "Remembered: Likes tea." in remembered
    assert "Likes tea." in facts
    status, _, err = await legato(tmp_path, "mcp", LEGATO_KEY="sk-legato-guessed")
    assert (status, err.strip()) == (
        1,
        "legato: the key in LEGATO_KEY is not known: `legato keys add NAME` makes one",
    )
    status, _, err = await legato(tmp_path, "mcp", "--for", "telegram:1", LEGATO_KEY="sk-legato-guessed")
    assert status == 2
    assert "leave out --for, or the variable" in err


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_front_ends_people_find_what_they_said_over_the_api_themselves(world: World) -> None:
    status, key, err = await legato(world.folder, "keys", "add", "webui", "--front-end")
    assert status == 0, err
    said = {"one": "my code is Marigold", "two": "my code is Nasturtium", "": "my code is Orchid"}
    headers = {"Authorization": f"Bearer {key.strip()}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        for user, words in said.items():
            body = {"model": "legato", "messages": [{"role": "user", "content": words}]}
            address, who = world.url.replace("/mcp", "/v1/chat/completions"), {"X-OpenWebUI-User-Id": user}
            async with http.post(address, json=body, headers=who) as answer:
                assert answer.status == 200, await answer.text()
        for user in said:
            _, text = await world.post(
                use("search_history", words="code"), key.strip(), **{"X-OpenWebUI-User-Id": user}
            )
            assert [words for words in said.values() if words in text] == [said[user]]
        status, text = await world.post(use("recall"), key.strip(), **{"X-OpenWebUI-User-Id": "x" * 257})
        assert (status, "256 printable characters" in text) == (400, True)


INSPECTOR: Final = ROOT / "build/inspector/node_modules/.bin/mcp-inspector-cli"


@pytest.mark.slow
@pytest.mark.usefixtures("npm")
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_the_inspector_of_mcp_finds_its_way(world: World) -> None:
    assert INSPECTOR.exists(), f"{INSPECTOR} is missing: `make slow` makes it"

    async def inspected(*arguments: str) -> str:
        program = await asyncio.create_subprocess_exec(
            str(INSPECTOR),
            "--cli",
            *arguments,
            cwd=world.folder,
            env=environment(LEGATO_KEY=world.ann),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await program.communicate()
        return out.decode()

    there = [world.url, "--transport", "http", "--header", f"Authorization: Bearer {world.ann}"]
    for server in (there, [sys.executable, "-m", "gateway", "mcp"]):
        tools = json.loads(await inspected(*server, "--method", "tools/list"))["tools"]
        assert [tool["name"] for tool in tools] == ["search_history", "read_history", "recall", "remember", "send"]
        called = [*server, "--method", "tools/call", "--tool-name", "search_history", "--tool-arg"]
        assert f"user: my cat is called {ANN}" in await inspected(*called, "words=my cat")
        assert "`words` must fit" in await inspected(*called, "words=5")
    assert "unknown. Send " in await inspected(*there[:-1], "Authorization: Bearer wrong", "--method", "tools/list")


class Speaking(FakeAdapter):
    """A platform that hands on MCP's requests."""

    mcp: AnswerMcp | None = None


async def test_a_search_by_meaning_asks_once_for_all_conversations(tmp_path: Path) -> None:
    async with EmbeddingServer() as server:
        model = OpenAIModel(provider="ollama", name="tiny", base_url=server.url)
        config, adapter = config_in(tmp_path, search=SearchSettings(embeddings=model)), Speaking()
        async with gateway_running(tmp_path, config=config, adapter=adapter) as live:
            for thread, words in ((None, "My Corsa is red."), ("a", "It is grey."), ("b", "Good morning.")):
                await live.ask(words, thread=thread)
            assert live.gateway.agents.embeddings is not None
            await live.gateway.agents.embeddings.look()
            before = len(server.asked)
            assert adapter.mcp is not None
            key, own = Key(name="k"), SessionKey(platform="fake", chat="c")
            asked = use("search_history", words="which vehicle")
            status, _, body = await adapter.mcp(key, own, list(_HEADERS.items()), asked)
            assert (status, b"My Corsa is red." in body, len(server.asked)) == (200, True, before + 1)


def rpc(method: str = "tools/call", **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def use(tool: str, **arguments: Any) -> bytes:
    return rpc(name=tool, arguments=arguments)


HELLO: Final = rpc(
    "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "raw", "version": "1"}
)
LONG: Final = "x" * 5_000
# What is sent, and what stands in the answer. No answer holds a word of Ben's, and none is a crash.
ATTACKS: Final[dict[str, tuple[bytes, str]]] = {
    "no JSON": (b"hello", "Parse error"),
    "nothing": (b"", "Parse error"),
    "half": (rpc()[:-3], "Parse error"),
    "not UTF-8": (b"\xff\xfe" + rpc(), "Parse error"),
    "NUL": (b"\0" * 100, "Parse error"),
    "a number": (b"1", "error"),
    "a list": (b"[]", "error"),
    "many at once": (b"[" + b",".join([use("recall")] * 1_000) + b"]", "error"),
    "deep": (b"[" * 50_000 + b"]" * 50_000, "error"),
    "deep arguments": (
        use("recall", words="DEEP").replace(b'"DEEP"', b"[" * 10_000 + b"]" * 10_000),
        "error",
    ),
    "no version": (b'{"id":1,"method":"tools/list"}', "error"),
    "no method": (b'{"jsonrpc":"2.0","id":1}', "error"),
    "an unknown method": (rpc("secrets/list"), "Method not found"),
    "sampling": (rpc("sampling/createMessage", messages=[], maxTokens=1), "error"),
    "resources": (rpc("resources/read", uri="file:///etc/passwd"), "Method not found"),
    "prompts": (rpc("prompts/list"), "Method not found"),
    "no tool": (rpc(), "error"),
    "an unknown tool": (use("shell", command="id"), "There is no tool 'shell'"),
    "a long name of a tool": (use(LONG), "There is no tool"),
    "a path as a tool": (use("../send", text="x"), "There is no tool"),
    "a tool of the agent": (use("memory", action="remove", fact="#1"), "There is no tool 'memory'"),
    "arguments as a list": (rpc(name="recall", arguments=["cat"]), "error"),
    "arguments as a text": (rpc(name="recall", arguments="cat"), "error"),
    "no words": (use("search_history"), "The arguments do not fit."),
    "empty words": (use("search_history", words=""), "The arguments do not fit."),
    "words of another kind": (use("search_history", words={"$ne": None}), "The arguments do not fit."),
    "a limit below": (use("search_history", words="a", limit=-1), "The arguments do not fit."),
    "a limit above": (use("search_history", words="a", limit=10**9), "The arguments do not fit."),
    "a limit as a fraction": (use("search_history", words="a", limit=1.5), "The arguments do not fit."),
    "another person": (use("search_history", words=BEN, user="1001"), "The arguments do not fit."),
    "another chat": (use("search_history", words=BEN, chat="telegram:1001"), "The arguments do not fit."),
    "another key": (use("recall", key="telegram/chat=1001"), "The arguments do not fit."),
    "another scope": (use("remember", text="x", scope="telegram/chat=1001"), "The arguments do not fit."),
    "SQL": (use("search_history", words="' OR 1=1 --"), "result"),
    "a query of the index": (use("search_history", words="owner:* NEAR OR NOT (((("), "result"),
    "a star": (use("search_history", words="*"), "result"),
    "a quotation without an end": (use("search_history", words='"' * 999), "result"),
    "NUL in words": (use("search_history", words="a\0b"), "result"),
    "half a character": (use("search_history", words="\ud800"), "error"),
    "no number": (use("read_history", message="../../etc/passwd"), "There is no message"),
    "a number of nothing": (use("read_history", message="#999999999999999999999"), "There is no message"),
    "a negative number": (use("read_history", message="#-1"), "There is no message"),
    "too many neighbours": (use("read_history", message="#1", before=10**6), "The arguments do not fit."),
    "a fact too long": (use("remember", text=LONG), "The arguments do not fit."),
    "a fact of nothing": (use("remember", text=" \t\n"), "`text` is empty"),
    "a credential": (
        use("remember", text="The password is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"),
        "credential",
    ),
    "a text too long": (use("send", text=LONG), "The arguments do not fit."),
    "a text of nothing": (use("send", text="\u200b \n"), "result"),
    "a text to another": (use("send", text="x", to="telegram:1001"), "The arguments do not fit."),
}


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_hostile_requests_get_plain_errors(world: World) -> None:
    for name, (body, expected) in ATTACKS.items():
        status, text = await world.post(body)
        assert status < 500, (name, status, text)
        assert expected in text, (name, text)
        assert "Traceback" not in text, name
        assert BEN not in text.replace(repr(BEN), ""), name
    refused: list[tuple[int, dict[str, Any]]] = [
        (401, {"key": ""}),
        (401, {"key": "sk-legato-guessed"}),
        (401, {"key": f"{world.ann} "[:-2]}),
        (401, {"key": world.ann.upper()}),
        (401, {"key": "x" * 5_000}),
        (401, {"Authorization": world.ann}),
        (401, {"Authorization": f"Basic {world.ann}"}),
        (406, {"Accept": "text/html"}),
        (400, {"Content-Type": "text/plain"}),
        (415, {"Content-Encoding": "gzip"}),
        (400, {"MCP-Protocol-Version": "1999-01-01"}),
    ]
    for status, how in refused:
        key = how.pop("key", None)
        found, text = await world.post(use("recall"), key, **how)
        assert found == status, (status, how, text)
        assert text.isprintable()
    assert (await world.post(b" " * 1_000_001))[0] == 413
    # a header of a front end means nothing for the key of a person
    _, text = await world.post(use("search_history", words=BEN), **{"X-OpenWebUI-User-Id": "1001"})
    assert "Nothing was found" in text
    # the most that may wait
    told = [(await world.post(use("send", text=f"number {number}")))[1] for number in range(60)]
    assert any("texts are already waiting for this chat" in each for each in told) or "stored" in told[-1]
    async with world.over_http(world.ann) as ann:  # all is well
        assert f"user: my cat is called {ANN}" in await call(ann, "search_history", words="cat")
