"""The forms of the settings: what is shown, what is written of it, and what nobody may write here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.app.config.loading import load_with_origins
from gateway.app.config.setup import set_up
from gateway.app.config.source import read_file
from gateway.cli.forms import Present, fits, refuse_odd
from gateway.cli.init import SetupChanges
from gateway.cli.settings import REMOVED, in_force_text
from gateway.domain.views import Blank
from gateway.runtime.errors import UserError

FILE = """model: {provider: openai, name: m, base_url: "https://models.example/v1"}
access: {allow: ["telegram:1", "telegram:2"]}
tools: {mcp: {mail: {url: "https://mail.example/mcp", headers: {X-Key: "${MAIL_X_KEY}", Plain: "one"}}}}
"""
MAIL = ("tools", "mcp", "mail")

Now = Callable[..., Present]


@pytest.fixture
def now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Now:
    """Read the settings, from a file with more lines, and with these variables."""
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))

    def read(more: str = "", **variables: str) -> Present:
        (tmp_path / "config.yaml").write_text(FILE + more)
        known = {"LEGATO_HOME": str(tmp_path), "MAIL_X_KEY": "hidden", **variables}
        setup = set_up(None, known)
        _, shape, _ = load_with_origins(setup.file, known)
        assert setup.file is not None
        return Present(setup=setup, shape=shape, written=read_file(setup.file).values, known=known)

    return read


def blanks(now: Present, *path: str, name: str = "") -> dict[str, Blank]:
    part = now.filled(path, name)
    assert part is not None
    return {each.name: each for each in part.fields}


def test_each_kind_of_value_has_its_kind_of_field(now: Now) -> None:
    access = blanks(now(), "access")
    assert (access["allow"].kind, access["allow"].value, access["pairing"].kind, access["pairing"].value) == (
        "text", "telegram:1, telegram:2", "flag", "true",
    )  # fmt: skip
    model = blanks(now(OPENAI_API_KEY="sk-x"), "model")
    assert (model["api_key"].kind, model["api_key"].is_set, model["api_key"].value) == ("secret", True, "")
    assert blanks(now(), "model")["api_key"].is_set is False
    log = blanks(now(), "log")
    assert (log["level"].kind, "debug" in log["level"].choices) == ("choice", True)
    headers = blanks(now(), "tools", "mcp", name="mail")["headers"]
    assert headers.kind == "long"
    assert "X-Key: ${MAIL_X_KEY}" in headers.value
    assert "one" not in headers.value
    assert blanks(now(), "tools", "mcp", name="new")["url"].value == ""


def test_what_is_no_section_has_no_form(now: Now) -> None:
    for path in (("access", "allow"), ("adapters",), ("nothing",), ("access",) * 13):
        assert now().part(path) is None
    several = now().part(("tools", "mcp"))
    assert several is not None
    assert (several.at, several.names) == ("tools.mcp", ["mail"])
    assert now().is_one_of_several(MAIL)
    assert not now().is_one_of_several(("access", "allow"))


def test_only_what_was_changed_is_written(now: Now) -> None:
    shown = {"allow": "telegram:1, telegram:2", "pairing": "true"}
    draft = now().wanted(("access",), {**shown, "allow": "telegram:1, telegram:3"}, shown)
    assert draft.settings == {("access", "allow"): ["telegram:1", "telegram:3"]}
    assert now().wanted(("access",), shown, shown).settings == {}
    assert now().wanted(("access",), {"allow": shown["allow"]}, shown).settings == {("access", "pairing"): False}
    assert now().wanted(("access",), {**shown, "allow": ""}, shown).settings == {("access", "allow"): REMOVED}
    with pytest.raises(UserError, match="Give the new entry a name first"):
        now().wanted(("tools", "mcp"), {}, {})


def test_who_came_into_a_list_meanwhile_stays_in_it(now: Now) -> None:
    shown = {"allow": "telegram:1"}  # as it was when the form was made
    draft = now().wanted(("access",), {"allow": "telegram:9"}, shown)
    assert draft.settings == {("access", "allow"): ["telegram:2", "telegram:9"]}


def test_a_secret_goes_to_a_variable_and_a_shown_header_stays(now: Now) -> None:
    draft = now().wanted(("model",), {"api_key": "sk-new"}, {"api_key": ""})
    assert (draft.secrets, draft.settings) == (
        {"OPENAI_API_KEY": "sk-new"},
        {("model", "api_key"): "${OPENAI_API_KEY}"},
    )
    form = {each: blank.value for each, blank in blanks(now(), "tools", "mcp", name="mail").items()}
    said = form["headers"] + "New: sk-two\n"
    draft = now().wanted(MAIL, {**form, "headers": said}, form)
    assert [*draft.secrets.values()] == ["sk-two"]
    (variable,) = draft.secrets
    assert draft.settings[(*MAIL, "headers")] == {
        "X-Key": "${MAIL_X_KEY}", "Plain": "one", "New": f"${{{variable}}}",
    }  # fmt: skip
    taken = now(**{variable: "another's"}).wanted(MAIL, {**form, "headers": said}, form)
    assert [*taken.secrets] == [f"{variable}_2"]
    with pytest.raises(UserError, match="needs lines such as NAME: value"):
        now().wanted(MAIL, {**form, "headers": "just words"}, form)


def test_a_new_entry_does_not_take_the_name_of_one_that_is_there(now: Now) -> None:
    form = {each: blank.value for each, blank in blanks(now(), "tools", "mcp", name="").items()}
    with pytest.raises(UserError, match=r"tools\.mcp\.mail already exists"):
        now().wanted(MAIL, {**form, "url": "https://other.example"}, form)
    draft = now().wanted(("tools", "mcp", "other"), {**form, "url": "https://other.example"}, form)
    assert draft.settings == {("tools", "mcp", "other", "url"): "https://other.example"}


def test_a_value_that_is_shown_in_part_is_written_whole_or_not_at_all(now: Now) -> None:
    with pytest.raises(UserError, match="is shown only in part"):
        now().wanted(("model",), {"name": "a … c"}, {"name": "a … b"})
    with pytest.raises(UserError, match="YAML aliases"):
        now().wanted(("access",), {"allow": "[&a x, *a]"}, {"allow": "telegram:1, telegram:2"})


def draft(path: tuple[str, ...], value: Any, **secrets: str) -> SetupChanges:
    return SetupChanges(settings={path: value}, secrets=secrets)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (draft(("access", "admins"), ["telegram:9"]), "decides who is an admin"),
        (draft(("adapters", "web", "people"), {"eve": "x"}), "decides who is an admin"),
        (draft(("tools", "shell", "enabled"), True), "can start programs"),
        (draft(("store", "url"), "sqlite:///x.db"), "move stored data"),
        (draft(("backup", "dir"), "x"), "move stored data"),
        (draft(("tools", "mcp", "new"), {"command": "x"}), "can start programs"),
        (draft((*MAIL, "url"), "https://evil.example"), "hidden key to another address"),
        (draft(("access", "allow"), ["telegram:1"]), ""),
        (draft((*MAIL, "url"), "https://mail.example/mcp"), ""),
        (draft(("tools", "mcp", "new", "url"), "https://new.example"), ""),
        (draft(("model", "base_url"), "https://other.example", KEY="sk-typed-as-well"), ""),
    ],
)
def test_whoever_has_no_shell_here_changes_nothing_that_reaches_further(
    now: Now, wanted: SetupChanges, why: str
) -> None:
    if why:
        with pytest.raises(UserError, match=why):
            refuse_odd(now(), wanted, owner=False)
    else:
        refuse_odd(now(), wanted, owner=False)
    refuse_odd(now(), wanted, owner=True)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (draft(("model", "api_key"), "${K}", K="a\0b"), "contains characters that a key never has"),
        (draft(("model", "name"), "a\nb"), "cannot be typed"),
        (draft(("access", "allow"), ["x" * 2_001]), "too long"),
        (draft(("persona",), "a\nb"), ""),
        (draft(("access", "allow"), ["${PASSWORD}"]), r"A \$\{VARIABLE\} for access.allow can be written only"),
        (draft(("model", "api_key"), "${K}", K="sk"), ""),
        (draft((*MAIL, "headers"), {"X-Key": "${MAIL_X_KEY}"}), ""),
    ],
)
def test_nobody_writes_what_cannot_be_meant(now: Now, wanted: SetupChanges, why: str) -> None:
    if why:
        with pytest.raises(UserError, match=why):
            refuse_odd(now(), wanted, owner=True)
    else:
        refuse_odd(now(), wanted, owner=True)


@pytest.mark.parametrize(
    ("text", "line", "prose"),
    [
        ("tea", True, True),
        ("a\nb", False, True),
        ("a\0", False, False),
        ("x" * 2_000, True, True),
        ("x" * 2_001, False, False),
    ],
)
def test_what_can_be_typed(text: str, line: bool, prose: bool) -> None:
    assert (fits(text), fits(text, lines=True)) == (line, prose)


def test_a_value_is_told_in_its_own_letters() -> None:
    assert in_force_text([{"key": "a", "value": ["Grüße"], "origin": "x"}]) == 'a: ["Grüße"]  # x'
