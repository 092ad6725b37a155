"""AGENTS.md, SOUL.md and USER.md in Legato's folder stand in prompts by themselves, and `check` tells."""

from __future__ import annotations

from pathlib import Path

from gateway.agent.prompt import PromptSettings
from gateway.app.home_files import LONGEST
from gateway.app.reload import Reloader
from gateway.domain.message import text_of
from gateway.people.access import AccessSettings
from tests.support.asking import Buttoned
from tests.support.gateway import Live, config_in, running

KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


def prompt(live: Live) -> str:
    return text_of(live.model.requests[-1].messages[0])


async def test_files_of_the_folder_stand_in_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text(f"Use metres. The key is {KEY}.")
    (tmp_path / "SOUL.md").write_text("Be a pirate. " + "Arr. " * 3_000)
    async with running(tmp_path, config=config_in(tmp_path).within(tmp_path)) as live:
        await live.ask("hello")
        assert "# AGENTS.md\nUse metres. The key is" in prompt(live)
        assert KEY not in prompt(live)
        assert "# SOUL.md\nBe a pirate." in prompt(live)
        assert prompt(live).count("Arr.") < LONGEST // 5


async def test_what_is_about_the_operator_stands_in_their_own_chats_alone(tmp_path: Path) -> None:
    (tmp_path / "USER.md").write_text("I was born on 3 May.")
    access = AccessSettings(allow=("fake:u", "fake:boss"), admins=("fake:boss",))
    config = config_in(tmp_path, access=access).within(tmp_path)
    async with running(tmp_path, config=config, adapter=Buttoned()) as live:
        await live.ask("hello", user="u", chat="u")
        assert "3 May" not in prompt(live)
        await live.ask("hello", user="boss", chat="g", chat_type="group")
        assert "3 May" not in prompt(live)
        await live.ask("hello", user="boss", chat="b")
        assert "# USER.md\nI was born on 3 May." in prompt(live)


async def test_a_file_that_cannot_be_read_keeps_nobody_from_starting(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"\xff\xfe")
    (tmp_path / "SOUL.md").mkdir()
    async with running(tmp_path, config=config_in(tmp_path).within(tmp_path)) as live:
        await live.ask("hello")
        assert "AGENTS.md" not in prompt(live)


async def test_a_file_that_the_settings_name_stands_there_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use metres.")
    config = config_in(tmp_path, prompt=PromptSettings(context_files=("AGENTS.md",))).within(tmp_path)
    async with running(tmp_path, config=config) as live:
        await live.ask("hello")
        assert prompt(live).count("Use metres.") == 1


async def test_a_reload_takes_up_what_was_added(tmp_path: Path) -> None:
    config = config_in(tmp_path).within(tmp_path)
    async with running(tmp_path, config=config) as live:
        await live.ask("hello")
        (tmp_path / "skills/minutes").mkdir(parents=True)
        (tmp_path / "skills/minutes/SKILL.md").write_text(
            "---\nname: minutes\ndescription: Writes minutes.\n---\nBegin with the date.\n"
        )
        (tmp_path / "AGENTS.md").write_text("Use metres.")
        await live.ask("hello")
        assert "minutes" not in prompt(live)
        reloader = Reloader(
            config=config,
            read=lambda: config,
            reconfigure=live.gateway.settings.take_up,
            relog=lambda _: None,
        )
        await reloader.reload()
        await live.ask("hello")
        assert "- minutes: Writes minutes." in prompt(live)
        assert "Use metres." in prompt(live)
