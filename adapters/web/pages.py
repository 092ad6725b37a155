"""The pages: what each shows, as elements. None of them needs the script."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, Literal
from urllib.parse import quote, unquote, urlencode

from msgspec import Struct

from adapters.web import projects
from adapters.web.charts import bar, columns, lineage, meter, part_of
from adapters.web.icons import icon
from adapters.web.log import (
    END,
    WHO,
    Entry,
    State,
    beside,
    change,
    chat_of,
    cut,
    joined_entries,
    moment,
    path_of,
)
from adapters.web.markup import Child, Html, el, folded, hidden, joined, linked, section, submit
from adapters.web.platform import LARGEST_FILE
from adapters.web.rendering import verbatim, words_of
from adapters.web.shares import Share
from gateway.domain import views
from gateway.domain.adapter import MenuEntry
from gateway.domain.memory import LONGEST_FACT
from gateway.domain.reminder import LONGEST_TEXT
from gateway.domain.rule import LONGEST_PIN
from gateway.domain.session import Project
from gateway.runtime.structs import replace

Role = Literal["reader", "person", "admin"]
_DAY: Final = 24  # hours
_NOT_SHOWN: Final = "I showed this link once and did not keep it · "
_CUT: Final = 600  # characters of an original in a list
_EARLIER: Final = "Nothing was compressed since /resume or /branch. The original chat lists earlier compressions."
_CHANGED: Final = "a new text, a new time, or both"
_FIGURES: Final = tuple("$0123456789")
_NO_FILES: Final = "Send a file in the chat, or ask me to write one. I keep the file, and you can undo every change."
_SKILLS: Final = "A skill tells me how to do a certain kind of work. I read a skill when a task needs it."
_TITLE: Final = 120  # characters of a chat's title at most
_SNIPPET: Final = 260  # characters of what was found
_BEFORE: Final = 70  # of them at most before the first word that was asked for
_SIGNS: Final = re.compile(r"[*`#>|~]+|[-=:]{3,}")  # of Markdown, which mean nothing in a line


class Asked(Struct, frozen=True, kw_only=True):
    """A command that a form of a page gave, with a person's `words`, and what was said of it (`told`). `taken`: it was
    not refused."""

    command: str
    words: str
    told: str
    taken: bool


class Frame(Struct, frozen=True, kw_only=True):
    """What all pages of a person share. `chat`: the name of the chat that they came from, as in its address. `assets`:
    the versions of script and style, so that they can be kept."""

    person: str
    csrf: str
    role: Role
    assets: Mapping[str, str]
    fresh_id: str  # for a message that is sent without the script
    stages: Mapping[str, str]  # platforms that can be rehearsed
    model: str  # the one that answers this person
    embedded: bool  # whether that one only shows how things work
    web: str = ""  # whether it searches the web in this chat: on, off or auto; "": it cannot
    hears: bool = False  # whether it, or another for it, hears what they record
    settings: bool = False  # whether they can change them here
    look: str = ""  # light or dark, whatever their machine prefers
    chat: str = ""
    path: str = ""  # the address of the page
    asked: Asked | None = None  # what a form of the page asked just now


def document(
    title: str, body: Child, *, assets: Mapping[str, str], script: bool = False, body_class: str = "", look: str = ""
) -> bytes:
    """A whole page; `look`: light or dark, if somebody chose."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1, interactive-widget=resizes-content"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("link", rel="stylesheet", href=assets["page.css"]),
        el("link", rel="icon", href=assets["icon.svg"]),
        [el("script", src=assets[name], defer=True) for name in ("page.js", "extras.js")] if script else None,
    )
    body = el("body", body, class_=body_class or None)
    return ("<!doctype html>" + el("html", head, body, lang="en", data_look=look or None)).encode(errors="replace")


def chat(
    frame: Frame,
    state: State,
    drafts: Sequence[Entry],
    side_list: Html,
    work: str,
    commands: Sequence[MenuEntry],
    before: Child,
    *,
    most: int,
    full: bool,
    text: str = "",
    problem: str = "",
    project: str = "",
) -> bytes:
    """The chat. `before`: the earlier conversation that it goes on from. `full`: there is more than `most` entries.
    `project`: the name of the one that it is in. `text` and `problem`: what was not taken, and why."""
    earlier = el("p", el("a", "Show earlier messages", href=f"?n={2 * most}"), class_="earlier") if full else None
    newest = el("noscript", el("p", el("a", "To the newest message", href="#end"), class_="earlier"))
    shown = {entry.id for entry in state.entries}
    log = el(
        "ol",
        joined_entries([*state.entries, *(each for each in drafts if each.id not in shown)]),
        id="log",
        aria_live="polite",
        aria_label="Conversation",
        data_chat=frame.chat,
        data_digest=state.digest,
        data_most=most,
    )
    main = el(
        "main",
        el("h1", "Chat", class_="vh"),
        [newest, earlier],
        el("div", before, id="before"),
        log,
        _beginning(frame, commands, project),
        writing(frame, commands, text=text, work=work, problem=problem),
        id="main",
    )
    forms = [_form("press", "/press", frame), _form("command", "/say", frame), *_of_sessions(frame)]
    skip = el("a", "Skip to the message field", href="#text", class_="skip")
    body = [skip, side(frame, side_list), main, forms]
    return document("Legato", body, assets=frame.assets, script=True, body_class="chat", look=frame.look)


def writing(
    frame: Frame,
    commands: Sequence[MenuEntry],
    *,
    text: str = "",
    work: str = "",
    problem: str = "",
    back: str = "",
) -> Child:
    """What stands below messages: what a turn is at, and the field. `back`: an earlier conversation, from which words
    go on."""
    down = _pictured("down", "To the newest message", id_="to-end", hidden=True)
    refused = [down, el("p", REFUSED, class_="notice")]
    return [
        el("span", id="end"),
        _status(work, problem),
        refused if frame.role == "reader" else _composer(frame, commands, text, back, down),
        _ACTIONS,
    ]


def temporary(frame: Frame, until: float) -> Html:
    """What stands above a temporary chat, with the time at which it is deleted."""
    told = [
        "This chat is temporary. Legato remembers nothing of it, and deletes it at ",
        moment(until),
        " unless you write again.",
    ]
    ways = [("Keep this chat", "keep", None), ("End and delete", "end", "bad")]
    buttons = [submit(label, name="order", value=order, class_=kind) for label, order, kind in ways]
    form = el("form", _hidden(frame), buttons, method="post", action="/temporary")
    return el("div", el("p", told), form if frame.role != "reader" else None, class_="notice temporary")


def _beginning(frame: Frame, commands: Sequence[MenuEntry], project: str) -> Html:
    """What a chat shows before anything was said: what can be asked here, and the way to a real model."""
    has = {each.name for each in commands}
    cards = [
        _command([icon(picture), el("span", el("b", words), el("small", told))], instead or words)
        for picture, words, told, needs, instead in _FIRST
        if needs in has
    ]
    way: Child = [IN_TERMINAL, el("code", "legato init")]
    way = el("a", "Connect a real model", href="/settings") if frame.settings else way
    hint = el("p", EMBEDDED, way, ".", class_="hint") if frame.embedded else None
    return el(
        "div",
        el("p", icon("folder"), project, class_="hint", dir="auto") if project else None,
        el("p", "What can I do for you?", class_="greeting"),
        el("div", cards, class_="cards") if frame.role != "reader" else None,
        hint,
        class_="empty",
        id="empty",
    )


_WRITE: Final = "Write a file packing.md: tent, torch, matches"
# What can be asked in a new chat: its picture, the words, what comes of them, the command that such a chat has, and the
# command that is given instead of the words.
_FIRST: Final = (
    ("bell", "Remind me in 20 minutes to stretch", "I remind you even after a restart", "remind", ""),
    ("note", _WRITE, "I keep files, and you can undo my changes", "files", ""),
    ("list", "Add buy milk to my to-do list", "I keep the list, however long we talk", "help", ""),
    ("chat", "What else can you do?", "I list the most useful commands", "help", "/help"),
)
EMBEDDED: Final = "For now, answers come from a small built-in model, which only follows a few simple rules. "
IN_TERMINAL: Final = "To connect a real model, type this in a terminal: "


def _pictured(picture: str, label: str, **more: str | bool) -> Html:
    """A button for the script, of which only the picture is seen."""
    return el("button", icon(picture), type="button", aria_label=label, title=label, **more)


_SEND: Final = submit(icon("send"), aria_label="Send", title="Send", class_="send")
# What the script puts beside messages and code.
_DOES: Final = (
    ("copy", "Copy"),
    ("edit", "Edit"),
    ("again", "Answer again"),
    ("fork", "Go on from here in another chat"),
    ("aloud", "Read aloud"),
    ("on", "Go on"),
    ("wrap", "Wrap lines"),
    ("preview", "Preview, without scripts"),
)
_ACTIONS: Final = el("template", [_pictured(does, label, data_do=does) for does, label in _DOES], id="actions")


def delete(title: str) -> str:
    """What is asked before a conversation goes for good."""
    return f"Delete “{title}”? This cannot be undone."


SHARE: Final = (
    "Anyone with the link can read this chat and its later messages until you withdraw the link. Make a link?"
)
MAKE: Final = "Make a link"
DELETE: Final = "Delete"
CANCEL: Final = "Cancel"
REFUSED: Final = "You can only read this chat. To write here, ask the operator to add you to access.allow."


def _form(name: str, action: str, frame: Frame) -> Html:
    """A form without fields, which buttons anywhere in the page belong to."""
    menu = hidden(menu="1") if name == "command" else None  # what its buttons give does not stand in the chat
    return el("form", _hidden(frame), menu, id=name, method="post", action=action, hidden=True)


def _of_sessions(frame: Frame) -> list[Html]:
    return [_form(name, f"/{name}", frame) for name in ("share", "session", "project", "temporary")]


def _hidden(frame: Frame) -> list[Html]:
    return hidden(csrf=frame.csrf, id=frame.fresh_id, chat=frame.chat)


def _status(work: str, problem: str) -> Html:
    told = el("span", work, id="work", role="status")
    took = el("span", id="seconds", class_="right", aria_hidden="true")
    return el(
        "div",
        el("p", problem, id="problem", role="alert", hidden=not problem),
        el("p", el("span", class_="dots", aria_hidden="true"), told, took, id="working", hidden=not work, data_at=work),
        class_="state",
    )


def _command(label: Child, text: str, *, class_: str = "", id_: str | None = None, title: str | None = None) -> Html:
    more = {"class_": class_ or None, "id": id_, "title": title}
    return submit(label, form="command", name="text", value=text, **more)


def _composer(frame: Frame, commands: Sequence[MenuEntry], text: str, back: str, above: Child) -> Html:
    menu = el(
        "ul",
        [
            el("li", el("b", f"/{each.name}"), f" {each.help}", role="option", data_name=each.name, id=f"c-{each.name}")
            for each in commands
        ],
        id="commands",
        role="listbox",
        aria_label="Commands",
        hidden=True,
    )
    field = el(
        "textarea",
        text,
        id="text",
        name="text",
        rows=1,
        dir="auto",
        placeholder="Go on from here" if back else "Message",
        aria_label="Message",
        aria_controls="commands",
        autocomplete="off",
        maxlength=100_000,
    )
    files = el(
        "input",
        type="file",
        name="file",
        id="file",
        multiple=True,
        aria_label="Files",
        class_="hidden-file",
        data_most=LARGEST_FILE,
    )
    attach = el("label", icon("clip"), el("span", "Add files", class_="vh"), files, class_="attach", title="Add files")
    hint = el(
        "p",
        el(
            "span",
            "Send to make a new version of the marked message. Press ‹ to go back to the old version and its answers.",
        ),
        el("button", "Cancel", " ", el("kbd", "Esc", class_="keys"), type="button", id="cancel-edit"),
        id="editing",
        hidden=True,
    )
    record = _pictured("mic", "Record", id_="record", class_="attach", hidden=True) if frame.hears else None
    recording = el(
        "p",
        el("span", class_="dots", aria_hidden="true"),
        el("span", "Recording"),
        el("span", "0:00", class_="right", role="timer"),
        el("button", "Cancel", type="button"),
        id="recording",
        hidden=True,
    )
    stop = _command([el("span", "Stop", class_="vh")], "/stop", class_="send", id_="stop", title="Stop")
    row = el("div", attach, field, record, _SEND, stop, class_="row")
    return el(
        "form",
        _hidden(frame),
        hidden(back=back) if back else None,
        above,
        menu,
        el("ul", id="chosen", aria_label="Chosen files"),
        hint,
        recording if frame.hears else None,
        row,
        _below(frame, commands, here=not back),
        id="composer",
        method="post",
        action="/say",
        enctype="multipart/form-data",
    )


def _below(frame: Frame, commands: Sequence[MenuEntry], *, here: bool) -> Html:
    """The line below the field: the model, with a menu of the others, and what can be done with the present chat, if
    it is the one that is shown (`here`)."""
    has = {each.name for each in commands}
    ways = el("div", el("p", el("a", "Choose another model", href=beside("/models", frame.chat))), class_="menu")
    summary = el("summary", f"{frame.model} ▾", title="Choose another model")
    name = el("details", summary, ways, id="models", class_="menus")
    keys = el("button", "Shortcuts", type="button", id="show-keys", class_="quiet keys", hidden=True)
    offered = [
        el("li", _command([label, el("kbd", text)], text)) for label, text in _COMMON if text[1:].split()[0] in has
    ]
    chat = folded("This chat ▾", el("ul", offered, class_="menu"), class_="menus")
    model = name if "model" in has else el("span", frame.model)
    return el("div", el("div", model, _web(frame) if here else None, chat if here else None), keys, class_="below")


WEB: Final = {"on": "Web search: on", "auto": "Web search: auto", "off": "Web search: off"}
_WEB_MEANS: Final = {
    "on": ("On", "Look up every answer that needs facts"),
    "auto": ("Auto", "Search when an answer needs it"),
    "off": ("Off", "Nothing from this chat goes to a search engine"),
}


def _web(frame: Frame) -> Child:
    """Whether the web is searched in this chat, with a menu that changes it; nothing where it cannot be."""
    if not frame.web:
        return None
    ways = [
        el("li", _command([el("span", label), " ", el("small", told)], f"/web {way}"))
        for way, (label, told) in _WEB_MEANS.items()
    ]
    summary = el("summary", f"{WEB[frame.web]} ▾", title="Whether I search the web in this chat")
    return el("details", summary, el("ul", ways, class_="menu"), class_="menus", id="web")


# What people do with a chat, in words, with the command that does it.
_COMMON: Final = (
    ("Another answer", "/retry"),
    ("Undo my last message", "/undo"),
    ("Go on in a copy", "/branch"),
    ("Compress now", "/compress"),
    ("Save as Markdown", "/export"),
    ("What this chat has cost", "/usage"),
    ("What you remember", "/memory"),
    ("My reminders", "/reminders"),
    ("My rules", "/pin"),
    ("All commands", "/help all"),
)


def side(frame: Frame, inner: Html) -> Html:
    """The list at the side of the conversation: search, sessions, and the menu of everything else."""
    search = el(
        "form",
        icon("search"),
        el("input", type="search", name="q", placeholder="Search all chats", aria_label="Search all chats", dir="auto"),
        hidden(chat=frame.chat) if frame.chat else None,
        action="/search",
        role="search",
    )
    logo = el("a", el("img", src=frame.assets["icon.svg"], alt=""), el("strong", "Legato"), href=f"/{END}")
    hide = _pictured("side", "Hide the list", id_="hide-list", hidden=True)
    new = el("a", icon("plus"), href=NEW, aria_label="New chat")
    return el(
        "nav",
        el(
            "details",
            el("summary", icon("menu"), el("span", "Menu", class_="vh"), el("span", "Legato", id="title")),
            class_="fold",
            id="fold",
        ),
        new if frame.role != "reader" else None,
        el("div", el("p", logo, hide, class_="brand"), search, el("div", inner, id="side"), _me(frame), class_="panel"),
        aria_label="Chats and pages",
    )


def _me(frame: Frame) -> Html:
    """The menu under the person's name: the other pages, the look, and the way out."""
    pages = [
        (beside("/window", frame.chat), "window", "Window and memory"),
        (beside("/workspace", frame.chat), "folder", "Files"),
        (beside("/skills", frame.chat), "spark", "Skills"),
        *[(beside(f"/as/{name}", frame.chat), "phone", "Rehearsal") for name in sorted(frame.stages)[-1:]],
        *([(beside("/settings", frame.chat), "gear", "Settings")] if frame.settings else []),
        *([(beside("/inside", frame.chat), "shield", "Operator")] if frame.role == "admin" else []),
    ]
    links = [el("li", el("a", icon(picture), label, href=href)) for href, picture, label in pages]
    looks = [
        submit(icon(picture), name="look", value=look, aria_label=told, title=told, aria_pressed=pressed)
        for look, picture, told in _LOOKS
        for pressed in [str(look == frame.look).lower()]
    ]
    leave = [submit("Log out"), submit("Log out everywhere", name="everywhere", value="1")]
    csrf = hidden(csrf=frame.csrf)
    menu = el(
        "div",
        el("ul", links, class_="pages"),
        el("form", csrf, el("span", "Look"), looks, class_="looks", method="post", action="/look"),
        el("form", csrf, leave, class_="leave", method="post", action="/logout"),
        class_="menu",
    )
    name = el("span", frame.person, class_="person")
    return folded([icon("person"), name, icon("more")], menu, class_="menus me")


OF_CHAT: Final = ("Window and memory", "Files", "Skills")  # what tells of one chat, also of the first
NEW: Final = "/new"  # the address that begins a chat
_LOOKS: Final = (("", "screen", "As on this machine"), ("light", "sun", "Light"), ("dark", "moon", "Dark"))


def side_list(
    sessions: Sequence[views.SessionLine],
    kept: Sequence[Project],
    shares: views.WindowShares | None,
    chat: str | None,
    unread: Container[str],
    *,
    writes: bool,
) -> Html:
    """The part of the side that changes while people talk, on a page of this chat, or of none. `kept`: the projects of
    the sessions. `unread`: sessions with answers that the person has not seen."""

    def is_here(each: views.SessionLine) -> bool:
        return each.present and chat_of(each.thread) == chat

    def line(each: views.SessionLine) -> Html:
        return el(
            "li",
            el(
                "a",
                None if is_here(each) else _mark(each, unread),
                each.title or "New chat",
                href=address_of(each),
                dir="auto",
            ),
            _about_session(each, names.get(each.project, "")) if writes and each.until is None else None,
            class_="present" if is_here(each) else None,
            data_group="Pinned" if each.pinned else None,
            data_at=f"{each.last_active_at:.0f}",
        )

    names = {each.id: each.name for each in kept}
    shown = [each for each in sessions if each.title or is_here(each)]
    within = {id_: [each for each in shown if each.project == id_ and not each.pinned] for id_ in names}
    blocks = [
        projects.block(each, [*map(line, found)], opened=any(is_here(one) or _mark(one, unread) for one in found))
        for each in kept
        for found in [within[each.id]]
    ]
    more = el("a", icon("plus-folder"), "New project", href=projects.AT, class_="new-project")
    pinned = [line(each) for each in shown if each.pinned]
    others = [line(each) for each in shown if not each.pinned and each.project not in names]
    new = el("a", icon("plus"), "New chat", href=NEW, class_="fresh") if writes else None
    may_add = writes and not any(each.until for each in sessions)
    brief = submit([icon("clock"), "Temporary chat"], form="temporary", class_="fleeting") if may_add else None
    options = el("datalist", [el("option", value=each) for each in names.values()], id="projects") if writes else None
    hint = el("p", "Press Enter to search everything that was said.", id="no-title", hidden=True, role="status")
    lines = el("ul", pinned, blocks, el("li", more, class_="project") if writes else None, others, class_="sessions")
    return joined([new, brief, hint, lines, options, _bar_line(shares, chat)])


def address_of(each: views.SessionLine) -> str:
    """Where a session is read; one to which no message goes is a page of its own."""
    return path_of(chat_of(each.thread)) + END if each.present else f"/s/{quote(each.id, safe='')}"


def _mark(each: views.SessionLine, unread: Container[str]) -> Child:
    marks = (
        (each.waits, "waits", "Waits for your answer"),
        (each.works, "works", "Legato is working here"),
        (each.id in unread, "unread", "A new answer"),
    )
    kind, told = next(((kind, told) for holds, kind, told in marks if holds), ("", ""))
    return el("span", class_=f"mark {kind}", role="img", aria_label=told, title=told) if kind else None


def _about_session(each: views.SessionLine, project: str) -> Html:
    """The menu of a session. It is one form: the button that was pressed says what to do."""

    def button(label: str, verb: str, **more: str) -> Html:
        return submit(label, form="session", name="order", value=f"{verb} {each.id}", **more)

    def words(label: str, name: str, value: str, verb: str, does: str, **more: str) -> Html:
        told = {"aria_label": label, "placeholder": label, "dir": "auto", **more}
        field = el("input", type="text", name=f"{name} {each.id}", value=value, form="session", **told)
        return el("p", field, button(does, verb), class_="name")

    summary = el("summary", icon("more"), aria_label=f"More about {each.title}", title="Rename, pin, delete")
    return el(
        "details",
        summary,
        el(
            "div",
            words("Name", "title", each.title, "rename", "Rename"),
            words("Project", "project", project, "move", "Move", list="projects"),
            button("Unpin", "unpin") if each.pinned else button("Pin", "pin"),
            share("Share", each.id),
            button("Delete", "delete", class_="bad"),
            class_="menu",
        ),
        class_="menus",
    )


def _bar_line(shares: views.WindowShares | None, chat: str | None) -> Child:
    """How full the window of a chat is, in which something was said."""
    if chat is None or shares is None or not shares.messages:
        return None
    told = f"Context {min(100, 100 * shares.used / shares.window):.0f}% full"
    parts = " · ".join(f"{name} {tokens:,}" for name, tokens in shares.parts)
    return el("a", bar(shares), el("small", told), href=beside("/window", chat), class_="window", title=parts)


# -- other pages ------------------------------------------------------------------------------------


def page(frame: Frame, title: str, body: Child, side_inner: Html, beside: Child = None) -> bytes:
    """A page besides the chat. `beside`: what can be done with all that it shows."""
    forms = [_form("command", "/say", frame), _form("order", "/inside", frame), *_of_sessions(frame)]
    head = el("div", el("h1", title, dir="auto"), beside, class_="head")
    asked = frame.asked
    told = el("p", linked(asked.told), class_="well plain", role="status") if asked and asked.taken else None
    main = el("main", head, told, body, class_="reading", id="main")
    skip = el("a", "Skip to the content", href="#main", class_="skip")
    body = [skip, side(frame, side_inner), main, forms]
    return document(f"{title} · Legato", body, assets=frame.assets, script=True, look=frame.look)


def bare(picture: str, told: str, hint: str, action: Child = None) -> Html:
    """What stands where nothing is yet, and what brings something there."""
    return el("div", icon(picture), el("p", told), el("small", hint), action, class_="bare")


def _address(each: views.Word, query: str = "") -> str:
    """Where a message is read; the words of a search are marked in it."""
    asked = urlencode({"at": each.id} | ({"q": query} if query else {}))
    return f"/s/{quote(each.session_id, safe='')}?{asked}#m-{each.id}"


def worded(frame: Frame, label: str, command: str, value: str = "", hint: str = "", most: int = LONGEST_TEXT) -> Html:
    """A command that takes words, at `most` so many characters: they are asked for once its label is opened. Refused
    words stay there, with what is wrong with them."""
    asked = frame.asked
    refused = asked if asked is not None and asked.command == command and not asked.taken else None
    field = el(
        "input",
        type="text",
        name="more",
        value=refused.words if refused else value,
        placeholder=hint,
        aria_label=label,
        dir="auto",
        required=True,
        maxlength=most,
        aria_invalid="true" if refused else None,
        autofocus=bool(refused),
    )
    save = submit("Save", name="command", value=command)
    form = el("form", _hidden(frame), field, save, method="post", action=frame.path)
    told = el("p", linked(refused.told), class_="reason", role="alert") if refused else None
    return folded(label, told, form, class_="worded", open=bool(refused))


def spent(took: views.Spent | None) -> Child:
    """What an answer took."""
    if took is None:
        return el("p", "Legato no longer keeps the details of this answer.")
    price = "no price is known" if took.usd is None else f"${took.usd:,.4f}" if took.usd else "free"
    rows = [
        ("Model", ", ".join(took.models) or "no model was asked"),
        ("Cost", price),
        ("Tokens read", f"{took.read:,}" + (f", {took.cached:,} of them from the cache" if took.cached else "")),
        ("Tokens written", f"{took.written:,}"),
        ("Seconds", f"{took.seconds:.1f}"),
        ("Calls of a model", f"{took.calls}"),
    ]
    return el("dl", [[el("dt", name), el("dd", value)] for name, value in rows], class_="spent", id="spent")


def models(found: Sequence[views.ModelLine], sessions: Sequence[views.SessionLine], frame: Frame) -> Child:
    """The models to choose from, each with its window and prices; first those that answered lately."""
    used = {each.model: each.last_active_at for each in sorted(sessions, key=lambda each: each.last_active_at)}
    items = [
        el("li", _command([el("span", each.name, on), el("small", _about_model(each))], f"/model {each.name}"))
        for each in sorted(found, key=lambda each: -used.get(each.name, 0.0))
        for on in [" ✓" if each.name == frame.model else None]
    ]
    return el(
        "div",
        el("ul", items, class_="choices") if items else el("p", "There is no other model."),
        el("p", el("a", "Connect another", href="/settings")) if frame.settings else None,
        id="choices",
        data_model=frame.model,
    )


def _about_model(each: views.ModelLine) -> str:
    window = f"{each.window // 1000:,}K tokens" if each.window else ""
    prices = ""
    if each.read_usd is not None and each.write_usd is not None:
        free = not (each.read_usd or each.write_usd)
        prices = "free" if free else f"${each.read_usd:.3g} in, ${each.write_usd:.3g} out per million"
    return " · ".join(filter(None, [window, prices]))


def share(label: str, session_id: str) -> Html:
    """A button that makes a link to a conversation."""
    return submit(label, form="share", name="session", value=session_id)


def shares(made: Sequence[tuple[Share, str]], address: str) -> Child:
    """Links to conversations with their titles, each with a button that ends it."""
    items = [
        el(
            "li",
            el("span", title, dir="auto"),
            el("a", f"{address}{each.path}", href=each.path) if each.path else None,
            el(
                "small",
                "anyone with the link can read this chat · " if each.path else _NOT_SHOWN,
                moment(each.made_at),
            ),
            submit("Withdraw", form="share", name="end", value=each.name, class_="quiet"),
        )
        for each, title in made
    ]
    return el("ul", items, class_="facts", id="links") if items else None


def shared(assets: Mapping[str, str], title: str, body: Child) -> bytes:
    """A conversation for somebody who has a link to it: nothing can be done here."""
    told = el(
        "p",
        "Someone shared this chat with you, for reading only.",
        class_="notice",
    )
    made_with = el("p", el("img", src=assets["icon.svg"], alt=""), el("strong", "Legato"), class_="brand")
    main = el("main", made_with, el("h1", title, dir="auto"), told, body, class_="reading shared", id="main")
    return document(f"{title} · Legato", main, assets=assets, body_class="shared")


def session(shown: Html, begins: int, ends: int, whole: int) -> Child:
    """A part of one conversation: its messages from `begins` to `ends` of `whole`."""
    earlier = el("a", "Earlier", href=f"?from={max(0, 2 * begins - ends)}") if begins else None
    later = el("a", "Later", href=f"?from={ends}") if ends < whole else None
    where = el("p", f"{begins + 1:,} to {ends:,} of {whole:,} messages ", earlier, " ", later, class_="earlier")
    return [where if earlier or later else None, shown, where if later else None]


def search(query: str, found: Sequence[tuple[views.Word, str]]) -> Child:
    """What a search found: messages, each with the title of its conversation; those with most of the words first."""
    field = el("input", type="search", name="q", value=query, aria_label="Search all chats", dir="auto")
    form = el("form", field, submit("Search"), action="/search", role="search")
    if not found:
        hint = "The search covers everything that you and the bot said here, even what was compressed into notes."
        return [form, bare("search", "Nothing was found" if query else "What are you looking for?", hint)]
    pattern = words_of(query)
    items = [
        el(
            "a",
            el("span", el("b", title, dir="auto"), el("small", f"{WHO[each.role]} · ", near, moment(each.at))),
            el("span", snippet, dir="auto"),
            href=_address(each, query),
        )
        for each, title in sorted(found, key=lambda each: -_words_in(each[0].text, pattern))
        for snippet in [_snippet(each.text, pattern)]
        for near in ["similar words · " if len(snippet) == 1 else None]
    ]
    return [form, el("ul", [el("li", item) for item in items], class_="found")]


def _words_in(text: str, pattern: re.Pattern[str] | None) -> int:
    """How many of the words that were asked for stand in a text."""
    return len({each.casefold() for each in pattern.findall(text)}) if pattern is not None else 0


def _snippet(text: str, pattern: re.Pattern[str] | None) -> list[Child]:
    """The place of a text that matches, in a line, with all matches marked. Alone: nothing matches word by word."""
    line = " ".join(_SIGNS.sub("", text).split())
    first = pattern.search(line) if pattern is not None else None
    begin = max(0, first.start() - _BEFORE) if first else 0
    if begin and first:  # at a word, where there are spaces
        begin = line.find(" ", begin, first.start()) + 1 or begin
    end = begin + _SNIPPET
    shown = f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
    pieces = pattern.split(shown) if pattern is not None else [shown]
    return [el("mark", each) if number % 2 else each for number, each in enumerate(pieces)]


def window(
    shares: views.WindowShares | None,
    passes: Sequence[views.Pass],
    pins: Sequence[str],
    memory: Sequence[views.Memo],
    reminders: Sequence[views.Coming],
    links: Sequence[Child],
    frame: Frame,
) -> Child:
    """What the model has before it: the bar, each compaction, rules and memory; what is to come; who may read here."""
    writes = frame.role != "reader"
    inherited = shares is not None and shares.compactions > 0
    none = _EARLIER if inherited else "I have not compressed this chat."
    return [
        section("The window", _shares(shares), _present(frame) if writes and shares is not None else None),
        section("Compressions", [_pass(each, writes=writes) for each in passes] or el("p", none)),
        section(
            "Rules",
            _pins(pins, writes=writes),
            _adding(frame, "Add a rule", "/pin", "Answer in short sentences", LONGEST_PIN),
        ),
        section("Memory", _memory(memory, frame if writes else None)),
        section(
            "Reminders",
            _reminders(reminders, frame if writes else None),
            _adding(frame, "Add a reminder", "/remind", "tomorrow at 9 call the landlord"),
        ),
        section("Shared links", links) if any(links) else None,
    ]


def _adding(frame: Frame, label: str, command: str, hint: str, most: int = LONGEST_TEXT) -> Child:
    return worded(frame, label, command, hint=hint, most=most) if frame.role != "reader" else None


def _present(frame: Frame) -> Html:
    return el(
        "div",
        _command("Compress now", "/compress"),
        _command("Export as Markdown", "/export"),
        _command("Export as JSON lines", "/export jsonl"),
        worded(frame, "Rename", "/title", hint="a title for this chat", most=_TITLE),
        class_="orders",
    )


def _shares(shares: views.WindowShares | None) -> Child:
    if shares is None:
        return el("p", "The window is empty. Your next message starts the chat.")
    rows = [
        el("tr", el("td", el("span", class_=f"key {part_of(name)}"), name), el("td", f"{tokens:,}", class_="right"))
        for name, tokens in shares.parts
    ]
    whole = el("tr", el("th", "total"), el("th", f"{shares.used:,} of {shares.window:,}", class_="right"))
    left = max(0, shares.threshold - shares.used)
    when = f"I compress this chat at {shares.threshold:,} tokens. About {left:,} tokens are left."
    if not (shares.threshold and shares.automatic):
        when = "I do not compress this chat by myself."
    return [bar(shares), el("table", rows, whole), el("p", when)]


def _pass(made: views.Pass, *, writes: bool) -> Html:
    told = (
        f"{made.messages[0]} → {made.messages[1]} messages, ~{made.tokens[0]:,} → ~{made.tokens[1]:,} tokens "
        f"({made.trigger})"
    )
    undo = _command("Undo", "/compress undo") if made.last and writes else None
    back = [
        el(
            "li",
            _original(each),
            _command("Put this back", f"/pin {each.text[:500]}", class_="quiet") if writes else None,
        )
        for each in made.dropped
        if each.role in ("user", "assistant") and each.text.strip()
    ]
    return el(
        "details",
        el("summary", moment(made.at), f" {told}"),
        el("p", made.work) if made.work else None,
        el("p", undo) if undo else None,
        el("h3", "The notes, as the model reads them"),
        verbatim(made.notes or "There are none."),
        made.corrected
        and [
            el("h3", "Where the notes contradicted the original messages"),
            el("ul", [el("li", each) for each in made.corrected]),
        ],
        el("h3", f"Dropped ({len(made.dropped)})"),
        el("ul", back, class_="originals"),
        el("h3", f"Kept word for word ({len(made.kept)})"),
        el("ul", [el("li", _original(each)) for each in made.kept if each.text.strip()], class_="originals"),
        class_="pass",
    )


def _original(each: views.Word) -> Child:
    text = cut(each.text, _CUT)
    link = el("a", WHO[each.role], href=_address(each))
    return [link, ": ", el("span", text, dir="auto")]


def _pins(pins: Sequence[str], *, writes: bool) -> Child:
    items = [
        el(
            "li",
            el("span", text, dir="auto"),
            _command("Remove", f"/unpin {text}", class_="quiet") if writes else None,
        )
        for text in pins
    ]
    return _facts(items, "There are no rules yet. A rule holds for every answer.", "ol")


def _facts(items: Sequence[Html], none: str, kind: str = "ul") -> Html:
    return el(kind, items, class_="facts") if items else el("p", none)


def _memory(memory: Sequence[views.Memo], frame: Frame | None) -> Child:
    items = [
        el(
            "li",
            el("span", each.text, dir="auto"),
            el("small", each.said_by, " · ", moment(each.said_at)),
            worded(frame, "Correct", f"/memory correct {each.number}", each.text, most=LONGEST_FACT) if frame else None,
            _command("Forget", f"/memory forget {each.number}", class_="quiet") if frame else None,
        )
        for each in memory
    ]
    return _facts(items, "I remember nothing yet.")


def _reminders(reminders: Sequence[views.Coming], frame: Frame | None) -> Child:
    items = [
        el(
            "li",
            el("span", each.text, dir="auto"),
            el("small", each.when, " · set by ", each.made_by),
            worded(frame, "Change", f"/reminders change {each.number}", hint=_CHANGED) if frame else None,
            _command("Cancel", f"/reminders cancel {each.number}", class_="quiet") if frame else None,
        )
        for each in reminders
    ]
    return _facts(items, "There are no reminders yet.")


def workspace(seen: views.WorkspaceView | None, *, writes: bool) -> Child:
    """The files that are worked on, and what changed in the present session."""
    if seen is None:
        return el("p", "The operator has switched the workspace off.")
    if not (seen.count or seen.changes):
        asked = _command(_WRITE, _WRITE) if writes else None
        return bare("folder", "No files yet", _NO_FILES, asked)
    back = _command("Undo what the last answer changed", "/files undo") if writes and seen.changes else None
    told = f"I keep {_count(seen.count, 'file')} with {seen.size:,} bytes here, including what you sent in the chat."
    left = seen.count - len(seen.files)
    return [
        section(
            "What changed in this chat",
            [_file_change(each) for each in seen.changes] or el("p", "Nothing yet."),
            el("p", back) if back else None,
        ),
        section(
            "All files",
            el("p", told),
            _branch([(each.path.split("/"), each) for each in seen.files]),
            el("p", f"and {left:,} more files, or files that .gitignore leaves out") if left > 0 else None,
        ),
    ]


def skills(lines: Sequence[views.SkillLine] | None, *, writes: bool) -> Child:
    """The skills of the conversation, each with what can be done about it."""
    if lines is None:
        return el("p", "The operator has switched skills off.")
    actions = {"on": ("Switch off", "off"), "off": ("Switch on", "on"), "waits": ("Read and decide", "on")}
    told = {"on": "", "off": "switched off here", "waits": "a new skill in the workspace that needs your yes"}
    items = []
    for each in lines:
        label, verb = actions[each.state]
        button = _command(label, f"/skills {verb} {each.name}", class_="quiet") if writes else None
        from_ = el("small", f" from {each.source}") if each.source else None
        name = el("span", el("strong", each.name), f" {each.about or told[each.state]}")
        items.append(el("li", name, from_, button))
    learn = _command("Turn what we have just done into a skill", "/skills learn") if writes else None
    if not items:
        return bare("spark", "No skills yet", _SKILLS, learn)
    return [el("p", _SKILLS), el("ul", items, class_="facts"), el("p", learn) if learn else None]


def _branch(files: Sequence[tuple[Sequence[str], views.FileLine]]) -> Child:
    """Files as a tree: folders open by themselves while they are few."""
    items = list[Html]()
    for first, group in groupby(files, key=lambda each: (each[0][0], len(each[0]) > 1)):
        name, is_folder = first
        inside = list(group)
        if is_folder:
            below = _branch([(names[1:], each) for names, each in inside])
            items.append(el("li", el("details", el("summary", f"{name}/", dir="auto"), below, open=len(files) <= 50)))
        else:
            items += [
                el(
                    "li",
                    el("a", name, href=f"/workspace/{quote(each.path)}", dir="auto"),
                    el("small", f" {_count(each.size, 'byte')}"),
                )
                for _, each in inside
            ]
    return el("ul", items, class_="tree") if items else None


def _file_change(each: views.FileChange) -> Html:
    counts = f" +{each.came} −{each.went}" if each.came or each.went else ""
    shown = change(each.diff) if each.diff else el("p", "This file is not text.")
    return el("details", el("summary", f"{each.path} ({each.how}){counts}", dir="auto"), shown, class_="pass")


class Seen(Struct, frozen=True, kw_only=True):
    """What an operator sees, as `Inside` gives it."""

    report: Mapping[str, Any]
    hours: Sequence[views.Hour]
    turns: Sequence[views.Running]
    stuck: Sequence[views.Stuck]
    filled: Sequence[views.Filled]
    costs: tuple[Sequence[views.Cost], Sequence[views.Cost], Sequence[views.Cost]]
    budget: float | None  # US dollars a day
    chains: Sequence[tuple[str, Sequence[views.LineageLink]]]
    settings: Sequence[tuple[str, str]]
    titles: Mapping[str, str]  # of platforms, by their names


def inside(seen: Seen, told: str) -> Child:
    """The gateway for its operator: what one sees in five seconds, what needs a hand, and then the rest."""
    per_day, models, platforms = seen.costs
    of_budget: Child = [
        "There is no limit on what everybody together can spend. ",
        el("a", "Set a budget", href="/settings#people"),
    ]
    if seen.budget is not None:
        of_budget = (
            f"Today: ${per_day[-1].usd:.4f} of the ${seen.budget:,.2f} that everybody together can spend in a day."
        )
    turns = [(_chat(each.key, seen), each.doing, str(each.step), f"{each.seconds:.0f} s") for each in seen.turns]
    filled = [
        (
            _chat(each.key, seen),
            meter(each.used, each.window),
            f"{each.used:,} of {each.window:,}",
            f"{each.messages:,}",
        )
        for each in seen.filled
    ]
    chains = [
        el("figure", el("figcaption", _chat(key, seen), dir="auto"), lineage(links)) for key, links in seen.chains
    ]
    by_platform = [replace(each, label=seen.titles.get(each.label, each.label)) for each in platforms]
    return [
        el("p", told, class_="notice", role="status") if told else None,
        _well(seen),
        el("div", _tiles(seen), class_="tiles"),
        section("What needs your help", _stuck(seen.stuck)) if seen.stuck else None,
        section("Platforms", el("div", _platforms(seen), class_="tiles")),
        section("In progress", _table(("Chat", "At", "Step", "Since"), turns)) if turns else None,
        section(
            "What it costs",
            el("p", of_budget),
            el("figure", el("figcaption", f"The last {len(per_day)} days"), _per_day(per_day)),
            _costs("Model", models),
            _costs("Platform", by_platform),
        ),
        section("Fullest windows", _table(("Chat", "Full", "Tokens", "Messages"), filled)) if filled else None,
        section("Compressed chats", chains) if chains else None,
        folded(
            "Settings that differ from the defaults",
            _table(("Key", "Value"), [(key, el("code", value)) for key, value in seen.settings])
            or el("p", "All settings are at their defaults."),
            class_="all",
        ),
        folded(
            "Everything that /statusz says",
            el("pre", json.dumps(seen.report, indent=2), dir="ltr", tabindex=0),
            class_="all",
        ),
    ]


def _chat(key: str, seen: Seen) -> str:
    """A chat, for people: the platform, and the ids there."""
    platform, *ids = key.split("/")
    return " · ".join([seen.titles.get(platform, platform), *(unquote(each.partition("=")[2] or each) for each in ids)])


def _well(seen: Seen) -> Html:
    """A sentence: whether messages are answered, and what is wrong."""
    report = seen.report
    asks = sum(each.asks for each in seen.turns)
    waiting, unsent = max(0, report["inbox"]["waiting"] - asks), report["outbox"]["unsent"]
    waits = [
        f"{_count(waiting, 'message')} being answered" if waiting else "",
        f"{_count(asks, 'message')} waiting for a person's answer" if asks else "",
        f"{_count(unsent, 'answer')} on the way" if unsent else "",
    ]
    now = ", ".join(filter(None, waits)) or "nothing waits"
    problems = [
        el("li", each["text"], " ", el("small", each["kind"].replace("_", " "), ", since ", _when(each["since"])))
        for each in report["problems"]
    ]
    if not problems:
        return el("p", f"All is well: {now}.", class_="well")
    moves = (
        "Legato answers messages, but something is wrong:"
        if report["moves"]
        else "Legato cannot answer messages at the moment:"
    )
    return el("div", el("strong", moves), el("ul", problems), el("small", f"Now: {now}."), class_="problems")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _tiles(seen: Seen) -> list[Html]:
    per_day, hours = seen.costs[0], seen.hours

    def chart(label: str, values: Sequence[float], told: Sequence[str], most: float = 0.0) -> Html:
        began = [f"{datetime.fromtimestamp(each.began_at, UTC):%H:%M} UTC" for each in hours]
        return columns(values, [f"{at}: {each}" for at, each in zip(began, told, strict=True)], label, most)

    turns = [_count(each.turns, "answer") for each in hours]
    slow = [f"{line}, 95 % of them within {_within(each.within)}" for line, each in zip(turns, hours, strict=True)]
    times = [_LONGER if each.within is None else each.within for each in hours]
    latest = next((each for each in reversed(hours) if each.turns), None)
    in_usd = any(each.usd for each in per_day)
    spent = [f"${each.usd:.4f}, {_count(each.tokens, 'token')}" for each in hours]
    today = f"${per_day[-1].usd:.2f}" if in_usd else f"{per_day[-1].tokens:,}"
    costs = chart("Spent in each hour", _spent(hours), spent)
    share = max((each.used / max(1, each.window) for each in seen.filled), default=0.0)
    full = [f"at most {each.fullest:.0%} full" for each in hours]
    return [
        _tile(
            "Answers in 24 hours" if len(hours) >= _DAY else "Answers since the start",
            f"{sum(each.turns for each in hours):,}",
            chart("Answers in each hour", [each.turns for each in hours], turns),
        ),
        _tile("Almost all answers within", _within(latest.within) if latest else "–", chart("Seconds", times, slow)),
        _tile("Spent today" if in_usd else "Tokens today", today, costs),
        _tile("Fullest window", f"{share:.0%}", chart("Fullest window", [each.fullest for each in hours], full, 1.0)),
    ]


def _per_day(costs: Sequence[views.Cost]) -> Html:
    told = [
        f"{datetime.fromtimestamp(float(each.label), UTC):%d %b}: ${each.usd:.4f}, {_count(each.tokens, 'token')}"
        for each in costs
    ]
    return columns(_spent(costs), told, "Spent each day")


def _spent(costs: Sequence[views.Cost] | Sequence[views.Hour]) -> list[float]:
    """Dollars; where nothing has a price, tokens."""
    return [each.usd for each in costs] if any(each.usd for each in costs) else [each.tokens for each in costs]


def _tile(label: str, figure: str, chart: Child) -> Html:
    return el("div", el("small", label), el("strong", figure), chart, class_="tile")


def _within(seconds: float | None) -> str:
    return "longer than 5 minutes" if seconds is None else f"{seconds:g} s"


def _platforms(seen: Seen) -> list[Html]:
    """Each platform: whether it is read, when somebody last wrote there, and what waits to be shown."""
    unsent = seen.report["outbox"]["platforms"]
    return [
        el(
            "div",
            el("b", seen.titles.get(name, name)),
            el("span", _READER.get(each["reader"], each["reader"]), class_="well" if reads else "reason"),
            el("small", "Last message ", _when(each["last_update"])),
            el("small", "Last answer ", _when(each["last_answer"])) if each["last_answer"] else None,
            el("small", f"{sum(unsent[name].values()):,} to be shown") if unsent.get(name) else None,
            class_="tile",
        )
        for name, each in seen.report["platforms"].items()
        for reads in [each["reader"] == "reads"]
    ]


_READER: Final = {
    "reads": "Connected",
    "not started": "Not started yet",
    "stands by": "Another process has it",
    "unreached": "Cannot be reached",
    "pauses": "Waits before it tries again",
    "ended": "Has ended",
}


def _when(written: str | None) -> Child:
    return "–" if written is None else moment(datetime.fromisoformat(written).timestamp())


_LONGER: Final = 600.0  # seconds, for a time that is longer than any that is counted


def _costs(what: str, costs: Sequence[views.Cost]) -> Child:
    rows = [(each.label, f"{each.calls:,}", f"{each.tokens:,}", f"${each.usd:.4f}") for each in costs]
    return _table((what, "Calls", "Tokens", "Cost"), rows)


def _side_of(number: int, content: Child) -> str | None:
    """The class of a cell: figures are on the right, except in the first column."""
    return "right" if number and isinstance(content, str) and content.startswith(_FIGURES) else None


def _table(head: Sequence[str], rows: Sequence[Sequence[Child]]) -> Child:
    """Rows whose first cell names them; figures are on the right."""
    if not rows:
        return None
    cells = [
        [el("td", each, dir="auto", class_=_side_of(number, each)) for number, each in enumerate(row)] for row in rows
    ]
    first = el("tr", [el("th", name, class_=_side_of(number, rows[0][number])) for number, name in enumerate(head)])
    return el("div", el("table", first, [el("tr", row) for row in cells]), class_="table", tabindex=0)


def _stuck(stuck: Sequence[views.Stuck]) -> Child:
    labels = {"retry": "Show again", "drop": "Drop", "replay": "Replay", "bury": "Drop"}
    items = [
        el(
            "li",
            el(
                "header",
                el("span", each.state, class_="who"),
                el("span", f"{each.platform}:{each.chat}"),
                moment(each.at),
            ),
            el("p", each.text[:_CUT], dir="auto", class_="plain"),
            el("p", each.reason, class_="reason") if each.reason else None,
            [submit(labels[verb], form="order", name="order", value=f"{verb} {each.id}") for verb in each.verbs],
        )
        for each in stuck
    ]
    return el("ul", items, class_="stuck")


def login(assets: Mapping[str, str], *, passwords: bool, links: bool, problem: str, name: str, to: str) -> bytes:
    """The page for somebody who is not logged in: by a password, or by a link of this machine. It says nothing about
    what is behind it, and leads on to `to`."""
    # a telephone would begin it with a capital
    who = el("input", name="name", value=name, autocomplete="username", autocapitalize="none", required=True)
    word = el("input", name="password", type="password", autocomplete="current-password", required=True)
    fields = [hidden(to=to), el("label", "Name", who), el("label", "Password", word)]
    form = el("form", fields, submit("Log in", class_="send"), method="post", action="/login")
    how = [
        el(
            "p",
            "This page is for the person who runs Legato on this machine. A login link lets a browser in for 30 days.",
        ),
        el("p", "To get a link, type this command in a terminal here, and open the link it prints:"),
        el("p", el("code", "legato access link")),
    ]
    owners = folded("Log in as the owner of this machine", how) if passwords else how
    why = el("p", problem, role="alert", class_="problem") if problem else None
    return _card(assets, "Log in · Legato", "Legato", [why, form if passwords else None, owners if links else None])


def told(assets: Mapping[str, str], title: str, text: str) -> bytes:
    """A page with one sentence."""
    return _card(assets, f"{title} · Legato", title, [el("p", text), el("p", el("a", "To the chat", href="/"))])


def asked(assets: Mapping[str, str], question: str, yes: str, action: str, fields: Mapping[str, str]) -> bytes:
    """A page with one question before something is done, for who has no script. A `yes` sends the fields."""
    does = submit(yes, class_="bad" if yes == DELETE else None)
    form = el("form", hidden(**fields), does, method="post", action=action, class_="buttons")
    body = [el("p", question, dir="auto"), form, el("p", el("a", CANCEL, href=f"/{END}"))]
    return _card(assets, "Legato", "Legato", body)


def _card(assets: Mapping[str, str], window: str, title: str, body: Child) -> bytes:
    head = el("h1", el("img", src=assets["icon.svg"], alt=""), title)
    return document(window, el("main", head, body, class_="login"), assets=assets)
