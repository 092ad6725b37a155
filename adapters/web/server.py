"""Answers requests. Each is judged before anything of it is read: by its name, its login, and what it wants to change.

    GET   /            the way to the chat used last  POST  /say     a message or a command
          /c/ID        a chat; /c/ the first one          /press   a button under a message
          /new         the way to one that is new       /temporary  begins, keeps or ends one that is not kept
          /events      the stream of a chat
          /s/ID        an earlier conversation            /inside  an order about a stuck message
          /search      words in all of them               /login   /logout
          /window      what fills the window           /share   a link to a conversation, or its end
          /shared/T    a conversation, for who has the link
          /inside      for admins                       /as/NAME a text as a platform would show it
          /as/NAME     the chat as a platform would show it
          /files/REF   a kept file                        /models   the models to choose from
          /answer/E    what the answer to a message took  /settings  for admins
          /workspace   the files that are worked on, and /workspace/PATH one of them
          /skills      the skills of the conversation     /session a name, a pin, a project in the list
          /project/ID  a project, or a new one            /project what becomes of one
                                                          /look    light, dark, or as the machine
                                                          /zone    the time zone of the browser
          /login?key=  the link of this machine's owner

A chat and an earlier conversation give a message as it was written for `?text=`, with the id of its element, and with
`&block=` the document that is its code.

Without a login there are the login page and its style, and nothing else; it leads on to what was asked for.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from importlib.resources import files
from operator import attrgetter
from socket import AF_INET, AF_INET6, create_server, socket
from typing import Any, Final, Literal, cast
from urllib.parse import parse_qsl, quote, unquote

import structlog
from aiohttp import BodyPartReader, ClientError, web
from aiohttp.http import HttpProcessingError
from msgspec import Struct, field

from adapters.web import pages, projects, rehearsal, settings
from adapters.web.guard import DAYS, LOOK, Guard, Login
from adapters.web.log import (
    AGAIN,
    ANEW,
    BACK,
    END,
    FORM,
    MENU,
    MOST_SHOWN,
    MOST_WORDS,
    SHOWN,
    UNSEEN,
    Entry,
    Log,
    State,
    beside,
    chat_of,
    path_of,
    without_calls,
)
from adapters.web.markup import Child, Html, el
from adapters.web.platform import LARGEST_FILE, NAME, OWNER, WebSettings
from adapters.web.stream import DRAFTS, IDLE, SIDE, Bells, Page, Work
from gateway.domain.adapter import Accept, Accepted
from gateway.domain.chat import OWN, Attachment, ChatAddress, Inbound, InboundKind, KeptFile, Outbound, Source
from gateway.domain.platform import Bubble
from gateway.domain.session import Project
from gateway.domain.settings import is_loopback
from gateway.domain.views import Inside, Said, SessionLine, SettingUp, Story, Views, Word
from gateway.runtime.clock import Clock, Ids
from gateway.runtime.door import Door
from gateway.runtime.errors import AdapterError, ConfigError, FileRefused, SessionNotFound, StoreUnavailable, UserError
from gateway.runtime.structs import replace

log = structlog.get_logger(__name__)

_LARGEST_FORM: Final = 500_000  # bytes without files
_LARGEST_LOGIN: Final = 4_000  # bytes of a form that anybody may send
_LONGEST_NAME: Final = 64  # characters
_LONGEST_QUERY: Final = 1_000
_MOST_FIELDS: Final = 160
_PATIENCE: Final = 30.0  # seconds for a form without files
_UPLOAD: Final = 300.0  # seconds for one with files
_LOOKS: Final = 20
_LOOK: Final = 0.05  # seconds
_LAST_WORDS: Final = 1.0  # seconds for running requests at the end
_COST_DAYS: Final = 14
_YEAR: Final = 365 * 86_400  # seconds
_MOST_LINEAGES: Final = 10
_MOST_FILLED: Final = 12
_REHEARSED: Final = 20  # messages
_EVENT: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")
_CHAT: Final = re.compile(r"[A-Za-z0-9-]{8,64}")
# What follows the host of an address. A browser takes // and /\ for the beginning of another host.
_HERE: Final = re.compile(r"(?:https?://[^/\\]+)?(/(?!/)[!-\[\]-~]{1,500})")
_COPY: Final = re.compile(r"/(?:branch|fork)\b\s*(.*)\Z", re.IGNORECASE | re.DOTALL)
_MODEL: Final = re.compile(r"/model\s+(\S+)", re.IGNORECASE)
_OF_TEMPORARY: Final = {"": "/temporary", "keep": "/temporary keep", "end": "/temporary end"}
_TELL: Final = ("/export", "/usage", "/memory", "/reminders", "/pin", "/help all")
_WITH_FORMS: Final = ("/window", "/settings")  # pages that have forms for commands
_HTML: Final = "text/html; charset=utf-8"
_ASSETS: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "extras.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
# By their first bytes: what a browser may show itself. Everything else is only saved.
_SHOWN: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    *((mark, "audio/mpeg") for mark in (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
    (b"OggS", "audio/ogg"),
    (b"\x1a\x45\xdf\xa3", "audio/webm"),
)
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "media-src 'self'; frame-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self)",
    "Cache-Control": "no-store",
}
_LINKED: Final = re.compile("<(?=link)", re.IGNORECASE)
_FRAMED: Final = "<!doctype html><base target=_blank>"  # a frame that may open nothing stays as it is
_PREVIEW: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox",
    "X-Frame-Options": "SAMEORIGIN",
    "X-DNS-Prefetch-Control": "off",
}
_FILE_POLICY: Final = "default-src 'none'; sandbox"
GONE: Final = "This message was undone or compressed, so you cannot send it again from here. Nothing was sent."
NOT_THERE: Final = "This message was undone or compressed, so nothing was copied."
ANSWERING: Final = "I am still answering. Copy the chat when I have finished."
FORGOTTEN: Final = "This chat was deleted, so nothing was sent."
AWAY: Final = "I cannot store your message right now. The text is still there, so send it again in a moment."


class Form(Struct, frozen=True, kw_only=True):
    """What a form brought: its fields, and its files as (name, type, content)."""

    fields: dict[str, str]
    files: Sequence[tuple[str, str, bytes]] = ()


class Problem(Exception):
    """A request is answered with a sentence and a status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Server(Struct, kw_only=True):
    """Answers with the page. `drafts` and `work` are what running turns show, by chat."""

    guard: Guard
    log: Log
    bells: Bells
    clock: Clock
    ids: Ids
    views: Views
    inside: Inside
    accept: Accept
    desk: Callable[[], SettingUp] | None
    drafts: dict[ChatAddress, Outbound]
    work: dict[ChatAddress, Work]
    anew: set[ChatAddress]  # chats with a command that may change what stands above it
    _assets: dict[str, bytes] = field(default_factory=dict)
    _paths: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _ASSETS:
            content = files(__package__).joinpath("static", name).read_bytes()
            self._assets[name] = content
            self._paths[name] = f"/static/{name}?v={sha256(content).hexdigest()[:12]}"

    @asynccontextmanager
    async def listening(self, at: socket) -> AsyncIterator[None]:
        """Answer at a socket that listens, until the block ends; running requests get their answer."""
        door = Door("page", self._asked, self.clock, patience=_PATIENCE)
        await door.open(sock=at)
        try:
            yield
        finally:
            self.bells.end()
            await door.close(_LAST_WORDS)

    # -- a request ----------------------------------------------------------------------------------

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response = await self._judged(request)
        except Problem as problem:
            response = self._told(request, problem.status, str(problem))
        except SessionNotFound:
            response = self._told(request, 404, "There is no such chat.")
        except StoreUnavailable:
            response = self._told(request, 503, "The store does not answer right now. Try again in a moment.")
        if not response.prepared:
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
            if response.status >= 400 and request.body_exists:
                response.force_close()  # the rest of a body is not read
        return response

    async def _judged(self, request: web.BaseRequest) -> web.StreamResponse:
        if not self.guard.knows_host(request):
            raise Problem(421, "The page is not available at this address. Use the address that Legato printed.")
        if request.method not in ("GET", "HEAD", "POST"):
            raise Problem(405, "Use GET to read this page, or POST to change something.")
        path = request.path
        if request.method == "POST" and not self.guard.is_own(request):
            raise Problem(403, "Another website sent this form, so Legato ignored it.")
        if path.startswith("/static/"):
            return self._asset(path.removeprefix("/static/"))
        if path.startswith("/shared/") and request.method != "POST":
            return await self._shared_session(path.removeprefix("/shared/"), request.query)
        login = self.guard.login_of(request)
        if path == "/login":
            return await self._log_in(request)
        if login is None and request.method != "POST" and not path.startswith(("/events", "/files/")):
            return self._login_page(request, to=request.path_qs)
        if login is None:
            raise Problem(401, "Log in first.")
        if request.method == "POST":
            return await self._posted(request, login)
        chat = path.removeprefix("/c/") if path.startswith("/c/") else request.query.get("chat", "")
        return await self._got(request, login, source_of(login.person, chat))

    def _login_page(
        self, request: web.BaseRequest, problem: str = "", name: str = "", status: int = 200, to: str = "/"
    ) -> web.Response:
        here = is_loopback(request.host.rpartition(":")[0])  # a link leads nobody in from elsewhere
        body = pages.login(
            self._paths,
            passwords=self.guard.has_passwords,
            links=bool(self.guard.link) and here,
            problem=problem,
            name=name,
            to=_own_path(to),
        )
        return web.Response(body=body, status=status, headers={"Content-Type": _HTML, "X-Login": "needed"})

    async def _log_in(self, request: web.BaseRequest) -> web.Response:
        remote, name, to = self.guard.remote(request), "", ""
        if request.method == "GET":
            key = request.query.get("key")
            if key is None or self.guard.login_of(request) is not None:
                return _redirect("/")
            login = await self.guard.by_link(key)
            problem = "Someone already used this link, or Legato has restarted since then. Get a new link."
        else:
            self._not_locked(f"at {remote}")
            form = await self._form(request, stranger=True)
            name, password = form.fields.get("name", "").strip(), form.fields.get("password", "")
            to = form.fields.get("to", "")
            self._not_locked(f"at {remote}", f"as {name}")  # others may have failed while this form came
            login = await self.guard.by_password(name, password, remote)
            problem = "The name or the password is wrong."
        if login is None:
            log.warning("page_login_refused", remote=remote)
            return self._login_page(request, problem, name[:_LONGEST_NAME], 403, to)
        response = _redirect("/settings" if await self._is_new(source_of(login.person)) else _own_path(to))
        response.set_cookie(
            self.guard.cookie_name,
            login.cookie,
            max_age=DAYS * 86_400,
            httponly=True,
            samesite="Strict",
            secure=self.guard.secure,
            path="/",
        )
        return response

    async def _is_new(self, source: Source) -> bool:
        """Whether this is a person's first look at a program without a model."""
        if self.desk is None or await self.views.role(source) != "admin":
            return False
        _, embedded = await self.views.model(source)
        return embedded and not await self.views.said(source, 1) and not await self.views.sessions(source)

    def _not_locked(self, *whom: str) -> None:
        if wait := self.guard.lockout.wait(*whom):
            raise Problem(429, f"You tried too often. Try again in {wait:.0f} seconds.")

    # -- reading ------------------------------------------------------------------------------------

    async def _got(self, request: web.BaseRequest, login: Login, source: Source) -> web.StreamResponse:
        path, query = request.path, request.query
        if path == pages.NEW:
            return _redirect(path_of(self.ids.new("c").replace("_", "-")))
        if id_ := query.get("text", ""):
            written, block = await self._written(source, id_, path.removeprefix("/s/")), query.get("block")
            return web.Response(text=written) if block is None else await self._preview(request, written, block)
        if path == "/":
            present = [each for each in await self.views.sessions(source) if each.present]
            last = max(present, key=attrgetter("last_active_at"), default=None)
            return _redirect(path_of(chat_of(last.thread if last else None)))
        if path.startswith("/c/"):
            return await self._chat(login, source, most=_most(query.get("n", "")), is_seen=request.method == "GET")
        if path == "/events" and request.method == "GET":
            return await self._events(request, login, source)
        if path.startswith("/files/"):
            raw = request.rel_url.raw_path.removeprefix("/files/")
            return _sent_file(await self.views.file(source, unquote(raw)))
        if path.startswith("/workspace/"):
            raw = request.rel_url.raw_path.removeprefix("/workspace/")
            return _sent_file(await self.views.workspace_file(source, unquote(raw)))
        return await self._read(request, login, source)

    async def _read(
        self, request: web.BaseRequest, login: Login, source: Source, asked: pages.Asked | None = None
    ) -> web.Response:
        """A page besides the chat; `asked`: what a form of it asked just now. Raises Problem."""
        path, query = request.path, request.query
        frame = replace(await self._frame(login, source), path=path, asked=asked)
        writes = frame.role != "reader"
        body: Child
        aside: Child = None
        if path.startswith("/s/"):
            id_ = path.removeprefix("/s/")
            title, body = await self._session(source, id_, query)
            if writes:
                aside = pages.share("Share", id_)
                field = pages.writing(frame, await self.views.commands(source), back=id_)
                body = [await self._shares(login, source, id_), body, field]
        elif path.startswith("/answer/"):
            event = unquote(request.rel_url.raw_path.removeprefix("/answer/"))
            title, body = "What this answer took", pages.spent(await self.views.spent(source, event))
        elif path == "/models":
            offered, used = await self.views.models(source), await self.views.sessions(source)
            title, body = "Model", pages.models(offered, used, frame)
        elif path == "/search":
            words = query.get("q", "")[:_LONGEST_QUERY].strip()
            found = await self.views.search(source, words) if words else ()
            named = [(each, await self.views.title(source, each.session_id) or "A conversation") for each in found]
            title, body = "Search", pages.search(words, named)
        elif path == "/window":
            views = self.views
            body = pages.window(
                await views.shares(source),
                await views.passes(source),
                await views.pins(source),
                await views.memory(source),
                await views.reminders(source),
                [await self._share_present(source, writes=writes), await self._shares(login, source)],
                frame,
            )
            title = "Window and memory"
        elif path == "/workspace":
            title, body = "Files", pages.workspace(await self.views.workspace(source), writes=writes)
        elif path == "/skills":
            title, body = "Skills", pages.skills(await self.views.skills(source), writes=writes)
        elif path.startswith(projects.AT) and writes:
            title, body, aside = await self._project(source, login, path.removeprefix(projects.AT).strip("/"))
        elif path.startswith("/as/"):
            title, body = await self._as(source, path.removeprefix("/as/"), login, rehearsal.SAMPLE)
        elif path == "/settings" and frame.role == "admin" and self.desk is not None:
            title, body = await self._settings(frame, query)
        elif path == "/inside" and frame.role == "admin":
            title, body = "Operator", await self._inside_page("")
        else:
            raise Problem(404, "There is no such page.")
        return await self._whole(frame, source, title, body, aside)

    async def _whole(
        self, frame: pages.Frame, source: Source, title: str, body: Child, aside: Child = None
    ) -> web.Response:
        side = await self._side(source, tells=bool(frame.chat) or title in pages.OF_CHAT)
        return _page(pages.page(frame, title, body, side, aside))

    async def _shares(self, login: Login, source: Source, session_id: str = "") -> Child:
        """The person's links, or those to one conversation."""
        found = []
        for each in self.guard.shares.of(login.person):
            if (title := await self.views.title(source, each.session)) is None:
                await self.guard.shares.take_back(login.person, each.name)
            elif session_id in ("", each.session):
                found.append((each, title))
        return pages.shares(found, self.guard.address)

    async def _share_present(self, source: Source, *, writes: bool) -> Child:
        sessions = await self.views.sessions(source)
        present = next((each for each in sessions if each.id == _present(sessions, source)), None)
        if present is None or present.until or not writes:
            return None
        return el("p", pages.share("Share this chat", present.id))

    async def _shared_session(self, token: str, query: Mapping[str, str]) -> web.Response:
        """A conversation for somebody without a login. What they may know of it is in its messages."""
        share = self.guard.shares.at(token)
        if share is None:
            raise Problem(404, "This link is wrong, or its owner withdrew it.")
        title, body = await self._session(source_of(share.person), share.session, query, own=False)
        response = _page(pages.shared(self._paths, title, body))
        response.headers["X-Robots-Tag"] = "noindex, nofollow"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    async def _session(
        self, source: Source, session_id: str, query: Mapping[str, str], *, own: bool = True
    ) -> tuple[str, Child]:
        """A part of an earlier conversation: its end, that with the message `at`, or the one that begins at `from`."""
        title, found = await self.views.words(source, session_id)
        ids = [each.id for each in found]
        begins = max(0, len(found) - MOST_WORDS)
        if (at := query.get("at", "")) in ids:
            begins = ids.index(at) // MOST_WORDS * MOST_WORDS
        elif (number := query.get("from", "")).isascii() and number.isdigit() and len(number) < 9:
            begins = min(begins, int(number))
        ends = min(len(found), begins + MOST_WORDS)
        there = replace(source, thread=await self.views.thread(source, session_id))
        sought = (query.get("at", ""), query.get("q", "")[:_LONGEST_QUERY])
        shown = await self._words(there, found[begins:ends], own=own, sought=sought)
        return title, pages.session(shown, begins, ends, len(found))

    async def _written(self, source: Source, id_: str, session_id: str) -> str:
        """A message as it was written, by the id of its element: an answer or a person's words of a chat, or a message
        of a session; that of the present one may stand in a chat, too. Raises Problem."""
        kind, _, name = id_.partition("-")
        if kind == "e":
            found = [each.text for each in await self.views.rows(source, [name])] or await self._asked_in(source, name)
        else:
            if session_id.startswith("/"):
                session_id = _present(await self.views.sessions(source), source) or ""
            _, words = await self.views.words(source, session_id)
            found = [without_calls(each.text) for each in words if each.id == name]
        if not found:
            raise Problem(404, "There is no such message.")
        return found[0]

    async def _asked_in(self, source: Source, event: str) -> list[str]:
        """A person's words in a chat; of a /retry, those that it asks again."""
        said = [each for each in await self.views.said(source, MOST_SHOWN) if each.event_id == event]
        again = any(AGAIN.match(each.text) for each in said)
        story = await self.views.story(source, said[0].at) if again else Story()
        return [story.words.get(event, each.text) for each in said]

    async def _preview(self, request: web.BaseRequest, written: str, block: str) -> web.Response:
        """A block of code of an answer as a document, for a frame of the page alone: it runs and loads nothing.
        Raises Problem."""
        number = int(block) if block.isascii() and block.isdigit() and len(block) < 5 else 0
        code = await self.log.code(written, number)
        if code is None or request.headers.get("Sec-Fetch-Dest", "iframe") != "iframe":
            raise Problem(404, "There is no such preview.")
        code = _LINKED.sub("<no-", code)  # which opens connections that no policy forbids
        return web.Response(text=f"{_FRAMED}{code}", headers={**_PREVIEW, "Content-Type": _HTML})

    async def _words(
        self, source: Source, found: Sequence[Word], *, own: bool = True, sought: tuple[str, str] = ("", "")
    ) -> Html:
        story = await self.views.story(source, found[0].at) if found else Story()
        return await self.log.words(found, story.deeds, own=own, sought=sought)

    async def _as(self, source: Source, name: str, login: Login, text: str) -> tuple[str, Child]:
        """The last messages of the chat, and a text, as a platform would show them."""
        stages = self.views.stages()
        if name not in stages:
            raise Problem(404, "There is no such page.")
        said: list[tuple[float, Said | Outbound]] = [
            (each.at, each) for each in await self.views.said(source, _REHEARSED) if each.text.strip()
        ]
        rows = [(each.created_at, each) for each in await self.views.shown(source, _REHEARSED)]
        latest = sorted([*said, *rows], key=lambda each: each[0])[-_REHEARSED:]
        played = [await self._played(name, each) for _, each in latest]
        chat, shown = chat_of(source.thread), await self.views.rehearsed(name, text)
        tried = rehearsal.trial(name, login.csrf, text, shown, chat)
        return f"As {stages[name]} would show it", rehearsal.stage(name, stages, played, tried, chat)

    async def _played(self, name: str, each: Said | Outbound) -> rehearsal.Played:
        if isinstance(each, Said):
            return True, [Bubble(text=each.text, units=0, most=0)], ()
        return False, await self.views.rehearsed(name, each.text, each.kind, each.file), each.buttons

    async def _project(
        self, source: Source, login: Login, id_: str, given: Project | None = None, problem: str = ""
    ) -> tuple[str, Child, Child]:
        """A project as it is kept, or with what was `given` for it and not taken, with its title and a button."""
        known = await self._known_project(source, id_) if id_ else projects.FRESH
        chats = [
            (pages.address_of(each), each.title, each.last_active_at)
            for each in await self.views.sessions(source)
            if id_ and each.project == id_ and each.messages
        ]
        body = projects.page(given or known, chats, login.csrf, problem)
        return known.name or "New project", body, projects.begin(known) if id_ else None

    async def _known_project(self, source: Source, id_: str) -> Project:
        found = next((each for each in await self.views.projects(source) if each.id == id_), None)
        if found is None:
            raise Problem(404, "There is no such project.")
        return found

    async def _inside_page(self, told: str) -> Child:
        seen = pages.Seen(
            report=await self.inside.report(),
            hours=self.inside.hours(),
            turns=await self.inside.turns(),
            stuck=await self.inside.stuck(),
            filled=await self.inside.filled(_MOST_FILLED),
            costs=await self.inside.costs(_COST_DAYS),
            budget=await self.inside.daily_budget(),
            chains=await self.inside.lineages(_MOST_LINEAGES),
            settings=await self.inside.settings(),
            titles={NAME: "This page", "api": "API", "console": "Terminal", **self.views.stages()},
        )
        return pages.inside(seen, told)

    async def _settings(
        self, frame: pages.Frame, asked: Mapping[str, str], last: settings.Done | None = None
    ) -> tuple[str, Child]:
        """All of them, or the section `at` that is asked for, with a title."""
        assert self.desk is not None, "its caller looked"
        desk, last = self.desk(), last or settings.Done()
        at = "keys" if last.where == "keys" else asked.get("at")
        try:
            seen = await desk.seen()
            if at == "keys":
                return "Keys", settings.keys_page(seen, frame.csrf, last, owner=frame.person == OWNER)
            if at is not None:
                removed = asked.get("verb") == "remove"
                part = await desk.part(at, "" if removed else asked.get("name", "").strip())
                if last.problems and part is not None and part.names is not None and part.name not in part.names:
                    part = await desk.part(at, "")  # a new one that was refused is still new
                if part is None:
                    raise Problem(404, "There is no such section.")
                return settings.title_of(at, part.name), settings.part_page(part, seen, frame.csrf, last)
        except ConfigError as error:
            return "Settings", [el("p", each, class_="reason", role="alert") for each in error.problems]
        chosen = asked.get("provider", "") if last.where in ("", "model") else ""  # a search has a provider, too
        served, provider = (await self.inside.report())["platforms"], chosen[:_LONGEST_NAME]
        return "Settings", settings.page(seen, frame, provider, last, served, asked.get("find", "")[:_LONGEST_NAME])

    async def _chat(
        self,
        login: Login,
        source: Source,
        *,
        most: int = SHOWN,
        text: str = "",
        problem: str = "",
        status: int = 200,
        is_seen: bool = True,
    ) -> web.Response:
        frame = await self._frame(login, source)
        state = await self.log.state(self.views, source, most, self.bells.made(source.address, most))
        sessions = await self.views.sessions(source)
        if is_seen:
            await self._seen(source, sessions, self.clock.now())
        present = _present(sessions, source)
        here = next((each for each in sessions if each.id == present), None)
        within = here.project if here is not None else ""
        kept = await self.views.projects(source) if within else ()
        body = pages.chat(
            frame,
            state,
            await self._drafts(source.address),
            await self._side(source, sessions),
            self.work.get(source.address, IDLE).words,
            await self.views.commands(source),
            [
                pages.temporary(frame, here.until) if here is not None and here.until else None,
                await self._before(source, state, sessions) if most == SHOWN else None,
            ],
            most=most,
            full=state.more and most < MOST_SHOWN,
            text=text,
            problem=problem,
            project=next((each.name for each in kept if each.id == within), ""),
        )
        return _page(body, status)

    async def _before(self, source: Source, state: State, sessions: Sequence[SessionLine]) -> Child:
        """What came before the entries of a chat: the conversation to which it went back, or whose rows went with
        a deleted one; None: it begins anew, or with its first words."""
        begun = next((each for each in reversed(state.entries) if each.place.endswith((ANEW, BACK))), None)
        first, present = begun or next(iter(state.entries), None), _present(sessions, source)
        whole = state.more if begun is None else not begun.place.endswith(BACK)
        if whole or present is None:
            return None
        said: Sequence[Word] = ()
        with suppress(SessionNotFound):  # it was forgotten just now
            _, said = await self.views.words(source, present)
        found = [each for each in said if (first is None or each.at < first.at) and (begun is not None or each.at)]
        return await self._words(source, found[-MOST_WORDS:]) if found else None

    async def _frame(self, login: Login, source: Source) -> pages.Frame:
        role = await self.views.role(source)
        fresh = self.ids.new("f").replace("_", "-")
        model, embedded = await self.views.model(source)
        return pages.Frame(
            person=login.person,
            chat=chat_of(source.thread),
            csrf=login.csrf,
            role=role,
            assets=self._paths,
            fresh_id=fresh,
            stages=self.views.stages(),
            model=model,
            embedded=embedded,
            web=await self.views.web(source),
            hears=await self.views.hears(source),
            settings=self.desk is not None and role == "admin",
            look=login.look,
        )

    async def _side(self, source: Source, sessions: Sequence[SessionLine] | None = None, *, tells: bool = True) -> Html:
        """The list, on a page that `tells` of this chat, or of none."""
        sessions = await self.views.sessions(source) if sessions is None else sessions
        unread = {
            each.id
            for each in sessions
            if each.present and each.seen_at is not None and each.last_active_at > each.seen_at
            if not self.bells.hears(replace(source.address, thread=each.thread))
        }
        writes = await self.views.role(source) != "reader"
        shares, chat = (await self.views.shares(source), chat_of(source.thread)) if tells else (None, None)
        kept = await self.views.projects(source)
        return pages.side_list(sessions, kept, shares, chat, unread, writes=writes)

    async def _seen(self, source: Source, sessions: Sequence[SessionLine], at: float) -> None:
        """Note when a person saw a chat, if something was said in it."""
        present = _present(sessions, source)
        line = next((each for each in sessions if each.id == present), None)
        if line is not None and (line.seen_at or 0.0) < at:
            with suppress(StoreUnavailable):
                await self.views.seen(source, at)
            if (line.seen_at or 0.0) < line.last_active_at:
                self.bells.ring_side(source.user, besides=source.address)

    async def _drafts(self, to: ChatAddress) -> list[Entry]:
        draft = self.drafts.get(to)
        return [await self.log.of_row(draft, draft=True)] if draft is not None and draft.text.strip() else []

    async def _events(self, request: web.BaseRequest, login: Login, source: Source) -> web.StreamResponse:
        if not self.bells.has_room(login.person):
            raise Problem(429, "Too many pages are open. Close a page, and try again.")
        most = _most(request.query.get("n", ""))
        last = request.headers.get("Last-Event-ID") or request.query.get("last", "")
        response = web.StreamResponse(
            headers={**_HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        to, shared = source.address, self.bells.shared
        with self.bells.heard(to) as bell, suppress(ConnectionError):
            await response.prepare(request)
            page = Page(
                state=shared(to, most, partial(self.log.state, self.views, source, most)).now,
                drafts=shared(to, DRAFTS, lambda *_: self._drafts(to)).now,
                writing=lambda: to in self.drafts,
                work=lambda: self.work.get(to, IDLE),
                side=shared(to, SIDE, lambda *_: self._side(source)).now,
                write=cast(Callable[[bytes], Awaitable[None]], response.write),
                clock=self.clock,
                digest=last or "0",
            )
            try:
                await page.follow(bell, self.bells, lambda: _is_read(request) and self.guard.holds(login))
            finally:
                with suppress(StoreUnavailable):
                    await self._seen(source, await self.views.sessions(source), page.shown_at)
        self.bells.ring_side(login.person)
        return response

    def _asset(self, name: str) -> web.Response:
        if name not in self._assets:
            raise Problem(404, "There is no such file.")
        headers = {"Content-Type": _ASSETS[name], "Cache-Control": "public, max-age=31536000, immutable"}
        response = web.Response(body=self._assets[name], headers=headers)
        response.enable_compression()
        return response

    # -- writing ------------------------------------------------------------------------------------

    async def _posted(self, request: web.BaseRequest, login: Login) -> web.Response:
        says = request.path == "/say"
        if says and await self.views.role(source_of(login.person)) == "reader":
            raise Problem(403, pages.REFUSED)  # before the body is read: it may hold 50 MB
        form = await self._form(request, files=says)
        if not hmac.compare_digest(form.fields.get("csrf", "").encode(), login.csrf.encode()):
            raise Problem(403, "This form is too old. Load the page again.")
        source = source_of(login.person, form.fields.get("chat", ""))
        if says:
            return await self._said(request, form, login, source)
        if request.path == "/press":
            return await self._pressed(request, form, source)
        if request.path.startswith("/as/"):
            text = form.fields.get("text", "").replace("\r\n", "\n")[: rehearsal.MOST]
            frame = await self._frame(login, source)
            title, body = await self._as(source, request.path.removeprefix("/as/"), login, text)
            return await self._whole(frame, source, title, body)
        if request.path in ("/share", "/session") and await self.views.role(source) != "reader":
            return await (self._share if request.path == "/share" else self._shelved)(request, form, login, source)
        if request.path == projects.AT and await self.views.role(source) != "reader":
            return await self._change_project(request, form, login, source)
        if request.path == "/temporary" and await self.views.role(source) != "reader":
            return await self._temporary(form, login, source)
        if request.path == "/zone":
            if await self.views.role(source) != "reader":
                await self.views.zoned(source, form.fields.get("zone", "")[:_LONGEST_NAME])
            return web.json_response({})
        if request.path == "/look":
            response = _redirect(_own_path(request.headers.get("Referer", "")))
            look = form.fields.get("look", "")[:9]
            response.set_cookie(LOOK, look, max_age=_YEAR, httponly=True, samesite="Strict", secure=self.guard.secure)
            return response
        if request.path == "/logout":
            await self.guard.log_out(login, everywhere="everywhere" in form.fields)
            self.bells.ring_side(login.person)
            response = _redirect("/")
            response.del_cookie(self.guard.cookie_name, path="/", secure=self.guard.secure)
            return response
        if request.path in _WITH_FORMS and "command" in form.fields:
            return await self._commanded(request, form, login, source)
        if request.path == "/settings" and self.desk is not None and await self.views.role(source) == "admin":
            last = await settings.done(self.desk(), form.fields, owner=login.person == OWNER)
            frame = await self._frame(login, source)
            title, body = await self._settings(frame, form.fields, last)
            return await self._whole(frame, source, title, body)
        if request.path == "/inside" and await self.views.role(source) == "admin":
            verb, _, id_ = form.fields.get("order", "").partition(" ")
            done = await self.inside.order(verb, id_)
            frame = await self._frame(login, source)
            body = await self._inside_page("Done." if done else "The message is no longer stuck.")
            return await self._whole(frame, source, "Operator", body)
        raise Problem(404, "There is no such page.")

    async def _share(self, request: web.BaseRequest, form: Form, login: Login, source: Source) -> web.Response:
        if name := form.fields.get("end", ""):
            await self.guard.shares.take_back(login.person, name)
            return _redirect(beside("/window", chat_of(source.thread)))
        id_ = form.fields.get("session", "")
        if any(each.id == id_ and each.until for each in await self.views.sessions(source)):
            raise Problem(409, "A temporary chat cannot be shared. Keep the chat first.")
        if await self.views.title(source, id_) is None:
            raise SessionNotFound(f"There is no session {id_[:40]}.")
        known = any(each.session == id_ and each.token for each in self.guard.shares.of(login.person))
        if not known and "sure" not in form.fields:
            fields = {"session": id_, "sure": "1"}
            return self._ask(request, login, pages.SHARE, fields, yes=pages.MAKE)
        if (made := await self.guard.shares.make(login.person, id_)) is None:
            raise Problem(409, "You cannot make more links. Withdraw one first.")
        if _wants_json(request):
            return web.json_response({"link": f"{self.guard.address}{made.path}"})
        return _redirect(f"/s/{quote(id_, safe='')}#links")

    async def _temporary(self, form: Form, login: Login, source: Source) -> web.Response:
        """Begin a temporary chat, or keep or end the one that is shown."""
        order, id_ = form.fields.get("order", ""), form.fields.get("id", "")
        if order not in _OF_TEMPORARY or not _EVENT.fullmatch(id_):
            raise Problem(400, "I cannot read this form. Load the page again.")
        if not order:
            source = replace(source, thread=_thread_of(login.person, id_))
        event = f"{login.person}:{id_}.{order or 'temporary'}"
        await self._done(source, await self._take(source, event, _OF_TEMPORARY[order]))
        if order == "end":
            await self.views.seen(source, None)
        self.bells.ring(source.address)
        return _redirect(path_of(chat_of(source.thread)) + END)

    async def _shelved(self, request: web.BaseRequest, form: Form, login: Login, source: Source) -> web.Response:
        verb, _, id_ = form.fields.get("order", "").partition(" ")
        title = form.fields.get(f"title {id_}", "").strip()
        if verb == "rename" and title:
            place = replace(source, thread=await self.views.thread(source, id_))
            here = _present(await self.views.sessions(source), place) == id_
            await self.views.shelve(source, id_, title="" if here else title)
            if here:  # as /title does it, so that a later /title is not hidden by a name of the list
                await self._take(place, f"{login.person}:{self.ids.new('n')}.name", f"/title {title}")
        elif verb == "move":
            try:
                await self.views.shelve(source, id_, project=form.fields.get(f"project {id_}", ""))
            except UserError as error:
                raise Problem(409, str(error)) from error
        elif verb in ("pin", "unpin"):
            await self.views.shelve(source, id_, pinned=verb == "pin")
        elif verb == "delete":
            lines = {each.id: each.title for each in await self.views.sessions(source)}
            named = lines.get(id_) or await self.views.title(source, id_)
            if named is None:
                raise SessionNotFound(f"There is no session {id_[:40]}.")
            if "sure" not in form.fields:
                return self._ask(request, login, pages.delete(named), {"order": f"delete {id_}", "sure": "1"})
            place = replace(source, thread=await self.views.thread(source, id_))
            await self.views.shelve(source, id_, title="", pinned=False, project="")
            gone = await self._take(place, f"{login.person}:{self.ids.new('n')}.delete", f"/forget session {id_} yes")
            await self._done(place, gone)
            await self.views.seen(place, None)
        self.bells.ring(source.address)
        return web.json_response({}) if _wants_json(request) else _redirect(path_of(chat_of(source.thread)) + END)

    async def _change_project(self, request: web.BaseRequest, form: Form, login: Login, source: Source) -> web.Response:
        """Make a project or change it, delete it, or begin a chat in it."""
        verb, _, id_ = form.fields.get("order", "").partition(" ")
        if verb == "save":
            name, text = form.fields.get("name", ""), form.fields.get("instructions", "").replace("\r\n", "\n")
            try:
                kept = await self.views.keep_project(source, id_, name, text)
            except UserError as error:
                frame, given = await self._frame(login, source), Project(id=id_, name=name, instructions=text)
                return await self._whole(frame, source, *await self._project(source, login, id_, given, str(error)))
            self.bells.ring_side(login.person)
            return _redirect(projects.path_of(kept))
        known = await self._known_project(source, id_)
        if verb == "delete" and "sure" not in form.fields:
            return self._ask(request, login, projects.delete(known.name), {"order": f"delete {id_}", "sure": "1"})
        if verb == "delete":
            await self.views.drop_project(source, id_)
            self.bells.ring_side(login.person)
        elif verb == "chat":
            source = source_of(login.person, self.ids.new("c").replace("_", "-"))
            begun = await self._take(source, f"{login.person}:{self.ids.new('n')}.project", f"/project {known.name}")
            await self._done(source, begun)
        return web.json_response({}) if _wants_json(request) else _redirect(path_of(chat_of(source.thread)) + END)

    async def _said(self, request: web.BaseRequest, form: Form, login: Login, source: Source) -> web.Response:
        more = (form.fields.get("text", ""), form.fields.get("more", ""))  # the words that a command takes
        text, id_ = " ".join(filter(None, more)).replace("\r\n", "\n"), form.fields.get("id", "")
        branch, copies = form.fields.get("branch", ""), _COPY.match(text)
        problem, after, status, more_told = "", "", 200, dict[str, str]()
        if not _EVENT.fullmatch(id_):
            raise Problem(400, "The message has no id. Load the page again.")
        back = form.fields.get("back", "")  # an earlier conversation, from which these words go on
        try:
            if branch:
                branched = await self._take(source, f"{login.person}:{id_}.branch", f"/resume {branch[:200]}")
                problem = branched.told if branched.status == "refused" else ""
                status = 409 if problem else 200
            upto = form.fields.get("upto", "")
            if copies and (origin := back or await self._to_copy(source, upto)):
                back, text = origin, f"/title {copies[1]}" if copies[1] else ""
                after = f" after {upto}" if upto else ""
            if back:
                if await self.views.title(source, back) is None:
                    raise Problem(409, FORGOTTEN)
                thread = _thread_of(login.person, id_) if copies else await self.views.thread(source, back)
                there = replace(source, thread=thread)
                event = f"{login.person}:{id_}.{'copy' if copies else 'back'}"
                went = await self._take(there, event, f"/resume {back[:200]}{after}")
                await self._done(there, went)
                if (told := await self._answers(there, went)) and told[0].kind == "error":
                    raise Problem(409, told[0].text)
                source = there
            kept = [await self._kept(source, id_, *file) for file in form.files]
            if text.strip() or kept:
                # Pages without the script give all their buttons one id.
                said = "\n".join([text, *(each.ref for each in kept)]).encode(errors="replace")
                event = f"{login.person}:{id_}.{sha256(said).hexdigest()[:8]}"
                aside = _wants_json(request) and source.address not in self.work
                event += _ending(text, aside=aside) if "menu" in form.fields else ""
                await self._take_back(source, f"{login.person}:{id_}.undo", form.fields.get("instead", ""))
                accepted = await self._take(source, event, text, files=kept)
                await self._tell_of(source, accepted, kept)
                problem = accepted.told if accepted.status == "refused" else ""
                status = 409 if problem else 200
                if (chosen := _MODEL.match(text)) and not problem and _wants_json(request):
                    more_told = await self._switched(source, accepted, chosen[1])
                elif event.endswith((".aside", ".undo", ".web")) and not problem:
                    more_told = await self._aside(source, accepted)
        except (Problem, FileRefused) as error:
            problem, status = str(error), error.status if isinstance(error, Problem) else 413
        except StoreUnavailable:
            problem, status = AWAY, 503
        to = path_of(chat_of(source.thread)) + END
        if copies and back and not problem:
            more_told = {"opened": to}
        if _wants_json(request):
            return web.json_response({"problem": problem, "to": to, **more_told}, status=status)
        return await self._chat(login, source, text=text, problem=problem, status=status) if problem else _redirect(to)

    async def _commanded(self, request: web.BaseRequest, form: Form, login: Login, source: Source) -> web.Response:
        """Do what a form of a page asks, and show the page with what was said of it; the chat, if that may take longer.
        Raises Problem."""
        if await self.views.role(source) == "reader":
            raise Problem(403, pages.REFUSED)
        id_, command = form.fields.get("id", ""), form.fields.get("command", "")
        words = " ".join(form.fields.get("more", "").split())
        if not (_EVENT.fullmatch(id_) and command.startswith("/")):
            raise Problem(400, "I cannot read this form. Load the page again.")
        said = f"{command} {words}"
        event = f"{login.person}:{id_}.{sha256(said.encode(errors='replace')).hexdigest()[:8]}{FORM}"
        accepted = await self._take(source, event, said)
        told, taken = accepted.told, accepted.status != "refused"
        if taken:
            await self._done(source, accepted)
            if not (rows := await self._answers(source, accepted)) or any(row.buttons for row in rows):
                return _redirect(path_of(chat_of(source.thread)) + END)
            told, taken = "\n".join(row.text for row in reversed(rows)), all(row.kind != "error" for row in rows)
        self.bells.ring(source.address)
        asked = pages.Asked(command=command, words=words, told=told, taken=taken)
        return await self._read(request, login, source, asked)

    async def _to_copy(self, source: Source, upto: str) -> str | None:
        """The session of a chat that is to be copied up to the answer to a message; `upto` "": to the last. Raises
        Problem."""
        said = [each.event_id for each in await self.views.said(source, _LOOKS)]
        last = next((each for each in said if upto in ("", each)), None)
        if last is not None and not await self.views.ended(source, last):
            raise Problem(409, ANSWERING)
        if upto and not await self.views.since(source, upto):
            raise Problem(409, NOT_THERE)
        return _present(await self.views.sessions(source), source)

    async def _switched(self, source: Source, command: Accepted, name: str) -> dict[str, Any]:
        """The model that answers after this command, and what a menu's command said, which does not stand in the
        chat."""
        await self._done(source, command)
        if not await self.views.ended(source, command.event_id):
            return {
                "labels": {"models": name},
                "told": f"The model {name} takes over as soon as this answer is finished.",
            }
        told = await self._answers(source, command) if command.event_id.endswith(UNSEEN) else []
        model, _ = await self.views.model(source)
        return {"labels": {"models": model}, "told": told[0].text if told else ""}

    async def _answers(self, source: Source, command: Accepted) -> list[Outbound]:
        """What a command said, as far as that stands in the chat by now."""
        return [row for row in await self.views.shown(source, _LOOKS) if row.answers == command.event_id]

    async def _aside(self, source: Source, command: Accepted) -> dict[str, Any]:
        """What a menu's command said, and the address of the file that it made: neither stands in the chat."""
        await self._done(source, command)
        rows = await self._answers(source, command)
        if file := next((row.file for row in rows if row.file), None):
            return {"file": beside(f"/files/{quote(file.ref, safe='')}", chat_of(source.thread))}
        told = next((row.text for row in rows if row.kind == "command"), "")
        if command.event_id.endswith(".web"):
            return {"labels": {"web": pages.WEB[await self.views.web(source) or "off"]}, "told": told}
        return {"told" if command.event_id.endswith(".undo") else "aside": told}

    def _ask(
        self,
        request: web.BaseRequest,
        login: Login,
        question: str,
        fields: Mapping[str, str],
        yes: str = pages.DELETE,
    ) -> web.Response:
        """Ask the person first; a yes sends the form again with these fields."""
        if _wants_json(request):
            return web.json_response({"ask": question, "yes": yes, "no": pages.CANCEL, "bad": yes == pages.DELETE})
        return _page(pages.asked(self._paths, question, yes, request.path, {"csrf": login.csrf, **fields}))

    async def _take_back(self, source: Source, event: str, instead: str) -> None:
        """Take back the message `instead` and all that followed, once for this `event`. Raises Problem."""
        if not instead:
            return
        if count := await self.views.since(source, instead):
            await self._done(source, await self._take(source, event, f"/undo {count}"))
        elif not await self.views.ended(source, event):
            raise Problem(409, GONE)

    async def _done(self, source: Source, command: Accepted) -> None:
        """Wait for the turn of a command, but not long: what is said then is told to nobody as having to wait. Raises
        Problem if it was not taken: what should follow it must go nowhere else."""
        if command.status == "refused":
            raise Problem(409, command.told)
        for _ in range(_LOOKS):
            if await self.views.ended(source, command.event_id):
                break
            await self.clock.sleep(_LOOK)

    async def _tell_of(self, source: Source, accepted: Accepted, kept: Sequence[Attachment]) -> None:
        """Have the person's open pages show what they said."""
        if not self.bells.hears(source.address):
            return
        news: Said | None = None
        if accepted.said.lstrip().startswith("/"):  # it may change more than it adds
            self.anew.add(source.address)
        elif accepted.status == "new":
            news = Said(event_id=accepted.event_id, text=accepted.said, at=accepted.at, files=tuple(kept))
        self.bells.ring(source.address, news=news)

    async def _kept(self, source: Source, id_: str, name: str, mime: str, content: bytes) -> Attachment:
        # What is no text in the head of a part arrives as lone surrogates, which nothing can store or show.
        name = re.sub(r"[\x00-\x1f\x7f/\\\ud800-\udfff]", "_", name)[:200]
        mime = mime if mime.isascii() else ""
        digest = await asyncio.to_thread(lambda: sha256(content).hexdigest())
        ref = f"{id_}-{digest[:12]}"
        await self.views.keep(source, ref, name, mime, content)
        kinds: dict[str, Literal["image", "voice", "document"]] = {"image": "image", "audio": "voice"}
        kind = kinds.get(mime.partition("/")[0], "document")
        return Attachment(kind=kind, ref=ref, name=name, mime=mime, size=len(content))

    async def _pressed(self, request: web.BaseRequest, form: Form, source: Source) -> web.Response:
        token = form.fields.get("token", "")
        accepted = await self._take(source, self.ids.new("p"), token[:200], kind="press")
        self.bells.ring(source.address)
        if _wants_json(request):
            return web.json_response({"problem": accepted.told})
        return _redirect(path_of(chat_of(source.thread)) + END)

    async def _take(
        self, source: Source, event: str, text: str, *, kind: InboundKind = "message", files: Sequence[Attachment] = ()
    ) -> Accepted:
        """Hand a message over. Raises StoreUnavailable."""
        inbound = Inbound(
            event_id=event,
            source=source,
            text=text.encode(errors="replace").decode().replace("\0", "\ufffd"),
            kind=kind,
            attachments=tuple(files),
            sent_at=self.clock.now(),
        )
        (accepted,) = await self.accept([inbound])
        return accepted

    # -- forms --------------------------------------------------------------------------------------

    async def _form(self, request: web.BaseRequest, *, files: bool = False, stranger: bool = False) -> Form:
        """Read a form, of limited size and in a limited time; a stranger's is small, and few have `files`. Raises
        Problem."""
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise Problem(415, "The form is compressed. Send it without compression.")
        kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        multipart = kind == "multipart/form-data" and files
        most = _LARGEST_LOGIN if stranger else LARGEST_FILE + _LARGEST_FORM if multipart else _LARGEST_FORM
        if not multipart and kind != "application/x-www-form-urlencoded":
            raise Problem(415, "What you sent is not a form. Send a form.")
        if (request.content_length or 0) > most:
            raise Problem(413, "What you sent is too large.")
        try:
            async with self.clock.limit(_UPLOAD if multipart else _PATIENCE):
                return await (self._parts(request) if multipart else self._fields(request, most))
        except web.HTTPRequestEntityTooLarge:
            raise Problem(413, "What you sent is too large.") from None
        except TimeoutError:
            raise Problem(408, "The form took too long to arrive. Send it again.") from None
        except (ValueError, RuntimeError, AssertionError, ClientError, web.RequestPayloadError, HttpProcessingError):
            raise Problem(400, "I cannot read this form. Load the page again.") from None

    async def _fields(self, request: web.BaseRequest, most: int) -> Form:
        body = await request.clone(client_max_size=most).read()
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        return Form(fields=dict(reversed(pairs)))  # of two fields with one name the first counts

    async def _parts(self, request: web.BaseRequest) -> Form:
        found, uploads, left = dict[str, str](), list[tuple[str, str, bytes]](), LARGEST_FILE
        reader = await request.multipart()
        for _ in range(_MOST_FIELDS):
            part = await reader.next()
            if part is None:
                return Form(fields=found, files=uploads)
            if not isinstance(part, BodyPartReader):
                break
            content = bytearray()
            most = left if part.filename is not None else _LARGEST_FORM
            while chunk := await part.read_chunk(65_536):
                content += chunk
                if len(content) > most:
                    raise Problem(
                        413, f"Your files are too large. One message can hold {LARGEST_FILE // 1_000_000} MB."
                    )
            if part.filename is None:
                found.setdefault(part.name or "", content.decode())
            elif part.filename:
                left -= len(content)
                uploads.append((part.filename, part.headers.get("Content-Type", "")[:100], bytes(content)))
        raise Problem(400, "The form has too many parts. Send fewer files.")

    def _told(self, request: web.BaseRequest, status: int, text: str) -> web.Response:
        if _wants_json(request):
            return web.json_response({"problem": text}, status=status)
        return _page(pages.told(self._paths, "Legato", text), status)


def opened(settings: WebSettings) -> tuple[socket, str]:
    """A socket at the settings' address, and the page's address on this machine. Raises AdapterError."""
    host, port = settings.host, settings.port
    try:
        family = AF_INET6 if ":" in host else AF_INET
        taken = create_server((host.strip("[]"), port), family=family)
    except (OSError, OverflowError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise AdapterError(
            f"The page cannot be opened at {host}:{port} ({why}). End the program that uses this port, or set "
            "another port in adapters.web.port."
        ) from error
    taken.setblocking(False)
    shown = f"[{host.strip('[]')}]" if ":" in host else host
    return taken, f"http://{shown}:{taken.getsockname()[1]}"


def source_of(person: str, chat: str = "") -> Source:
    """Where a person's words come from: each is alone with the bot, in several chats. Raises Problem."""
    if chat and not _CHAT.fullmatch(chat):
        raise Problem(404, "There is no such chat.")
    thread = f"{OWN}{chat}" if chat else None
    return Source(platform=NAME, chat=person, chat_type="direct", user=person, user_name=person, thread=thread)


def _sent_file(found: tuple[KeptFile, bytes] | None) -> web.Response:
    """A file of the person's: a picture to be seen, a sound to be heard, anything else to be saved."""
    if found is None:
        raise Problem(404, "There is no such file.")
    kept, content = found
    kind = next((kind for begin, kind in _SHOWN if content.startswith(begin)), None)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "image/webp"
    name = re.sub(r"[^\w .()-]", "_", kept.name).strip(" .")[:100] or "file"
    told = f"{'inline' if kind else 'attachment'}; filename*=UTF-8''{quote(name)}"
    headers = {
        "Content-Type": kind or "application/octet-stream",
        "Content-Disposition": told,
        "Content-Security-Policy": _FILE_POLICY,
        "Cache-Control": "private, max-age=3600",
    }
    return web.Response(body=content, headers=headers)


def _page(body: bytes, status: int = 200) -> web.Response:
    response = web.Response(body=body, status=status, headers={"Content-Type": _HTML})
    response.enable_compression()
    return response


def _redirect(to: str) -> web.Response:
    return web.Response(status=303, headers={"Location": to})


def _present(sessions: Sequence[SessionLine], source: Source) -> str | None:
    """The id of the session to which the next message of a chat goes."""
    return next((each.id for each in sessions if each.present and each.thread == source.thread), None)


def _thread_of(person: str, id_: str) -> str:
    """The chat that a form begins; sent again, the form begins no other."""
    return f"{OWN}c-{sha256(f'{person}:{id_}'.encode()).hexdigest()[:20]}"


def _ending(text: str, *, aside: bool) -> str:
    """The end of the event of what a menu sends, if it is a command; what asks again stands for what it asks. `aside`:
    what only tells something may be told beside the chat."""
    if not text.startswith("/") or AGAIN.match(text):
        return ""
    if aside and text in _TELL:
        return ".aside"
    ends = ("stop", "model", "web", "undo") if aside else ("stop", "model", "web")
    return next((f".{each}" for each in ends if text.startswith(f"/{each}")), MENU)


def _own_path(address: str) -> str:
    """Where on this page an address leads; its beginning, if nowhere."""
    found = _HERE.fullmatch(address)
    return found[1] if found else "/"


def _most(given: str) -> int:
    """How many entries a page asks for: one of few numbers, because each is kept."""
    asked = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else SHOWN
    return max(SHOWN, min(MOST_SHOWN, asked // SHOWN * SHOWN))


def _is_read(request: web.BaseRequest) -> bool:
    return request.transport is not None and not request.transport.is_closing()


def _wants_json(request: web.BaseRequest) -> bool:
    return "application/json" in request.headers.get("Accept", "")
