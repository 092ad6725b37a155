"""`legato check`, and what the program shows of secrets when something goes wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog

from gateway.agent.models import Models
from gateway.app.config import Config, load_config
from gateway.app.models import configured_models
from gateway.cli import main as cli
from gateway.cli.check import of_model
from gateway.providers.plugin import ModelSettings, ProviderHost
from gateway.runtime.errors import ConfigError, EmptyAnswer, OutputCapTooLarge, ProviderRejected
from gateway.runtime.logs import configure_logs, redact_crashes
from gateway.runtime.redaction import Redactor
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeModel
from tests.support.model import Say, Script, in_turn

TOKEN = "123456789:AAF-not-a-real-token-but-long-enough12"
BOT = """
adapters: {telegram: {enabled: true, token: "${TOKEN}", base_url: "ADDRESS"}}
access: {allow: ["telegram:1"]}
"""


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module, hook in ((sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(module, hook, getattr(module, hook))
    monkeypatch.chdir(tmp_path)


def check(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, str]]:
    """The exit status, and the lines by their first words."""
    with pytest.raises(SystemExit) as ended:
        cli.app(["check"])
    said = capsys.readouterr()
    assert said.err == ""
    assert isinstance(ended.value.code, int)
    *findings, blank, then = said.out.splitlines()
    assert (blank, then.endswith(("`.", "built-in model."))) == ("", True)
    return ended.value.code, {line[:16].strip(): line[17:] for line in findings} | {"then": then}


def test_without_a_configuration_it_says_so_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = check(capsys)
    assert status == 0
    assert lines["config"] == f"ok    there is no config.yaml in {tmp_path}, so every setting has its default"
    assert lines["store"] == "ok    there is no store yet; the first start makes legato.db"
    assert lines["then"].startswith("Next, run `legato init` to set up a model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "status", "then"),
    [
        ("log: {level: error}", 0, "Start it with `legato chat`."),
        ("model: {provider: openai, name: m, base_url: 'http://127.0.0.1:9/v1'}", 1, "Fix what says FAIL, then"),
    ],
)
def test_its_last_line_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, status: int, then: str
) -> None:
    (tmp_path / "config.yaml").write_text(text)
    ended, lines = check(capsys)
    assert ended == status
    assert lines["then"].startswith(then)


def test_it_names_the_file_that_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///no/such/legato.db'}")
    (tmp_path / ".env").write_text("A=b")
    (tmp_path / ".env").chmod(0o644)
    status, lines = check(capsys)
    assert status == 1
    assert lines["config"] == f"ok    {tmp_path}/config.yaml"
    assert lines["secrets"] == "note  others on this machine can read .env: chmod 600 .env"
    assert lines["store"] == f"FAIL  {tmp_path}/no/such is not a folder that can be written to; correct store.url"
    (tmp_path / ".env").chmod(0o600)
    assert "secrets" not in check(capsys)[1]


def test_it_asks_the_models_of_chats_and_looks_for_their_tools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text(
        "chats:\n"
        "  telegram:-1: {tools: [clok, -shell, to*]}\n"
        "  telegram:-2: {model: {provider: openai, name: m, base_url: 'http://127.0.0.1:1/v1'}}\n"
        "tools: {shell: {enabled: true, sandbox: never}}\n"
    )
    status, lines = check(capsys)
    assert status == 1
    assert lines["chat's tools"] == "note  telegram:-1 names clok, which is not a tool here; did you mean clock?"
    assert lines["chat's model"].startswith("FAIL  telegram:-2: m (openai): The model cannot be reached")


@pytest.mark.parametrize(
    ("shell", "reason", "told"),
    [
        ("{}", "", "ok    the bot runs commands in a sandbox, without asking you"),
        ("{}", "it is away", "note  the bot runs no commands, because there is no sandbox: it is away"),
        (
            "{enabled: true}",
            "it is away",
            "note  the bot runs commands on this machine after your yes, because there is no sandbox",
        ),
        (
            "{sandbox: never}",
            "",
            "note  the bot runs no commands, because there is no sandbox: tools.shell.sandbox says so",
        ),
        ("{enabled: false}", "", "note  the bot runs no commands, because tools.shell.enabled is false"),
        ("{folders: {x: {path: /no/such}}}", "", "note  tools.shell.folders.x is not a folder: /no/such"),
    ],
)
def test_it_says_where_commands_run_and_why(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    shell: str,
    reason: str,
    told: str,
) -> None:
    monkeypatch.setattr("gateway.cli.check.why_not", lambda: reason)
    (tmp_path / "config.yaml").write_text(f"tools: {{shell: {shell}}}")
    assert check(capsys)[1]["commands"].startswith(told)


def test_it_looks_for_the_tools_and_platforms_of_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("tools: {offered: {'*': [-clok], telegram: [clock]}}")
    assert check(capsys)[1]["tools"] == "note  offered for * names clok, which is not a tool here; did you mean clock?"
    (tmp_path / "config.yaml").write_text(
        "tools: {offered: {'telegrm:5': [], 'console': [todo]}, admins_only: [shel*]}"
    )
    assert check(capsys)[1]["tools"] == (
        "note  tools.offered names telegrm:5, but there is no such platform here; did you mean telegram?"
    )


@pytest.mark.parametrize(
    ("transcription", "told"),
    [
        ("base_url: 'http://127.0.0.1:1/v1', model: w", "FAIL  w: the server that writes it down does not answer ("),
        ("command: [/bin/echo, '{file}']", "ok    echo, writes down what is said"),
        ("command: [/no/such, '{file}']", "FAIL  such: the program that writes it down cannot be run ("),
    ],
)
def test_it_has_a_second_of_silence_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], transcription: str, told: str
) -> None:
    (tmp_path / "config.yaml").write_text(f"transcription: {{{transcription}}}")
    status, lines = check(capsys)
    assert status == int(told.startswith("FAIL"))
    assert lines["transcription"].startswith(told)


def test_it_says_what_others_on_the_machine_can_get_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "legato-home").mkdir()
    (tmp_path / "legato-home").chmod(0o755)
    for name, mode in (("config.yaml", 0o664), (".env", 0o622), ("legato.db", 0o640)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    status, lines = check(capsys)
    assert status == 0
    others = "note  others on this machine can"
    assert lines["config's file"] == f"{others} write config.yaml: chmod go-w config.yaml"
    assert lines["secrets"] == f"{others} write .env: chmod 600 .env"
    assert lines["store's file"] == f"{others} read legato.db: chmod 600 legato.db"
    assert lines["folder"] == f"{others} read legato-home: chmod 700 legato-home"
    for name, mode in (("config.yaml", 0o644), (".env", 0o600), ("legato.db", 0o600), ("legato-home", 0o700)):
        (tmp_path / name).chmod(mode)
    assert not {"config's file", "secrets", "store's file", "folder"} & set(check(capsys)[1])


def test_the_copy_that_an_upgrade_kept_is_pointed_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("legato.db.version-11", "legato.db.version-of-mine"):
        (tmp_path / name).touch()
    kept = (
        "legato.db.version-11 is from before an upgrade or a restore, and still contains what the bot has forgotten "
        "since then; "
    )
    assert check(capsys)[1]["store's copy"] == f"note  {kept}delete the copy when all is well"


def test_the_copy_that_a_killed_rehearsal_left_is_pointed_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("rehearsed-ab12_xyz", "moved-of-mine"):
        (tmp_path / f"legato.db.{name}").mkdir()
    left = "legato.db.rehearsed-ab12_xyz was made for a rehearsal or a migration; "
    assert check(capsys)[1]["store's copy"] == f"note  {left}delete the copy if neither is running"


def test_a_variable_with_one_underscore_is_pointed_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEGATO_MODEL_NAME", "x")
    monkeypatch.setenv("LEGATO__LOG__LEVEL", "error")
    status, lines = check(capsys)
    assert status == 0
    assert lines["environment"].startswith("note  LEGATO_MODEL_NAME sets nothing: ")


def test_a_reader_that_has_seen_enough_ends_a_check_as_a_shell_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        with pytest.raises(SystemExit) as ended:
            cli.app(["check"])
        assert ended.value.code == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("model:\n\tprovider: offline\n", "indent with spaces, YAML takes no tabs"),
        ("model:\n  provider:offline\n", "write a space after each colon"),
        ("model:\n  provider:offline\n  name: x\n", "write a space after each colon"),
        ("model:offline\n", "write a space after each colon"),
        ("model: {provider: llama.cpp, name: x}", "did you mean llamacpp?"),
        ("model: {provider: OpenRouter, name: x}", "did you mean openrouter?"),
    ],
)
def test_a_usual_slip_gets_a_hint(tmp_path: Path, text: str, hint: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_config(tmp_path / "config.yaml", {})
    assert hint in str(raised.value)


@pytest.mark.parametrize(
    ("known", "guess"), [({}, True), ({"context_length": 128_000}, False), ({"name": "gpt-4o"}, True)]
)
async def test_a_window_that_is_a_guess_says_so(known: dict[str, Any], guess: bool) -> None:
    usual = {"provider": "openai", "name": "nobody-lists-this", "base_url": "http://127.0.0.1:9/v1"}
    entry = ModelSettings(**{**usual, **known})
    host = ProviderHost(clock=ManualClock(), redact=str, count=len, pause=lambda: asyncio.sleep(0))
    models, _ = configured_models(Config(model=entry), host, Random(1), {"openai": FakeModel()})
    found = await of_model("model", models, models.main)
    assert found.detail.startswith(f"{entry.name} (openai), window 128,000 tokens")
    assert ("(assumed: set model.context_length if you know it)" in found.detail) == guess


def asked(script: Script, **entry: Any) -> tuple[Models, FakeModel]:
    """A configured model that follows a script."""
    provider = FakeModel(script)
    host = ProviderHost(clock=ManualClock(), redact=str, count=len, pause=lambda: asyncio.sleep(0))
    settings = ModelSettings(provider="openai", name="thinker", base_url="http://127.0.0.1:9/v1", **entry)
    return configured_models(Config(model=settings), host, Random(1), {"openai": provider})[0], provider


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (Say(stop="length"), ", answers"),
        (Say(error=EmptyAnswer()), ", answers, but its answer was empty"),
    ],
)
async def test_a_model_that_thinks_and_says_nothing_is_there(answer: Say, detail: str) -> None:
    models, _ = asked(lambda spec, request: answer)
    found = await of_model("model", models, models.main)
    assert found.ok
    assert detail in found.detail


@pytest.mark.parametrize(
    "refusal",
    [
        OutputCapTooLarge("More output was asked for.", available=512),
        ProviderRejected("`max_tokens` must be greater than `thinking.budget_tokens`", status=400),
    ],
)
@pytest.mark.parametrize("usual", [None, 8_192])
async def test_a_number_that_a_server_refuses_gives_way_to_that_of_a_conversation(
    refusal: OutputCapTooLarge | ProviderRejected, usual: int | None
) -> None:
    models, provider = asked(
        lambda spec, request: Say(text="ready", error=refusal if request.max_tokens != usual else None),
        max_output_tokens=usual,
    )
    found = await of_model("model", models, models.main)
    assert found.ok, found.detail
    assert [request.max_tokens for request in provider.requests] == [1_024, usual]


async def test_a_key_that_is_refused_is_asked_once() -> None:
    models, provider = asked(in_turn(Say(error=ProviderRejected("The provider refused the API key.", status=401))))
    found = await of_model("model", models, models.main)
    assert not found.ok
    assert len(provider.requests) == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/bot/", "http://127.0.0.1:9"])
def test_no_token_is_printed_whatever_the_address_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    monkeypatch.setenv("TOKEN", TOKEN)
    (tmp_path / "config.yaml").write_text(BOT.replace("ADDRESS", address))
    status, lines = check(capsys)
    assert status == 1
    assert lines["telegram"].startswith("FAIL")
    assert TOKEN[10:] not in str(lines)


def test_what_python_prints_of_a_crash_is_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    redact_crashes(Redactor(["a very secret word"]))
    error = RuntimeError("it was a very secret word")
    sys.excepthook(RuntimeError, error, None)
    thread = threading.Thread(target=lambda: 1 / len("" * len("a very secret word")))
    thread.start()
    thread.join()

    class Fragile:
        def __del__(self) -> None:
            raise error

    Fragile()
    said = capsys.readouterr().err
    assert said.count("RuntimeError: it was [REDACTED]") == 2
    assert "ZeroDivisionError" in said
    assert "very secret" not in said.replace('len("a very secret word")', "")


async def test_what_asyncio_logs_of_a_task_is_redacted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    close = configure_logs(level="warning", form="json", redact=Redactor([TOKEN]), file=log)
    asyncio.get_running_loop().call_exception_handler({"message": "lost", "exception": RuntimeError(TOKEN)})
    structlog.get_logger("x").warning("nested", details={"url": [f"http://x/{TOKEN}"]}, error=ValueError(TOKEN))
    close()
    said = log.read_text()
    assert said.count("[REDACTED]") >= 2
    assert TOKEN not in said


def test_it_says_where_hooks_lead_and_when_the_agent_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", "a-secret-of-some-length")
    hook = 'secret: "${HOOK}", signature: github'
    (tmp_path / "config.yaml").write_text(
        "heartbeat: {chat: 'web:owner', hours: 8-22}\nadapters:\n  web: {enabled: true}\n"
        f"  api: {{enabled: true, hooks: {{lost: {{{hook}, chat: 'telegram:1', do: ask}}}}}}\n"
    )
    status, lines = check(capsys)
    assert status == 1
    assert lines["hook"].startswith(
        "FAIL  http://127.0.0.1:8788/hook/lost, signed as github, asks the agent in telegram:1"
    )
    assert "does not look yet" in lines["heartbeat"]
    (tmp_path / "HEARTBEAT.md").write_text("Look after the milk.")
    assert "from 8 to 22 o'clock" in check(capsys)[1]["heartbeat"]
