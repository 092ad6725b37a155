"""Logging must never be what breaks a turn."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from gateway.runtime.logs import configure_logs


class Gone(io.StringIO):
    """A stream whose reader has left."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def configured(redact=str, file: Path | None = None) -> Callable[[], None]:
    return configure_logs(level="info", form="json", redact=redact, file=file)


def test_a_line_goes_to_stderr_as_it_is_when_the_line_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    configured()
    later = io.StringIO()
    monkeypatch.setattr(sys, "stderr", later)
    structlog.get_logger("x").info("something", count=3)
    assert '"event": "something"' in later.getvalue()
    assert '"count": 3' in later.getvalue()


@pytest.mark.parametrize("closed", [True, False])
def test_a_stream_that_is_gone_costs_the_line_and_nothing_else(monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    configured()
    stream = io.StringIO() if closed else Gone()
    monkeypatch.setattr(sys, "stderr", stream)
    if closed:
        stream.close()
    structlog.get_logger("x").warning("nobody hears this")


def test_secrets_are_taken_out_of_every_value(tmp_path: Path) -> None:
    log = tmp_path / "log"
    close = configured(redact=lambda text: text.replace("hush", "[REDACTED]"), file=log)
    structlog.get_logger("x").error("failed", detail="the key is hush")
    close()
    assert "hush" not in log.read_text()
    assert "the key is [REDACTED]" in log.read_text()


def test_a_new_log_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        configured(file=tmp_path / "log")()
    finally:
        os.umask(before)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_other_libraries_lines_and_their_tracebacks_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    configured(redact=lambda text: text.replace("hush", "***"))
    try:
        raise ValueError("GET https://example.org/bot" + "hush/getMe")
    except ValueError:
        logging.getLogger("a.library").exception("It failed for %s", "hush")
    assert "It failed for ***" in stream.getvalue()
    assert "bot***/getMe" in stream.getvalue()
    assert "hush" not in stream.getvalue()
