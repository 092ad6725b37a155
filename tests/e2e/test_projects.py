"""Projects: chats about one thing, with instructions that hold in all of them and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.agent.projects import keep_project, projects
from gateway.commands.chat import NOT_YOURS
from gateway.commands.projects import MOST_PROJECTS
from gateway.domain.adapter import Limits
from gateway.domain.chat import OWN, SessionKey
from gateway.domain.message import text_of
from gateway.domain.session import LONGEST_INSTRUCTIONS, Project
from gateway.domain.turn import SessionSettings
from gateway.people.access import AccessSettings
from tests.emulators.telegram import TelegramServer
from tests.support.fakes import ManualClock
from tests.support.fast_clock import FastClock
from tests.support.gateway import FakeAdapter, Live, config_in, running
from tests.support.model import FakeModel
from tests.support.telegram_live import on_telegram

A, B = f"{OWN}one", f"{OWN}two"
RULE = "Our balcony faces north."
WEEK = 7 * 86_400.0


def prompt(live: Live) -> str:
    """The system prompt of the last request."""
    return text_of(live.model.requests[-1].messages[0])


async def test_instructions_hold_in_the_chats_of_a_project_and_nowhere_else(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello", thread=A)
        before = prompt(live)
        assert "I made the project. This chat is now in the project “Garden”." in await live.ask(
            "/project Garden", thread=A
        )
        await live.ask("still the same", thread=A)
        assert prompt(live) == before, "a project without instructions costs nothing"
        assert "I follow these instructions" in await live.ask(f"/project instructions {RULE}", thread=A)
        await live.ask("what grows here?", thread=A)
        within = prompt(live)
        assert RULE in within
        assert "I made" not in await live.ask("/project garden", thread=B)  # before anything was said there
        await live.ask("hello", thread=B)
        assert RULE in prompt(live)
        await live.ask("hello")
        assert RULE not in prompt(live)
        assert "project  " in await live.ask("/context", thread=A)
        await live.ask("/project rename Balcony", thread=B)
        await live.ask("go on", thread=A)
        assert prompt(live) == within, "another name leaves the provider's cache as it is"
        assert "“Balcony”, with these instructions" in await live.ask("/project", thread=A)
        assert (await live.ask("/projects")).startswith("Balcony (2 chats)\n")
        await live.ask("/project none", thread=A)
        await live.ask("and now?", thread=A)
        assert prompt(live) == before
        asked = await live.tell("/project delete", thread=B)
        await live.adapter.until(lambda: any(row.kind == "question" for row in live.adapter.sent))
        await live.ask("/approve", thread=B)
        assert "Its chats are still there." in (await live.answer(asked)).text
        await live.ask("and here?", thread=B)
        assert RULE not in prompt(live)


async def test_a_chat_stays_in_its_project_whatever_becomes_of_it(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        await live.ask("/project Garden")
        await live.ask(f"/project instructions {RULE}")
        for number in range(8):
            await live.ask(f"word {number}")
        for command in ("/compress", "/branch", "/undo", "/new"):
            await live.ask(command)
            await live.ask("go on")
            assert RULE in prompt(live), command
        await clock.advance(WEEK + 1)
        await live.gateway.upkeep.expiry.sweep()
        await live.quiet()
        await live.ask("back again")
        assert RULE in prompt(live), "rest"
        await clock.advance(WEEK + 1)  # nobody swept
        await live.ask("and again")
        assert RULE in prompt(live)
        await live.ask("/project House")
        await live.ask("/resume 1")
        await live.ask("go on")
        assert RULE in prompt(live), "an earlier session is still in its own project"
    async with running(tmp_path, clock=clock) as live:
        await live.ask("after a restart")
        assert RULE in prompt(live)
        asked = await live.tell("/forget everything")
        await live.adapter.until(lambda: any(row.kind == "question" for row in live.adapter.sent))
        await live.ask("/approve")
        await live.answer(asked)
        await live.quiet()
        assert await projects(live.store, SessionKey(platform="fake", chat="c")) == []


async def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert (await live.ask("/projects")).startswith("You have no projects yet.")
        assert (await live.ask("/project")).startswith("This chat is in no project.")
        assert (await live.ask("/project rename X")).startswith("This chat is in no project.")
        assert await live.ask("/project none") == "This chat is in no project."
        await live.ask("/project House")
        await live.ask("/project Garden")
        assert "already have a project called “House”" in await live.ask("/project rename HOUSE")
        assert "cannot be called “none”" in await live.ask("/project rename none")
        assert "Write the new text" in await live.ask("/project instructions")
        told = await live.ask(f"/project instructions {'word ' * 1_000}")
        assert f"at most {LONGEST_INSTRUCTIONS:,} characters, but these have 4,999" in told
        assert "password or a key" in await live.ask("/project instructions my key is sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12")
        owner = SessionKey(platform="fake", chat="c")
        for number in range(MOST_PROJECTS - 2):
            await keep_project(live.store, owner, Project(id=f"p_{number}", name=f"N{number}"))
        assert "already have 100 projects" in await live.ask("/project One more")
        assert "is now in the project “N7”" in await live.ask("/project n7")


async def test_nobody_else_sees_a_project_and_in_a_group_an_admin_decides(tmp_path: Path) -> None:
    group = {"chat": "g", "chat_type": "group"}
    config = config_in(
        tmp_path,
        access=AccessSettings(allow=("fake:*",), admins=("fake:boss",)),
        sessions=SessionSettings(groups="shared", titles=False),
    )
    async with running(tmp_path, config=config, adapter=FakeAdapter(limits=Limits())) as live:
        await live.ask("/project Garden")
        await live.ask(f"/project instructions {RULE}")
        assert (await live.ask("/projects", chat="2", user="2")).startswith("You have no projects yet.")
        await live.ask("/project Garden", chat="2", user="2")
        await live.ask("hello", chat="2", user="2")
        assert RULE not in prompt(live)
        assert await live.ask("/project Garden", **group) == NOT_YOURS
        await live.ask("/project Choir", user="boss", **group)
        await live.ask("/project instructions We sing on Mondays.", user="boss", **group)
        await live.ask("hello", **group)
        assert "We sing on Mondays." in prompt(live)
        assert "Choir" not in await live.ask("/projects", user="boss", chat="boss")


@pytest.mark.parametrize("damaged", ["", "{", '{"id": 1}'])
async def test_a_damaged_project_is_left_out(tmp_path: Path, damaged: str) -> None:
    async with running(tmp_path) as live:
        owner = SessionKey(platform="fake", chat="c")
        await live.store.set_notes(f"projects {owner}", {"p_1": damaged})
        assert (await live.ask("/projects")).startswith("You have no projects yet.")


async def test_a_person_on_telegram_keeps_a_chat_in_a_project(tmp_path: Path) -> None:
    async with TelegramServer(limits=None, clock=FastClock()) as telegram:
        anna, model = telegram.people.person("Anna"), FakeModel()
        async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
            for words, told in (
                ("/project Garden", "This chat is now in the project “Garden”."),
                (f"/project instructions {RULE}", "I follow these instructions"),
                ("which herbs?", "echo: which herbs?"),
                ("/project none", "no longer in the project “Garden”"),
                ("and now?", "echo: and now?"),
            ):
                bot.says(words)
                await bot.until(lambda told=told: any(told in each for each in bot.shown()))  # type: ignore[misc]
            within, after = (text_of(each.messages[0]) for each in model.requests)
            assert RULE in within
            assert RULE not in after
