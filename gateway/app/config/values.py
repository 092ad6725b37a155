"""The kinds of values that `config.yaml` holds, each with what must hold of one by itself."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr


def tuple_of_list(value: Any) -> Any:
    """YAML has lists, a frozen model has tuples."""
    return tuple(value) if isinstance(value, list) else value


def _text_of_number(value: Any) -> Any:
    """Platforms number their users and chats; to Legato an id is text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _filled(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _filled_secret(value: SecretStr) -> SecretStr:
    _filled(value.get_secret_value())
    return value


def time_of_day(value: Any) -> Any:
    """A time such as "04:00". Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError('must be written in quotes, such as "04:00": YAML reads bare 14:00 as a number')
    if isinstance(value, str) and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
        raise ValueError(f'must be a time of day from "00:00" to "23:59", not {value!r}')
    return value


def zone(value: str) -> str:
    """A time zone's name. Raises ValueError."""
    try:
        ZoneInfo(value)
    except (OSError, ValueError, KeyError):  # KeyError covers ZoneInfoNotFoundError
        raise ValueError(f"must be the name of a time zone such as Europe/Berlin, not {value!r}") from None
    return value


def _http_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("must be an address that begins with http:// or https://")
    return value


def store_url(value: str) -> str:
    """Where everything is stored. Raises ValueError."""
    if value.startswith(("redis://", "rediss://")):
        return _redis_url(value)
    path = value.removeprefix("sqlite:///")
    if path == value or not path:
        raise ValueError("must be sqlite:///FILE (three slashes, four before an absolute path) or redis://HOST:PORT/0")
    if ":memory:" in path or "?" in path:
        raise ValueError("must name a file, without options: what is accepted has to survive a restart")
    return value


def _redis_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = bool(parts.hostname) and (parts.port or 6379) > 0 and re.fullmatch(r"(/\d*)?", parts.path) is not None
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("must be redis://HOST:PORT/0")
    return value


def _command_start(value: str) -> str:
    """Only plain words can be matched with what a shell would make of them."""
    if not re.fullmatch(r"[\w./,:=@%+-]+(?: [\w./,:=@%+-]+)*", value):
        raise ValueError("must be the first words of a command, such as `git status`, without any of the shell's signs")
    return value


PASSWORD_IN_URL = re.compile(r"://[^/:@\s]*:([^/@\s]+)@")

Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(strict=True), AfterValidator(_filled)]
Secret = Annotated[SecretStr, Field(strict=True), AfterValidator(_filled_secret)]
Ident = Annotated[str, Field(strict=True), AfterValidator(_filled), BeforeValidator(_text_of_number)]
HttpUrl = Annotated[str, Field(strict=True), AfterValidator(_http_url)]
Count = Annotated[int, Field(strict=True, ge=1)]
Natural = Annotated[int, Field(strict=True, ge=0)]
Port = Annotated[int, Field(strict=True, ge=1, le=65_535)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
CommandStart = Annotated[str, Field(strict=True), AfterValidator(_command_start)]
SpendCap = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
