"""Settings changed from the page, at the desk behind it: what is shown, kept, refused and written."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from socket import create_server

import pytest

from gateway.app.config import Config, set_up
from gateway.app.reload import Reloader
from gateway.cli.desk import Desk
from gateway.domain.views import Chosen, Saved, Settings
from gateway.runtime.clock import SystemClock
from gateway.store.sqlite.backend import SqliteStore
from tests.emulators.llm import LlmServer
from tests.emulators.search import SearchServer

HIDDEN = "hunter2-of-the-owner"


async def nothing(_: Config) -> None:
    """Take nothing up."""


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    (tmp_path / ".env").write_text(f"LITELLM_API_KEY=sk-the-right-key\nPASSWORD={HIDDEN}\n")
    held, store = Config(), SqliteStore(tmp_path / "legato.db", clock=SystemClock())
    await store.open()
    yield Desk(
        path=None,
        reloader=Reloader(
            config=held, read=lambda: set_up(None, os.environ).config, reconfigure=nothing, relog=lambda _: None
        ),
        store=store,
    )
    await store.aclose()


async def allow(desk: Desk, whom: str, shown: str = "", *, key: str = "access.allow") -> Saved:
    return await desk.save("", "", {key: whom}, {key: shown}, owner=False)


def write(folder: Path, address: str, more: str = "") -> str:
    text = f"""model: {{provider: litellm, name: any-model, base_url: "{address}"}}
adapters: {{matrix: {{user: "@${{PASSWORD}}:example.org"}}}}
{more}"""
    (folder / "config.yaml").write_text(text)
    return text


def shown(seen: Settings) -> str:
    return repr(seen)


async def test_a_search_is_tried_and_written(tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    file, brave = tmp_path / "config.yaml", Chosen(provider="brave", name="")

    async with SearchServer("searxng") as server:
        own = Chosen(provider="searxng", name="", address=server.url)
        tried = await desk.try_search(own, "", owner=False)
        assert (tried.ok, tried.told) == (True, "SearXNG finds pages for “weather”:")
        assert tried.found[0] == ("Sourdough & rye", "https://bread.example/rye")
        assert (await desk.save_search(own, "", owner=True)).files == (str(file),)
        assert server.url in file.read_text()
        (tmp_path / ".env").write_text("MINE=sk-mine\n")
        file.write_text(f"tools: {{search: {{provider: searxng, base_url: '{server.url}', api_key: '${{MINE}}'}}}}\n")
        elsewhere = Chosen(provider="searxng", name="", address="http://127.0.0.1:9")
        assert "to another address" in (await desk.try_search(elsewhere, "", owner=False)).told
        assert "to another address" in (await desk.save_search(elsewhere, "", owner=False)).problems[0]
    assert "BRAVE_API_KEY" in (await desk.try_search(brave, "", owner=True)).told, "it says where its key goes"
    assert "BRAVE_API_KEY" in (await desk.save_search(brave, "", owner=True)).problems[0]
    assert not (await desk.save_search(brave, "sk-of-brave-0123456789", owner=True)).problems
    assert "BRAVE_API_KEY=sk-of-brave-0123456789" in (tmp_path / ".env").read_text()
    assert "MINE" not in file.read_text(), "another's key goes nowhere else"
    for _ in range(2):  # there and back
        assert not (await desk.save_search(Chosen(provider="ddgs", name=""), "", owner=True)).problems
        assert (await desk.seen()).search.provider == "ddgs"
        assert not (await desk.save_search(brave, "", owner=True)).problems
    assert not (await desk.save_search(Chosen(provider="", name=""), "", owner=True)).problems
    assert set_up(None, os.environ).config.tools.search.provider is None
    assert "no such search" in (await desk.save_search(Chosen(provider="x", name=""), "", owner=True)).problems[0]
    odd = await desk.try_search(Chosen(provider="searxng", name="", address="x y"), "", owner=True)
    assert odd.told == "The address must be an address that begins with http:// or https://."


async def test_what_a_variable_holds_is_neither_shown_nor_fetched(tmp_path: Path, desk: Desk) -> None:
    text = write(tmp_path, "http://me:${PASSWORD}@127.0.0.1:9/v1")
    seen = await desk.seen()
    assert HIDDEN not in shown(seen)
    assert seen.model.address == "http://me:${PASSWORD}@127.0.0.1:9/v1"
    assert (await desk.save_model(seen.model, "", owner=True)).files == ()  # as it was shown, it stays
    matrix = next(each for each in seen.platforms if each.name == "matrix")
    held = {each.name: each.value for each in matrix.fields if each.kind != "secret"}
    assert (await desk.save("adapters.matrix", "", held, held, owner=False)).files == ()
    assert 'user: "@${PASSWORD}:example.org"' in (tmp_path / "config.yaml").read_text()
    for name, address in (("${PASSWORD}", seen.model.address), ("any-model", "http://${LITELLM_API_KEY}.example/")):
        saved = await desk.save_model(Chosen(provider="litellm", name=name, address=address), "", owner=True)
        assert "can be written only in config.yaml" in saved.problems[0]
    saved = await allow(desk, "telegram:${PASSWORD}")
    assert "can be written only in" in saved.problems[0]
    assert HIDDEN not in shown(await desk.seen())
    assert (tmp_path / "config.yaml").read_text().startswith(text.partition("\n")[0])


@pytest.mark.parametrize("odd", ["a\nb: c", "a\0b", "\u202ecba", "x" * 300_000])
async def test_what_nobody_can_type_is_refused(tmp_path: Path, desk: Desk, odd: str) -> None:
    text = write(tmp_path, "http://127.0.0.1:9/v1")
    chosen = Chosen(provider="litellm", name=odd, address="http://127.0.0.1:9/v1")
    for problem in (
        (await desk.save_model(chosen, "", owner=True)).problems[0],
        (await desk.try_model(chosen, "", owner=True)).told,
    ):
        assert "characters that cannot be typed" in problem
        assert len(problem) < 200
    assert (tmp_path / "config.yaml").read_text() == text


@pytest.mark.parametrize("broken", [b"model: [unclosed\n", b"model: \xff\xfe\n"])
async def test_a_file_that_somebody_broke_meanwhile_is_told(tmp_path: Path, desk: Desk, broken: bytes) -> None:
    (tmp_path / "config.yaml").write_bytes(broken)
    chosen = Chosen(provider="litellm", name="any", address="http://127.0.0.1:9/v1")
    told = [await desk.save_model(chosen, "sk-new", owner=True), await allow(desk, "telegram:1")]
    assert all("config.yaml" in each.problems[0] for each in told)
    assert (tmp_path / "config.yaml").read_bytes() == broken
    assert "sk-new" not in (tmp_path / ".env").read_text()


async def test_a_key_that_was_refused_takes_no_others_place(tmp_path: Path, desk: Desk) -> None:
    async with LlmServer(api_key="sk-the-right-key") as server:
        write(tmp_path, server.url)
        chosen = Chosen(provider="litellm", name="any-model", address=server.url)
        assert not (await desk.try_model(chosen, "sk-mistyped", owner=True)).ok
        assert (await desk.try_model(chosen, "", owner=True)).ok, "the field is empty: the key that is set is meant"
        await desk.save_model(chosen, "", owner=True)
        assert "sk-mistyped" not in (tmp_path / ".env").read_text()


async def test_a_password_is_read_as_it_was_typed(tmp_path: Path, desk: Desk) -> None:
    write(tmp_path, "http://127.0.0.1:9/v1")
    for password in ("my dog #1 's", '"quoted"', "back\\slash 'n'", "plain"):
        assert not (
            await desk.save("adapters.matrix", "", {"password": password}, {"password": ""}, owner=False)
        ).problems
        assert set_up(None, os.environ).variables({})["MATRIX_PASSWORD"] == password


async def test_a_server_may_want_the_name_and_password_of_its_address(tmp_path: Path, desk: Desk) -> None:
    async with LlmServer(api_key=f"Basic {b64encode(f'me:{HIDDEN}'.encode()).decode()}") as server:
        write(tmp_path, server.url.replace("://", "://me:${PASSWORD}@"))
        tried = await desk.try_model((await desk.seen()).model, "", owner=True)
    assert tried.ok
    assert HIDDEN not in tried.told


OWN = """# mine
tools:
  # the server of the office
  mcp:
    office: {url: "https://office.example/mcp/very-secret-path", headers: {X-Team: blue, Authorization: "${PASSWORD}"}}
  web: {timeout: 7}  # slow line
access: {allow: ["telegram:1"]}
"""


async def test_each_section_makes_its_form_and_is_written_as_it_was_changed(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "config.yaml").write_text(OWN)
    parts = {each.at for each in (await desk.seen()).parts}
    assert parts >= {"tools", "tools.skills", "tools.mcp", "reminders", "heartbeat", "adapters.api.hooks", "chats", ""}
    for at in parts:
        assert HIDDEN not in repr(await desk.part(at, "")), at

    async def save(at: str, name: str, said: dict[str, str], *, owner: bool = True) -> Saved:
        part = await desk.part(at, name)
        assert part is not None
        shown = {each.name: each.value for each in part.fields if each.kind != "secret" or each.name in said}
        return await desk.save(
            at, name, {**shown, **said}, {**shown, **dict.fromkeys(said.keys() - shown, "")}, owner=owner
        )

    log = await desk.part("log", "")
    assert log is not None
    assert [(each.kind, *each.choices) for each in log.fields] == [
        ("choice", "debug", "info", "warning", "error"),
        ("choice", "console", "json"),
    ]
    office = await desk.part("tools.mcp", "office")
    assert office is not None
    assert "very-secret-path" not in repr(office)
    assert "blue" not in repr(office), "a header may hold a credential under any name"
    assert (await save("tools.mcp", "office", {})).files == ()
    headers = next(each.value for each in office.fields if each.name == "headers")
    assert not (await save("tools.mcp", "office", {"headers": f"{headers}X-New: fresh\n", "timeout": "90"})).problems
    assert (
        await save("tools.mcp", "home", {"command": "npx, -y, a-server", "env": "API: sk-typed"}, owner=False)
    ).problems
    assert not (await save("tools.mcp", "home", {"command": "npx, -y, a-server", "env": "API: sk-typed"})).problems
    assert not (await save("tools.web", "", {"timeout": ""})).problems
    assert not (await save("adapters.api.hooks", "deploys", {"secret": "long-enough-secret", "chat": "home"})).problems
    assert "must be a number" in (await save("tools.web", "", {"timeout": "soon"})).problems[0]
    assert "Give the new entry a name" in (await save("tools.mcp", "", {"url": "https://a.example"})).problems[0]
    written, secrets = (tmp_path / "config.yaml").read_text(), (tmp_path / ".env").read_text()
    assert written.startswith("# mine\ntools:\n  # the server of the office\n  mcp:\n    office: {")
    for line in (
        "X-Team: blue",
        'X-New: "${OFFICE_X_NEW}"',
        "command: [npx, -y, a-server]",
        "timeout: 90",
        "DEPLOYS_SECRET",
    ):
        assert line.replace('"', "") in written.replace("'", "").replace('"', ""), written
    assert "very-secret-path" in written
    assert "timeout: 7" not in written
    named = [("tools.mcp", "office"), ("tools.mcp", "home"), ("adapters.api.hooks", "deploys")]
    forms = repr([await desk.part(at, name) for at, name in [*((at, "") for at in parts), *named]])
    for secret in ("sk-typed", "fresh", "long-enough-secret"):
        assert secret not in written
        assert secret in secrets
        assert secret not in forms
    assert not (await desk.remove("tools.mcp", "home", owner=True)).problems
    assert "npx" not in (tmp_path / "config.yaml").read_text()


async def test_what_another_page_changed_meanwhile_stays(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "config.yaml").write_text(OWN)
    await allow(desk, "telegram:1, telegram:2", "telegram:1")
    await allow(desk, "telegram:1, telegram:3", "telegram:1")  # this page was older
    await allow(desk, "telegram:2", "telegram:1, telegram:2")  # and this one
    assert set_up(None, os.environ).config.access.allow == ("telegram:2", "telegram:3")


async def test_a_name_neither_fetches_nor_replaces_a_variable(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", HIDDEN)
    (tmp_path / "config.yaml").write_text(OWN)
    for server, header in (
        ("aws", "SECRET-ACCESS-KEY: mine"),
        ("legato", '_TOOLS__MCP__E__COMMAND: "[touch, pwned]"'),
        ("litellm", "api_key: mine"),
        ("twins", "X-A: one\nX_A: two"),
    ):
        said = {"url": "https://e.example/mcp", "headers": header}
        saved = await desk.save("tools.mcp", server, said, dict.fromkeys(said, ""), owner=False)
        assert not saved.problems, header
    person = await desk.save(
        "adapters.web.people", "litellm", {"password": "a-long-enough-one"}, {"password": ""}, owner=True
    )
    assert not person.problems
    setup = set_up(None, os.environ)
    assert {*setup.config.tools.mcp} == {"office", "aws", "legato", "litellm", "twins"}, "no header sets another key"
    assert setup.config.tools.mcp["aws"].headers == {"SECRET-ACCESS-KEY": "mine"}
    assert setup.config.tools.mcp["twins"].headers == {"X-A": "one", "X_A": "two"}
    assert setup.variables({})["LITELLM_API_KEY"] == "sk-the-right-key"
    shown = {"headers": "SECRET-ACCESS-KEY: ${AWS_SECRET_ACCESS_KEY_2}"}
    assert not (await desk.save("tools.mcp", "aws", {"headers": "SECRET-ACCESS-KEY: new"}, shown, owner=False)).problems
    assert set_up(None, os.environ).variables({})["AWS_SECRET_ACCESS_KEY_2"] == "new", "its own is used again"


async def test_a_secret_that_the_environment_overrules_is_refused(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_API_KEY", HIDDEN)
    text = write(tmp_path, "http://127.0.0.1:9/v1")
    said = {"model.api_key": "mine", "prompt.persona": "${LITELLM_API_KEY}"}
    told = [
        await desk.save("", "", said, dict.fromkeys(said, ""), owner=False),
        await desk.save_model((await desk.seen()).model, "mine", owner=True),
    ]
    assert all("overrides .env" in each.problems[0] for each in told)
    assert (tmp_path / "config.yaml").read_text() == text


async def test_only_the_owner_takes_away_what_the_owner_wrote_of_programs(tmp_path: Path, desk: Desk) -> None:
    text = "tools:\n  shell: {enabled: false}\n  topics: true\n  mcp:\n    a: {command: [a-server], sandbox: true}\n"
    (tmp_path / "config.yaml").write_text(text)
    for at, key, said in (("", "tools", ""), ("", "tools", "{topics: false}"), ("tools", "mcp", "")):
        saved = await desk.save(at, "", {key: said}, {key: "as it was"}, owner=False)
        assert "log in with a link made" in saved.problems[0], key
    for at, name in (("tools", "shell"), ("tools", "mcp"), ("tools.mcp.a", "sandbox")):
        assert "log in with a link made" in (await desk.remove(at, name, owner=False)).problems[0], name
    assert (tmp_path / "config.yaml").read_text() == text
    assert not (await desk.remove("tools.mcp", "a", owner=False)).problems, "a whole server is what an admin may end"


@pytest.mark.parametrize(("at", "key"), [("store", "url"), ("backup", "to"), ("", "store.url")])
async def test_only_the_owner_says_where_everything_is_kept(tmp_path: Path, desk: Desk, at: str, key: str) -> None:
    said = {key: f"sqlite:///{tmp_path}/another.db"}
    refused = await desk.save(at, "", said, {key: ""}, owner=False)
    assert "move stored data" in refused.problems[0]
    assert not (await desk.save(at, "", said, {key: ""}, owner=True)).problems


SIDE = "{provider: litellm, name: a, base_url: 'http://127.0.0.1:9', headers: {X-Team: blue}}"
MODELS = f"""fallback_models: [{SIDE}]
auxiliary: {{mode: custom, title: {SIDE}}}
chats: {{"telegram:1": {{model: {SIDE}}}}}
"""


@pytest.mark.parametrize(
    ("at", "name", "key"),
    [("", "", "fallback_models"), ("auxiliary", "", "title"), ("chats", "telegram:1", "model"), ("store", "", "url")],
)
async def test_no_secret_inside_a_value_is_shown(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch, at: str, name: str, key: str
) -> None:
    monkeypatch.setenv("LEGATO__STORE__URL", f"postgresql://me:{HIDDEN}@127.0.0.1/db")
    monkeypatch.setenv("LEGATO__AUXILIARY__MEMORY", f"{{provider: litellm, name: a, headers: {{X-Team: {HIDDEN}}}}}")
    (tmp_path / "config.yaml").write_text(MODELS)
    part = await desk.part(at, name)
    assert part is not None
    assert HIDDEN not in repr(part)
    assert "blue" not in repr(part), "a header may hold a credential under any name"
    was = next(each.value for each in part.fields if each.name == key)
    assert (await desk.save(at, name, {key: was}, {key: was}, owner=True)).files == ()
    saved = await desk.save(at, name, {key: was.replace("127.0.0.1", "127.0.0.2")}, {key: was}, owner=True)
    assert "is shown only in part" in saved.problems[0]
    assert (tmp_path / "config.yaml").read_text() == MODELS


async def test_what_another_page_did_to_headers_meanwhile_stays(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "config.yaml").write_text(OWN)
    office = await desk.part("tools.mcp", "office")
    assert office is not None
    was = next(each.value for each in office.fields if each.name == "headers")
    (tmp_path / "config.yaml").write_text(OWN.replace("X-Team: blue", "X-Other: red"))
    saved = await desk.save("tools.mcp", "office", {"headers": f"{was}X-New: mine\n"}, {"headers": was}, owner=False)
    assert not saved.problems
    headers = set_up(None, os.environ).config.tools.mcp["office"].headers
    assert headers == {"X-Other": "red", "Authorization": HIDDEN, "X-New": "mine"}


MANY = "".join(f"- &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 12))


@pytest.mark.parametrize("endless", ["[" * 20_000, "[" * 900, f"- &a0 [x]\n{MANY}"])
async def test_what_has_no_end_is_refused_at_once(tmp_path: Path, desk: Desk, endless: str) -> None:
    text = write(tmp_path, "http://127.0.0.1:9/v1")
    for key in ("fallback_models", "model.extra_body", "tools.offered"):
        saved = await desk.save("", "", {key: endless}, {key: ""}, owner=True)
        assert saved.problems, key
    assert (await desk.save("a." * 3_000, "", {"x": "1"}, {"x": ""}, owner=True)).files == ()
    assert (await desk.save("tools", "", {"mcp." * 3_000: "1"}, {"mcp." * 3_000: ""}, owner=True)).files == ()
    assert not (await desk.remove("a." * 3_000, "x", owner=False)).problems
    assert await desk.part("a." * 3_000, "") is None
    model = Chosen(provider="litellm", name=endless[:1_900], address="http://127.0.0.1:9/v1")
    assert not (await desk.try_model(model, "", owner=True)).ok
    assert (tmp_path / "config.yaml").read_text() == text
    assert not (await desk.save("tools", "", {"admins_only": "shell, *"}, {"admins_only": ""}, owner=True)).problems


async def test_only_the_owner_starts_a_program_or_opens_its_sandbox(tmp_path: Path, desk: Desk) -> None:
    text = "tools:\n  mcp:\n    a:\n      enabled: false\n      command: [a-server]\n      sandbox: true\n"
    (tmp_path / "config.yaml").write_text(text)
    for said, shown in (
        ({"hosts": "evil.example"}, {"hosts": ""}),
        ({"enabled": "true"}, {"enabled": "false"}),
        ({"enabled": ""}, {"enabled": "false"}),
    ):
        saved = await desk.save("tools.mcp", "a", said, shown, owner=False)
        assert "log in with a link made" in saved.problems[0], said
    assert (await desk.remove("tools.mcp.a", "enabled", owner=False)).problems
    assert (tmp_path / "config.yaml").read_text() == text
    on = await desk.save("tools.mcp", "a", {"enabled": "true"}, {"enabled": "false"}, owner=True)
    assert not on.problems
    assert not (await desk.save("tools.mcp", "a", {}, {"enabled": "true"}, owner=False)).problems, "off is less"
    api = await desk.save("adapters.api", "", {"enabled": "true"}, {"enabled": "false"}, owner=False)
    assert not api.problems


async def test_who_cannot_start_it_again_is_told(tmp_path: Path, desk: Desk) -> None:
    text = write(tmp_path, "http://127.0.0.1:9/v1")
    assert "Another program, such as systemd, started Legato" in (await desk.start_again()).problems[0]
    assert (tmp_path / "config.yaml").read_text() == text


async def test_what_another_page_did_to_values_by_name_meanwhile_stays(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "config.yaml").write_text("tools: {offered: {telegram: [clock], discord: [todo]}}\n")
    tools = await desk.part("tools", "")
    assert tools is not None
    was = next(each.value for each in tools.fields if each.name == "offered")
    first = was.replace("clock", "todo") + "slack:\n- clock\n"
    for said in (first, f"{was}matrix: [clock]\n", was.replace("discord", "whatsapp")):
        assert not (await desk.save("tools", "", {"offered": said}, {"offered": was}, owner=False)).problems
    assert set_up(None, os.environ).config.tools.offered == {
        "telegram": ("todo",),
        "slack": ("clock",),
        "matrix": ("clock",),
        "whatsapp": ("todo",),
    }


async def test_a_variable_in_a_list_stays_a_variable(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "config.yaml").write_text('access: {allow: ["telegram:1", "matrix:@${PASSWORD}:example.org"]}\n')
    was = next(each.value for each in (await desk.seen()).people if each.name == "access.allow")
    assert not (await allow(desk, f"{was}, telegram:2", was)).problems
    assert HIDDEN not in (tmp_path / "config.yaml").read_text()
    people = ("telegram:1", f"matrix:@{HIDDEN}:example.org", "telegram:2")
    assert set_up(None, os.environ).config.access.allow == people
    assert (
        "can be written only in"
        in (await allow(desk, f"{was}, matrix:@${{LITELLM_API_KEY}}:example.org", was)).problems[0]
    )


@pytest.mark.parametrize(
    "prose", ["«\u00a0oui\u202f!\u00a0»", "می\u200cخواهم", "👩\u200d👩\u200d👧", "你好\u3000再见", "a\tb\n- c"]
)
async def test_a_persona_is_written_in_any_language(tmp_path: Path, desk: Desk, prose: str) -> None:
    write(tmp_path, "http://127.0.0.1:9/v1")
    assert not (await desk.save("prompt", "", {"persona": prose}, {"persona": ""}, owner=False)).problems
    assert set_up(None, os.environ).config.prompt.persona == prose
    part = await desk.part("prompt", "")
    assert part is not None
    assert next(each.value for each in part.fields if each.name == "persona") == prose
    told = await desk.save("chats", f"telegram:1\u200d{prose}", {"persona": "hi"}, {"persona": ""}, owner=False)
    assert "cannot be typed" in told.problems[0]


async def test_a_new_one_takes_no_others_place(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "config.yaml").write_text(OWN)
    new = await desk.part("tools.mcp", "")
    assert new is not None
    fresh = {each.name: each.value for each in new.fields if each.kind != "secret"}
    said = {**fresh, "url": "https://elsewhere.example/mcp"}
    for name, is_free in (("office", False), ("home", True), ("home", False)):
        saved = await desk.save("tools.mcp", name, said, {**fresh, "url": ""}, owner=False)
        assert bool(saved.problems) is not is_free, saved
    assert "https://office.example/mcp" in (tmp_path / "config.yaml").read_text()


async def test_a_key_is_made_once_and_taken_back(desk: Desk) -> None:
    made, secret = await desk.add_key("anna", "front end", "2", owner=True)
    assert made
    assert secret.startswith("sk-legato-")
    assert (await desk.add_key("anna", "person", "", owner=True))[0] is False
    for cap in ("much", "nan", "inf", "1e999", "-5"):
        assert "not an amount" in (await desk.add_key("bob", "person", cap, owner=True))[1], cap
    seen = await desk.seen()
    assert secret not in repr(seen)
    assert "front end, $2 a day" in seen.keys["anna"]
    assert await desk.remove_key("anna")
    assert not await desk.remove_key("anna")


async def test_an_admin_sends_no_key_that_is_kept_to_another_address(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "config.yaml").write_text(OWN + "model: {provider: litellm, name: any, api_key: '${KEPT}'}\n")
    with (tmp_path / ".env").open("a") as variables:
        variables.write("KEPT=sk-kept\n")
    chosen = Chosen(provider="litellm", name="any", address="http://127.0.0.1:9/v1")
    assert "another address. Type the hidden key" in (await desk.try_model(chosen, "", owner=False)).told
    assert "another address. Type the hidden key" in (await desk.save_model(chosen, "", owner=False)).problems[0]
    office = await desk.part("tools.mcp", "office")
    assert office is not None
    shown = {each.name: each.value for each in office.fields}
    moved = {**shown, "url": "http://127.0.0.1:9/mcp"}
    assert (
        "another address. Type the hidden key"
        in ((await desk.save("tools.mcp", "office", moved, shown, owner=False)).problems[0])
    )
    assert not (await desk.save("tools.mcp", "office", moved, shown, owner=True)).problems
    assert not (await desk.save_model(chosen, "sk-own", owner=False)).problems


async def test_what_somebody_wrote_into_the_file_waits_for_the_next_start(tmp_path: Path, desk: Desk) -> None:
    assert (await desk.seen()).waits == []
    (tmp_path / "config.yaml").write_text("sessions: {busy_mode: steer}\n")
    assert (await desk.seen()).waits == ["sessions.busy_mode"]


@pytest.mark.parametrize("at", ["people", "adapters.web.people", "key"])
async def test_only_the_owner_says_who_somebody_is_or_decides(tmp_path: Path, desk: Desk, at: str) -> None:
    text = "access: {admins: ['web:bert']}\nadapters: {web: {people: {anna: {password: '${ANNA}'}}}}\n"
    (tmp_path / "config.yaml").write_text(text)
    with (tmp_path / ".env").open("a") as variables:
        variables.write("ANNA=the-password-of-anna\n")
    if at == "key":
        made, told = await desk.add_key("anna", "admin", "", owner=False)
        assert not made
        problems = [told]
    elif at == "people":
        problems = [*(await allow(desk, "web:bert, web:anna", "web:bert", key="access.admins")).problems]
    else:
        shown = {"password": ""}
        for saved in (
            await desk.save(at, "anna", {"password": "a-password-of-berts"}, shown, owner=False),
            await desk.save(
                "adapters.web",
                "",
                {"people.anna.password": "a-password-of-berts"},
                {"people.anna.password": ""},
                owner=False,
            ),
            await desk.remove(at, "anna", owner=False),
        ):
            assert saved.problems, saved
        problems = [*saved.problems]
    assert "log in with a link made on this machine" in problems[0]
    assert (tmp_path / "config.yaml").read_text() == text
    assert "the-password-of-anna" in (tmp_path / ".env").read_text()
    assert not (await allow(desk, "telegram:4711")).problems, "whom an admin lets in by a code, they may let in here"


@pytest.mark.parametrize("value", ["", "{allow: ['web:bert']}"])
async def test_nor_takes_an_admin_every_admin_or_every_password_away(tmp_path: Path, desk: Desk, value: str) -> None:
    text = "access: {admins: ['web:bert']}\nadapters: {web: {people: {anna: {password: '${ANNA}'}}}}\n"
    (tmp_path / "config.yaml").write_text(text)
    with (tmp_path / ".env").open("a") as variables:
        variables.write("ANNA=the-password-of-anna\n")
    for saved in (
        await desk.save("", "", {"access": value}, {"access": "as it is"}, owner=False),
        await desk.remove("adapters", "web", owner=False),
    ):
        assert "log in with a link made on this machine" in saved.problems[0]
    assert (tmp_path / "config.yaml").read_text() == text
    assert not (await desk.save("adapters.web", "", {"enabled": "true"}, {"enabled": ""}, owner=False)).problems
    assert not (await desk.remove("adapters", "web", owner=True)).problems


@pytest.mark.parametrize("key", ["adapters.web.port", "monitor.address"])
async def test_no_new_start_where_another_program_has_the_port(tmp_path: Path, desk: Desk, key: str) -> None:
    begun: list[bool] = []
    desk.again = lambda: begun.append(True)
    with create_server(("127.0.0.1", 0)) as other, create_server(("127.0.0.1", 0)) as own:
        taken, ours = other.getsockname()[1], own.getsockname()[1]
        web = f"adapters: {{web: {{enabled: true, port: {ours}}}}}\n"
        (tmp_path / "config.yaml").write_text(web)
        desk.reloader.config = set_up(None, os.environ).config
        at = {"adapters.web.port": web.replace(str(ours), str(taken))}
        (tmp_path / "config.yaml").write_text(at.get(key, f"{web}monitor: {{address: '127.0.0.1:{taken}'}}\n"))
        told = (await desk.start_again()).problems
        assert f"127.0.0.1:{taken}" in told[0]
        assert told[0].endswith(f"set another {key}.")
        assert begun == []
        (tmp_path / "config.yaml").write_text(web)
        assert (await desk.start_again()).problems == (), "its own port it gives back"
        assert begun == [True]
        people = "url: 'https://chat.example.org', people: {anna: {password: '${ANNA}'}}"
        (tmp_path / "config.yaml").write_text(web.replace("enabled", f"host: 0.0.0.0, {people}, enabled"))
        with (tmp_path / ".env").open("a") as variables:
            variables.write("ANNA=the-password-of-anna\n")
        assert (await desk.start_again()).problems == (), "nor is it in the way where the page is opened to others"
