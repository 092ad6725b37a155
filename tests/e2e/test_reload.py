"""Settings that change in a living gateway: the next message obeys them, what runs is left alone, and a broken file
changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from pydantic import SecretStr

from adapters.web.platform import WebPerson, WebSettings
from gateway.agent.caps import Caps
from gateway.agent.prompt import PromptSettings
from gateway.agent.tools.shell import ShellSettings
from gateway.app.config import Config
from gateway.app.config.models import AlertSettings, Chat, LogSettings, ToolSettings
from gateway.app.reload import _SECTIONS, Reloaded, Reloader, differences, taken_up
from gateway.domain.chat import ChatAddress
from gateway.domain.platform import AdapterSettings
from gateway.domain.turn import SessionSettings, TurnSettings
from gateway.people.access import AccessSettings
from gateway.providers.plugin import ModelPrices, ModelSettings, ServedModel
from gateway.runtime.errors import ConfigError
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.emulators.telegram import TelegramServer
from tests.support.forks import Process, forks
from tests.support.gateway import FakeAdapter, FakeModel, Live, Say, config_in, in_turn, running
from tests.support.program import KEY, environment, legato, legato_run, started, write_config
from tests.support.redis_server import free_port
from tests.support.redis_server import running as redis
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

BOB = {"bob": WebPerson(password=SecretStr("a password of Bob"))}
PRICES = {"input": 1, "output": 4}


# -- what can be taken up -----------------------------------------------------------------------


def test_what_is_taken_up_and_what_waits() -> None:
    held = Config().replace(
        chats={"telegram:1": Chat(listen="free", persona="A"), "telegram:2": Chat(tools=("clock",))},
        sessions=SessionSettings(busy_mode="queue"),
    )
    wanted = Config().replace(
        model=ModelSettings(name="other"),
        access=AccessSettings(allow=("telegram:1",)),
        tools=ToolSettings(result_chars=50_000, mcp={}),
        chats={"telegram:1": Chat(listen="mention", persona="B"), "telegram:3": Chat(daily_usd=1.0)},
        sessions=SessionSettings(busy_mode="steer"),
        log=LogSettings(level="debug", format="json"),
    )
    now = taken_up(held, wanted)
    assert differences(held, now) == [
        "model.name",
        "access.allow",
        "tools.result_chars",
        "chats.telegram:1.persona",
        "chats.telegram:2",
        "chats.telegram:3",
        "log.level",
    ]
    assert differences(now, wanted) == [
        "sessions.busy_mode",
        "chats.telegram:1.listen",
        "log.format",
    ]
    assert taken_up(held, held) == held


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [
        ({"access": {"allow": ["telegram:1"]}}, {"access": {"allow": ["telegram:1", "telegram:2"]}}, ["access.allow"]),
        ({"access": {"allow": ["telegram:1"]}}, {"access": {"allow": ["telegram:2"]}}, ["access.allow"]),
        ({"access": {"allow": ["telegram:1", "telegram:2"]}}, {"access": {"allow": ["telegram:2"]}}, []),
        ({}, {"access": {"admins": ["telegram:1"]}}, ["access.admins"]),
        ({"access": {"admins": ["telegram:1"]}}, {}, []),
        ({"access": {"pairing": False}}, {}, ["access.pairing"]),
        ({}, {"access": {"pairing": False}}, []),
        ({}, {"tools": {"shell": {"enabled": True}}}, ["tools.shell.enabled"]),
        ({"tools": {"shell": {"enabled": True}}}, {"tools": {"shell": {"enabled": False}}}, []),
        ({}, {"tools": {"shell": {"sandbox": "never"}}}, ["tools.shell.sandbox"]),
        ({}, {"tools": {"shell": {"folders": {"x": {"path": "/srv"}}}}}, ["tools.shell.folders.x"]),
        ({}, {"tools": {"shell": {"admins_only": False}}}, ["tools.shell.admins_only"]),
        ({"tools": {"shell": {"admins_only": False}}}, {}, []),
        ({}, {"tools": {"shell": {"allow": ["ls"]}}}, ["tools.shell.allow"]),
        ({"tools": {"admins_only": ["shell"]}}, {}, ["tools.admins_only"]),
        ({}, {"tools": {"admins_only": ["shell"]}}, []),
        ({}, {"tools": {"offered": {"*": ["shell"]}}}, ["tools.offered.*"]),
        ({"tools": {"offered": {"*": ["-shell"]}}}, {}, ["tools.offered.*"]),
        ({}, {"tools": {"web": {"ports": [80, 443, 22]}}}, ["tools.web.ports"]),
        ({}, {"tools": {"result_chars": 5_000, "shell": {"timeout": 5}}}, []),
        ({}, {"chats": {"telegram:1": {"tools": ["shell"], "persona": "A"}}}, ["chats.telegram:1.tools"]),
        ({}, {"chats": {"telegram:1": {"persona": "A"}}}, []),
        ({"chats": {"telegram:1": {"tools": []}}}, {}, ["chats.telegram:1.tools"]),
        (
            {"chats": {"telegram:1": {"tools": [], "persona": "A"}}},
            {"chats": {"telegram:1": {"tools": ["clock"], "persona": "B"}}},
            ["chats.telegram:1.tools"],
        ),
        ({}, {"model": {"name": "other"}, "budgets": {"daily_usd": 1}}, []),
        ({}, {"adapters": {"web": WebSettings(people=BOB)}}, ["adapters.web"]),
        (
            {"adapters": {"web": WebSettings(port=1)}},
            {"adapters": {"web": WebSettings(port=1, people=BOB)}},
            ["adapters.web.people.bob"],
        ),
    ],
)
async def test_what_lets_somebody_do_more_is_held_where_no_person_asks(
    before: dict[str, Any], after: dict[str, Any], held: list[str]
) -> None:
    now, wanted = Config.model_validate(before), Config.model_validate(after)
    in_force: list[Config] = []

    async def take_up(config: Config) -> None:
        in_force.append(config)

    reloader = Reloader(config=now, read=lambda: wanted, reconfigure=take_up, relog=lambda _: None)
    done = await reloader.reload(widens=False)
    assert list(done.held) == held
    assert not {*done.held} & {*done.changed, *done.waiting}
    for config in in_force:
        left = differences(config, taken_up(now, wanted))
        assert len(left) == len(held)
        assert all(each.startswith(key) for key, each in zip(left, held, strict=True))
    assert list((await reloader.reload(widens=True)).held) == []
    assert reloader.config == taken_up(now, wanted)


def test_the_page_for_operators_names_every_section() -> None:
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    table = page.partition("| Immediately | At the next start |")[2].partition("\n\n")[0]
    named = {each.partition(".")[0] for each in re.findall(r"`([a-z_.]+)`", table)}
    assert named == set(Config.model_fields)
    held = {name for row in re.findall(r"^\|([^|]+)\|", table, re.MULTILINE) for name in re.findall(r"`([a-z_]+)", row)}
    assert held == {*_SECTIONS, "chats", "tools", "log"}


# -- in this process ----------------------------------------------------------------------------


@dataclass
class Written:
    """The settings as somebody would have written them by now."""

    config: Config
    logged: list[str] = field(default_factory=list)

    def reloader(self, live: Live) -> Reloader:
        return Reloader(
            config=self.config,
            read=lambda: self.config,
            reconfigure=live.gateway.settings.take_up,
            relog=lambda config: self.logged.append(config.log.level),
        )


def open_to(*people: str, admins: tuple[str, ...] = ()) -> AccessSettings:
    return AccessSettings(allow=people, admins=admins, pairing=False)


@asynccontextmanager
async def reloading(
    folder: Path, says: FakeModel, more: Sequence[Any] = (), **sections: Any
) -> AsyncIterator[tuple[Live, Written, Reloader]]:
    adapter = FakeAdapter()
    adapter.limits = type(adapter.limits)()  # trusts nobody by itself
    written = Written(config_in(folder, **{"access": open_to("fake:u"), **sections}))
    async with running(folder, config=written.config, model=says, adapter=adapter, tools=more) as live:
        yield live, written, written.reloader(live)


async def test_the_next_message_has_another_model_persona_and_tools(tmp_path: Path) -> None:
    model = FakeModel()
    without = ToolSettings(shell=ShellSettings(enabled=False))
    async with reloading(tmp_path, model, tools=without) as (live, written, reloader):
        await live.ask("one")
        assert model.requests[-1].messages[0]["content"].startswith("You are Legato")
        assert "shell" not in [each["function"]["name"] for each in model.requests[-1].tools]
        written.config = written.config.replace(
            model=ModelSettings(provider="offline", name="second"),
            prompt=PromptSettings(persona="You are a pirate."),
            tools=ToolSettings(offered={"*": ("-clock",)}, shell=ShellSettings(enabled=True, admins_only=False)),
        )
        assert await reloader.reload() == Reloaded(
            changed=(
                "model.name",
                "prompt.persona",
                "tools.offered.*",
                "tools.shell.enabled",
                "tools.shell.admins_only",
            ),
            waiting=(),
        )
        await live.ask("two")
        assert model.specs[-1].name == "second"
        assert model.requests[-1].messages[0]["content"].startswith("You are a pirate.")
        names = [each["function"]["name"] for each in model.requests[-1].tools]
        assert ("shell" in names, "clock" in names) == (True, False)
        assert "one" in str(model.requests[-1].messages)  # the same conversation goes on


async def test_a_provider_of_another_api_is_made_once_and_closed_at_the_end(tmp_path: Path) -> None:
    def at(url: str, name: str) -> ModelSettings:
        return ServedModel(provider="anthropic", name=name, base_url=url, context_length=100_000)

    async with LlmServer(lambda _: Reply(text="from afar")) as server:
        async with reloading(tmp_path, FakeModel()) as (live, written, reloader):
            assert await live.ask("one") == "echo: one"
            for name in ("claude-a", "claude-b"):
                written.config = written.config.replace(model=at(server.url, name))
                await reloader.reload()
                assert await live.ask("two") == "from afar"
                assert server.requests[-1]["model"] == name
            models, closing = live.gateway.agents.metering.models, len(live.gateway.settings.close)
            first = models.servers["anthropic"]
            written.config = written.config.replace(model=at(server.url, "claude-c"))
            await reloader.reload()
            assert (models.servers["anthropic"], len(live.gateway.settings.close)) == (first, closing)
            written.config = unpriced(written.config)
            with pytest.raises(ConfigError, match="no price is known"):
                await reloader.reload()
            assert len(live.gateway.settings.close) == closing  # what was made for it is closed already
            assert await live.ask("three") == "from afar"
        assert not server.violations


class Long:
    """A tool with a long answer."""

    name = "long"
    description = "Says much."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    read_only = idempotent = True
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: Any) -> str:
        return "word " * 2_000


async def test_a_limit_of_results_holds_for_the_next_turn(tmp_path: Path) -> None:
    model = FakeModel(in_turn(*[Say(calls=[("long", "{}")]), Say(text="done")] * 2))
    async with reloading(tmp_path, model, more=[Long()]) as (live, written, reloader):
        await live.ask("one")
        assert "<persisted-output>" not in str(model.requests[-1].messages)
        written.config = written.config.replace(tools=ToolSettings(result_chars=3_000, turn_chars=6_000))
        await reloader.reload()
        await live.ask("two")
        assert "<persisted-output>" in str(model.requests[-1].messages[-1])


async def test_who_may_talk_and_who_administers_changes_at_once(tmp_path: Path) -> None:
    async with reloading(tmp_path, FakeModel()) as (live, written, reloader):
        await live.tell("let me in", user="ben", chat="ben")
        await live.quiet()
        assert live.adapter.shown("ben") == []
        written.config = written.config.replace(access=open_to("fake:ben", admins=("fake:ben",)))
        await reloader.reload()
        assert await live.ask("hello", user="ben", chat="ben") == "echo: hello"
        assert "/pair" in await live.ask("/help all", user="ben", chat="ben")
        seen = len(live.adapter.sent)
        await live.tell("and I?")
        await live.quiet()
        assert len(live.adapter.sent) == seen


async def test_a_budget_holds_from_the_next_call_on(tmp_path: Path) -> None:
    model = ModelSettings(provider="openai", name="fake", context_length=100_000, prices=ModelPrices(**PRICES))
    served = {"fake": AdapterSettings(enabled=True)}
    async with reloading(tmp_path, FakeModel(), model=model, adapters=served) as (live, written, reloader):
        await live.ask("one")
        written.config = written.config.replace(budgets=Caps(per_session_usd=0.000001))
        assert (await reloader.reload()).changed == ("budgets.per_session_usd",)
        assert "spend cap" in await live.ask("two")
        written.config = written.config.replace(budgets=Caps(), alerts=AlertSettings(to="fake:boss"))
        await reloader.reload()
        assert await live.ask("three") == "echo: three"
        assert live.gateway.watchdog.alerts.to == ChatAddress(platform="fake", chat="boss")


def clash(config: Config) -> Config:
    """Valid by itself, but not beside the turns' deadline that holds until the next start."""
    return config.replace(turns=TurnSettings(deadline=4_000), tools=ToolSettings(approval_deadline=3_000))


def unpriced(config: Config) -> Config:
    return config.replace(
        model=ServedModel(
            provider="openai-responses", name="nobody-knows-this-model", base_url="https://far.example/v1"
        ),
        budgets=Caps(daily_usd=1),
    )


@pytest.mark.parametrize(
    ("wrong", "why"), [(clash, "until the next start, which takes up turns.deadline"), (unpriced, "no price is known")]
)
async def test_settings_that_cannot_hold_change_nothing(
    tmp_path: Path, wrong: Callable[[Config], Config], why: str
) -> None:
    model = FakeModel()
    async with reloading(tmp_path, model) as (live, written, reloader):
        before = written.config
        written.config = wrong(before.replace(prompt=PromptSettings(persona="You are a pirate.")))
        with pytest.raises(ConfigError, match=why):
            await reloader.reload()
        assert reloader.config == before
        assert await live.ask("hello") == "echo: hello"
        assert model.requests[-1].messages[0]["content"].startswith("You are Legato")
        assert written.logged == []


async def test_a_secret_that_came_later_is_redacted_and_the_earlier_one_still(tmp_path: Path) -> None:
    def keyed(key: str) -> ModelSettings:
        return ModelSettings.model_validate({"provider": "offline", "name": "fake", "api_key": key})

    async with reloading(tmp_path, FakeModel(), model=keyed("old-words-of-mine")) as (live, written, reloader):
        written.config = written.config.replace(model=keyed("new-words-of-mine"))
        await reloader.reload()
        assert live.gateway.settings.redact("old-words-of-mine, new-words-of-mine") == "[REDACTED], [REDACTED]"


# -- the program --------------------------------------------------------------------------------


@dataclass
class World:
    """Legato as a service, beside a Telegram and a model's server, with settings in a file."""

    folder: Path
    telegram: TelegramServer
    model: LlmServer
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.anna, self.ben = (self.telegram.people.person(name) for name in ("Anna", "Ben"))

    def write(self, *people: Any, **sections: Any) -> None:
        bot = {"enabled": True, "token": "${TOKEN}", "base_url": self.telegram.base_url}
        more: dict[str, Any] = {"monitor": {"address": f"127.0.0.1:{self.port}"}, **sections}
        allowed = {"allow": [f"telegram:{each.id}" for each in people], "pairing": False}
        write_config(self.folder, self.model.url, adapters={"telegram": bot}, access=allowed, **more)

    async def reload(self, *arguments: str) -> tuple[int, str, str]:
        return await legato(self.folder, "reload", *arguments, TOKEN=self.telegram.token)

    def say(self, person: Any, text: str) -> None:
        self.telegram.people.say(self.telegram.people.private(person), person, text)

    async def shown(self, person: Any, text: str) -> None:
        chat = self.telegram.people.private(person)
        await self.telegram.until(lambda: any(text in each.text for each in self.telegram.shown(chat)))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer(limits=None) as telegram, LlmServer(api_key=KEY) as model:
        yield World(tmp_path, telegram, model)


async def ended(program: Process) -> list[dict[str, Any]]:
    """End the service; the lines of its log."""
    program.send_signal(signal.SIGTERM)
    _, errors = await program.communicate()
    assert program.returncode == 0, errors.decode()
    return [json.loads(line) for line in errors.decode().splitlines()]


async def test_the_command_changes_a_service_under_a_running_turn(world: World) -> None:
    json_log = {"format": "json"}
    world.write(world.anna, log=json_log)
    hold = asyncio.Event()
    world.model.reply = lambda _: Reply(text="the first answer", hold=hold)
    async with legato_run(world.folder, TOKEN=world.telegram.token) as program:
        world.say(world.anna, "hello")
        await eventually(lambda: world.model.in_flight)
        world.write(
            world.anna,
            world.ben,
            model={"name": "second-model", "prices": PRICES},
            prompt={"persona": "You are a pirate."},
            budgets={"daily_usd": 5},
            sessions={"busy_mode": "collect"},
            log={**json_log, "level": "info"},
        )
        status, out, err = await world.reload()
        assert (status, err) == (0, "")
        assert out == (
            "These settings apply from now on: model.name, model.prices, access.allow, prompt.persona, "
            "budgets.daily_usd, log.level.\nThese settings apply from the next start: sessions.busy_mode.\n"
        )
        hold.set()
        await world.shown(world.anna, "the first answer")
        assert {each["model"] for each in world.model.requests} == {"test-model"}
        world.model.reply = lambda _: Reply(text="the second answer")
        for person in (world.anna, world.ben):
            world.say(person, "again")
            await world.shown(person, "the second answer")
            request = world.model.requests[-1]
            assert request["model"] == "second-model"
            assert request["messages"][0]["content"].startswith("You are a pirate.")
        log = await ended(program)
    (line,) = (each for each in log if each["event"] == "settings_reloaded")
    assert (line["next_start"], line["level"]) == (["sessions.busy_mode"], "warning")
    assert any(each["level"] == "info" for each in log[log.index(line) :])
    assert {each["event"] for each in log[: log.index(line)] if each["level"] == "info"} == {"told"}
    assert not world.model.violations


async def test_a_broken_file_changes_nothing_and_is_told(world: World) -> None:
    world.write(world.anna, log={"format": "json"})
    async with legato_run(world.folder, TOKEN=world.telegram.token) as program:
        world.say(world.anna, "hello")
        await world.shown(world.anna, "")
        await eventually(lambda: world.model.calls)
        world.write(world.ben, prompt={"persna": "You are a pirate."})
        status, out, err = await world.reload()
        assert (status, out) == (2, "")
        assert "persna is not a known key" in err
        program.send_signal(signal.SIGHUP)
        world.say(world.anna, "again")
        await eventually(lambda: world.model.calls == 2)
        log = await ended(program)
    (line,) = (each for each in log if each["event"] == "settings_not_reloaded")
    assert "persna is not a known key" in line["problems"][0]
    assert not any("pirate" in json.dumps(each) for each in world.model.requests)


async def test_only_the_command_of_this_machine_may_ask(world: World) -> None:
    world.write(world.anna)
    url = f"http://127.0.0.1:{world.port}/reload"
    assert (await world.reload())[:2] == (1, "")
    async with legato_run(world.folder, TOKEN=world.telegram.token), ClientSession() as http:

        async def asked(method: str, **headers: str) -> int:
            async with http.request(method, url, headers=headers) as answer:
                return answer.status

        async def begun() -> bool:
            with suppress(OSError):
                return bool(await asked("GET"))
            return False

        await eventually(begun)
        assert await asked("GET", **{"X-Legato": "reload"}) == 404
        assert await asked("POST") == 403
        assert await asked("POST", Host="evil.example", **{"X-Legato": "reload"}) == 403
        assert await asked("OPTIONS") == 405
        assert await asked("POST", **{"X-Legato": "reload"}) == 200
        status, out, _ = await world.reload("--json")
        assert (status, json.loads(out)) == (0, [{"changed": [], "waiting": [], "held": []}])


ASK = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], method="POST", headers={"X-Legato": "reload"})
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read().decode())
"""


def policy(world: World, *people: Any, allow: Sequence[str] = (), **more: Any) -> None:
    """Settings with the shell tool, of which Anna is the admin."""
    tools = {"shell": {"enabled": True, "sandbox": "never", "allow": list(allow)}}
    world.write(*people, tools=tools, **more)
    path = world.folder / "config.yaml"
    config = json.loads(path.read_text())
    config["model"] = {"provider": "offline"}
    config["access"]["admins"] = [f"telegram:{world.anna.id}"]
    path.write_text(json.dumps(config))


async def test_what_the_gateway_started_gets_nothing_into_force_that_lets_somebody_do_more(world: World) -> None:
    policy(world, world.anna)
    (world.folder / "ask.py").write_text(ASK)
    ask = shlex.join([sys.executable, str(world.folder / "ask.py"), f"http://127.0.0.1:{world.port}/reload"])
    async with legato_run(world.folder, TOKEN=world.telegram.token) as program:
        assert await program.stderr.readline(), "it has read its settings"
        for number, wrapped in enumerate((ask, f"env -i setsid -w {ask}", f"sh -c {shlex.quote(ask)}")):
            level = ("info", "error", "warning")[number]
            policy(world, world.anna, world.ben, allow=["ls"], log={"level": level})
            world.say(world.anna, f"run {wrapped}")
            await world.shown(world.anna, f"Run this command? {wrapped}")
            chat = world.telegram.people.private(world.anna)
            (question,) = (
                each for each in world.telegram.shown(chat) if each.text.startswith(f"Run this command? {wrapped}")
            )
            world.telegram.people.press(question, world.anna, "Approve")
            held = '"waiting": [], "held": ["access.allow", "tools.shell.allow"]}'
            await world.shown(world.anna, f'{{"changed": ["log.level"], {held}')
            policy(world, world.anna, log={"level": level})
        policy(world, world.anna, world.ben, allow=["ls"])
        status, out, _ = await world.reload()
        assert (status, out) == (0, "These settings apply from now on: access.allow, tools.shell.allow.\n")


async def test_a_signal_takes_away_at_once_and_leaves_what_gives_to_a_person(world: World) -> None:
    policy(world, world.anna, world.ben, log={"format": "json"})
    async with legato_run(world.folder, TOKEN=world.telegram.token) as program:
        world.say(world.ben, "hello")
        await world.shown(world.ben, "offline")
        policy(world, world.anna, allow=["ls"], log={"format": "json"})
        program.send_signal(signal.SIGHUP)
        rows = []
        while not (rows and rows[-1]["event"] == "settings_held"):
            rows.append(json.loads(await program.stderr.readline()))
        assert (rows[-2]["event"], rows[-2]["changed"]) == ("settings_reloaded", ["access.allow"])
        assert rows[-1]["keys"] == ["tools.shell.allow"]
        assert "`legato reload` in a shell of your own" in rows[-1]["advice"]
        await ended(program)


def free_pair() -> int:
    """A port that is free, before another one that is."""
    while True:
        port = free_port()
        with suppress(OSError), socket.socket() as following:
            following.bind(("127.0.0.1", port + 1))
            return port


async def test_all_workers_are_reached(world: World, tmp_path: Path) -> None:
    world.port = free_pair()
    (tmp_path / "redis").mkdir()
    with redis(tmp_path / "redis") as server:
        store = {"url": server.url}
        world.write(world.anna, store=store, log={"format": "json"})
        program = await started(world.folder, "run", "--workers", "2", TOKEN=world.telegram.token)
        try:
            world.say(world.anna, "hello")
            await eventually(lambda: world.model.calls)
            world.write(world.anna, store=store, log={"format": "json"}, model={"name": "second-model"})

            async def both() -> bool:  # the second one may begin later
                status, out, _ = await world.reload("--json")
                return status == 0 and len(json.loads(out)) == 2

            await eventually(both)
            world.write(world.anna, store=store, log={"format": "json"}, model={"name": "third-model"})
            program.send_signal(signal.SIGHUP)
            changes = 0
            while changes < 4:  # each of two workers twice
                changes += (await program.stderr.readline()).count(b'"changed": ["model.name"]')
            world.say(world.anna, "again")
            await eventually(lambda: world.model.calls == 2)
            assert world.model.requests[-1]["model"] == "third-model"
        finally:
            program.send_signal(signal.SIGTERM)
            await program.communicate()


async def test_a_terminal_that_goes_away_ends_the_service_in_it(world: World) -> None:
    world.write(world.anna)
    ours, theirs = pty.openpty()
    nothing = os.open(os.devnull, os.O_RDWR)
    environ = environment(TOKEN=world.telegram.token)
    how: Any = {"descriptors": (nothing, nothing, theirs), "cwd": world.folder, "environment": environ}
    program = await forks().start("gateway", "run", **how)
    os.close(theirs)
    os.close(nothing)
    world.say(world.anna, "hello")
    await eventually(lambda: world.model.calls)
    program.send(signal.SIGHUP)  # by somebody
    world.say(world.anna, "again")
    await eventually(lambda: world.model.calls == 2)
    os.close(ours)
    program.send(signal.SIGHUP)
    async with asyncio.timeout(60):
        assert await program.ended == 0
