"""Attacks on the page: none may read, say or change anything, and none may end the program."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest
from aiohttp import FormData
from pydantic import SecretStr

from adapters.web.adapter import create
from adapters.web.formulas import ATTRIBUTES, ELEMENTS
from adapters.web.platform import WebPerson, WebSettings
from adapters.web.server import source_of
from gateway.app.config import Config
from gateway.people.access import AccessSettings
from gateway.runtime.clock import SystemIds
from tests.support.gateway import config_in
from tests.support.model import PATIENCE
from tests.support.page import LivePage, Visitor, host_in, page

PASSWORDS = {"anna": "a password of Anna", "boris": "a password of Boris"}

HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "localhost.evil.example:{port}",
    "127.0.0.1",
    "127.0.0.1:1",
    "localhost",
    "0.0.0.0:{port}",
    "127.1:{port}",
    "2130706433:{port}",
    "0x7f.1:{port}",
    "127.0.0.2:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "127.0.0.1:{port}@evil.example",
    "evil.example#127.0.0.1:{port}",
    "127.0.0.1:{port},evil",
    "127.0.0.1:{port} evil",
    "localhost.:{port}",
    "",
    " ",
    "127.0.0.1:0{port}",
    "user@127.0.0.1:{port}",
    "::1:{port}",
]
ORIGINS = [
    "https://evil.example",
    "http://evil.example",
    "null",
    "",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "file://",
    "http://localhost.evil.example:{port}",
    "http://127.0.0.1:{port}.evil.example",
    "http://evil.example:{port}",
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@evil.example",
    "chrome-extension://abc",
    "http://[::1]:1",
    "data:",
    "blob:http://127.0.0.1:{port}",
    "//127.0.0.1:{port}",
    "127.0.0.1:{port}",
    "ftp://127.0.0.1:{port}",
]
POSTS = ["/say", "/press", "/share", "/as/telegram", "/logout", "/inside"]
PATHS = [
    "/files/../../etc/passwd",
    "/files/..%2f..%2fetc%2fpasswd",
    "/files/%2e%2e/%2e%2e/etc/passwd",
    "/files/%00",
    "/files/web:..%2f..%2fpage-link",
    "/files//etc/passwd",
    "/files/%2fetc%2fpasswd",
    "/files/..\\..\\windows",
    "/files/",
    "/files/%ff%fe",
    "/files/web%3A%0d%0aSet-Cookie:x=y",
    "/files/" + "a" * 4_000,
    "/static/../adapter.py",
    "/static/..%2fadapter.py",
    "/static/%2e%2e%2fguard.py",
    "/static//etc/passwd",
    "/static/page.js%00.css",
    "/static/",
    "/static/page.jsx",
    "/s/",
    "/s/' OR 1=1 --",
    "/s/%00",
    "/s/" + "x" * 4_000,
    "/s/%E2%80%AE",
    "/.env",
    "/config.yaml",
    "/legato.db",
    "/page-link",
    "/legato-home/page-link",
    "/etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/say",
    "/press",
    "/logout",
    "/metrics",
    "/statusz",
    "/healthz",
    "/debug",
    "/events/",
    "/favicon.ico",
    "/login/",
    "/api",
    "/admin",
    "/;/inside",
]
SCRIPTS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script>",
    "<iframe src=javascript:alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](javascript:alert(1))",
    "![x](https://e.example/x.png)",
    "[x](//evil.example)",
    '[x](https://e.example/"onmouseover=alert(1))',
    '<https://e.example/"><script>alert(1)</script>>',
    "`<script>alert(1)</script>`",
    "```\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "```html onload=alert(1)\n<b>x</b>\n```",
    "| <script>alert(1)</script> | b |\n|---|---|\n| <img src=x onerror=alert(1)> | c |",
    "# <script>alert(1)</script>",
    "> <script>alert(1)</script>",
    "- <script>alert(1)</script>",
    "</li></ol><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "--><script>alert(1)</script>",
    "]]><script>alert(1)</script>",
    "<style>*{display:none}</style>",
    "<base href=https://evil.example>",
    "<meta http-equiv=refresh content=0>",
    "<form action=https://evil.example><input name=csrf>",
    "<object data=x>",
    "<embed src=x>",
    "<math><mtext><script>alert(1)</script>",
    "<details open ontoggle=alert(1)>",
    "<b onmouseover=alert(1)>x</b>",
    "<a href=https://ok.example onclick=alert(1)>x</a>",
    "\u2028<script>alert(1)</script>",
    "<scr\0ipt>alert(1)</script>",
    "\ufeff<script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "||<script>alert(1)</script>||",
    "$<script>alert(1)</script>$",
    "$$\\text{<script>alert(1)</script>}$$",
    "[^1]\n\n[^1]: <script>alert(1)</script>",
    "\n\ndata: {}\nevent: keep\n\n",
    'id: 0\r\nevent: gone\r\ndata: "x"\r\n\r\n',
    "<tg-spoiler onclick=alert(1)>x</tg-spoiler>",
]
NAMES = [
    "<script>alert(1)</script>.txt",
    '"><img src=x onerror=alert(1)>.png',
    "../../etc/passwd",
    "..\\..\\x.txt",
    "x.svg",
    "x.html",
    "\u202etxt.exe",
    "a" * 5_000,
    "%2e%2e%2fx",
    ".",
    "..",
    "con",
    "';alert(1)//.js",
]
CONTENTS = [
    b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>",
    b"<html><script>alert(1)</script>",
    b"GIF89a/*<script>alert(1)</script>*/",
    b"%PDF-1.4 <script>alert(1)</script>",
    b"",
]
COOKIES = [
    "x",
    "",
    "0",
    "a" * 43,
    "' OR 1=1",
    "owner",
    "null",
    "undefined",
    "%00",
    "../../page-link",
    "A" * 3_000,
    "=",
    "legato",
    "eyJhbGciOiJub25lIn0.eyJwZXJzb24iOiJvd25lciJ9.",
    "login ",
    "00000000",
    "True",
    "[]",
    "{}",
    "\xe9",
]


class Markup(HTMLParser):
    """Finds in a page what could run something, or send something away."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        facts = dict(attributes)
        if tag in ("iframe", "object", "embed", "base", "style", "video", "audio", "foreignobject"):
            self.bad.append(tag)
        if tag in ELEMENTS and not facts.keys() <= ATTRIBUTES:
            self.bad.append(f"{tag} {facts}")
        if tag == "template" and facts != {"id": "actions"}:
            self.bad.append(f"{tag} {facts}")
        if tag == "script" and not (facts.get("src") or "").startswith(("/static/page.js", "/static/extras.js")):
            self.bad.append("a script")
        if tag == "meta" and "http-equiv" in facts:
            self.bad.append("meta http-equiv")
        if len(facts) != len(attributes):
            self.bad.append(f"attributes twice in {tag}")
        for name, value in attributes:
            address = (value or "").strip().lower()
            if name.startswith("on") or name == "style" or name == "srcdoc":
                self.bad.append(f"{tag} {name}")
            if address.startswith("//") or (name in ("src", "action", "formaction") and not address.startswith("/")):
                self.bad.append(f"{tag} {name}={address}")
            if name == "href" and not address.startswith(("/", "#", "?", "http://", "https://", "mailto:")):
                self.bad.append(f"{tag} {name}={address}")


def check(html: str) -> None:
    """No markup of a page came out of a text."""
    markup = Markup()
    markup.feed(html)
    assert markup.bad == []


def with_people(folder: Path) -> tuple[Config, WebSettings]:
    people = {name: WebPerson(password=SecretStr(password)) for name, password in PASSWORDS.items()}
    access = AccessSettings(allow=("web:anna", "web:boris"))
    return config_in(folder, access=access), WebSettings(enabled=True, port=0, people=people)


@asynccontextmanager
async def logged_in(live: LivePage, name: str) -> AsyncIterator[Visitor]:
    async with live.visitor() as visitor:
        data = {"name": name, "password": PASSWORDS[name]}
        async with visitor.http.post(f"{visitor.at}/login", data=data) as answer:
            assert answer.status == 200
        yield visitor


async def nothing_was_said(live: LivePage) -> None:
    shown = await live.me.shown()
    assert shown.entries == {}
    assert live.model.requests == []


async def test_another_name_of_this_machine_gets_no_page(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        port = live.adapter.at.rpartition(":")[2]
        for host in HOSTS:
            async with live.me.http.get(f"{live.adapter.at}/", headers={"Host": host.format(port=port)}) as answer:
                assert answer.status in (400, 421), host
                assert "csrf" not in await answer.text(), host
        for host in ("localhost", "127.0.0.1", "LOCALHOST", "[::1]"):
            async with live.me.http.get(f"{live.adapter.at}/", headers={"Host": f"{host}:{port}"}) as answer:
                assert answer.status == 200, host


@pytest.mark.parametrize("path", POSTS)
async def test_no_other_page_sends_a_form(tmp_path: Path, path: str) -> None:
    async with page(tmp_path) as live:
        port, csrf = live.adapter.at.rpartition(":")[2], await live.me.csrf()
        fields = {"id": SystemIds().new("t"), "text": "/new", "token": "approve a_1", "order": "drop x"}
        sites: list[dict[str, str]] = [{"Origin": each.format(port=port)} for each in ORIGINS]
        sites += [{"Sec-Fetch-Site": each} for each in ("cross-site", "same-site", "", "x")]
        for headers in sites:
            answer = await live.me.post(path, fields, csrf=csrf, headers=headers)
            assert answer.status in (400, 403), headers
        for wrong in ("", "x", csrf[:-1], csrf.upper() + "x", csrf[::-1], "0" * 40, "\xe9" * 40):
            answer = await live.me.post(path, fields, csrf=wrong)
            assert answer.status == 403, wrong
        await nothing_was_said(live)


async def test_a_stranger_sees_nothing_and_says_nothing(tmp_path: Path) -> None:
    async with page(tmp_path) as live, live.visitor() as stranger:
        for path in [
            "/",
            "/window",
            "/inside",
            "/search?q=a",
            "/s/x",
            "/events",
            "/files/x",
            "/login?key=",
            "/login",
            *PATHS,
        ]:
            async with stranger.http.get(f"{stranger.at}{path}", allow_redirects=False) as answer:
                text = await answer.text(errors="replace")
                assert "csrf" not in text, path
                assert 'id="log"' not in text, path
                assert answer.status in (200, 303, 400, 401, 403, 404), path
        for path in POSTS:
            assert (await stranger.post(path, {"text": "hi", "id": "12345678"}, csrf="x")).status == 401
        await nothing_was_said(live)


async def test_paths_lead_nowhere(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        for path in PATHS:
            async with live.me.http.get(f"{live.adapter.at}{path}", allow_redirects=False) as answer:
                text = await answer.text(errors="replace")
                assert answer.status in (303, 400, 404), path
                assert "root:" not in text, path
                assert "Set-Cookie" not in answer.headers, path
        # Bytes that a client would not send.
        for path in (
            "/files/../../../etc/passwd",
            "/static/../guard.py",
            "/../../etc/passwd",
            "http://evil.example/",
            "//evil",
        ):
            raw = await raw_request(
                live, f"GET {path} HTTP/1.1\r\nHost: {{host}}\r\nConnection: close\r\n\r\n".encode()
            )
            assert raw.split(b" ")[1] in (b"200", b"303", b"400", b"401", b"404", b"421"), path
            assert b"csrf" not in raw, path  # 200 is the page for strangers
            assert b"root:" not in raw, path


async def raw_request(live: LivePage, data: bytes) -> bytes:
    host, _, port = live.adapter.at.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data.replace(b"{host}", f"{host}:{port}".encode()))
    try:
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    finally:
        writer.close()


async def test_no_text_becomes_markup(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        for number, script in enumerate(SCRIPTS):
            await live.me.say(script if number % 5 else f"/title {script}")
        await live.me.say("the end")
        await live.me.until("echo: the end")
        for path in (
            "/c/?n=480",
            "/window",
            "/workspace",
            "/skills",
            "/inside",
            "/search?q=alert",
            "/search?q=%3Cscript%3E%22%27",
        ):
            status, html = await live.me.get(path)
            assert status == 200
            check(html)
        shown = await live.me.shown("/c/?n=480")
        assert len(shown.entries) >= 2 * len(SCRIPTS)
        for _, _, html in shown.log:
            check(html)
        session = await live.gateway.store.tip(live.gateway.readers.reception.rules.key(source_of("owner")))
        assert session is not None
        check((await live.me.get(f"/s/{session.id}"))[1])
        async with live.me.events("0") as events:  # no text ends its event and begins another one
            async for kind, _, _ in events:
                assert kind in ("keep", "entry", "gone", "drafts", "work", "side")
                if kind == "side":
                    break


async def test_files_are_handed_out_as_files(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        for number, name in enumerate(NAMES):
            content = CONTENTS[number % len(CONTENTS)]
            mime = ["image/svg+xml", "text/html", "image/png", "application/pdf", 'x/y"><script>'][number % 5]
            form = FormData({"csrf": await live.me.csrf(), "id": SystemIds().new("t"), "text": f"file {number}"})
            form.add_field("file", content, filename=name, content_type=mime.split('"')[0])
            async with live.me.http.post(f"{live.adapter.at}/say", data=form) as answer:
                assert answer.status in (200, 400), name
        html = (await live.me.get("/c/?n=480"))[1]
        check(html)
        addresses = {each.split('"')[0] for each in html.split('href="/files/')[1:]}
        assert len(addresses) >= len(NAMES) - 2
        for address in addresses:
            async with live.me.http.get(f"{live.adapter.at}/files/{address}") as answer:
                assert answer.status == 200
                kind = answer.headers["Content-Type"]
                assert kind in ("application/octet-stream", "image/gif", "image/png"), kind
                assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                if kind == "application/octet-stream":
                    assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b'filename="\xff\xfe.txt"\r\nContent-Type: text/plain', b"200"),
        (b'filename="a.txt"\r\nContent-Type: text/\xff', b"200"),
        (b'filename="a.txt"\r\nContent-Type: text/plain\0', b"400"),
    ],
)
async def test_a_file_whose_head_is_no_text_leaves_the_page_readable(
    tmp_path: Path, head: bytes, status: bytes
) -> None:
    async with page(tmp_path) as live:
        fields = {"csrf": await live.me.csrf(), "id": "12345678", "text": "look"}
        parts = [f'--B\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}\r\n' for key in fields]
        body = "".join(parts).encode() + b'--B\r\nContent-Disposition: form-data; name="file"; ' + head
        body += b"\r\n\r\ncontent\r\n--B--\r\n"
        cookie = "; ".join(f"{each.key}={each.value}" for each in live.me.http.cookie_jar)
        begin = f"POST /say HTTP/1.1\r\nHost: {{host}}\r\nCookie: {cookie}\r\nConnection: close\r\n"
        begin += "Accept: application/json\r\n"
        begin += f"Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {len(body)}\r\n\r\n"
        assert (await raw_request(live, begin.encode() + body)).startswith(b"HTTP/1.1 " + status)
        await live.me.say("still here")
        await live.me.until("echo: still here")


async def test_a_file_of_somebody_who_may_only_read_is_refused_before_it_is_read(tmp_path: Path) -> None:
    people = {"reader": WebPerson(password=SecretStr(PASSWORDS["anna"]))}
    settings = WebSettings(enabled=True, port=0, people=people)
    config = config_in(tmp_path, access=AccessSettings(allow=["web:owner"]))
    async with page(tmp_path, config=config, settings=settings) as live, live.visitor() as reader:
        await reader.http.post(f"{live.adapter.at}/login", data={"name": "reader", "password": PASSWORDS["anna"]})
        cookie = "; ".join(f"{each.key}={each.value}" for each in reader.http.cookie_jar)
        for path, status in (("/say", b"403"), ("/press", b"415"), ("/share", b"415")):
            begin = f"POST {path} HTTP/1.1\r\nHost: {{host}}\r\nCookie: {cookie}\r\n"
            begin += "Content-Type: multipart/form-data; boundary=B\r\nContent-Length: 49000000\r\n\r\n"
            answer = await raw_request(live, begin.encode())  # nothing of the body comes, and nobody waits for it
            assert answer.startswith(b"HTTP/1.1 " + status), path


async def test_cookies_are_not_guessed_nor_used_again(tmp_path: Path) -> None:
    async with page(tmp_path) as live, live.visitor() as stranger:
        name = live.adapter.guard.cookie_name
        for cookie in COOKIES:
            headers = {"Cookie": f"{name}={cookie}".encode("latin-1").decode("latin-1")}
            async with stranger.http.get(f"{stranger.at}/", headers=headers) as answer:
                assert "csrf" not in await answer.text(), cookie
        mine = next(each.value for each in live.me.http.cookie_jar if each.key == name)
        assert (await live.me.post("/logout", {})).status == 303
        for cookie in (mine, mine.lower(), mine[:-1], mine + "x", f'"{mine}"'):
            async with stranger.http.get(f"{stranger.at}/", headers={"Cookie": f"{name}={cookie}"}) as answer:
                assert "csrf" not in await answer.text()
        assert "csrf" in (await same_link(live, stranger))


async def test_the_login_page_tells_only_this_machine_of_links_and_nobody_a_path(tmp_path: Path) -> None:
    config, settings = with_people(tmp_path)
    settings = settings.model_copy(update={"url": "http://chat.example.org"})
    async with page(tmp_path, config=config, settings=settings) as live, live.visitor() as stranger:
        for host, here in (("chat.example.org", False), (live.adapter.at.removeprefix("http://"), True)):
            told = (await stranger.get("/", headers={"Host": host}))[1]
            assert ("legato access link" in told) is here
            assert "page-link" not in told


async def test_a_wrong_name_stands_in_the_form_again_and_is_no_markup(tmp_path: Path) -> None:
    config, settings = with_people(tmp_path)
    async with page(tmp_path, config=config, settings=settings) as live, live.visitor() as stranger:
        for script in SCRIPTS:
            data = {"name": f'"{script}', "password": "wrong"}
            live.adapter.guard.lockout.succeeded("at 127.0.0.1")
            async with stranger.http.post(f"{stranger.at}/login", data=data) as answer:
                text = await answer.text()
                assert answer.status == 403
                assert 'name="name" value="&quot;' in text or 'name="name" value="&#34;' in text
                check(text)


async def test_who_logs_out_everywhere_is_logged_out_of_other_browsers(tmp_path: Path) -> None:
    config, settings = with_people(tmp_path)
    async with (
        page(tmp_path, config=config, settings=settings) as live,
        logged_in(live, "anna") as here,
        logged_in(live, "anna") as there,
        logged_in(live, "boris") as boris,
    ):
        async with there.events("0") as events:
            assert (await here.post("/logout", {"everywhere": "1"})).status == 303
            async for _ in events:
                pass  # the stream ends
        for visitor, logged in ((here, False), (there, False), (boris, True)):
            assert ("csrf" in (await visitor.get("/"))[1]) is logged


async def same_link(live: LivePage, visitor: Visitor) -> str:
    """A link works once, and the next one is there."""
    link = live.adapter.guard.link
    async with visitor.http.get(link) as answer:
        text = await answer.text()
    async with live.visitor() as another, another.http.get(link) as answer:
        assert (answer.status, "csrf" in await answer.text()) == (403, False)
    assert live.adapter.guard.link != link
    return text


async def test_a_login_ends_after_its_days_and_with_its_person(tmp_path: Path) -> None:
    config, settings = with_people(tmp_path)
    async with page(tmp_path, config=config, settings=settings) as live, logged_in(live, "anna") as anna:
        cookies = list(anna.http.cookie_jar)
        assert "csrf" in (await anna.get("/"))[1]
        port = int(live.adapter.at.rpartition(":")[2])
    without = settings.model_copy(update={"people": {"boris": settings.people["boris"]}, "port": port})
    async with page(tmp_path, config=config, settings=without) as live, live.visitor() as anna:
        anna.http.cookie_jar.update_cookies({each.key: each.value for each in cookies})
        assert "csrf" not in (await anna.get("/"))[1]


async def test_nobody_reaches_what_is_another_persons(tmp_path: Path) -> None:
    config, settings = with_people(tmp_path)
    async with (
        page(tmp_path, config=config, settings=settings) as live,
        logged_in(live, "anna") as anna,
        logged_in(live, "boris") as boris,
    ):
        id_ = await anna.say("my secret canary", files=[("canary.txt", b"a canary", "text/plain")])
        await anna.until("echo: my secret canary")
        html = (await anna.get("/"))[1]
        file = html.split('href="/files/')[1].split('"')[0]
        session = await live.gateway.store.tip(live.gateway.readers.reception.rules.key(source_of("anna")))
        assert session is not None
        for path in (f"/files/{file}", f"/s/{session.id}", "/inside", f"/s/{session.id}#m-1"):
            status, text = await boris.get(path)
            assert (status, "canary" in text) == (404, False), path
        for path in ("/", "/search?q=canary", "/window", "/workspace", "/c/?n=480"):
            assert "secret" not in (await boris.get(path))[1]
        for text in (f"/resume {session.id}", "/recall canary", "/sessions", "/context", "/last", "/export"):
            await boris.say(text)
        await boris.say("the same id", id_)
        assert "secret" not in (await boris.until("echo: the same id")).text
        assert (await boris.post("/inside", {"order": "drop x"})).status == 404
        assert (await boris.post("/say", {"id": "12345678", "text": "x"}, csrf=await anna.csrf())).status == 403
        await anna.until("echo: my secret canary")
        async with boris.events("0") as events:
            async for kind, data, _ in events:
                assert "secret" not in str(data)
                if kind == "side":
                    break


async def test_who_may_not_talk_may_only_read(tmp_path: Path) -> None:
    config, settings = with_people(tmp_path)
    config = config.replace(access=AccessSettings(allow=("web:boris",)))
    async with page(tmp_path, config=config, settings=settings) as live, logged_in(live, "anna") as anna:
        assert 'id="composer"' not in (await anna.get("/"))[1]
        answer = await anna.post("/say", {"id": "12345678", "text": "let me in"})
        assert answer.status == 403
        assert (await anna.shown()).entries == {}
        assert live.model.requests == []


async def test_bodies_are_bounded(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        csrf, at, http = await live.me.csrf(), live.adapter.at, live.me.http
        text = {"csrf": csrf, "id": "12345678", "text": "x" * 600_000}
        assert (await live.me.post("/say", text, csrf=csrf)).status == 413

        async def endless() -> AsyncIterator[bytes]:
            yield b"csrf=" + csrf.encode() + b"&text="
            for _ in range(1_000):
                yield b"x" * 65_536

        form = {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            async with http.post(f"{at}/say", data=endless(), headers=form) as answer:
                assert answer.status == 413
        except OSError:
            pass  # the server hung up, which is as good
        many = "&".join(f"a{number}=1" for number in range(10_000))
        bad: list[tuple[bytes, dict[str, str]]] = [
            (many.encode(), form),
            (b"\xff\xfe=\xff", form),
            (gzip.compress(b"text=" + b"x" * 10_000_000), {**form, "Content-Encoding": "gzip"}),
            (b"{}", {"Content-Type": "application/json"}),
            (b"text=x", {"Content-Type": "text/plain"}),
            (b"", {"Content-Type": "multipart/form-data"}),
            (b"--x", {"Content-Type": "multipart/form-data; boundary=x"}),
            (b"--x\r\n\r\n", {"Content-Type": "multipart/form-data; boundary=x"}),
            (
                b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--",
                {"Content-Type": "multipart/form-data; boundary=" + "y" * 500},
            ),
            (
                b"--x\r\nContent-Type: multipart/mixed; boundary=z\r\n\r\n--z--\r\n--x--",
                {"Content-Type": "multipart/form-data; boundary=x"},
            ),
            (
                b"--x\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64\r\n\r\n!\r\n--x",
                {"Content-Type": "multipart/form-data; boundary=x"},
            ),
            (
                (b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 100) + b"--x--",
                {"Content-Type": "multipart/form-data; boundary=x"},
            ),
        ]
        for body, headers in bad:
            async with http.post(f"{at}/say", data=body, headers=headers) as answer:
                assert answer.status in (400, 403, 413, 415), (body[:80], headers)
        await nothing_was_said(live)
        await live.me.say("still here")
        await live.me.until("echo: still here")


async def test_a_stranger_sends_little(tmp_path: Path) -> None:
    """Whoever may fill memory must be somebody."""
    config, settings = with_people(tmp_path)
    async with page(tmp_path, config=config, settings=settings) as live, live.visitor() as stranger:

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(1_000):
                yield b"x" * 65_536

        form = {"Content-Type": "application/x-www-form-urlencoded"}
        files = FormData({"name": "anna", "password": PASSWORDS["anna"]})
        files.add_field("file", b"x" * 1_000, filename="a.bin")
        for data, headers, status in (
            (b"name=anna&password=" + b"x" * 5_000, form, 413),
            (endless(), form, 413),
            (files, {}, 415),
        ):
            try:
                async with stranger.http.post(f"{stranger.at}/login", data=data, headers=headers) as answer:
                    assert answer.status == status
            except OSError:
                pass  # the server hung up, which is as good
        async with logged_in(live, "anna"):
            pass


RAW = [
    b"POST /say HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    b"GET /inside HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"POST /say HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nabcd",
    b"POST /say HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    b"POST /say HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {host}\r\n X-Folded: yes\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {host}\r\nX: a\0b\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
    b"GET /\0 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: {host}\r\nConnection: close\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {host}\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"POST /say HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n",
    b"POST /say HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999999999999999\r\nConnection: close\r\n\r\n",
    b"POST /say HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nfffffffffffffff\r\n",
]


@pytest.mark.parametrize("data", RAW, ids=range(len(RAW)))
async def test_what_is_no_honest_http_gets_no_page(tmp_path: Path, data: bytes) -> None:
    async with page(tmp_path) as live:
        answer = await raw_request(live, data)
        assert answer.count(b"HTTP/1.1 200") + answer.count(b"HTTP/1.0 200") == 0
        assert b"csrf" not in answer
        await nothing_was_said(live)


async def test_other_methods_and_upgrades_get_nothing(tmp_path: Path) -> None:
    async with page(tmp_path) as live:
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "FOO"):
            for path in ("/", "/say", "/events"):
                async with live.me.http.request(method, f"{live.adapter.at}{path}") as answer:
                    assert answer.status in (400, 405)
                    assert "Access-Control-Allow-Origin" not in answer.headers
        socket = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": "x" * 22 + "==",
            "Sec-WebSocket-Version": "13",
        }
        async with live.me.http.get(f"{live.adapter.at}/window", headers=socket) as answer:
            assert answer.status != 101


async def test_ten_thousand_logins_are_refused_unread(tmp_path: Path) -> None:
    config, settings = with_people(tmp_path)
    async with page(tmp_path, config=config, settings=settings) as live, live.visitor() as stranger:
        seen: list[int] = []
        for number in range(60):
            data = {"name": "anna", "password": f"wrong {number}"}
            async with stranger.http.post(f"{stranger.at}/login", data=data) as answer:
                seen.append(answer.status)
        assert seen == [403] * 5 + [429] * 55
        async with stranger.http.post(
            f"{stranger.at}/login", data={"name": "anna", "password": PASSWORDS["anna"]}
        ) as answer:
            assert answer.status == 429


async def test_forms_that_come_slowly_are_no_way_around(tmp_path: Path) -> None:
    config, settings = with_people(tmp_path)
    async with page(tmp_path, config=config, settings=settings) as live:
        host, _, port = live.adapter.at.removeprefix("http://").partition(":")
        open_ones = [await asyncio.open_connection(host, int(port)) for _ in range(12)]
        for _, writer in open_ones:
            head = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 23\r\nConnection: close\r\n\r\n"
            writer.write(f"POST /login HTTP/1.1\r\nHost: {host}:{port}\r\n{head}name=".encode())
        assert (await live.me.get("/"))[0] == 200  # so that all of them are being read
        statuses = []
        for number, (reader, writer) in enumerate(open_ones):
            writer.write(f"guest{number:02}&password=x".encode())
            statuses.append((await reader.read()).split()[1])
            writer.close()
        assert statuses == [b"403"] * 5 + [b"429"] * 7


async def test_pages_that_guess_at_the_link_do_not_lock_its_owner_out(tmp_path: Path) -> None:
    async with page(tmp_path) as live, live.visitor() as stranger:
        for _ in range(12):
            assert (await stranger.get("/login?key=guess", headers={"Sec-Fetch-Site": "cross-site"}))[0] == 403
        assert "csrf" in await same_link(live, stranger)


HEADERS = ("Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Cache-Control")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/window",
        "/workspace",
        "/skills",
        "/workspace/a.txt",
        "/inside",
        "/search?q=x",
        "/s/nothing",
        "/files/nothing",
        "/static/page.js",
        "/nothing",
    ],
)
async def test_every_answer_carries_its_policy(tmp_path: Path, path: str) -> None:
    async with page(tmp_path) as live, live.me.http.get(f"{live.adapter.at}{path}") as answer:
        assert [name for name in HEADERS if name not in answer.headers] == []
        policy = answer.headers["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert policy.startswith("default-src 'none'")


def test_a_page_for_others_needs_a_login_and_a_name(tmp_path: Path) -> None:
    told = [text for _, text in WebSettings(enabled=True, host="0.0.0.0").contradictions()]
    assert len(told) == 2
    assert all("is needed where others can reach the page" in each for each in told)
    assert create(WebSettings(enabled=True, host="0.0.0.0"), host_in(tmp_path)).guard.link == ""
