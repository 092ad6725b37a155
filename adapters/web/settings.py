"""The settings, for admins: a model first, then the search of the web, platforms and people, then every section as it
describes itself. Every form works without the script, and no secret ever stands in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast
from urllib.parse import urlencode

from msgspec import Struct

from adapters.web.icons import icon
from adapters.web.log import moment
from adapters.web.markup import Child, Html, el, folded, hidden, link, section, submit
from adapters.web.pages import Frame, worded
from adapters.web.platform import NAME
from gateway.domain.views import (
    Blank,
    Chosen,
    Part,
    PlatformBlank,
    ProviderBlank,
    Saved,
    SearchBlank,
    Settings,
    SettingUp,
    Tried,
)
from gateway.runtime.patterns import table

_PEOPLE: Final = f"adapters.{NAME}.people"
_ALLOW: Final = "access.allow"
_SENTENCES: Final = "Nothing was saved:"
_SAID: Final = "set "  # begins the name of a field
_SHOWN: Final = "was "  # begins the name of what it held when the page was made
_FIRST: Final = (
    ("tools", "tool", "Tools", "Which tools the model has, who may use them, and when the model asks"),
    ("tools.skills", "spark", "Skills", "How the bot does certain kinds of work"),
    ("tools.mcp", "plug", "MCP servers", "Tools of other programs"),
    ("reminders", "bell", "Schedules", "Limits for reminders and scheduled prompts"),
    ("adapters.api.hooks", "hook", "Hooks", "What other programs write into a chat"),
    ("keys", "key", "Keys", "For programs that talk to the bot over its API"),
)
_MORE: Final = {  # what else belongs to a section, beside the sections in it
    "tools.skills": ("/skills", "The skills of your chat"),
    "reminders": ("/window", "Your reminders and schedules"),
    "adapters.api.hooks": ("/settings?at=adapters.api", "The server that listens for hooks"),
    "keys": ("/settings?at=adapters.api", "The server that takes keys"),
}
_CALLED: Final = {heading: dict([line.split(": ", 1) for line in lines]) for heading, lines in table(__file__).items()}
_TITLES: Final = _CALLED["titles"] | {at: title for at, _, title, _ in _FIRST}
_BASIC: Final = {  # of long sections what most people fill in; the rest is folded
    "tools.mcp": ("enabled", "command", "url", "headers"),
    "adapters.api.hooks": ("secret", "chat", "do", "task"),
}
_LET_IN: Final = "Let someone in with their code"
_LAST: Final = "Keeping it running"  # the group of all other sections
_AGAIN: Final = "Legato is restarting. This page will be back in a few seconds: "
_NOT_MADE: Final = "To make a key, log in with a link from Legato's machine, or type this in a terminal there: "
_ONCE: Final = "Copy this key now. It is never shown again:"


class Done(Struct, frozen=True, kw_only=True):
    """The result of a form: where it is, and what is said there. `chosen`: what it held, without secrets. Of one that
    was refused, `typed` are the fields, and `problems` say why."""

    where: str = ""
    told: Child = None
    chosen: Chosen | None = None
    offered: Sequence[str] = ()
    typed: Mapping[str, str] = {}
    problems: Sequence[str] = ()

    def at(self, where: str) -> Done:
        """The same, if it is the result of this form; else that of none."""
        return self if where == self.where else Done()

    def wrong(self, key: str) -> list[str]:
        """What is wrong with the setting of this key."""
        named = re.compile(rf"(?<![\w.]){re.escape(key)}(?!\w)")
        return [each for each in self.problems if named.search(each)]


async def done(desk: SettingUp, fields: Mapping[str, str], *, owner: bool) -> Done:
    """Do what a form asks. `owner`: they came by a link of this machine."""
    where, verb = fields.get("where", ""), fields.get("verb", "save")
    at = fields.get("at", "" if where in ("part", "people") else f"adapters.{where}")
    called = fields.get("name", "").strip() if where in ("part", "keys") else ""
    if where == "model":
        name = fields.get("name", "").strip()
        chosen = Chosen(provider=fields.get("provider", ""), name=name, address=fields.get("address", "").strip())
        key = fields.get("key", "").strip()
        if verb == "try":
            tried = await desk.try_model(chosen, key, owner=owner)
            return Done(where=where, told=_tried([tried]), chosen=chosen, offered=tried.offered)
        if not name and "name" in fields:
            return Done(
                where=where, told=el("p", "Choose a model first.", class_="reason", role="alert"), chosen=chosen
            )
        saved = await desk.save_model(chosen, key, owner=owner)
        next_ = el("p", el("a", "Say something to it", href="/#end")) if saved.files else None
        return Done(where=where, told=[_saved(saved), next_], chosen=chosen)
    if where == "search":
        chosen = Chosen(provider=fields.get("provider", ""), name="", address=fields.get("address", "").strip())
        key = fields.get("key", "").strip()
        if verb == "try":
            return Done(where=where, told=_tried([await desk.try_search(chosen, key, owner=owner)]), chosen=chosen)
        return Done(where=where, told=_saved(await desk.save_search(chosen, key, owner=owner)), chosen=chosen)
    if where == "again":
        saved = await desk.start_again()
        back = el("p", _AGAIN, el("a", "load it", href="/settings"), ".", class_="well back", role="status")
        return Done(where=where, told=_saved(saved) if saved.problems else back)
    if where == "keys":
        return Done(where=where, told=await _keys_changed(desk, fields, verb, called, owner=owner))
    if verb == "try":
        return Done(where=where, told=_tried(await desk.try_platform(where)))
    if verb == "remove":
        saved = await desk.remove(at, called, owner=owner)
        saved = await _with_words(desk, fields, called, saved, owner=owner) if at == _PEOPLE else saved
        return Done(where=where, told=_saved(saved))
    typed = {name: text.replace("\r\n", "\n").strip() for name, text in fields.items()}
    said = {name.removeprefix(_SAID): text for name, text in typed.items() if name.startswith(_SAID)}
    shown = {name.removeprefix(_SHOWN): text for name, text in typed.items() if name.startswith(_SHOWN)}
    shown = {name: "" for name, text in said.items() if text} | shown  # an empty secret is none
    said |= {"enabled": "false"} if verb == "off" else {}
    saved = await desk.save(at, called, said, shown, owner=owner)
    saved = await _with_words(desk, fields, called, saved, owner=owner) if at == _PEOPLE else saved
    told: Child = _saved(saved)
    if saved.files and verb == "save" and where not in ("part", "people"):
        told = [told, _tried(await desk.try_platform(where))]
    return Done(where=where, told=told, typed=typed if saved.problems else {}, problems=saved.problems)


async def _with_words(desk: SettingUp, fields: Mapping[str, str], name: str, saved: Saved, *, owner: bool) -> Saved:
    """Let a person of the page write, or no longer, beside what was saved of them."""
    who, writes = f"{NAME}:{name}", "writes" in fields and fields.get("verb") != "remove"
    if saved.problems:
        return saved
    now = next(each.value for each in (await desk.seen()).people if each.name == _ALLOW)
    names = [each for each in now.split(", ") if each]
    if writes == (who in names):
        return saved
    wanted = [*names, who] if writes else [each for each in names if each != who]
    more = await desk.save("", "", {_ALLOW: ", ".join(wanted)}, {_ALLOW: now}, owner=owner)
    files = tuple(dict.fromkeys((*saved.files, *more.files)))
    return Saved(files=files, now=(*saved.now, *more.now), later=more.later or saved.later, problems=more.problems)


async def _keys_changed(desk: SettingUp, fields: Mapping[str, str], verb: str, name: str, *, owner: bool) -> Child:
    if verb == "remove":
        there = await desk.remove_key(name)
        told = f"The key {name} is removed, and stops working within ten seconds." if there else "There is no such key."
        return el("p", told, class_="well", role="status")
    made, told = await desk.add_key(name, fields.get("kind", ""), fields.get("cap", "").strip(), owner=owner)
    if not made:
        return el("p", told, class_="reason", role="alert")
    return el("div", el("p", _ONCE), el("pre", el("code", told)), class_="once", role="status")


def page(
    settings: Settings, frame: Frame, provider: str, last: Done, platforms: Mapping[str, Any], find: str = ""
) -> Child:
    """The page. `provider`: the one whose model is being chosen; "": the present one's. `platforms`: those that are
    served, as /statusz has them. `find`: what somebody looks for among all settings."""
    tried = last.chosen if last.where == "model" else None
    chosen, csrf = tried or settings.model, frame.csrf
    named = provider or (chosen.provider if chosen.name or tried else "")
    at = next((each for each in settings.providers if each.name == named), None)
    found = [
        _platform(each, frame, last, platforms.get(each.name), again=settings.again) for each in settings.platforms
    ]
    return [
        last.told if last.where == "again" else _waiting(settings, csrf),
        el(
            "p",
            "For now, answers come from a small built-in model, which only follows a few simple rules. Connect a real "
            "model below, or ",
            el("a", "look around first", href="/"),
            ".",
            class_="hello",
        )
        if frame.embedded
        else None,
        section("Model", _providers(settings, at), _model(at, chosen, csrf, last) if at else None, id="model"),
        section("Web search", _search(settings, csrf, last), id="search"),
        section("Platforms", found, id="platforms"),
        section(
            "People and spending",
            last.told if last.where == "people" else None,
            _form(
                "people",
                csrf,
                [_asked(each, last.at("people"), "", settings.example) for each in settings.people],
                _button("Save"),
            ),
            el("p", _to("Give someone a name and a password for this page", _PEOPLE)),
            id="people",
        ),
        section(
            "Everything else",
            el("div", [_card(*each) for each in _FIRST], class_="cards"),
            el("h3", "All settings", id="all"),
            _finding(find),
            _groups(settings.parts, find.casefold()),
        ),
        el(
            "p",
            el(
                "small",
                "Legato keeps the settings in ",
                el("code", settings.file),
                " and leaves your comments as they are. It keeps keys and tokens in ",
                el("code", settings.secrets),
                ", and never shows them.",
            ),
        ),
    ]


def _to(label: Child, at: str, **name: str) -> Html:
    return el("a", label, href=f"/settings?{urlencode({'at': at, **name})}")


def _card(at: str, picture: str, title: str, told: str) -> Html:
    return _to([icon(picture), el("span", el("b", title), el("small", told))], at)


def _finding(find: str) -> Html:
    told = {"placeholder": "Find a setting", "aria_label": "Find a setting"}
    field = el("input", type="search", name="find", value=find, **told)
    return el("form", field, submit("Find"), action="/settings#all", role="search")


def _groups(parts: Sequence[Part], find: str) -> Child:
    """All sections in groups, or those that have to do with what somebody looks for, with the settings themselves."""
    found: dict[str, list[Html]] = {group: [] for group in _CALLED["groups"]}
    for part in parts:
        keys = [each.name for each in part.fields if find and find in _told(each)]
        if keys or find in f"{title_of(part.at)} {part.at} {part.about}".casefold():
            found[_group(part.at)].append(_link(part, keys))
    groups = [
        folded(group, el("ul", links, class_="parts"), class_="all", open=bool(find))
        for group, links in found.items()
        if links
    ]
    return groups or el("p", "No setting has this in its name, or in what it does.")


def _group(at: str) -> str:
    first = at.partition(".")[0]
    return next((group for group, names in _CALLED["groups"].items() if first in names.split()), _LAST)


def _told(blank: Blank) -> str:
    """The words in which a setting can be found."""
    return f"{_CALLED['labels'].get(blank.name) or _said(blank.name)} {blank.name} {blank.label}".casefold()


def _link(part: Part, keys: Sequence[str] = ()) -> Html:
    """A section, with those of its settings that were looked for."""
    named = [[" ", el("code", each)] for each in keys or (part.at,)]
    return el("li", _to(title_of(part.at), part.at), el("small", _coded(_first(part)), named))


def _first(part: Part) -> str:
    return part.about.partition(". ")[0].removesuffix(".").partition(" (docs/")[0]


def title_of(at: str, name: str = "") -> str:
    """The title of a section's page."""
    return name or _TITLES.get(at) or _said(at.removeprefix("adapters.").removeprefix("tools.").replace(".", ": "))


def _said(key: str) -> str:
    words = " ".join(_CALLED["words"].get(each, each) for each in key.split("_"))
    return words[:1].upper() + words[1:]


def _way(at: str) -> Html:
    words = [icon("left"), title_of(at) if at else "Settings"]
    return el("p", _to(words, at) if at else el("a", words, href="/settings"), class_="way")


def _coded(text: str) -> list[Child]:
    """A text whose words between backticks are code."""
    return [el("code", each) if number % 2 else each for number, each in enumerate(text.split("`"))]


def part_page(part: Part, settings: Settings, csrf: str, last: Done) -> Child:
    """A section, with the form of its fields. Of one that holds several, a list of these and the form of one."""
    inner = [each for each in settings.parts if part.at and each.at.startswith(f"{part.at}.")]
    is_new = part.names is not None and not part.name
    who = _text("name", "Name", last.typed.get("name", "")) if is_new else hidden(name=part.name)
    verbs = [_button("Save"), _button("Remove", "remove") if part.name else None]
    writes = _writes(part.name, settings, last) if part.at == _PEOPLE else None
    form = _form("part", csrf, [hidden(at=part.at), who, _folded(part, last), writes], verbs)
    names = [el("li", _to([icon("right"), name], part.at, name=name)) for name in part.names or ()]
    there = el("ul", names, class_="parts")
    return [
        _way(part.at if part.name else ""),
        el("p", _coded(part.about)) if part.about else None,
        last.told,
        _waiting(settings, csrf),
        [there if names else None, section("Add one", form)] if is_new else form if part.fields else None,
        section("More", el("ul", [_link(each) for each in inner], class_="parts")) if inner else None,
        _more(part.at),
    ]


def _folded(part: Part, last: Done) -> Child:
    """The fields of a section; of a long one, those that few need, and that nobody changed, behind a line."""
    at = ".".join(filter(None, (part.at, part.name or last.typed.get("name", "")))) + "."
    basic = _BASIC.get(part.at, [each.name for each in part.fields])
    rest = [
        each
        for each in part.fields
        if each.name not in basic and not each.is_set and each.value in ("", each.usual.strip('"'))
        if not last.wrong(f"{at}{each.name}")
    ]
    more = folded("More settings", [_asked(each, last, at) for each in rest], class_="all")
    return [[_asked(each, last, at) for each in part.fields if each not in rest], more if rest else None]


def _writes(name: str, settings: Settings, last: Done) -> Html:
    """Whether a person of the page may write; a new one may."""
    allowed = next(each.value for each in settings.people if each.name == _ALLOW).split(", ")
    ticked = "writes" in last.typed if last.typed else not name or f"{NAME}:{name}" in allowed
    tick = el("input", type="checkbox", name="writes", value="true", checked=ticked)
    told = ["People who are not in ", el("code", _ALLOW), " can only read."]
    return el("label", tick, el("span", el("span", "May write", class_="named"), el("small", told)), class_="tick")


def _waiting(settings: Settings, csrf: str) -> Child:
    """What holds only from the next start on, and the way there."""
    if not settings.waits:
        return None
    told = el("p", f"These settings apply from the next start: {', '.join(settings.waits)}.")
    return el("div", told, _new_start(csrf) if settings.again else None, class_="step")


def _new_start(csrf: str) -> Html:
    return _form("again", csrf, None, _button("Start again now"))


def _more(at: str) -> Child:
    return el("p", el("a", _MORE[at][1], href=_MORE[at][0])) if at in _MORE else None


def keys_page(settings: Settings, csrf: str, last: Done, *, owner: bool) -> Child:
    """The keys of other programs: a new one is shown once, and each can be taken back."""
    kinds = (("person", "One person"), ("front end", "A program that speaks for several people"), ("admin", "An admin"))
    choice = el("select", [el("option", told, value=kind) for kind, told in kinds], name="kind")
    fields = [
        _text("name", "Name", "", hint="such as anna"),
        el("label", "For", choice),
        _text("cap", "What this key may spend in a day, in US dollars", "", hint="no limit of its own"),
    ]
    items = [
        el("li", el("span", line), _form("keys", csrf, hidden(name=name), _button("Remove", "remove")))
        for name, line in settings.keys.items()
    ]
    return [
        _way(""),
        _waiting(settings, csrf),
        el("p", "Anyone who has a key can talk to the bot over its API, as the person named in the key."),
        last.told,
        el("ul", items, class_="facts") if items else None,
        section("Make one", _form("keys", csrf, fields, _button("Make a key")))
        if owner
        else el("p", _NOT_MADE, el("code", "legato keys add"), "."),
        _more("keys"),
    ]


def _providers(settings: Settings, at: ProviderBlank | None) -> Html:
    groups = [("In the cloud", False), ("A server of your own", True), ("None, to try Legato", None)]
    options = [
        el(
            "optgroup",
            [
                el("option", each.title, value=each.name, selected=at is not None and each.name == at.name)
                for each in settings.providers
                if each.own is own
            ],
            label=label,
        )
        for label, own in groups
    ]
    none = el("option", "Choose a provider", value="", selected=True) if at is None else None
    choice = el("select", none, options, name="provider", aria_label="Provider", id="provider")
    return el("form", choice, submit("Choose"), action="/settings", class_="orders")


def _model(at: ProviderBlank, chosen: Chosen, csrf: str, last: Done) -> Child:
    told = last.told if last.where == "model" else None
    if at.own is None:
        return [told, _form("model", csrf, hidden(provider=at.name), _button("Save"))]
    own = chosen if chosen.provider == at.name else Chosen(provider=at.name, name="")
    there = f"https://{at.keys_at.removeprefix('https://')}"
    way = el("a", at.keys_at, href=there, rel="noopener noreferrer", target="_blank")
    where = el("small", " Get one at ", way, ".") if at.keys_at and not at.key.is_set else None
    label = ["Key (if it needs one)" if at.own else "Key", where]
    fields = [
        hidden(provider=at.name),
        _secret("key", label, is_set=at.key.is_set) if at.key.name else None,
        _text("address", "Address", own.address or at.address) if at.address else None,
        _text("name", "Model", own.name or at.example, offered=last.offered),
    ]
    return [told, _form("model", csrf, fields, [_button("Test", "try"), _button("Save")])]


def _search(settings: Settings, csrf: str, last: Done) -> Child:
    """Which search finds pages of the web; none does until somebody chooses one."""
    mine = last.where == "search"
    chosen = (last.chosen if mine else None) or settings.search
    options = [
        el("option", "Off", value="", selected=not chosen.provider),
        [
            el("option", f"{each.title} ({_needs(each)})", value=each.name, selected=each.name == chosen.provider)
            for each in settings.searches
        ],
    ]
    own = [each for each in settings.searches if each.own]
    keyed = [each for each in settings.searches if each.key.name]
    where = [
        [" · ", el("a", each.title, href=each.keys_at, rel="noopener noreferrer", target="_blank")]
        for each in keyed
        if each.keys_at
    ]
    names = " or ".join(each.title for each in keyed)
    fields = [
        el("label", "Search with", el("select", options, name="provider")),
        _secret(
            "key",
            [f"Key, only for {names}", el("small", " Get one", where)],
            is_set=any(each.key.is_set for each in keyed),
        ),
        _text("address", f"Address, only for {own[0].title}", chosen.address, hint=own[0].example) if own else None,
    ]
    return [
        el("p", "The words of a search go to the provider that you choose. So the search is off until you choose one."),
        last.told if mine else None,
        _form("search", csrf, fields, [_button("Test", "try"), _button("Save")]),
        el("p", _to("More settings of the search", "tools.search")),
    ]


def _needs(search: SearchBlank) -> str:
    return "your own server" if search.own else "with a key" if search.key.name else "no key"


def _platform(each: PlatformBlank, frame: Frame, last: Done, served: Any, *, again: bool) -> Html:
    fields = [
        hidden(**{f"{_SAID}enabled": "true", f"{_SHOWN}enabled": str(each.enabled).lower()}),
        el("p", each.guide) if each.guide and not each.enabled else None,
        [_asked(blank, last.at(each.name), f"adapters.{each.name}.") for blank in each.fields],
    ]
    verbs: list[Html] = [_button("Save and switch on" if not each.enabled else "Save")]
    if each.enabled:
        verbs += [_button("Check", "try"), _button("Switch off", "off")]
    state = el("span", "On", class_="badge on") if each.enabled else el("span", "Off", class_="badge")
    mine = last.where == each.name
    waits = each.enabled and (served is None or not served["last_update"])
    return el(
        "details",
        el("summary", el("b", each.title), state),
        last.told if mine else None,
        _step(each, frame, served, again=again) if each.enabled else None,
        _form(each.name, frame.csrf, fields, verbs),
        class_="pass",
        open=mine or waits or None,
        id=each.name,
        data_waits=(waits and served is not None) or None,
    )


def _step(each: PlatformBlank, frame: Frame, served: Any, *, again: bool) -> Child:
    """What is left to do until messages come in."""
    if served is None:
        waits = el("p", f"{each.title} will work after the next start of Legato.", class_="step")
        return [waits, _new_start(frame.csrf) if again else None]
    if served["reader"] != "reads":
        told = f"{each.title} is not connected yet ({served['reader']}). Press Check to see why."
        return el("p", told, class_="step reason")
    if not served["last_update"]:
        return el("p", f"Connected. Write to the bot on {each.title} now. This page will show it.", class_="step")
    seen = moment(datetime.fromisoformat(served["last_update"]).timestamp())
    return [
        el("p", "Messages come in; the last one ", seen, ".", class_="step well"),
        el("p", el("small", "The bot gives a code to people it does not know.")),
        el(
            "div",
            worded(frame, _LET_IN, "/pair", hint="such as H4KD-7XQM", most=60),
            class_="orders",
        ),
    ]


def _form(where: str, csrf: str, fields: Child, verbs: Child) -> Html:
    buttons = el("p", verbs, class_="orders")
    said = [hidden(csrf=csrf, where=where), fields, buttons]
    return el("form", said, method="post", action="/settings", class_="settings", autocomplete="off")


def _button(label: str, verb: str = "save") -> Html:
    return submit(label, name="verb", value=verb, class_="send" if verb == "save" else None)


_SAYS_NOTHING: Final = "use it"  # beside "Switched on"


def _asked(blank: Blank, last: Done, at: str, example: str = "") -> Child:
    """A field of a section, by its name, its key (behind `at`) and what it means; and beside it what it holds now, so
    that only what somebody changes is written. What was refused stands in it, with what is wrong."""
    value = last.typed.get(f"{_SAID}{blank.name}", "") if last.typed else blank.value
    wrong = last.wrong(f"{at}{blank.name}")
    invalid = "true" if wrong else None
    usual = "" if blank.usual in ("null", "[]", "{}") else blank.usual
    hints = {"access": f"such as {example}" if example else "", "budgets": "no limit"}
    hint = hints.get(blank.name.partition(".")[0], usual)
    said, more = blank.label, cast(Child, None)
    if "." not in blank.name:
        said = _CALLED["labels"].get(blank.name) or _said(blank.name)
        more = None if blank.label == _SAYS_NOTHING else el("small", _coded(blank.label))
    more = [more, [el("small", each, class_="reason") for each in wrong]]
    name = el("span", said, " ", el("code", blank.name), class_="named")
    if blank.kind == "secret":
        return _secret(f"{_SAID}{blank.name}", [name, more], is_set=blank.is_set, shown=usual)
    shown = f"{_SHOWN}{blank.name}"  # as the first form had it: what another tab wrote meanwhile is not this one's
    was = hidden(**{shown: last.typed.get(shown, blank.value)})
    if blank.kind == "flag":
        tick = el("input", type="checkbox", name=f"{_SAID}{blank.name}", value="true", checked=value == "true")
        return [was, el("label", tick, el("span", name, more), class_="tick")]
    if blank.kind == "choice":
        options = [el("option", each or "–", value=each, selected=each == value) for each in blank.choices]
        field = el("select", options, name=f"{_SAID}{blank.name}", aria_invalid=invalid)
    elif blank.kind == "long":
        how: dict[str, str | int | None] = {"rows": 4, "spellcheck": "false", "dir": "auto", "aria_invalid": invalid}
        field = el("textarea", f"\n{value}", name=f"{_SAID}{blank.name}", **how)
    else:
        return [was, _text(f"{_SAID}{blank.name}", name, value, hint=hint, more=more, invalid=invalid)]
    return [was, el("label", name, field, more)]


def _text(
    name: str,
    label: Child,
    value: str,
    *,
    offered: Sequence[str] = (),
    hint: str = "",
    more: Child = None,
    invalid: str | None = None,
) -> Html:
    choices = el("datalist", [el("option", value=each) for each in offered], id=f"of-{name}") if offered else None
    field = el(
        "input",
        type="text",
        name=name,
        value=value,
        list=f"of-{name}" if offered else None,
        placeholder=hint or None,
        spellcheck="false",
        dir="auto",
        aria_invalid=invalid,
    )
    return el("label", label, field, choices, more)


def _secret(name: str, label: Child, *, is_set: bool, shown: str = "") -> Html:
    hint = f"{shown} is set; leave it empty to keep it".strip() if is_set else ""
    field = el("input", type="password", name=name, placeholder=hint, autocomplete="new-password")
    return el("label", el("span", label), field)


def _tried(found: Sequence[Tried]) -> Child:
    return [
        [
            el("p", each.told, class_="well" if each.ok else "reason", role="status" if each.ok else "alert"),
            el("ul", [el("li", link(at, title)) for title, at in each.found]) if each.found else None,
        ]
        for each in found
    ]


def _saved(saved: Saved) -> Child:
    if saved.problems:
        told = [el("li", each) for each in saved.problems]
        return el("div", _SENTENCES, el("ul", told), class_="reason", role="alert")
    if not saved.files:
        return el("p", "Nothing has changed.", role="status")
    now = f" These settings apply from now on: {', '.join(saved.now)}." if saved.now else ""
    later = f" These settings apply from the next start: {', '.join(saved.later)}." if saved.later else ""
    return el("p", f"Saved.{now}{later}", class_="well", role="status")
