"""What the workspace's tools do (`gateway.agent.tools.workspace` declares them)."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import regex

from gateway.agent.tools.base import Files, ToolContext
from gateway.agent.tools.read_file import LOOKED_AT, checked, lines
from gateway.agent.workspace.edits import Edit, diff
from gateway.agent.workspace.folders import Workspaces
from gateway.agent.workspace.names import names_in, shown
from gateway.agent.workspace.tree import Found, text_in, visible
from gateway.agent.workspace.workspace import Workspace
from gateway.domain.chat import PICTURE, SessionKey
from gateway.runtime.errors import ToolError

_LISTED: Final = 200  # files and folders
_HITS: Final = 60
_OF_ONE: Final = 20  # hits in one file
_LARGEST: Final = 5_000_000  # bytes of a file that is searched
_SECONDS: Final = 5.0  # for one search
_MOST_EDITS: Final = 50


async def call(name: str, workspaces: Workspaces, arguments: Mapping[str, Any], context: ToolContext) -> str:
    """What the tool of this name found or did in the conversation's workspace. Raises ToolError."""
    names = names_in(arguments.get("path", ""))
    workspace = await opened(workspaces, context.session.key, context.files)
    return await asyncio.to_thread(_CALLS[name], workspace, names, arguments, context)


async def opened(workspaces: Workspaces, key: SessionKey, files: Files) -> Workspace:
    """The workspace of a conversation, with the files that people sent, as far as there is room. Raises ToolError,
    StoreUnavailable."""
    workspace = workspaces.of(key)
    sent = [each for each in await files.listed(LOOKED_AT) if each.ref.startswith((f"{key.platform}:", f"{PICTURE}:"))]
    for file in reversed(await asyncio.to_thread(workspace.missing, sent) if sent else []):
        content = await files.content(file)
        if content is not None and not await asyncio.to_thread(workspace.bring, file, content):
            break
    return workspace


def _list_files(workspace: Workspace, names: Sequence[str], arguments: Mapping[str, Any], _: ToolContext) -> str:
    """A page of files and folders, each with its size."""
    offset = max(0, arguments.get("offset", 0))
    page = list(islice(visible(workspace.folder, names), offset, offset + _LISTED + 1))
    if not page:
        return "[nothing more]" if offset else "[there are no files yet]"
    lines = [_line(found, is_out) for found, is_out in page[:_LISTED]]
    if len(page) > _LISTED:
        lines.append(f"[go on with offset {offset + _LISTED}]")
    return "\n".join(lines)


def _search_files(
    workspace: Workspace, names: Sequence[str], arguments: Mapping[str, Any], context: ToolContext
) -> str:
    """A page of the files whose names match, and of the lines."""
    offset, until = max(0, arguments.get("offset", 0)), context.clock.monotonic() + _SECONDS
    sought = _sought(arguments.get("words", ""), arguments.get("pattern", ""))
    hits, late = list[str](), False
    try:
        for hit in islice(
            _hits(workspace, names, sought, lambda: until - context.clock.monotonic()), offset + _HITS + 1
        ):
            hits.append(hit)
    except (TimeoutError, MemoryError):
        late = True
    page = hits[offset : offset + _HITS]
    if len(hits) > offset + _HITS:
        page.append(f"[go on with offset {offset + _HITS}]")
    elif late:
        page.append("[the search took too long and ended here; name a folder in `path`, or make it simpler]")
    return "\n".join(page) or "[nothing matches]"


def _write_file(workspace: Workspace, names: Sequence[str], arguments: Mapping[str, Any], context: ToolContext) -> str:
    content, removes, path = arguments.get("content"), arguments.get("remove", False), shown("/".join(names))
    if removes and not content:  # some models fill in everything, with nothing
        workspace.remove(context.changes, names)
        return f"Removed {path}."
    if removes or content is None:
        raise ToolError("Give either `content` or `remove: true`.")
    data = content.encode("utf-8", "replace")
    new = workspace.write(context.changes, names, data)
    return f"{'Wrote' if new else 'Wrote over'} {path} ({len(data):,} bytes)."


def _patch(workspace: Workspace, names: Sequence[str], arguments: Mapping[str, Any], context: ToolContext) -> str:
    edits = [Edit(each.get("old", ""), each.get("new", "")) for each in arguments["edits"][: _MOST_EDITS + 1]]
    if not 0 < len(edits) <= _MOST_EDITS:
        raise ToolError(f"Give 1 to {_MOST_EDITS} edits at once.")
    before, after = workspace.patch(context.changes, names, edits)
    return diff(before, after, shown("/".join(names)))


_CALLS: Final = {"list_files": _list_files, "search_files": _search_files, "write_file": _write_file, "patch": _patch}


def _line(found: Found, is_out: bool) -> str:
    path = shown(found.path)
    if found.is_folder:
        return f"{path}/ (left out)" if is_out else f"{path}/"
    if found.is_file:
        return f"{path} ({found.facts.st_size:,} bytes)"
    return f"{path} (a link)" if stat.S_ISLNK(found.facts.st_mode) else f"{path} (no file)"


class _Sought(NamedTuple):
    """A pattern, and the words that must be near what it matches, in small letters."""

    pattern: regex.Pattern[str]
    beside: Sequence[str] = ()

    def fits(self, text: str) -> bool:
        """Whether the words are there, too."""
        return all(each in text.casefold() for each in self.beside)


def _sought(words: str, pattern: str) -> _Sought:
    """All of some words, whatever their case, or a pattern. Raises ToolError. The longest word is rare, so it is looked
    for first."""
    if bool(words.split()) == bool(pattern):
        raise ToolError("Give either `words` or `pattern`.")
    if pattern:
        return _Sought(checked(pattern))
    longest, *others = sorted(words.casefold().split(), key=len, reverse=True)
    return _Sought(regex.compile(regex.escape(longest), regex.IGNORECASE, cache_pattern=False), others)


def _hits(workspace: Workspace, names: Sequence[str], sought: _Sought, left: Callable[[], float]) -> Iterator[str]:
    """Each file whose name matches, and each line. Raises TimeoutError, MemoryError."""
    for found, is_out in visible(workspace.folder, names):
        if left() <= 0:
            raise TimeoutError
        if is_out or not found.is_file:
            continue
        path = shown(found.path)
        if sought.pattern.search(path, timeout=max(left(), 0.001)) and sought.fits(path):
            yield path
        text, number, at = text_in(found, _LARGEST), 1, 0
        matching = (line for line in lines(sought.pattern, text, 0, left) if sought.fits(line.shown))
        for line in islice(matching, _OF_ONE):
            number += text.count("\n", at, line.start)
            at = line.start
            yield f"{path}:{number}: {line.shown}"
