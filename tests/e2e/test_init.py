"""`legato init` and `legato config`: from an empty folder to settings that work, and one of them changed."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.app.config import Setup, set_up
from gateway.cli import init, settings
from gateway.cli.init import Dialogue, by_answers, by_flags, write
from gateway.runtime.errors import ConfigError, ProviderUnavailable, UserError
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.program import legato

TOKEN = "123456789:AAF-not-a-real-token-but-long-enough12"


def set_up_in(folder: Path, **environ: str) -> tuple[Setup, dict[str, str]]:
    known = {"LEGATO_HOME": str(folder), **environ}
    return set_up(None, known), known


def talking(*answers: str) -> tuple[Dialogue, list[str]]:
    """A person who gives these answers; "" is Enter. What they read."""
    given: Iterator[str] = iter(answers)
    seen: list[str] = []

    def ask(question: str, usual: str) -> str:
        seen.append(f"{question} [{usual}]")
        return next(given) or usual

    def secret(question: str) -> str:
        seen.append(question)
        return next(given)

    return Dialogue(ask=ask, secret=secret, tell=seen.append), seen


def offering(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Vendors that list these models; none: they cannot be asked."""

    async def rows(config: Any, redact: Any) -> list[dict[str, Any]]:
        if not names:
            raise ProviderUnavailable("It cannot be reached.")
        return [{"name": name} for name in names]

    monkeypatch.setattr(init, "model_rows", rows)


def run(work: Any) -> Any:
    return asyncio.run(work())


def test_answers_become_settings_and_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offering(monkeypatch, "llama-a", "openai/gpt-oss-120b")
    setup, known = set_up_in(tmp_path)
    slack = ("y", "xoxb-1-2-my-token", "xapp-1-my-token")  # a platform may have several
    matrix = ("y", "my-password", "@legato:example.org")  # or a setting that nobody can guess
    numbers, url = ("+49 170 1234567", "106540352242922"), "https://bot.example.org/WhatsApp"  # not the telephone's
    whatsapp = ("y", "EAAG-my-token", "my-app-secret", *numbers, url)
    people = "telegram:4711, telegram:12, matrix:@anna:example.org"
    told = ("n", *matrix, *slack, "y", TOKEN, "y", *whatsapp)
    talk, seen = talking("grok", "groq", "gsk-my-key", "", *told, people, "")
    draft = by_answers(talk, setup, known, run)
    assert any("did you mean groq?" in line for line in seen)
    assert any("https://console.groq.com/keys" in line for line in seen)
    asked = next(at for at, line in enumerate(seen) if "Who may talk to the bot" in line)
    assert "Nobody else can use the bot" in seen[asked - 1]
    files = write(draft, setup, known)
    assert [file.name for file in files] == [".env", "config.yaml"]
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    text = (tmp_path / "config.yaml").read_text()
    assert "gsk-my-key" not in text
    assert TOKEN not in text
    config = set_up_in(tmp_path)[0].config
    assert (config.model.provider, config.model.name) == ("groq", "openai/gpt-oss-120b")
    assert config.adapters["telegram"].enabled
    assert config.adapters["web"].enabled
    assert config.adapters["slack"].enabled
    assert vars(config.adapters["whatsapp"]).items() >= {"enabled": True, "number": numbers[1], "url": url}.items()
    assert "It must be a Phone number ID, which has only digits, not a telephone number." in seen
    assert any("Token of the bot on Slack (xapp-…" in line for line in seen)
    assert "On Matrix, the password of the bot's account" in "\n".join(seen)
    assert vars(config.adapters["matrix"])["user"] == "@legato:example.org"
    assert config.access.allow == ("telegram:4711", "telegram:12", "matrix:@anna:example.org")
    assert {"gsk-my-key", TOKEN} <= set(config.secrets())


def test_enter_keeps_all_and_one_answer_changes_one_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offering(monkeypatch)
    (tmp_path / "config.yaml").write_text(
        "# mine\nmodel: {provider: ollama, name: qwen3}  # good\nlog: {level: info}\n"
    )
    setup, known = set_up_in(tmp_path)
    talk, seen = talking("", "", "", "", "", "", "", "", "", "")
    draft = by_answers(talk, setup, known, run)
    assert write(draft, setup, known) == []
    assert any("could not list the models" in line for line in seen)
    talk, _ = talking("", "", "qwen3:32b", "", "", "", "", "", "", "")
    write(by_answers(talk, setup, known, run), setup, known)
    assert (tmp_path / "config.yaml").read_text() == (
        "# mine\nmodel: {provider: ollama, name: 'qwen3:32b'}  # good\nlog: {level: info}\n"
    )


def test_a_search_is_chosen_with_its_key_and_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offering(monkeypatch)
    setup, known = set_up_in(tmp_path)
    talk, seen = talking("", "", "", "", "", "", "", "gogle", "Brave", "BSA-my-key-0123")
    write(by_answers(talk, setup, known, run), setup, known)
    assert any("There is no search 'gogle'" in line for line in seen)
    assert any("https://api-dashboard.search.brave.com" in line for line in seen)
    assert "BSA-my-key-0123" not in (tmp_path / "config.yaml").read_text()
    setup, known = set_up_in(tmp_path)
    search = setup.config.tools.search
    assert (search.provider, search.api_key and search.api_key.get_secret_value()) == ("brave", "BSA-my-key-0123")
    talk, seen = talking("", "", "", "", "", "", "", "searxng", "10.0.0.5:8888")
    write(by_answers(talk, setup, known, run), setup, known)
    setup, known = set_up_in(tmp_path)
    assert setup.config.tools.search.base_url == "http://10.0.0.5:8888"
    talk, _ = talking("", "", "", "", "", "", "", "", "")
    assert write(by_answers(talk, setup, known, run), setup, known) == []
    talk, _ = talking("", "", "", "", "", "", "", "-")
    write(by_answers(talk, setup, known, run), setup, known)
    assert set_up_in(tmp_path)[0].config.tools.search.provider is None


def test_who_never_gives_a_usable_answer_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    setup, known = set_up_in(tmp_path)
    talk, _ = talking(*["nobody"] * 5)
    with pytest.raises(UserError, match="wrote nothing"):
        by_answers(talk, setup, known, run)
    assert list(tmp_path.iterdir()) == []


def test_flags_take_tokens_from_the_environment(tmp_path: Path) -> None:
    setup, known = set_up_in(tmp_path, GROQ_API_KEY="k", TELEGRAM_BOT_TOKEN=TOKEN)
    draft = by_flags(setup, known, provider="groq", model="m", base_url="", allow=["telegram:1"])
    write(draft, setup, known)
    assert not (tmp_path / ".env").exists()
    config = set_up_in(tmp_path, GROQ_API_KEY="k", TELEGRAM_BOT_TOKEN=TOKEN)[0].config
    assert (config.model.name, config.adapters["telegram"].enabled, config.access.allow) == ("m", True, ("telegram:1",))
    with pytest.raises(UserError, match="did you mean groq"):
        by_flags(setup, known, provider="grok", model="", base_url="", allow=[])
    with pytest.raises(UserError, match="need --provider"):
        by_flags(setup, known, provider="", model="m", base_url="", allow=[])


def test_what_would_not_load_is_not_written_and_no_secret_is_left(tmp_path: Path) -> None:
    setup, known = set_up_in(tmp_path)
    draft = init.SetupChanges(settings={"access.allow": ["no such form"]}, secrets={"GROQ_API_KEY": "k"})
    with pytest.raises(ConfigError, match=r"access\.allow"):
        write(draft, setup, known)
    assert list(tmp_path.iterdir()) == []


def test_older_secrets_are_replaced_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# keys\nGROQ_API_KEY=old\nOTHER=x\n")
    setup, known = set_up_in(tmp_path)
    write(init.SetupChanges(secrets={"GROQ_API_KEY": "new"}), setup, known)
    assert (tmp_path / ".env").read_text() == "# keys\nOTHER=x\nGROQ_API_KEY=new\n"


def test_what_is_in_force_and_where_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model:\n  provider: groq\n  name: m\nbudgets: {footer: true}\n")
    setup, known = set_up_in(tmp_path, GROQ_API_KEY="gsk-hidden-1", LEGATO__LOG__FORMAT="json")
    rows = {row["key"]: (row["value"], row["origin"]) for row in settings.rows_in_force(setup, known)}
    assert rows["model.name"] == ("m", f"{tmp_path}/config.yaml:3")
    assert rows["log.format"] == ("json", "LEGATO__LOG__FORMAT")
    assert rows["model.base_url"] == ("https://api.groq.com/openai/v1", "the vendor's row")
    assert rows["model.api_key"][0] == "(set, and secret)"
    text = settings.in_force_text(settings.rows_in_force(setup, known))
    assert "gsk-hidden-1" not in text
    assert "budgets.footer: true " in text
    assert settings.value_of(setup, "sessions.busy_mode") == "queue"
    assert settings.value_of(setup, "model.api_key") == "(set, and secret)"
    with pytest.raises(UserError, match="did you mean busy_mode"):
        settings.value_of(setup, "sessions.busymode")


def test_no_credential_is_shown(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        'store: {url: "redis://:${HIDDEN}@127.0.0.1:1/0"}\n'
        'model: {provider: openai, name: m, base_url: "http://me:${HIDDEN}@127.0.0.1/v1", headers: {X: "${OWN}"}}\n'
        'tools: {mcp: {a: {command: x, env: {FOO: "${OWN}"}}, b: {url: "http://h/", headers: {X: "${OWN}"}}}}\n'
        'adapters: {telegram: {token: "${TOKEN}", proxy: "http://me:${HIDDEN}@127.0.0.1:1"}}\n'
    )
    setup, known = set_up_in(tmp_path, HIDDEN="quizzacious-1", OWN="quizzacious-2", TOKEN="quizzacious-3")
    rows = settings.rows_in_force(setup, known)
    sections = [
        settings.value_of(setup, name) for name in ("store", "store.url", "model", "tools", "tools.mcp", "adapters")
    ]
    assert "quizzacious-" not in json.dumps([rows, sections])
    assert json.loads(settings.value_of(setup, "adapters"))["telegram"]["mode"] == "polling"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("sessions.busy_mode", "colect", "did you mean collect?"),
        ("sesions.busy_mode", "collect", "is not a known key"),
        ("model.api_key", "sk-1", "Put MODEL_API_KEY=… into the file .env"),
        ("turns.max_steps", "many", "must be a whole number"),
    ],
)
def test_a_change_that_would_not_load_is_refused(tmp_path: Path, key: str, value: str, said: str) -> None:
    setup, known = set_up_in(tmp_path)
    with pytest.raises((ConfigError, UserError), match=said.replace("?", r"\?")):
        settings.change(setup, known, {key: value})
    assert [each for each in tmp_path.iterdir() if each.name != "config.yaml"] == []
    assert not (tmp_path / "config.yaml").exists()


@pytest.mark.parametrize(
    "text",
    ["model: {provider: offline,\n  name: m,  # why\n  }\n", "model: {provider: offline, }\n"],
)
def test_a_file_too_unusual_to_be_changed_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    setup, known = set_up_in(tmp_path)
    with pytest.raises(UserError, match="Change it by hand"):
        settings.change(setup, known, {"model.base_url": "http://127.0.0.1:1"})
    assert (tmp_path / "config.yaml").read_text() == text


def test_line_ends_of_windows_stay(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"# mine\r\nlog:\r\n  level: info # why\r\n")
    setup, known = set_up_in(tmp_path)
    settings.change(setup, known, {"log.level": "debug", "budgets.footer": True})
    written = (tmp_path / "config.yaml").read_bytes()
    assert written == b"# mine\r\nlog:\r\n  level: debug # why\r\nbudgets:\r\n  footer: true\r\n"


def test_a_file_that_cannot_be_replaced_is_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is mounted by itself into a container."""
    (tmp_path / "config.yaml").write_text("log: {level: info}\n")
    (tmp_path / ".env").write_text("GROQ_API_KEY=old\n")
    setup, known = set_up_in(tmp_path)

    def busy(self: Path, target: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(Path, "replace", busy)
    with pytest.raises(UserError, match=r"cannot write .*config\.yaml \(Device or resource busy\)"):
        settings.change(setup, known, {"log.level": "debug"})
    with pytest.raises(UserError, match=r"cannot write .*\.env"):
        write(init.SetupChanges(secrets={"GROQ_API_KEY": "new"}), setup, known)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {
        "config.yaml": "log: {level: info}\n",
        ".env": "GROQ_API_KEY=old\n",
    }


async def test_the_commands_from_an_empty_folder_to_an_answer(tmp_path: Path) -> None:
    async with LlmServer(lambda body: Reply(text="ready, and glad to be")) as server:
        status, out, err = await legato(
            tmp_path, "init", "--provider", "vllm", "--model", "test-model", "--base-url", server.url
        )
        assert (status, err) == (0, "")
        assert "Start it with `legato chat`." in out
        status, out, _ = await legato(tmp_path, "ask", "hello")
        assert (status, out.strip()) == (0, "ready, and glad to be")
        status, out, _ = await legato(tmp_path, "config", "set", "sessions.busy_mode", "collect")
        assert (status, "uses the new value at its next start" in out) == (0, True)
        assert (await legato(tmp_path, "config", "get", "sessions.busy_mode"))[1] == "collect\n"
        rows = json.loads((await legato(tmp_path, "config", "show", "--json"))[1])
        assert [row["key"] for row in rows] == ["model.provider", "model.name", "model.base_url", "sessions.busy_mode"]
        assert (
            "uses the new value by `legato reload`" in (await legato(tmp_path, "config", "set", "log.level", "info"))[1]
        )
        status, _, err = await legato(tmp_path, "init")
        assert status == 2
        assert "there is nobody to ask" in err
