"""The settings, for admins: a model first, then platforms, then people. Every form works without the script;
no secret ever stands in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from adapters.web.markup import Child, Html, el
from gateway.domain.views import Blank, Chosen, PlatformBlank, ProviderBlank, Saved, Settings, SettingUp, Tried

_SENTENCES: Final = "Nothing was saved:"


class Done(Struct, frozen=True, kw_only=True):
    """What came of a form: where it stands, and what is said there. `chosen`: what it held, without secrets."""

    where: str = ""
    told: Child = None
    chosen: Chosen | None = None
    offered: Sequence[str] = ()


async def done(desk: SettingUp, fields: Mapping[str, str]) -> Done:
    """Do what a form asks."""
    where, verb = fields.get("where", ""), fields.get("verb", "save")
    if where == "model":
        name = fields.get("name", "").strip()
        chosen = Chosen(provider=fields.get("provider", ""), name=name, address=fields.get("address", "").strip())
        key = fields.get("key", "").strip()
        if verb == "try":
            tried = await desk.try_model(chosen, key)
            return Done(where=where, told=_tried([tried]), chosen=chosen, offered=tried.offered)
        if not name:
            return Done(
                where=where, told=el("p", "Choose a model first.", class_="reason", role="alert"), chosen=chosen
            )
        return Done(where=where, told=_saved(await desk.save_model(chosen, key)), chosen=chosen)
    if where == "people":
        return Done(where=where, told=_saved(await desk.save_people(fields)))
    if verb == "try":
        return Done(where=where, told=_tried(await desk.try_platform(where)))
    given = {name: value.strip() for name, value in fields.items()}
    return Done(where=where, told=_saved(await desk.save_platform(where, verb != "off", given, given)))


def page(settings: Settings, csrf: str, provider: str, last: Done, *, embedded: bool) -> Child:
    """The page. `provider`: the one whose model is being chosen; "": the present one's."""
    chosen = last.chosen or settings.model
    named = provider or (chosen.provider if chosen.name or last.chosen else "")
    at = next((each for each in settings.providers if each.name == named), None)
    return [
        el(
            "p",
            "A small embedded model answers so far, by a few rules. Connect a real one here; or ",
            el("a", "look around first", href="/"),
            ".",
        )
        if embedded
        else None,
        el(
            "section",
            el("h2", "Model"),
            _providers(settings, at),
            _model(at, chosen, csrf, last) if at else None,
            id="model",
        ),
        el(
            "section",
            el("h2", "Platforms"),
            [_platform(each, csrf, last) for each in settings.platforms],
            id="platforms",
        ),
        el(
            "section",
            el("h2", "People and spending"),
            last.told if last.where == "people" else None,
            _form("people", csrf, [_field(each, settings.example) for each in settings.people], _button("Save")),
            id="people",
        ),
        el(
            "p",
            el(
                "small",
                "Settings stand in ",
                el("code", settings.file),
                ", with your own comments as they are; keys and tokens in ",
                el("code", settings.secrets),
                ", and are never shown.",
            ),
        ),
    ]


def _providers(settings: Settings, at: ProviderBlank | None) -> Html:
    """The way to the form of a provider."""
    groups = [("In the cloud", False), ("A server of your own", True)]
    options = [
        el(
            "optgroup",
            [
                el("option", each.title, value=each.name, selected=at is not None and each.name == at.name)
                for each in settings.providers
                if each.own == own
            ],
            label=label,
        )
        for label, own in groups
    ]
    choice = el("select", options, name="provider", aria_label="Provider", id="provider")
    return el("form", choice, el("button", "Choose", type="submit"), action="/settings", class_="orders")


def _model(at: ProviderBlank, chosen: Chosen, csrf: str, last: Done) -> Child:
    own = chosen if chosen.provider == at.name else Chosen(provider=at.name, name="")
    key = at.key if at.key.name else None
    where = [
        " Get one at ",
        el(
            "a",
            at.keys_at,
            href=f"https://{at.keys_at.removeprefix('https://')}",
            rel="noopener noreferrer",
            target="_blank",
        ),
        ".",
    ]
    fields = [
        el("input", type="hidden", name="provider", value=at.name),
        _secret(
            "key", f"Key{' (if it needs one)' if at.own else ''}", is_set=key.is_set, more=where if at.keys_at else None
        )
        if key
        else None,
        _text("address", "Address", own.address or at.address) if at.address else None,
        _text("name", "Model", own.name or at.example, offered=last.offered),
    ]
    return [
        last.told if last.where == "model" else None,
        _form("model", csrf, fields, [_button("Test", "try"), _button("Save")]),
    ]


def _platform(each: PlatformBlank, csrf: str, last: Done) -> Html:
    fields = [
        el("p", each.guide) if each.guide else None,
        [_secret(blank.name, blank.label[:1].upper() + blank.label[1:], is_set=blank.is_set) for blank in each.tokens],
        [_field(blank) for blank in each.asked],
    ]
    verbs: list[Html] = [_button("Save and switch on" if not each.enabled else "Save")]
    if each.enabled:
        verbs += [_button("Check", "try"), _button("Switch off", "off")]
    state = el("span", "on", class_="good") if each.enabled else el("small", "off")
    mine = last.where == each.name
    return el(
        "details",
        el("summary", el("b", each.title), " ", state),
        last.told if mine else None,
        _form(each.name, csrf, fields, verbs),
        class_="pass",
        open=mine or None,
        id=each.name,
    )


def _form(where: str, csrf: str, fields: Child, verbs: Child) -> Html:
    hidden = [
        el("input", type="hidden", name="csrf", value=csrf),
        el("input", type="hidden", name="where", value=where),
    ]
    buttons = el("p", verbs, class_="orders")
    return el("form", hidden, fields, buttons, method="post", action="/settings", class_="settings", autocomplete="off")


def _button(label: str, verb: str = "save") -> Html:
    return el("button", label, type="submit", name="verb", value=verb, class_="send" if verb == "save" else None)


def _field(blank: Blank, example: str = "") -> Html:
    hint = f"such as {example}" if example and blank.name.startswith("access.") else ""
    return _text(blank.name, blank.label[:1].upper() + blank.label[1:], blank.value, hint=hint)


def _text(name: str, label: str, value: str, *, offered: Sequence[str] = (), hint: str = "") -> Html:
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
    )
    return el("label", label, field, choices)


def _secret(name: str, label: str, *, is_set: bool, more: Child = None) -> Html:
    hint = "is set; leave it empty to keep it" if is_set else ""
    field = el("input", type="password", name=name, placeholder=hint, autocomplete="new-password")
    return el("label", el("span", label, el("small", more) if more and not is_set else None), field)


def _tried(found: Sequence[Tried]) -> Child:
    return [
        el("p", each.told, class_="well" if each.ok else "reason", role="status" if each.ok else "alert")
        for each in found
    ]


def _saved(saved: Saved) -> Child:
    if saved.problems:
        told = [el("li", each) for each in saved.problems]
        return el("div", _SENTENCES, el("ul", told), class_="reason", role="alert")
    if not saved.files:
        return el("p", "Nothing has changed.", role="status")
    now = f" In force now: {', '.join(saved.now)}." if saved.now else ""
    later = f" From the next start on: {', '.join(saved.later)}." if saved.later else ""
    return el("p", f"Saved.{now}{later}", class_="well", role="status")
