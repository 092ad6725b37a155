"""The forms of the settings page, and what is asked of the desk for each."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adapters.web.markup import joined
from adapters.web.pages import Frame
from adapters.web.settings import Done, done, keys_page, page, part_page, title_of
from gateway.domain.views import Blank, Chosen, Part, PlatformBlank, ProviderBlank, Saved, SearchBlank, Settings, Tried
from gateway.runtime.structs import replace

SAVED = Saved(files=("config.yaml",), now=("a", "b"), later=("c",))
KEY = Blank(name="key", label="Key")
CLOUD = ProviderBlank(name="cloud", title="Cloud", key=KEY, keys_at="keys.example", example="big", own=False)
OWN = ProviderBlank(name="own", title="Own", key=KEY, address="http://localhost:1", own=True)
NONE = ProviderBlank(name="none", title="None", key=Blank(name="", label=""))
CHAT = PlatformBlank(name="chat", title="Chat", enabled=True, fields=[KEY], guide="Ask somebody.")
SETTINGS = Settings(
    file="config.yaml",
    secrets=".env",
    model=Chosen(provider="own", name="m"),
    providers=[CLOUD, OWN, NONE],
    search=Chosen(provider="", name=""),
    searches=[SearchBlank(name="free", title="Free", key=Blank(name="", label=""))],
    platforms=[CHAT],
    people=[
        Blank(name="access.allow", label="Who", value="web:bob, chat:1"),
        Blank(name="access.admins", label="Admins"),
        Blank(name="budgets.day", label="A day"),
    ],
    parts=[Part(at="tools", about="First. Second."), Part(at="tools.web", about="Pages (docs/x)")],
    keys={"anna": "anna: a person"},
    example="anna",
    again=True,
)
FRAME = Frame(
    person="web:op",
    csrf="token",
    role="admin",
    assets={},
    fresh_id="f",
    stages={},
    model="m",
    embedded=False,
)


class Desk:
    """Answers with what it was told to, and keeps what it was asked."""

    def __init__(self, saved: Saved = SAVED, made: bool = True) -> None:
        self.saved, self.made = saved, made
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        answers = {
            "try_model": Tried(ok=True, told="It answers.", offered=("big", "small")),
            "try_platform": [Tried(ok=False, told="It refuses.")],
            "try_search": Tried(ok=True, told="It finds:", found=(("Rye", "https://bread.example/rye"),)),
            "add_key": (self.made, "sk-1"),
            "remove_key": self.made,
            "seen": SETTINGS,
        }

        async def answer(*given: Any, **how: Any) -> Any:
            self.asked.append((name, *given, *how.values()))
            return answers.get(name, self.saved)

        return answer


def shown(child: Any) -> str:
    """The words of a page alone."""
    return " ".join(re.sub(r"<[^>]*>", " ", joined(child)).split())


CHOSEN = Chosen(provider="own", name="m", address="http://x")
MODEL = {"where": "model", "provider": "own", "name": " m ", "address": " http://x ", "key": " k "}


@pytest.mark.parametrize(
    ("fields", "asked", "told"),
    [
        (MODEL | {"verb": "try"}, [("try_model", CHOSEN, "k", True)], "It answers."),
        (
            MODEL,
            [("save_model", CHOSEN, "k", True)],
            "Saved. These settings apply from now on: a, b. These settings apply from the next start: c. Say some",
        ),
        (MODEL | {"name": " "}, [], "Choose a model first."),
        (
            {"where": "search", "provider": "free", "key": " k ", "address": " http://x ", "verb": "try"},
            [("try_search", Chosen(provider="free", name="", address="http://x"), "k", True)],
            "It finds: Rye",
        ),
        ({"where": "search"}, [("save_search", Chosen(provider="", name=""), "", True)], "Saved."),
        ({"where": "again"}, [("start_again",)], "Legato is restarting"),
        ({"where": "chat", "verb": "try"}, [("try_platform", "chat")], "It refuses."),
        (
            {"where": "part", "at": "tools.mcp", "name": " files ", "verb": "remove"},
            [("remove", "tools.mcp", "files", True)],
            "Saved.",
        ),
        (
            {"where": "chat", "name": "x", "set token": "t\r\nu ", "set list": "", "was list": "a"},
            [
                ("save", "adapters.chat", "", {"token": "t\nu", "list": ""}, {"token": "", "list": "a"}, True),
                ("try_platform", "chat"),
            ],
            "Saved. These settings apply from now on: a, b. These settings apply from the next start: c. It refuses.",
        ),
        (
            {"where": "chat", "verb": "off", "was enabled": "true"},
            [("save", "adapters.chat", "", {"enabled": "false"}, {"enabled": "true"}, True)],
            "Saved.",
        ),
        (
            {"where": "people", "set access.admins": "anna", "was access.admins": ""},
            [("save", "", "", {"access.admins": "anna"}, {"access.admins": ""}, True)],
            "Saved.",
        ),
        (
            {"where": "keys", "name": "anna", "kind": "person", "cap": " 2 "},
            [("add_key", "anna", "person", "2", True)],
            "Copy this key now. It is never shown again: sk-1",
        ),
        ({"where": "keys", "name": "anna", "verb": "remove"}, [("remove_key", "anna")], "The key anna is removed"),
    ],
)
async def test_each_form_asks_the_desk_for_one_thing(
    fields: dict[str, str], asked: list[tuple[Any, ...]], told: str
) -> None:
    desk = Desk()
    found = await done(desk, fields, owner=True)
    assert (desk.asked, found.where) == (asked, fields["where"])
    assert shown(found.told).startswith(told)


@pytest.mark.parametrize(("verb", "offered"), [("try", ("big", "small")), ("save", ())])
async def test_a_model_that_was_tried_stays_in_its_form(verb: str, offered: tuple[str, ...]) -> None:
    found = await done(Desk(), MODEL | {"verb": verb}, owner=True)
    assert (found.chosen, tuple(found.offered)) == (CHOSEN, offered)


@pytest.mark.parametrize(
    ("saved", "told"),
    [
        (Saved(), "Nothing has changed."),
        (Saved(files=("f",), later=("c",)), "Saved. These settings apply from the next start: c."),
        (Saved(files=("f",)), "Saved."),
        (Saved(problems=("a is no number",)), "Nothing was saved: a is no number"),
    ],
)
@pytest.mark.parametrize("verb", ["save", "remove"])
async def test_what_came_of_it_is_said(saved: Saved, told: str, verb: str) -> None:
    found = await done(Desk(saved), {"where": "part", "at": "tools", "verb": verb}, owner=False)
    assert shown(found.told) == told


PEOPLE = "adapters.web.people"


@pytest.mark.parametrize(
    ("fields", "allow"),
    [
        ({"name": "eve", "writes": "true"}, "web:bob, chat:1, web:eve"),
        ({"name": "eve"}, None),
        ({"name": "bob", "writes": "true"}, None),
        ({"name": "bob"}, "chat:1"),
        ({"name": "bob", "writes": "true", "verb": "remove"}, "chat:1"),
    ],
)
async def test_the_form_of_a_person_also_lets_them_write(fields: dict[str, str], allow: str | None) -> None:
    desk = Desk()
    await done(desk, {"where": "part", "at": PEOPLE, "set password": "twelve-letters", **fields}, owner=True)
    before, now = {"access.allow": "web:bob, chat:1"}, {"access.allow": allow}
    assert desk.asked[2:] == ([("save", "", "", now, before, True)] if allow else [])
    refused = Desk(Saved(problems=("no",)))
    await done(refused, {"where": "part", "at": PEOPLE, **fields}, owner=False)
    assert len(refused.asked) == 1


@pytest.mark.parametrize(("name", "ticked"), [("", True), ("bob", True), ("eve", False)])
def test_a_new_person_may_write_unless_somebody_says_otherwise(name: str, ticked: bool) -> None:
    form = joined(part_page(Part(at=PEOPLE, about="", fields=[KEY], names=[], name=name), SETTINGS, "t", Done()))
    assert ("checked" in form) is ticked
    assert f"at={PEOPLE}" in joined(whole())


@pytest.mark.parametrize("again", [True, False])
def test_what_waits_for_the_next_start_stands_on_every_page(again: bool) -> None:
    waits = replace(SETTINGS, waits=["otel.enabled"], again=again)
    for there in (
        whole(waits, served=LATE),
        part_page(SETTINGS.parts[0], waits, "t", Done()),
        keys_page(waits, "t", Done(), owner=True),
    ):
        assert "These settings apply from the next start: otel.enabled." in shown(there)
        assert ("Start again now" in shown(there)) is again
    assert "apply from the next start" not in shown(whole(waits, last=Done(where="again", told="It stops.")))


async def test_what_was_not_made_is_a_reason() -> None:
    made = await done(Desk(made=False), {"where": "keys", "name": "anna"}, owner=False)
    assert 'role="alert"' in joined(made.told)
    gone = await done(Desk(made=False), {"where": "keys", "name": "anna", "verb": "remove"}, owner=False)
    assert shown(gone.told) == "There is no such key."
    held = await done(Desk(Saved(problems=("no",))), {"where": "again"}, owner=False)
    assert shown(held.told) == "Nothing was saved: no"


def whole(settings: Settings = SETTINGS, *, provider: str = "", last: Done | None = None, served: Any = None) -> Any:
    return page(settings, FRAME, provider, last or Done(), {"chat": served} if served else {})


LATE = {"reader": "reads", "last_update": "2026-01-02T03:04:05+00:00"}


@pytest.mark.parametrize(
    ("served", "step", "opens"),
    [
        (None, "Chat will work after the next start of Legato. Start again now", True),
        ({"reader": "gone", "last_update": None}, "Chat is not connected yet (gone). Press Check to see why.", True),
        (
            {"reader": "reads", "last_update": None},
            "Connected. Write to the bot on Chat now. This page will show it.",
            True,
        ),
        (LATE, "Messages come in; the last one 2 January 2026, 03:04 UTC .", False),
    ],
)
def test_a_platform_says_what_is_left_to_do(served: Any, step: str, opens: bool) -> None:
    there = joined(whole(served=served))
    assert step in shown(there)
    assert (re.search(r"<details[^>]* open[ >]", there) is not None) is opens
    assert ("data-waits" in there) is (opens and served is not None)
    assert "Switch off" in there
    assert "Ask somebody." not in there


def test_a_platform_that_is_off_has_its_guide_and_one_button() -> None:
    there = joined(whole(replace(SETTINGS, platforms=[replace(CHAT, enabled=False)], again=False)))
    assert "Ask somebody." in there
    assert "Save and switch on" in there
    assert "Switch off" not in there


@pytest.mark.parametrize(
    ("provider", "there", "away"),
    [
        ("", ["Key (if it needs one)", 'value="http://localhost:1"', 'value="m"'], ["Get one at"]),
        ("cloud", ["Get one at", 'href="https://keys.example"', 'value="big"'], ["Key (if it", "Address"]),
        ("none", ['value="none"'], ["Key", ">Test<"]),
        ("unknown", ["Choose a provider"], [">Test<"]),
    ],
)
def test_the_form_of_a_model_is_its_providers(provider: str, there: list[str], away: list[str]) -> None:
    section = joined(whole(provider=provider)).partition("<h2>Web search")[0]
    assert [each for each in there if each not in section] == []
    assert [each for each in away if each in section] == []


@pytest.mark.parametrize("where", ["model", "search", "chat", "people", "again"])
def test_what_came_of_a_form_stands_once_and_with_it(where: str) -> None:
    there = joined(whole(last=Done(where=where, told="It was so.")))
    assert there.count("It was so.") == 1


PARTS = [
    (Blank(name="log_level", label="How `much`", value="info"), ["Log level", "<code>much</code>", 'value="info"']),
    (Blank(name="a.b", label="In words", usual="5"), ["In words", 'placeholder="5"']),
    (Blank(name="a", label="x", usual="[]"), ['name="set a"']),
    (Blank(name="a", label="x", kind="flag", value="true"), ['type="checkbox"', " checked"]),
    (Blank(name="a", label="x", kind="long", value="l"), ["<textarea", "\nl</textarea>"]),
    (Blank(name="a", label="x", kind="choice", choices=["", "b"], value="b"), [">–<", '<option value="b" selected>']),
    (Blank(name="a", label="x", kind="secret", is_set=True, usual="sk-…1"), ["sk-…1 is set; leave it empty to keep"]),
]


@pytest.mark.parametrize(("blank", "there"), PARTS)
def test_a_field_is_its_kinds(blank: Blank, there: list[str]) -> None:
    written = joined(part_page(Part(at="otel", about="", fields=[blank]), SETTINGS, "token", Done()))
    assert [each for each in there if each not in written] == []
    assert ('name="was a"' in written) is (blank.name == "a" and blank.kind != "secret")
    assert 'placeholder="[]"' not in written


def test_a_section_of_several_lists_them_and_offers_another() -> None:
    several = Part(at="tools.mcp", about="Servers.", fields=[KEY], names=["files"])
    assert shown(part_page(several, SETTINGS, "t", Done())).startswith("Settings Servers. files Add one Name")
    one = shown(part_page(replace(several, name="files"), SETTINGS, "t", Done(told="Said.")))
    assert one.startswith("MCP servers Servers. Said. ")
    assert "Remove" in one
    assert "Add one" not in one


def test_of_a_long_section_what_few_need_is_folded_unless_it_was_changed() -> None:
    fields = [Blank(name="url", label=""), Blank(name="cwd", label=""), Blank(name="env", label="", value="A=1")]
    written = joined(part_page(Part(at="tools.mcp", about="", fields=fields), SETTINGS, "t", Done()))
    plain, _, folded = written.partition("<summary>More settings")
    assert [f"set {name}" in plain for name in ("url", "cwd", "env")] == [True, False, True]
    assert "set cwd" in folded


def test_a_section_leads_to_those_within_it_and_to_what_belongs_to_it() -> None:
    assert "More Web pages Pages tools.web" in shown(part_page(SETTINGS.parts[0], SETTINGS, "t", Done()))
    assert shown(part_page(Part(at="reminders", about=""), SETTINGS, "t", Done())).endswith("reminders and schedules")


@pytest.mark.parametrize(
    ("at", "name", "title"),
    [
        ("", "", "General"),
        ("tools.mcp", "files", "files"),
        ("adapters.slack", "", "Slack"),
        ("tools.url_chars", "", "Address characters"),
    ],
)
def test_titles(at: str, name: str, title: str) -> None:
    assert title_of(at, name) == title


@pytest.mark.parametrize(
    ("owner", "end"), [(True, "Make a key"), (False, "type this in a terminal there: legato keys add .")]
)
def test_only_the_owner_makes_keys(owner: bool, end: str) -> None:
    there = shown(keys_page(SETTINGS, "t", Done(), owner=owner))
    assert "anna: a person Remove" in there
    assert there.removesuffix(" The server that takes keys").endswith(end)


@pytest.mark.parametrize(("told", "shown_times"), [("use it", 0), ("answer calls", 1)])
def test_a_hint_that_only_repeats_its_label_is_left_out(told: str, shown_times: int) -> None:
    part = Part(at="tools.web", about="", fields=[Blank(name="enabled", label=told, kind="flag")])
    assert joined(part_page(part, SETTINGS, "", Done())).count(told) == shown_times


async def test_a_refused_value_stands_in_its_field_beside_what_is_wrong_with_it() -> None:
    fields = (Blank(name="most", label="How many", value="3"), Blank(name="mostly", label="Where", value="here"))
    part = Part(at="tools.web", about="", fields=fields)
    said = {"where": "part", "at": "tools.web", "set most": "many", "was most": "3", "set mostly": "there"}
    wrong = "config.yaml:3: tools.web.most must be a number"
    last = await done(Desk(Saved(problems=(wrong,))), said, owner=True)  # type: ignore[arg-type]
    html = joined(part_page(part, SETTINGS, "c", last))
    assert re.findall(r'name="set (\w+)" value="(\w+)"[^>]*?( aria-invalid="true")?/>', html) == [
        ("most", "many", ' aria-invalid="true"'),
        ("mostly", "there", ""),
    ]
    assert f'<small class="reason">{wrong}</small>' in html
    assert 'name="was most" value="3"' in html


@pytest.mark.parametrize(
    ("find", "links"),
    [("", ["tools", "tools.web"]), ("pages", ["tools.web"]), ("BYTES", ["tools"]), ("zeppelin", [])],
)
def test_all_settings_stand_in_groups_and_can_be_looked_for(find: str, links: list[str]) -> None:
    most = Blank(name="most_bytes", label="how long a page may be")
    parts = [replace(SETTINGS.parts[0], fields=[most]), SETTINGS.parts[1]]
    html = joined(page(replace(SETTINGS, parts=parts), FRAME, "", Done(), {}, find)).partition(">All settings<")[2]
    assert re.findall(r"\?at=([\w.]+)", html) == links
    assert re.findall(r"<details[^>]*?( open)?><summary>([^<]*)", html) == (
        [(" open" if find else "", "Tools")] if links else []
    )
    assert ("<code>most_bytes</code>" in html) is (find == "BYTES")
