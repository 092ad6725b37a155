"""A temporary chat on the page, without the script: begun, seen, come back to, kept and ended by forms alone."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.page import LivePage, page

EVENT = "a-form-of-the-page"


async def begun(live: LivePage, id_: str = EVENT) -> str:
    """Begin one; its path."""
    answer = await live.me.post("/temporary", {"id": id_})
    assert answer.status == 303
    return answer.headers["Location"].partition("#")[0]


async def said(live: LivePage, path: str, text: str) -> str:
    """Say something there; the page, once it is answered."""
    fields = {"id": f"said-{len(text):08}", "text": text, "chat": path.removeprefix("/c/")}
    assert (await live.me.post("/say", fields)).status == 200
    await live.me.until(f"echo: {text}", path=path)
    return (await live.me.get(path))[1]


def listed(html: str) -> str:
    found = re.search(r'<div id="side">.*?<datalist', html, re.DOTALL)
    assert found is not None
    return found[0]


async def test_it_stands_apart_and_is_gone_once_it_is_ended(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("the harbour opens at nine")
        await live.me.until("echo: the harbour")
        path = await begun(live)
        assert path == await begun(live), "sent again, a form begins no other chat"
        html = await said(live, path, "my secret is a canary")
        assert "This chat is temporary. Legato remembers nothing of it, and deletes it at <time" in html
        for shown in (html, (await live.me.get("/c/"))[1]):
            assert "canary" not in listed(shown)
            assert listed(shown).count("Temporary chat") == 1, "come back to, and there is one at a time"
            assert f'href="{path}#end"' in listed(shown)
        assert "This chat is temporary" not in (await live.me.get("/c/"))[1]
        assert "Nothing was found" in (await live.me.get("/search?q=secret"))[1]
        tip = next(each for each in await live.gateway.store.sessions(None, 9) if each.temporary)
        refused = await live.me.post("/share", {"session": tip.id, "sure": "1"})
        assert (await refused.json())["problem"] == "A temporary chat cannot be shared. Keep the chat first."
        ended = await live.me.post("/temporary", {"id": "another-form", "order": "end", "chat": path[3:]})
        assert ended.status == 303
        html = (await live.me.get(path))[1]
        assert "I deleted the temporary chat." in html
        assert "canary" not in html
        assert "This chat is temporary" not in html
        assert not [each for each in await live.gateway.store.sessions(None, 9) if each.temporary]
        assert "harbour" in listed(html)


async def test_it_is_kept_after_all(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        path = await begun(live)
        await said(live, path, "my secret is a canary")
        await live.me.post("/temporary", {"id": "another-form", "order": "keep", "chat": path[3:]})
        html = (await live.me.get(path))[1]
        assert "This is an ordinary chat from now on" in html
        assert "deletes it at" not in html
        assert "canary" in listed(html)
        assert "canary" in (await live.me.get("/search?q=secret"))[1].partition('class="reading"')[2]


async def test_a_form_that_orders_something_else_does_nothing(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        assert (await live.me.post("/temporary", {"id": EVENT, "order": "burn"})).status == 400
        assert (await live.me.post("/temporary", {"id": "x"})).status == 400
        assert await live.gateway.store.sessions(None, 9) == []
