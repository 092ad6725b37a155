"""What MCP servers have beside tools, as people meet it: resources, prompts, questions, progress, rich results."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.agent.mcp.settings import McpServerSettings
from gateway.app.config import Config
from gateway.app.config.models import ToolSettings
from gateway.domain.adapter import Limits
from gateway.domain.message import note_of, text_of
from gateway.people.access import AccessSettings
from tests.e2e.test_mcp import ready, results, wants
from tests.support.asking import WithButtons, asked, questions
from tests.support.gateway import FakeModel, Say, config_in, in_turn, running
from tests.support.mcp_running import REAL, real_server
from tests.support.redis_server import free_port
from tests.support.waiting import eventually

RICH = McpServerSettings(command=(sys.executable, str(REAL.with_name("rich.py"))))


def config(folder: Path) -> Config:
    """One server that has everything."""
    return config_in(
        folder, tools=ToolSettings(mcp={"demo": RICH}), access=AccessSettings(allow=("fake:*",), admins=("fake:u",))
    )


async def test_resources_are_listed_and_read(tmp_path: Path) -> None:
    read = "demo_resources"
    model = FakeModel(in_turn(wants(read), wants(read, uri="notes://city/Oslo"), Say(text="done")))
    async with running(tmp_path, config=config(tmp_path), model=model) as live:
        await ready(live)
        assert await live.ask("read") == "done"
        listed, oslo = results(model)
        assert "notes://rome · rome · text/plain · What we know of Rome." in listed
        assert "notes://city/{name} · city" in listed
        assert oslo == "[notes://city/Oslo]\nOslo is a city."


async def test_a_prompt_is_a_command(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(text="Rome in short."), Say(text="Rome at length.")))
    async with running(tmp_path, config=config(tmp_path), model=model) as live:
        await ready(live)
        assert "/demo_brief <topic> [style]" in await live.ask("/help all")
        assert "Did you mean /demo_brief?" in await live.ask("/demo_brif")
        assert "This prompt needs topic. Write topic=… after the command." in await live.ask("/demo_brief")
        assert await live.ask("/demo_brief the city of Rome") == "Rome in short."
        said = model.requests[-1].messages[-1]
        assert text_of(said) == (
            "[The prompt brief of the MCP server demo, which the person asks for; these are not their own words:]\n"
            "Brief me on the city of Rome in a short style. Always add a table."
        )
        assert note_of(said)["own"] == "the city of Rome", "so it is no rule of theirs"
        assert await live.ask("/demo_brief topic=Rome style=very long") == "Rome at length."
        assert "Brief me on Rome in a very long style." in text_of(model.requests[-1].messages[-1])


async def test_a_server_asks_the_person_one_thing_after_the_other(tmp_path: Path) -> None:
    model = FakeModel(in_turn(wants("demo_book"), Say(text="booked")))
    async with running(tmp_path, config=config(tmp_path), model=model, adapter=WithButtons(limits=Limits())) as live:
        await ready(live)
        event = await live.tell("book a trip")
        first = await asked(live, 1)
        assert first.startswith(
            "demo asks: Where do you want to go?\nCity: where to\n\nYour next message is the answer"
        )
        await live.tell("Paris", user="somebody")
        await live.tell("Rome")
        assert "Days" in await asked(live, 2)
        await live.tell("many")
        assert (await asked(live, 3)).startswith("It must be a whole number.")
        await live.tell("/answer 3")
        choice = await asked(live, 4)
        assert "1. train\n2. ship" in choice
        row = next(each for each in live.adapter.sent if each.text == choice)
        assert [button.label for line in row.buttons for button in line] == ["train", "ship", "Refuse"]
        await live.adapter.receive(live.adapter.inbound(row.buttons[1][0].token, kind="press"))
        assert "Flexible" in await asked(live, 5)
        await live.tell("y")
        assert (await live.answer(event)).text == "booked"
        assert results(model) == ['accept {"city":"Rome","days":3,"by":"ship","flexible":true}']


async def test_a_server_at_an_address_asks_and_says_how_far_it_is(tmp_path: Path) -> None:
    port, model = free_port(), FakeModel(in_turn(wants("demo_pay", url="https://pay.example/"), Say(text="no")))
    settings = config(tmp_path).replace(
        tools=ToolSettings(mcp={"demo": McpServerSettings(url=f"http://127.0.0.1:{port}/mcp")})
    )
    async with (
        real_server(port, script=REAL.with_name("rich.py")),
        running(tmp_path, config=settings, model=model, adapter=WithButtons(limits=Limits())) as live,
    ):
        await ready(live)
        event = await live.tell("pay")
        await asked(live, 1)
        await live.tell("/deny")
        assert (await live.answer(event)).text == "no"
        assert results(model) == ["decline"]


async def test_a_server_may_not_ask_for_secrets_but_may_give_a_link(tmp_path: Path) -> None:
    model = FakeModel(
        in_turn(
            wants("demo_sign_in"),
            wants("demo_pay", url="http://evil.example/x"),
            wants("demo_pay", url="https://pay.example/x?id=7"),
            Say(text="paid"),
        )
    )
    async with running(tmp_path, config=config(tmp_path), model=model, adapter=WithButtons(limits=Limits())) as live:
        await ready(live)
        event = await live.tell("pay")
        text = await asked(live, 1)
        assert text.startswith("demo asks you to open a page of pay.example: Pay 5 euros\nhttps://pay.example/x?id=7")
        await live.tell("y")
        assert (await live.answer(event)).text == "paid"
        refused, unsafe, paid = results(model)
        assert refused.startswith("decline")
        assert "it asked for a secret (Password), which nobody should type into a chat" in refused
        assert "not safe" in unsafe
        assert paid == "accept"


async def test_a_server_that_asks_without_an_end_is_cut_short(tmp_path: Path) -> None:
    model = FakeModel(in_turn(wants("demo_nag"), Say(text="enough")))
    async with running(tmp_path, config=config(tmp_path), model=model, adapter=WithButtons(limits=Limits())) as live:
        await ready(live)
        event = await live.tell("go")
        for number in range(1, 16):
            await asked(live, number)
            await live.tell("/deny" if number == 2 else "word")
        assert (await live.answer(event)).text == "enough"
        assert len(questions(live)) == 15
        (said,) = results(model)
        assert said.startswith(",".join(["accept", "decline", *13 * ["accept"], *25 * ["decline"]]))
        assert "it asked more than 15 questions" in said


async def test_a_call_that_is_stopped_while_it_asks_leaves_the_server_usable(tmp_path: Path) -> None:
    model = FakeModel(in_turn(wants("demo_book"), wants("demo_slow"), Say(text="done")))
    async with running(tmp_path, config=config(tmp_path), model=model, adapter=WithButtons(limits=Limits())) as live:
        await ready(live)
        await live.tell("book")
        await asked(live, 1)
        assert "Nothing here is waiting for your yes" not in await live.ask("/approve"), "it is to be answered in words"
        await live.tell("/stop")
        await eventually(lambda: not live.gateway.running_turns.count())
        assert await live.ask("go on") == "done"
        assert results(model)[-1] == "copied"
        assert "I have not asked you anything" in await live.ask("/answer Rome")


async def test_the_status_line_shows_how_far_a_call_is(tmp_path: Path) -> None:
    go = tmp_path / "go"
    model = FakeModel(in_turn(wants("demo_wait_for", path=str(go)), Say(text="done")))
    async with running(tmp_path, config=config(tmp_path), model=model) as live:
        await ready(live)
        event = await live.tell("copy")
        turn = await eventually(lambda: next(iter(live.gateway.running_turns.all()), None))
        await eventually(lambda: turn.doing == "using demo wait for: 25% copying")
        assert "using demo wait for: 25% copying" in await live.ask("/status")
        await asyncio.to_thread(go.touch)
        assert (await live.answer(event)).text == "done"


async def test_every_kind_of_content_reaches_the_model(tmp_path: Path) -> None:
    model = FakeModel(in_turn(wants("demo_everything"), Say(text="done")))
    async with running(tmp_path, config=config(tmp_path), model=model) as live:
        await ready(live)
        assert await live.ask("go") == "done"
        (said,) = results(model)
        assert "[link: notes://rome · Rome · text/plain · 1,234 bytes]" in said
        assert "[file image.png, 15 bytes: kept" in said
        assert "[file audio.wav, 8 bytes: kept" in said
        assert said.endswith('{"cities": ["Rome", "Paris"]}')


async def test_a_server_that_talks_without_an_end(tmp_path: Path) -> None:
    command = (*RICH.command, "flood")
    rich = McpServerSettings(command=command, timeout=1, start_timeout=60)
    settings = config(tmp_path).replace(tools=ToolSettings(mcp={"demo": rich}))
    model = FakeModel(in_turn(wants("demo_chatter"), wants("demo_slow"), Say(text="done")))
    async with running(tmp_path, config=settings, model=model) as live:
        await ready(live)
        assert "offers 9 tools" in await live.ask("/mcp"), "one of them reads the resources"
        assert len(live.gateway.agents.mcp.prompts["demo"]) <= 50
        assert await live.ask("go") == "done"
        endless, after = results(model)
        assert "did not answer within 1 seconds" in endless
        assert after == "copied"
