"""Skills by the real program: `legato skills`, a proposal that a kill interrupts, on both stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.program import Program, chatting, legato

if TYPE_CHECKING:
    from tests.support.redis_server import RedisServer  # at run time it is a plugin, which nobody may import first

pytest_plugins = ["tests.support.redis_server"]


async def test_a_skill_is_added_used_and_removed_by_the_program(tmp_path: Path) -> None:
    source = tmp_path / "minutes"
    source.mkdir()
    (source / "SKILL.md").write_text("---\nname: minutes\ndescription: Writes minutes.\n---\nBegin with the date.\n")
    (tmp_path / "AGENTS.md").write_text("Use metres.")
    status, out, _ = await legato(tmp_path, "skills", "list")
    assert (status, "There are no skills." in out) == (0, True)
    status, out, _ = await legato(tmp_path, "skills", "add", "minutes")
    assert (status, "legato reload" in out) == (0, True)
    status, _, err = await legato(tmp_path, "skills", "add", "minutes")
    assert (status, "exists already" in err) == (1, True)
    status, out, _ = await legato(tmp_path, "skills", "list")
    assert (status, out.strip()) == (0, "minutes (your folder): Writes minutes.")
    status, out, _ = await legato(tmp_path, "check")
    assert "skills           ok    minutes" in out
    assert "AGENTS.md: in every prompt" in out
    status, out, _ = await legato(tmp_path, "ask", 'call skill {"name": "minutes"}')
    assert "Begin with the date." in out
    (tmp_path / "skills/broken").mkdir()
    status, out, _ = await legato(tmp_path, "check")
    assert "skills/broken" in out
    status, out, _ = await legato(tmp_path, "skills", "remove", "minutes")
    assert (status, (tmp_path / "skills/minutes").exists()) == (0, False)
    status, _, err = await legato(tmp_path, "skills", "remove", "../minutes")
    assert (status, "is not a skill name" in err) == (1, True)


@pytest.mark.parametrize("store", ["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
async def test_a_proposal_outlives_the_program_and_is_kept_once(
    tmp_path: Path, redis_server: RedisServer, store: str
) -> None:
    redis_server.empty()
    url = redis_server.url if store == "redis" else f"sqlite:///{tmp_path / 'legato.db'}"
    (tmp_path / "config.yaml").write_text(json.dumps({"store": {"url": url}}), encoding="utf-8")
    text = "---\nname: minutes\ndescription: Writes minutes.\n---\nBegin with the date.\n"

    async def until_asked(program: Program) -> None:
        while not any(row["kind"] == "question" for row in program.lines):
            assert await program.read_line()

    async with chatting(tmp_path) as program:
        program.send({"id": "1", "text": "/skills learn"})
        await program.until_answered("1")
        program.send({"id": "2", "text": f"call skill {json.dumps({'name': 'minutes', 'text': text})}"})
        await until_asked(program)
        program.process.kill()
    async with chatting(tmp_path) as program:
        program.send({"id": "3", "text": "/approve"})
        while "I saved the skill" not in json.dumps(program.lines):
            assert await program.read_line()
        program.send({"id": "4", "text": "/new"}, {"id": "5", "text": 'call skill {"name": "minutes"}'})
        assert "Begin with the date." in (await program.until_answered("5"))[0]["text"]
        program.send({"id": "6", "text": "/skills"})
        assert "minutes (this conversation): Writes minutes." in (await program.until_answered("6"))[0]["text"]
        assert (await program.finish())[0] == 0
