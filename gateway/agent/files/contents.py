"""Reads the content of a file, whatever it is: a text in a thread, because all of it is looked at, and a document,
which is a stranger's program as much as a text, in a process aside."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Final

from gateway.agent.files.kinds import FileText, Reading, is_document, read, reading_of, text_in
from gateway.runtime.aside import RunsAside
from gateway.runtime.errors import TookTooLong

TOO_STRANGE: Final = "it is damaged, or takes too long to read"


async def reading(content: bytes, mime: str, most: int, aside: RunsAside) -> Reading:
    """Read a content, but at most `most` characters of its text."""
    if is_document(content):
        return reading_of(await text_of(content, aside), most)
    return await asyncio.to_thread(read, content, mime, most)


async def text_of(content: bytes, aside: RunsAside) -> FileText:
    """The whole text of a file."""
    if not is_document(content):
        return await asyncio.to_thread(text_in, content)
    try:
        return await aside(_document_text, content)
    except TookTooLong:
        return FileText(problem=TOO_STRANGE)


def _document_text(content: bytes) -> FileText:
    # By name: the libraries are for that process alone.
    found: FileText = import_module("gateway.agent.files.documents").document_text(content)
    return found
