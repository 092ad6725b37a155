"""A server's answer as the model reads it, and the files in it. Pure.

https://modelcontextprotocol.io/specification: the content of a result is a list of texts, pictures, sounds, resources
with their content, and links to resources; beside it there may be structured content.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.agent.files.kinds import picture_type
from gateway.domain.chat import one_line

_MOST_FILES: Final = 10  # of one answer
_MOST_PARTS: Final = 1_000
_LONGEST_NAME: Final = 200
EMPTY: Final = "The tool has ended, and returned nothing."


class Enclosed(Struct, frozen=True, kw_only=True):
    """A file in an answer. `picture`: it is one by its bytes, and `mime` is then theirs."""

    name: str
    mime: str
    content: bytes
    picture: bool


class Answer(Struct, frozen=True, kw_only=True):
    """An answer. `pieces` are its texts and files, in its order. `failed`: the tool says that it could not do it."""

    pieces: tuple[str | Enclosed, ...]
    failed: bool = False


def read_answer(result: Mapping[str, Any]) -> Answer:
    """Read a result of `tools/call`, as JSON has it."""
    content = result.get("content")
    pieces: list[str | Enclosed] = []
    files = 0
    for part in content[:_MOST_PARTS] if isinstance(content, list) else ():
        for piece in _pieces(part):
            files += isinstance(piece, Enclosed)
            pieces.append(piece if isinstance(piece, str) or files <= _MOST_FILES else _left_out(piece))
    pieces = [piece for piece in pieces if isinstance(piece, Enclosed) or piece.strip()]
    structured = result.get("structuredContent")
    if structured is not None and not any(isinstance(piece, str) and _says(piece, structured) for piece in pieces):
        pieces.append(json.dumps(structured, ensure_ascii=False))
    return Answer(pieces=tuple(pieces) or (EMPTY,), failed=result.get("isError") is True)


def _says(text: str, structured: Any) -> bool:
    """Whether a text is the structured content, alone or as the `result` that a library puts around it."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    return said in (structured, structured.get("result") if isinstance(structured, Mapping) else structured)


def _pieces(part: Any) -> Iterator[str | Enclosed]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text":
        yield str(part.get("text", ""))
    elif kind in ("image", "audio"):
        yield _enclosed(part.get("data"), part.get("mimeType"), "")
    elif kind == "resource" and isinstance(part.get("resource"), Mapping):
        resource = part["resource"]
        if isinstance(resource.get("text"), str):
            yield f"[{_said(resource.get('uri'))}]\n{resource['text']}"
        else:
            yield _enclosed(resource.get("blob"), resource.get("mimeType"), _said(resource.get("uri")))
    elif kind == "resource_link":
        yield f"[link: {described_link(part)}]"
    else:
        yield "[something that cannot be shown here]"


def described_link(part: Any) -> str:
    """A resource, or a template of some, in one line: its uri first, by which it can be read."""
    facts = part if isinstance(part, Mapping) else {}
    told = [_said(facts.get(name)) for name in ("uri", "uriTemplate", "name", "title", "mimeType", "description")]
    size = facts.get("size")
    return " · ".join(
        [*dict.fromkeys(each for each in told if each), *([f"{size:,} bytes"] if type(size) is int else [])]
    )


def _enclosed(data: Any, mime: Any, uri: str) -> str | Enclosed:
    try:
        content = binascii.a2b_base64(data, strict_mode=True) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        content = b""
    if not content:
        return "[a file that is empty or damaged]"
    picture = picture_type(content)
    stated = picture or _said(mime) or "application/octet-stream"
    name = uri.rstrip("/").rpartition("/")[2] or f"{stated.partition('/')[0]}.{_ending(stated)}"
    return Enclosed(name=name, mime=stated, content=content, picture=picture is not None)


def _ending(mime: str) -> str:
    ending = mime.rpartition("/")[2].partition(";")[0]
    return ending if ending.isalnum() else "bin"


def _said(value: Any) -> str:
    return one_line(value[:_LONGEST_NAME]) if isinstance(value, str) else ""


def _left_out(file: Enclosed) -> str:
    return f"[{file.name}, {len(file.content):,} bytes: left out, because there are too many files]"
