"""The page without a browser: what people post is answered, and what they see is what the store holds."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from adapters.web.log import Entry
from adapters.web.platform import WebPerson, WebSettings
from adapters.web.server import Server, source_of
from gateway.agent.holding import SHELF
from gateway.app.views import StoreViews
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Attachment, Outbound, SessionKey, Source
from gateway.domain.message import assistant, user
from gateway.domain.session import Session
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.runtime.clock import SystemClock, SystemIds
from gateway.store.port import under
from gateway.store.records import Opening
from gateway.store.redis import RedisStore
from tests.support.gateway import Gate, Say, config_in
from tests.support.model import FakeModel, in_turn, newest
from tests.support.page import LivePage, Shown, page
from tests.support.tools import Payment, payments

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]


async def until(live: LivePage, holds: Any, last: str = "0") -> Shown:
    """What an open page shows once it holds."""
    shown = Shown(digest=last)
    async with live.me.events(last) as events:
        async for event in events:
            shown.apply(*event)
            if holds(shown):
                return shown
    raise AssertionError("the stream ended")


async def test_a_message_and_its_answer_are_shown_after_a_reload(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("hello there")
        await live.me.until("echo: hello there")
        assert [html.count("hello there") for *_, html in (await live.me.shown()).log] == [1, 1]


async def test_they_are_there_after_a_restart_and_so_is_the_login(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        port = int(live.adapter.at.rpartition(":")[2])
        await live.me.say("hello there")
        before = await live.me.until("echo: hello there")
        cookies = list(live.me.http.cookie_jar)
    async with page(tmp_path, port=port) as live, live.visitor() as same:
        same.http.cookie_jar.update_cookies({each.key: each.value for each in cookies})
        assert (await same.shown()).log == before.log


async def test_a_message_that_is_sent_again_counts_once(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        id_ = await live.me.say("hello")
        await live.me.until("echo: hello")
        await live.me.say("hello", id_)
        await live.me.say("next")
        assert (await live.me.until("echo: next")).text.count("echo: hello") == 1


async def test_a_reply_grows_on_an_open_page_and_ends_in_its_place(tmp_path: Path) -> None:
    gate = Gate()
    async with page(tmp_path, model=FakeModel(in_turn(Say(text="one two", gate=gate)))) as live:
        await live.me.say("count")
        shown = await until(live, lambda shown: shown.work)
        gate.open()
        shown = await until(live, lambda shown: "one two" in shown.text and shown.is_quiet)
        assert shown.log == (await live.me.shown()).log


async def test_a_page_that_comes_back_is_sent_what_it_missed(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("first")
        seen = await live.me.until("echo: first")
        await live.me.say("second")
        now = await live.me.until("echo: second")
        async with live.me.events(seen.digest, header=True) as events:
            async for kind, data, digest in events:
                assert kind != "keep", "all of it is sent again"
                seen.apply(kind, data, digest)
                if digest == now.digest:
                    break
        assert seen.log == now.log


async def test_a_command_is_answered_and_stays_with_its_answer(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("/whoami")
        shown = await live.me.until("You are web:owner")
        assert "/whoami" in shown.text


class Told(Payment):
    """Asks about a command."""

    def question(self, arguments: Mapping[str, Any]) -> tuple[str, str]:
        return "Pay this?", f"pay {arguments['sum']}"


async def test_an_approval_is_a_pair_of_buttons_below_its_command(tmp_path: Path) -> None:
    tool, command = Told(), '<pre tabindex="0"><code data-language="command">pay 50</code></pre>'
    async with page(tmp_path, model=FakeModel(in_turn(payments(50), Say(text="done"))), tools=[tool]) as live:
        await live.me.say("pay it")
        shown = await live.me.until("Allow once")
        assert f"Pay this?</p>{command}" in "".join(html for *_, html in shown.log)
        token = next(part for part in "".join(html for *_, html in shown.log).split('"') if part.startswith("approve "))
        answer = await live.me.post("/press", {"token": token})
        assert answer.status == 200
        shown = await live.me.until("done")
        assert tool.paid == [50]
        decided = "".join(html for *_, html in shown.log)
        assert f"Pay this?</p>{command}" in decided
        assert "<button" not in decided


async def test_stop_ends_a_turn(tmp_path: Path) -> None:
    async with page(tmp_path, model=FakeModel(in_turn(Say(text="never", gate=Gate())))) as live:
        await live.me.say("think for ever")
        await until(live, lambda shown: shown.work)
        await live.me.say("/stop")
        shown = await until(live, lambda shown: "Stopped" in shown.text and shown.is_quiet)
        assert shown.log == (await live.me.shown()).log


async def test_without_a_script_a_form_comes_back_to_the_chat(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        fields = {"id": SystemIds().new("t"), "text": "plain"}
        answer = await live.me.post("/say", fields, headers={"Accept": "text/html"})
        assert (answer.status, answer.headers["Location"]) == (303, "/c/#end")
        await live.me.until("echo: plain")


async def test_a_file_goes_both_ways(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("look", files=[("notes.txt", b"milk and tea", "text/plain")])
        shown = await live.me.until("notes.txt")
        address = "".join(html for *_, html in shown.log).split('href="')[1].split('"')[0]
        async with live.me.http.get(f"{live.adapter.at}{address}") as answer:
            assert await answer.read() == b"milk and tea"
            assert answer.headers["Content-Disposition"].startswith("attachment;")
            assert "sandbox" in answer.headers["Content-Security-Policy"]
        await live.me.say("/export")
        await live.me.until(".md (1 kB)")


async def test_what_was_forgotten_is_gone_from_an_open_page(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        await live.me.say("my canary is yellow")
        await live.me.until("echo: my canary")
        open_page = asyncio.create_task(until(live, lambda shown: "Forg" in shown.text and "yellow" not in shown.text))
        await live.me.say("/forget canary")
        await live.me.until("/forget 1")
        await live.me.say("/forget 1")
        await live.me.until("Without an answer")
        await live.me.say("y")
        await open_page
        assert not [each.id for each in gc.get_objects() if isinstance(each, Entry) and "yellow" in each.html]


async def test_an_open_page_reads_anew_where_more_may_have_changed_than_what_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, shown = list[int](), StoreViews.shown

    async def counted(views: StoreViews, source: Source, limit: int) -> Sequence[Outbound]:
        read.append(limit)
        return await shown(views, source, limit)

    monkeypatch.setattr(StoreViews, "shown", counted)
    script = in_turn(Say(text="plain"), payments(5), Say(text="paid"), Say(text="rested"), Say(text="steered"))
    cases = (
        ("hello", "plain", False), ("pay", "paid", True), ("/whoami", "web:owner", True),
        ("/queue rest", "rested", True), ("/steer on", "steered", True),
    )  # fmt: skip
    async with page(tmp_path, model=FakeModel(script), tools=[Payment()]) as live, live.me.events("0") as events:
        seen, csrf = Shown(), await live.me.csrf()
        for said, answer, reads in cases:
            read.clear()
            await live.me.post("/say", {"id": SystemIds().new("t"), "text": said}, csrf=csrf)
            async for event in events:
                seen.apply(*event)
                if answer in seen.text and seen.is_quiet:
                    break
            assert bool(read) == reads
            assert seen.log == (await live.me.shown()).log


async def test_an_open_page_keeps_the_versions_of_a_message_whose_turn_ends_before_the_news_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell, ended = Server._tell_of, asyncio.Event()

    async def late(self: Server, source: Source, accepted: Accepted, kept: Sequence[Attachment]) -> None:
        if accepted.said == "number two":
            await ended.wait()
        await tell(self, source, accepted, kept)

    monkeypatch.setattr(Server, "_tell_of", late)
    async with page(tmp_path) as live, live.me.events("0") as events:
        await live.me.say("number one")
        await live.me.until("echo: number one")
        assert live.adapter.views is not None
        (said,) = await live.adapter.views.said(source_of("owner"), 1)
        fields = {"id": "event0002", "text": "number two", "instead": said.event_id}
        posted, seen = asyncio.create_task(live.me.post("/say", fields)), Shown()
        async for event in events:
            seen.apply(*event)
            if "2/2" in seen.text and "echo: number two" in seen.text and seen.is_quiet:
                break
        ended.set()
        await posted
        again = await until(live, lambda shown: "echo: number two" in shown.text)
        assert "2/2" in again.text
        assert again.log == (await live.me.shown()).log


async def test_of_several_processes_one_serves_and_the_next_takes_over(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    redis_server.empty()

    def store() -> RedisStore:
        return RedisStore(redis_server.url, clock=SystemClock())

    async with page(tmp_path, store=store()) as first:
        second = asyncio.create_task(taken_over(tmp_path, store()))
        await first.me.say("said to the first")
        await first.me.say("/whoami")
        shown = await first.me.until("You are web:owner")
        assert [text in shown.text for text in ("/whoami", "echo: said to the first")] == [True, True]
        await asyncio.sleep(0.5)
        assert not second.done()
    assert (await second).log == shown.log


async def taken_over(folder: Path, store: RedisStore) -> Shown:
    """What the page of another process shows, once it has the page."""
    async with page(folder, store=store) as live:
        return await live.me.shown()


async def test_behind_a_proxy_people_come_by_its_name(tmp_path: Path) -> None:
    settings = WebSettings(
        enabled=True,
        port=0,
        url="https://chat.example.org",
        people={"anna": WebPerson(password=SecretStr("a password of Anna"))},
    )
    async with page(tmp_path, settings=settings) as live, live.visitor() as anna:
        there = {"Host": "chat.example.org", "Origin": "https://chat.example.org"}
        form = {"name": "anna", "password": "a password of Anna"}
        how: Any = {"data": form, "allow_redirects": False}
        async with anna.http.post(f"{anna.at}/login", headers=there, **how) as answer:
            cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-legato=")
        assert all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=Strict", "Path=/"))
        headers = {**there, "Cookie": cookie.partition(";")[0]}
        async with anna.http.get(f"{anna.at}/", headers=headers) as answer:
            assert 'name="csrf"' in await answer.text()
        for wrong in ("http://chat.example.org", live.adapter.at, "https://chat.example.org:8443"):
            async with anna.http.post(f"{anna.at}/login", headers={**there, "Origin": wrong}, **how) as answer:
                assert answer.status == 403, wrong


async def test_behind_a_proxy_a_strangers_failures_hold_up_the_stranger_alone(tmp_path: Path) -> None:
    people = {name: WebPerson(password=SecretStr(f"a password of {name}")) for name in ("anna", "boris")}
    settings = WebSettings(enabled=True, port=0, url="https://chat.example.org", people=people)
    async with page(tmp_path, settings=settings) as live, live.visitor() as http:

        async def logs_in(name: str, password: str, path: str) -> int:
            there = {"Host": "chat.example.org", "Origin": "https://chat.example.org", "X-Forwarded-For": path}
            form = {"name": name, "password": password}
            async with http.http.post(f"{http.at}/login", headers=there, data=form, allow_redirects=False) as answer:
                return answer.status

        seen = [await logs_in("boris", "wrong", f"10.0.0.{number}, 203.0.113.9") for number in range(6)]
        assert seen == [403] * 5 + [429], "what the stranger says of itself stands before what the proxy saw"
        assert await logs_in("anna", "a password of anna", "198.51.100.7") == 303


async def test_a_used_link_leads_who_is_logged_in_to_the_chat(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        link = live.adapter.guard.link
        status, html = await live.me.get("/login?key=the-one-that-was-used")
        assert (status, 'id="composer"' in html) == (200, True)
        assert live.adapter.guard.link == link


async def test_the_address_of_the_page_leads_to_the_chat_used_last(tmp_path: Path) -> None:
    async with page(tmp_path) as live:

        async def leads() -> str:
            async with live.me.http.get(live.adapter.at, allow_redirects=False) as answer:
                return answer.headers["Location"]

        assert await leads() == "/c/"
        await live.me.say("in the first")
        await live.me.until("echo: in the first")
        await live.me.post("/say", {"id": "event0001", "text": "in another", "chat": "chat-0002"})
        await live.me.until("echo: in another", path="/c/chat-0002")
        assert await leads() == "/c/chat-0002"
        await live.me.say("again")
        await live.me.until("echo: again")
        assert await leads() == "/c/"


async def test_a_link_to_a_chat_leads_there_after_the_login_and_nowhere_else(tmp_path: Path) -> None:
    people = {"anna": WebPerson(password=SecretStr("a password of anna"))}
    async with page(tmp_path, settings=WebSettings(enabled=True, port=0, people=people)) as live:
        for asked in ("/c/chat-0002?n=160", "/answer/a%2Fb", "/"):
            async with live.visitor() as anna:
                status, html = await anna.get(asked)
                assert (status, f'name="to" value="{asked}"' in html) == (200, True)
                wrong = {"name": "anna", "password": "wrong", "to": asked}
                async with anna.http.post(f"{anna.at}/login", data=wrong) as answer:
                    assert f'name="to" value="{asked}"' in await answer.text()
                right = {**wrong, "password": "a password of anna"}
                async with anna.http.post(f"{anna.at}/login", data=right, allow_redirects=False) as answer:
                    assert (answer.status, answer.headers["Location"]) == (303, asked)
        async with live.visitor() as anna:
            assert 'name="to" value="/"' in (await anna.get(f"/search?q={'a' * 600}"))[1]  # a login has a small form
        for evil in ("//evil.example", "/\\evil.example", "/\t/evil.example", "https://evil.example", "/c/\r\nX: y"):
            async with live.visitor() as anna:
                form = {"name": "anna", "password": "a password of anna", "to": evil}
                async with anna.http.post(f"{anna.at}/login", data=form, allow_redirects=False) as answer:
                    assert (answer.status, answer.headers["Location"]) == (303, "/")


async def test_an_earlier_conversation_is_shown_in_parts(tmp_path: Path) -> None:
    past = Session(
        id="s",
        key=SessionKey(platform="web", chat="owner"),
        chat_type="direct",
        parent_id=None,
        started_at=1.0,
        ended_at=2.0,
        end_reason="reset",
        hook="done",
        model="m",
        system_prompt="",
    )
    said = [kind(f"number {number}!", tokens=3, at=1.5) for number in range(130) for kind in (user, assistant)]
    async with page(tmp_path) as live:
        await live.gateway.store.import_sessions([Opening(session=past, transcript=said)])
        last, first = (await live.me.get("/s/s"))[1], (await live.me.get("/s/s?from=0"))[1]
        assert ("number 129!" in last, "number 2!" in last) == (True, False)
        assert ("number 129!" in first, "number 2!" in first) == (False, True)
        assert "61 to 260 of 260 messages" in last
        found = re.search(r'href="(/s/[^"]+)#', (await live.me.get("/search?q=%22number+3%21%22"))[1])
        assert found is not None
        assert "number 3!" in (await live.me.get(found[1]))[1]


async def test_the_page_is_a_platform_that_is_watched(tmp_path: Path) -> None:
    async with page(tmp_path, model=FakeModel(in_turn(Say(text="hi")))) as live:
        await live.me.say("hello")
        await live.me.until("hi")
        found = (await live.gateway.watchdog.health.report())["platforms"]
        assert found["web"]["reader"] == "reads"
        assert found["web"]["last_update"] is not None


async def test_the_workspace_is_a_tree_with_what_changed(tmp_path: Path) -> None:
    script = "<script>alert(1)</script>\n"
    made = [("src/a.py", "one\ntwo\n"), ("src/b/c.txt", script), ("page.html", script), (".gitignore", "*.log\n")]
    writes = Say(calls=[("write_file", json.dumps({"path": path, "content": text})) for path, text in made])
    changes = Say(calls=[("patch", json.dumps({"path": "src/a.py", "edits": [{"old": "two", "new": "2"}]}))])
    model = FakeModel(in_turn(writes, Say(text="written"), changes, Say(text="changed")))
    async with page(tmp_path, model=model) as live:
        _, empty = await live.me.get("/workspace")
        assert "No files yet" in empty
        for text, answer in (("write", "written"), ("/new", "fresh"), ("change", "changed")):
            await live.me.say(text)
            await live.me.until(answer)
        _, shown = await live.me.get("/workspace")
        assert "src/a.py (changed) +1 −1" in shown
        assert '<span class="old">-two</span><span class="new">+2</span>' in shown
        assert "page.html (new)" not in shown, "another session made it"
        assert re.findall(r'href="/workspace/([^"]+)"', shown) == [".gitignore", "page.html", "src/a.py", "src/b/c.txt"]
        assert "<script>alert" not in shown
        async with live.me.http.get(f"{live.adapter.at}/workspace/page.html") as answer:
            assert answer.headers["Content-Type"] == "application/octet-stream"
            assert answer.headers["Content-Disposition"].startswith("attachment")
            assert await answer.text() == script
        for path in ("..%2f..%2flegato.db", "%2fetc%2fpasswd", "src", "nothing.txt", "src%00", "../.kept"):
            assert (await live.me.get(f"/workspace/{path}"))[0] == 404
        await live.me.say("/files undo")
        await live.me.until("I undid my changes from")
        assert "Nothing yet." in (await live.me.get("/workspace"))[1]


async def test_skills_are_listed_and_switched(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "weekly-report"
    folder.mkdir(parents=True)
    about = "Writes <b>reports</b> of a week"
    (folder / "SKILL.md").write_text(f"---\nname: weekly-report\ndescription: {about}\n---\nCount first.\n")
    async with page(tmp_path, config=config_in(tmp_path).within(tmp_path), model=FakeModel()) as live:
        _, shown = await live.me.get("/skills")
        assert "Writes &lt;b&gt;reports&lt;/b&gt; of a week" in shown
        assert 'value="/skills off weekly-report"' in shown
        await live.me.say("/skills off weekly-report")
        await live.me.until("I switched the skill weekly-report off here")
        _, shown = await live.me.get("/skills")
        assert "off here" in shown
        assert 'value="/skills on weekly-report"' in shown


async def test_the_chat_opens_while_its_conversation_is_being_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page(tmp_path) as live:
        await live.me.say("the gate code is 4711")
        await live.me.until("echo: the gate code")
        views = live.adapter.views
        listed = await views.sessions(source_of("owner"))
        await live.me.say("/forget everything")
        await live.me.until("Without an answer")
        await live.me.say("y")
        await live.me.until("Forgot")

        async def before(*_: object) -> object:
            return listed

        monkeypatch.setattr(type(views), "sessions", before)  # as it was when the request came
        assert "4711" not in (await live.me.shown()).text


async def test_an_old_page_takes_no_other_rule_away(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        for rule in ("first", "second", "third"):
            await live.me.say(f"/pin {rule}")
        await live.me.until("Pinned as number 3")
        _, old = await live.me.get("/window")
        for button in re.findall(r'value="(/unpin [^"]+)"', old)[:2]:
            await live.me.say(button)
        await live.me.until("1. third")


async def test_words_that_go_on_from_a_deleted_conversation_go_nowhere_else(tmp_path: Path) -> None:
    async with page(tmp_path, model=FakeModel(in_turn(Say(text="hi")))) as live:
        await live.me.say("hello")
        await live.me.until("hi")
        answer = await live.me.post("/say", {"id": "event0001", "text": "and then?", "back": "s_deleted"})
        assert (answer.status, "was deleted" in await answer.text()) == (409, True)
        assert "and then?" not in (await live.me.shown()).text


@pytest.mark.parametrize("ahead", ["back", "instead"])
async def test_words_whose_command_is_not_taken_are_not_taken_either(
    tmp_path: Path, ahead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Server._take

    async def full(self: Server, source: Source, event: str, text: str, **more: Any) -> Accepted:
        if text.startswith(("/resume", "/undo")):
            return Accepted(event_id=event, status="refused", told="Too many wait.")
        return await take(self, source, event, text, **more)

    async with page(tmp_path, model=FakeModel(in_turn(Say(text="hi"), Say(text="lost")))) as live:
        await live.me.say("hello")
        await live.me.until("hi")
        assert live.adapter.views is not None
        (said,) = await live.adapter.views.said(source_of("owner"), 1)
        (session,) = await live.adapter.views.sessions(source_of("owner"))
        monkeypatch.setattr(Server, "_take", full)
        named = {"back": session.id, "instead": said.event_id}[ahead]
        answer = await live.me.post("/say", {"id": "event0001", "text": "and then?", ahead: named})
        assert (answer.status, "Too many wait." in await answer.text()) == (409, True)
        assert len(live.model.requests) == 1


async def test_an_earlier_conversation_of_any_chat_shows_its_tools(tmp_path: Path) -> None:
    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        asked = newest(request) == "pay now" and request.messages[-1]["role"] == "user"
        return payments(5) if asked else Say(text="paid")

    counts = []
    async with page(tmp_path, model=FakeModel(script), tools=[Payment()]) as live:
        assert live.adapter.views is not None
        for number, chat in enumerate(["", "c123456789"]):
            path = f"/c/{chat}" if chat else "/"
            await live.me.post("/say", {"id": f"t0000000{number}", "text": "pay now", "chat": chat})
            await live.me.until("paid", path=path)
            lines = await live.adapter.views.sessions(source_of("owner"))
            here = next(each for each in lines if each.thread == source_of("owner", chat).thread)
            shown = (await live.me.get(f"/s/{here.id}"))[1].partition('<ol class="log"')[2].partition("</ol>")[0]
            counts.append((shown.count("Result of a tool"), shown.count("<details")))
    assert counts[0] == counts[1]
    assert counts[0][1]


async def test_deleted_chats_leave_nothing_that_the_list_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page(tmp_path) as live:
        views, source = live.adapter.views, source_of("owner")
        assert isinstance(views, StoreViews)
        for number in range(3):
            chat = f"c{number:09}"
            await live.me.post("/say", {"id": f"t0000000{number}", "text": f"apples {number}", "chat": chat})
            await live.me.until(f"apples {number}", path=f"/c/{chat}")
            await live.me.get(f"/c/{chat}")
            (here,) = await views.sessions(source)
            await live.me.post("/session", {"order": f"delete {here.id}", "sure": "1", "chat": chat})
        asked = list[Session]()

        async def begun(_: StoreViews, session: Session) -> str:
            asked.append(session)
            return ""

        monkeypatch.setattr(StoreViews, "_begun", begun)
        assert await views.sessions(source) == []
        assert asked == []
        assert await views.store.notes(under(views.rules.key(source), SHELF)) == {}
