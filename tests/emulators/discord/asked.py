"""One request as the routes see it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from tests.emulators.discord.refusals import Refusal, bad, invalid
from tests.emulators.journal import Call

LARGEST_REQUEST: Final = 101 << 20  # bytes
_FILE_FIELD: Final = re.compile(r"files\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file of a multipart request."""

    name: str
    content: bytes
    content_type: str


@dataclass(slots=True, kw_only=True)
class Asked:
    """`route`: its method and the template of its path; `path`: what the template's names stand for; `body`: the JSON;
    `files`: by the number in their field."""

    route: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None
    files: dict[str, Upload] = field(default_factory=dict)
    call: Call

    def identity(self, name: str) -> int:
        """An id in the path. Raises the refusal if that is no id."""
        return snowflake(self.path[name], name)

    @property
    def form(self) -> dict[str, Any]:
        """The body where an object is expected."""
        if not isinstance(self.body, dict):
            raise bad(50109)
        return self.body


def snowflake(value: Any, name: str) -> int:
    """An id, which JSON may hold as text or as number. Raises the refusal if that is none."""
    text = str(value)
    if not text.isascii() or not text.isdigit():
        raise invalid(name, "NUMBER_TYPE_COERCE", f'Value "{text}" is not snowflake.')
    return int(text)


async def read(request: web.Request, route: str, call: Call) -> Asked:
    """A request with its body taken apart. Raises the refusal of one that cannot be read."""
    asked = Asked(route=route, path=dict(request.match_info), query=dict(request.query), call=call)
    if request.content_type == "multipart/form-data":
        await _read_form(request, asked)
    elif request.can_read_body and (content := await request.read()):
        if request.content_type != "application/json":
            raise Refusal(400, 50035, 'Expected "Content-Type" header to be one of {"application/json"}.')
        asked.body = _parsed(content)
    call.parameters = {**asked.query, "body": asked.body} if asked.query else {"body": asked.body}
    return asked


async def _read_form(request: web.Request, asked: Asked) -> None:
    for name, value in (await request.post()).items():
        if name == "payload_json":
            content = value.file.read() if isinstance(value, web.FileField) else str(value).encode()
            asked.body = _parsed(content)
        elif isinstance(value, web.FileField):
            match = _FILE_FIELD.fullmatch(name)
            number = match[1] if match else str(len(asked.files))
            kind = value.content_type
            asked.files[number] = Upload(name=value.filename, content=value.file.read(), content_type=kind)
    asked.body = asked.body if asked.body is not None else {}


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise bad(50109) from None
