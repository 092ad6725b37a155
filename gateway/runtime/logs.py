"""Structured logs on stderr or in a file, with secrets taken out of every line."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TextIO, cast

import structlog

from gateway.runtime.errors import UserError
from gateway.runtime.owners import leave_to_owner, private

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _Sink:
    """The destination of log lines: `file`, else stderr as it is at that moment. A reader that has left, or a full
    disk, costs the line and nothing else."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            return (self._file or sys.stderr).write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            (self._file or sys.stderr).flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _Redacting(logging.Formatter):
    """A line of another library: its address may hold a bot's token, its traceback anything."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(name)s: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """The whole line, traceback included, without secrets."""
        return self._redact(super().format(record))


def _without_secrets(value: Any, redact: Callable[[str], str]) -> Any:
    """A value of a line with every text in it redacted; an object is shown as its `repr`."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _without_secrets(each, redact) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_without_secrets(each, redact) for each in value]
    return redact(value if isinstance(value, str) else repr(value))


def redact_crashes(redact: Callable[[str], str]) -> None:
    """Take secrets out of the tracebacks that Python itself prints: of the program, of its threads, and of what fails
    while it is thrown away."""

    def show(error: BaseException | None, where: str = "") -> None:
        if error is not None:
            text = redact(where + "".join(traceback.format_exception(error)))
            _Sink(None).write(text)

    sys.excepthook = lambda _, error, __: show(error)
    threading.excepthook = lambda crash: show(crash.exc_value, f"In {crash.thread and crash.thread.name}:\n")
    sys.unraisablehook = lambda crash: show(crash.exc_value, f"{crash.err_msg or 'Ignored'}: {crash.object!r}\n")


def _opened(file: Path) -> TextIO:
    try:
        stream = open(file, "a", encoding="utf-8", buffering=1, opener=private)  # noqa: SIM115
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}). Check its owner and its permissions.") from error
    leave_to_owner(file.parent, stream.fileno())
    return stream


def configure_logs(
    *,
    level: Literal["debug", "info", "warning", "error"],
    form: Literal["console", "json"],
    redact: Callable[[str], str],
    file: Path | None = None,
) -> Callable[[], None]:
    """Set up structlog for the process: to `file` if given, else to stderr. Returns what closes
    `file`; a program that logs until its end need not call it."""
    sink = _Sink(_opened(file) if file else None)
    stream = cast(TextIO, sink)

    def redacted(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {key: _without_secrets(value, redact) for key, value in event.items()}

    renderer: Any = structlog.processors.JSONRenderer()
    if form == "console":
        colors = file is None and sys.stderr.isatty()
        renderer = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
    chain: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
        redacted,
        renderer,
    ]
    structlog.configure(
        processors=chain,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    # Libraries that log through the standard library (APScheduler, Telegram's) only speak up when it matters.
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Redacting(redact))
    logging.basicConfig(level=max(_LEVELS[level], logging.WARNING), handlers=[handler], force=True)
    return sink.close


def sentences(form: Literal["console", "json"]) -> Callable[[str], None]:
    """Return what says a sentence on stderr, whatever the level is: to people, or as a line of JSON to programs."""
    sink = _Sink(None)

    def plain(text: str) -> None:
        sink.write(f"{text}\n")

    if form == "console":
        return plain
    dated = structlog.processors.TimeStamper(fmt="iso")
    chain: list[Any] = [structlog.processors.add_log_level, dated, structlog.processors.JSONRenderer()]
    line = structlog.wrap_logger(
        structlog.PrintLogger(cast(TextIO, sink)),
        processors=chain,
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
    )
    return lambda text: line.info("told", text=text)
