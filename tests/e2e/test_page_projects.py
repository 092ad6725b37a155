"""Projects on the page: forms that need no script, and what the model is told in their chats."""

from __future__ import annotations

import re
from pathlib import Path

from adapters.web.server import source_of
from gateway.agent.holding import SHELF
from gateway.domain.message import text_of
from gateway.store.port import under
from tests.support.page import LivePage, page

RULE = "Our balcony faces north.\nNothing that hurts a cat."
PLAIN = {"Accept": "text/html"}


async def order(live: LivePage, does: str, **fields: str) -> str:
    """Press a button of a project's form, and return where that leads."""
    answer = await live.me.post("/project", {"order": does, **fields}, headers=PLAIN)
    assert answer.status == 303, await answer.text()
    return answer.headers["Location"]


async def say(live: LivePage, path: str, words: str) -> str:
    """Say something in a chat, and return the prompt of the request that it made."""
    chat = path.split("#")[0].removeprefix("/c/")
    fields = {"chat": chat, "text": words, "id": f"say-{abs(hash(words))}"}
    await live.me.post("/say", fields)
    await live.me.until(f"echo: {words}", path=f"/c/{chat}")
    return text_of(live.model.requests[-1].messages[0])


async def test_a_new_chat_of_a_project_follows_its_instructions_until_it_moves_out(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        _, fresh = await live.me.get("/project")
        assert "New project" in fresh
        garden = await order(live, "save ", name="Garden", instructions=RULE.replace("\n", "\r\n"))
        id_ = garden.removeprefix("/project/")
        chat = await order(live, f"chat {id_}")
        _, empty = await live.me.get(chat)
        assert "Garden</p>" in empty
        assert "New chat</a>" in empty
        assert "/project Garden" not in empty, "the page's own command stands nowhere"
        assert RULE in await say(live, chat, "which herbs?")
        _, shown = await live.me.get(garden)
        assert ">which herbs?</a>" in shown
        _, there = await live.me.get(chat)
        assert re.search(rf'<details id="in-{id_}" open><summary.*?>Garden<.*?which herbs.*?</details>', there)
        assert 'class="part part-6"' in there, "the project has its share in the bar"
        (line,) = await live.adapter.views.sessions(source_of("owner"))
        moved = {"order": f"move {line.id}", f"project {line.id}": ""}
        assert (await live.me.post("/session", moved)).status == 200
        assert RULE not in await say(live, chat, "and now?")
        assert (await live.me.post("/session", {**moved, f"project {line.id}": "GARDEN"})).status == 200
        assert RULE in await say(live, chat, "and again?")
        await order(live, f"save {id_}", name="Balcony", instructions="It faces south.")
        assert "It faces south." in await say(live, chat, "and south?")
        answer = await live.me.post("/project", {"order": f"delete {id_}"}, headers=PLAIN)
        assert "Delete the project “Balcony” and its instructions? Its chats stay." in await answer.text()
        await order(live, f"delete {id_}", sure="1")
        assert "It faces south." not in await say(live, chat, "and at last?")
        (left,) = await live.adapter.views.sessions(source_of("owner"))
        assert left.id == line.id, "its chats stay"


async def test_what_is_not_taken_is_told_and_stays_in_the_form(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await order(live, "save ", name="Garden", instructions="")
        for name, words, told in (
            ("garden", "about <cats>", "You already have a project called “Garden”. Choose another name."),
            (
                "House",
                "x" * 4_001,
                "Instructions may have at most 4,000 characters, but these have 4,001. Shorten them.",
            ),
            ("none", "words", "A project cannot be called “none”. Choose another name."),
            (" ", "words", "Give it a name."),
        ):
            answer = await live.me.post("/project", {"order": "save ", "name": name, "instructions": words})
            shown = await answer.text()
            assert told in shown
            assert f"{words.replace('<', '&lt;').replace('>', '&gt;')}</textarea>" in shown
        gone = await live.me.post("/project", {"order": "save p_gone", "name": "X", "instructions": ""})
        assert gone.status == 404
        assert (await live.me.post("/project", {"order": "chat p_gone"})).status == 404
        assert (await live.me.get("/project/p_gone"))[0] == 404
        await live.me.say("hello")
        await live.me.until("echo: hello")
        (line,) = await live.adapter.views.sessions(source_of("owner"))
        refused = await live.me.post("/session", {"order": f"move {line.id}", f"project {line.id}": "rename it"})
        assert (refused.status, await refused.json()) == (
            409,
            {"problem": "A project cannot be called “rename it”. Choose another name."},
        )


async def test_folders_of_an_earlier_version_become_projects(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("hello")
        await live.me.until("echo: hello")
        views, source = live.adapter.views, source_of("owner")
        (line,) = await views.sessions(source)
        shelf = under(views.rules.key(source).owner, SHELF)
        await views.store.set_notes(shelf, {f"folder {line.id}": "Trips & <more>", f"pinned {line.id}": "yes"})
        (found,) = await views.sessions(source)
        (made,) = await views.projects(source)
        assert (made.name, found.project, found.pinned) == ("Trips & <more>", made.id, True)
        assert not any(name.startswith("folder ") for name in await views.store.notes(shelf))
        assert await views.sessions(source) == [found]
