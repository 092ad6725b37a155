"""`legato status` and `legato reload` beside a worker that hangs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from gateway.app.config.models import MonitorSettings
from gateway.cli import status
from gateway.cli.status import SILENT, asked, is_well, reload_text, reloaded, status_text
from tests.support.redis_server import free_port


class _Worker(BaseHTTPRequestHandler):
    """Answers as a gateway does, as far as these commands look."""

    def do_GET(self) -> None:
        self._say({"worker": "w_1", "state": "serving", "moves": True, "problems": []})

    def do_POST(self) -> None:
        self._say({"changed": ["model.name"], "waiting": []})

    def _say(self, answer: dict[str, Any]) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The first of four ports in a row: a worker answers, one takes the question and hangs, one answers, nobody."""
    monkeypatch.setattr(status, "_PATIENCE", 0.2)
    with ExitStack() as kept:
        while True:
            port, opened = free_port(), ExitStack()
            with suppress(OSError):
                answering = [opened.enter_context(HTTPServer(("127.0.0.1", port + at), _Worker)) for at in (0, 2)]
                opened.enter_context(socket.create_server(("127.0.0.1", port + 1)))
                socket.create_server(("127.0.0.1", port + 3)).close()
                kept.push(opened)
                break
            opened.close()
        for server in answering:
            thread = Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            kept.callback(thread.join)
            kept.callback(server.shutdown)
        yield port


def test_a_worker_that_hangs_is_named_and_the_others_are_asked(first: int) -> None:
    monitor = MonitorSettings(address=f"127.0.0.1:{first}")
    silent = {SILENT: f"127.0.0.1:{first + 1}"}
    reports = asked(monitor)
    assert [each.get("worker") for each in reports] == ["w_1", None, "w_1"]
    assert reports[1] == silent
    assert not is_well(reports)
    assert is_well(reports[::2])
    sentence = f"The gateway at 127.0.0.1:{first + 1} does not answer."
    assert status_text([silent]) == sentence
    answers = reloaded(monitor)
    assert answers[1] == silent
    assert reload_text(answers) == f"These settings apply from now on: model.name.\n{sentence}"


def test_one_that_hangs_alone_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        assert asked(MonitorSettings(address=f"127.0.0.1:{hanging.getsockname()[1]}")) == []


AT = "2026-01-02T03:04:05.000+00:00"
WELL: dict[str, Any] = {
    "worker": "w_1",
    "state": "serving",
    "uptime_seconds": 7_200,
    "version": "1.0",
    "platforms": {"slack": {"reader": "reads", "last_update": AT, "last_answer": None}},
    "model": {"name": "m", "last_answer": AT, "last_failure": None, "away": ""},
    "store": {"error": "", "write_seconds": 0.0042},
    "event_loop_lag_seconds": 0.25,
    "backup": None,
    "turns_running": 1,
    "inbox": {"waiting": 0, "oldest_seconds": 0},
    "outbox": {"unsent": 1, "oldest_seconds": 60},
    "dead_letters": 0,
}


def test_a_report_is_read_from_what_serves_to_what_is_wrong() -> None:
    assert status_text([WELL]).split("\n") == [
        "serving for 2 h, version 1.0",
        "slack        reads; heard 2026-01-02 03:04:05 UTC, answered nothing yet",
        "model        m: answered 2026-01-02 03:04:05 UTC, failed nothing yet",
        "store        a write takes 4 ms",
        "loop         0.2 s late at the last look",
        "turns        1 turn under way",
        "inbox        empty",
        "outbox       1 message is not shown, the oldest for 60 seconds",
        "dead letters 0",
    ]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"model": {**WELL["model"], "away": "no credit"}}, "failed nothing yet; away: no credit"),
        ({"store": {"error": "disk full", "write_seconds": 0.0}}, "store        disk full"),
        ({"backup": {"made_at": None, "next": AT}}, "backup       made nothing yet, the next 2026-01-02 03:04:05 UTC"),
        ({"inbox": {"waiting": 2, "oldest_seconds": 60}}, "inbox        2 messages wait, the oldest for 60 seconds"),
        ({"problems": [{"kind": "disk", "about": "", "text": "full", "since": AT}]}, f"disk: full (since {AT})"),
        ({"problems": [{"kind": "reader", "about": "slack", "text": "gone", "since": AT}]}, "reader slack: gone"),
    ],
)
def test_what_is_unusual_has_its_line(changed: dict[str, Any], line: str) -> None:
    assert line in status_text([WELL | changed])


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            {"changed": [], "waiting": ["a"]},
            ["apart from any that need a restart.", "These settings apply from the next start: a."],
        ),
        (
            {"changed": ["a", "b"], "waiting": [], "held": ["c"]},
            ["These settings apply from now on: a, b.", "These settings wait: c. They give more rights"],
        ),
        ({"problems": ["p", "q"], "changed": ["a"]}, ["Nothing has changed:\np\nq"]),
    ],
)
def test_what_a_reload_did_is_told(answer: dict[str, Any], text: list[str]) -> None:
    said = reload_text([answer])
    assert [each in said for each in text] == [True] * len(text)
    assert ("from now on" in said) is ("from now on" in text[0])
