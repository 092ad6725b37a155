"""The parameters of a call, however they came: in the query, as a form, as multipart or as JSON.

Leniency is Telegram's own: a number that is none counts as 0, and one out of range is moved into it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web
from multidict import MultiDict

from tests.emulators.telegram.refusals import Refusal, bad

LARGEST_REQUEST = 50 * 1024 * 1024 + 512 * 1024  # the largest upload, and what is around it
_INTEGER = re.compile(r"\s*([+-]?\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file inside a request."""

    name: str
    content: bytes
    content_type: str


class Parameters:
    """The parameters of a call: text values and files, by name."""

    def __init__(self, values: Mapping[str, str], files: Mapping[str, Upload] | None = None) -> None:
        self._values = dict(values)
        self._files = dict(files or {})

    @classmethod
    async def of(cls, request: web.Request) -> Self:
        """Read a request. Raises Refusal if it is too large or not what it says it is."""
        try:
            values: dict[str, str] = dict(request.query)
            if request.content_type == "application/json":
                values |= _flat(await request.read())
                return cls(values)
            form = await request.post()
        except web.HTTPRequestEntityTooLarge:
            raise Refusal(413, "Request Entity Too Large") from None
        except (UnicodeDecodeError, LookupError):
            raise bad("Strings must be encoded in UTF-8") from None
        texts, files = _split(form)
        return cls(values | texts, files)

    def with_values(self, values: Mapping[str, str]) -> Parameters:
        """Other values beside the same files: an item of an album."""
        return Parameters(values, self._files)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Names and values for the log; a file is shown by its name and size."""
        yield from self._values.items()
        for name, upload in self._files.items():
            yield name, f"<{upload.name}, {len(upload.content)} bytes>"

    def text(self, name: str) -> str:
        """A value as it came; empty if it is missing."""
        return self._values.get(name, "")

    def required(self, name: str) -> str:
        """A value that must not be empty."""
        if not self.text(name):
            raise bad(f'Parameter "{name}" is required')
        return self.text(name)

    def integer(self, name: str, default: int = 0, low: int = -(1 << 62), high: int = 1 << 62) -> int:
        """A number, moved into its range."""
        match = _INTEGER.match(self.text(name))
        value = int(match[1]) if match else default if not self.text(name) else 0
        return min(max(value, low), high)

    def flag(self, name: str) -> bool:
        """Say whether a value says yes."""
        return self.text(name).strip().lower() in ("true", "yes", "1")

    def structure(self, name: str, what: str) -> Any:
        """A value that is JSON; None if it is missing."""
        if not self.text(name):
            return None
        try:
            value = json.loads(self.text(name))
        except ValueError:
            raise bad(f"Can't parse {what} JSON object") from None
        if "\\ud" in self.text(name).lower():
            _check_unicode(json.dumps(value, ensure_ascii=False))
        return value

    def file(self, name: str) -> Upload | str | None:
        """An upload, or the text that stands for one: a file id or an address."""
        value = self.text(name)
        if value.startswith("attach://"):
            return self._files.get(value.removeprefix("attach://"))
        return value or self._files.get(name)


def whole_number(value: Any) -> int | None:
    """A number inside JSON, which may be written as a string; None if it is none."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _check_unicode(text: str) -> None:
    """Half of a surrogate pair is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad("Strings must be encoded in UTF-8") from None


def _flat(content: bytes) -> dict[str, str]:
    try:
        body = json.loads(content or b"{}")
    except ValueError:
        raise bad("Can't parse JSON encoded request parameters") from None
    if not isinstance(body, dict):
        raise bad("Request parameters must be a JSON object")
    _check_unicode(json.dumps(body, ensure_ascii=False))
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in body.items()
        if value is not None
    }


def _split(form: MultiDict[Any] | Any) -> tuple[dict[str, str], dict[str, Upload]]:
    texts: dict[str, str] = {}
    files: dict[str, Upload] = {}
    for name, value in form.items():
        if isinstance(value, web.FileField):
            files[name] = Upload(name=value.filename, content=value.file.read(), content_type=value.content_type)
        elif isinstance(value, bytes | bytearray):
            texts[name] = value.decode()
        else:
            texts[name] = value
    return texts, files
