"""A link to a conversation: read by anybody, and nothing else is; taken back by its owner alone."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from pydantic import SecretStr

from adapters.web.platform import WebPerson, WebSettings
from gateway.people.access import AccessSettings
from tests.support.gateway import config_in
from tests.support.page import LivePage, Visitor, page

PASSWORD = "a password of twelve"


async def shared(live: LivePage, who: Visitor) -> str:
    """Share the present conversation; the link's path."""
    (present,) = re.findall(r'name="session" value="([^"]+)">Share this', (await who.get("/window"))[1])
    assert (await who.post("/share", {"session": present, "sure": "1"})).status == 200
    (path,) = re.findall(r'href="(/shared/[^"]+)"', (await who.get("/window"))[1])
    return str(path)


async def notes_of_links(live: LivePage) -> dict[str, str]:
    assert live.adapter.notebook is not None
    return {name: text for name, text in (await live.adapter.notebook.read()).items() if name.startswith("share ")}


async def test_it_shows_one_conversation_to_anybody_until_it_is_taken_back(tmp_path: Path) -> None:
    async with page(tmp_path) as live, live.visitor() as stranger:
        await live.me.say("the harbour opens at nine")
        await live.me.until("echo: the harbour")
        link = await shared(live, live.me)
        assert link == await shared(live, live.me), "one link for a conversation"
        async with stranger.http.get(f"{live.adapter.at}{link}") as answer:
            html = await answer.text()
            assert answer.headers["X-Robots-Tag"] == "noindex, nofollow"
        assert "the harbour opens at nine" in html
        assert not re.findall(r"<form|<script|csrf|/s/|/files/", html), "there is nothing to do or to follow"
        await live.me.say("/new")
        await live.me.until("fresh")
        await live.me.say("a secret of the next one")
        await live.me.until("echo: a secret")
        assert "secret" not in (await stranger.get(link))[1]
        for path in ("/window", "/inside", "/search?q=harbour"):
            assert "harbour" not in (await stranger.get(path))[1]
        assert re.search(r"<strong>Legato</strong>.*<time [^>]*>\d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC", html)
        assert (await stranger.get(link[:-1]))[0] == 404
        (name,) = re.findall(r'name="end" value="([^"]+)"', (await live.me.get("/window"))[1])
        assert (await live.me.post("/share", {"end": name})).status == 303
        assert (await stranger.get(link))[0] == 404


async def test_it_holds_over_a_restart_and_shows_nothing_forgotten(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("my card is 4711-canary")
        await live.me.until("echo: my card")
        await live.me.say("and tea at five")
        await live.me.until("echo: and tea")
        link = await shared(live, live.me)
    async with page(tmp_path) as live, live.visitor() as stranger:
        assert "4711-canary" in (await stranger.get(link))[1]
        for said, shown in (("/forget canary", "/forget 1"), ("/forget 1", "Without an answer"), ("y", "Forgot")):
            await live.me.say(said)
            await live.me.until(shown)
        html = (await stranger.get(link))[1]
        assert "4711-canary" not in html
        assert "tea at five" in html


async def test_nobody_shares_or_takes_back_what_is_not_theirs(tmp_path: Path) -> None:
    people = {name: WebPerson(password=SecretStr(PASSWORD)) for name in ("anna", "boris", "reader")}
    config = config_in(tmp_path, access=AccessSettings(allow=["web:anna", "web:boris"]))
    async with (
        page(tmp_path, config=config, settings=WebSettings(enabled=True, port=0, people=people)) as live,
        live.visitor() as anna,
        live.visitor() as boris,
        live.visitor() as reader,
    ):
        for who, name in ((anna, "anna"), (boris, "boris"), (reader, "reader")):
            await who.http.post(f"{live.adapter.at}/login", data={"name": name, "password": PASSWORD})
        await anna.say("words of Anna")
        await anna.until("echo: words")
        link = await shared(live, anna)
        (session,) = [each.id for each in await live.gateway.store.sessions(None, 9)]
        (name,) = re.findall(r'name="end" value="([^"]+)"', (await anna.get("/window"))[1])
        for who in (boris, reader):
            assert (await who.post("/share", {"session": session})).status == 404
            await who.post("/share", {"end": name})
        assert "words of Anna" in (await boris.get(link))[1]
        assert (await boris.post("/share", {"session": session}, csrf="0" * 40)).status == 403


async def test_a_link_keeps_no_word_of_a_conversation_that_was_forgotten(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("canary, my password is swordfish")
        await live.me.until("echo: canary")
        link = await shared(live, live.me)
        assert "canary" in (await live.me.get("/window"))[1]
        await live.me.say("/forget everything")
        await live.me.until("Without an answer")
        await live.me.say("y")
        await live.me.until("Forgot")
        assert await notes_of_links(live) == {}
        html = (await live.me.get("/window"))[1]
        assert "/shared/" not in html
        assert "canary" not in html
        assert (await live.me.get(link))[0] == 404
    kept = await asyncio.to_thread(lambda: [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()])
    assert not [each for each in kept if b"swordfish" in each]


async def test_the_store_holds_no_link_which_still_holds_after_a_start(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("the harbour opens at nine")
        await live.me.until("echo: the harbour")
        link = await shared(live, live.me)
        ((name, text),) = (await notes_of_links(live)).items()
        assert link.removeprefix("/shared/") not in name + text
    async with page(tmp_path) as live, live.visitor() as stranger:
        assert "the harbour opens" in (await stranger.get(link))[1]
        assert (await stranger.get("/shared/" + name.removeprefix("share ")))[0] == 404
        html = (await live.me.get("/window"))[1]
        assert html.count("I showed this link once and did not keep it") == 1
        again = await shared(live, live.me)
        assert again != link
        for each in re.findall(r'name="end" value="([^"]+)"', (await live.me.get("/window"))[1]):
            await live.me.post("/share", {"end": each})
        assert [(await stranger.get(path))[0] for path in (link, again)] == [404, 404]
    kept = await asyncio.to_thread(lambda: [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()])
    assert not [each for each in kept if link.removeprefix("/shared/").encode() in each]
