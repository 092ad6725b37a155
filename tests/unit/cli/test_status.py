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
        self._say({"worker": "w_1", "state": "serving", "problems": []})

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
    assert reload_text(answers) == f"In force now: model.name.\n{sentence}"


def test_one_that_hangs_alone_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        assert asked(MonitorSettings(address=f"127.0.0.1:{hanging.getsockname()[1]}")) == []
