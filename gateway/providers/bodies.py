"""The bodies of requests. Of a long conversation only the new end is encoded: the beginning is kept in bytes.

The bytes of a beginning are used again only for the very same messages: objects, compared one by one. Messages never
change. A compaction, a mark of a cache that moved on, quotes, a file that is shown or hidden, or something forgotten
makes other objects, so these bytes are not used. Model, address and all that the codec takes into account are part of
the name under which they are kept.

The bytes go as far as two requests in a row were alike, because marks and the messages of a running turn are others the
next time. They end before the first message with files, which is made for each request.

The schemas of tools, most of a short request, are kept as well, for the same sequence of tools that a codec makes the
same of.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from operator import is_, is_not
from typing import Any, Final, NamedTuple, Protocol, Self

from msgspec import Struct, ValidationError, convert, field
from msgspec.json import encode
from msgspec.structs import replace

from gateway.domain.message import Message
from gateway.providers.base import ModelRequest
from gateway.providers.http import json_bytes

LONG: Final = 24  # messages; fewer are encoded as quickly as they are compared
_LOOSE: Final = 8  # messages at the end that are taken for the turn's own
_NEAR: Final = 64  # messages before these, among which marks for a cache may be that are others the next time
_AT_ONCE: Final = 256  # messages; of more at once the processor's own memory does not hold what is made
_OPEN: Final = 2  # entries that a codec looks back at
_PIECE: Final = 64 * 1024  # bytes, at least
_MOST_BYTES: Final = 50_000_000
_MOST_TOOLS: Final = 64  # offers of tools
_PER_MESSAGE: Final = 1_500  # bytes that a message takes in memory, nearly
_TEXTS: Final = list[dict[str, str | list[dict[str, str | dict[str, str]]] | None]]
_NUL: Final = re.compile(rb"\\u0000")  # found in half the time that `in` takes
_PLACE: Final[dict[str, Any]] = {"": ""}  # an entry that stands for the bytes; no text can look like it
_PLACE_WRITTEN: Final = json_bytes(_PLACE)


class Body(Struct, frozen=True):
    """A request's body in bytes, a long one in pieces. `streams`: whether it asks for a stream."""

    pieces: Sequence[bytes]
    streams: bool


class Entries(Protocol):
    """What a codec makes of a conversation's messages, one after the other. What is `made` is final, except the last
    entry."""

    made: list[dict[str, Any]]

    def add(self, messages: Iterable[Message]) -> bool:
        """Take the next messages. Returns whether everything that was made of them is known to hold only texts."""

    def end(self) -> None:
        """No further message follows."""

    def copy(self) -> Self:
        """The same in its own right."""


class _Prefix(Struct):
    """The first `count` messages of `latest`, a request's: `pieces` are the JSON of their entries, without the last
    ones, which are still among those that `entries` has made."""

    entries: Entries
    pieces: list[bytes] = field(default_factory=list)
    count: int = 0
    latest: Sequence[Message] = ()
    used: bool = True  # since the last rest

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces)) + _PER_MESSAGE * self.count

    def holds(self, messages: Sequence[Message]) -> bool:
        """Whether these messages begin with those that are encoded."""
        return self.count <= len(messages) and all(map(is_, islice(self.latest, self.count), messages))

    def grow(self, messages: Sequence[Message]) -> None:
        """Encode these, too."""
        made, before = self.entries.made, False
        for first in range(0, len(messages), _AT_ONCE):
            texts = self.entries.add(messages[first : first + _AT_ONCE])
            final = made[1:-_OPEN] if made and made[0] is _PLACE else made[:-_OPEN]
            if final:
                self._put(_written(final, texts=texts and before)[1:-1])
                made[:-_OPEN] = [_PLACE]
            before = texts and len(final) >= _OPEN  # of what is left to be written
        self.count += len(messages)

    def _put(self, text: bytes) -> None:
        pieces = self.pieces
        if not pieces:
            pieces.append(text)
        elif len(pieces[-1]) < _PIECE:  # a turn's messages are few bytes
            pieces[-1] = b",".join((pieces[-1], text))
        else:
            pieces.append(b"," + text)


def _written(entries: list[dict[str, Any]], *, texts: bool) -> bytes:
    """As `json_bytes`, in a fifth of the time: where there is nothing but words and calls, msgspec writes the same.
    It leaves its UTF-8 in each text that is not ASCII, and contents stay in memory: it is given copies. `texts`:
    whether there is known to be nothing else."""
    try:
        contents = [entry["content"] for entry in entries]
        own = entries
        if not "".join(filter(None, contents)).isascii():
            own = [
                {**entry, "content": content and content[:1] + content[1:]}
                for entry, content in zip(entries, contents, strict=True)
            ]
        if not texts:
            convert(own, _TEXTS)
        text = encode(own)
    except (KeyError, TypeError, ValidationError, UnicodeEncodeError):
        return json_bytes(entries)
    return json_bytes(entries) if _NUL.search(text) else text


class _Tools(NamedTuple):
    """An offer of tools, what a codec made of it, and the JSON of that."""

    given: Sequence[Mapping[str, Any]]
    made: Any
    text: bytes


class Bodies:
    """Encodes requests, and remembers the beginnings of long ones, the least recently used ones no longer."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._prefixes: OrderedDict[Hashable, _Prefix] = OrderedDict()
        self._tools: dict[int, _Tools] = {}  # by the identity of the offer

    def of(
        self, request: ModelRequest, name: Hashable, entries: Callable[[], Entries], make: Callable[..., dict[str, Any]]
    ) -> Body:
        """A request's body. `name`: of all that `entries`, which makes new ones, depends on. `make` gives the body of
        a request as a dict, with the `entries` that were made of earlier messages. Raises ProviderRejected for values
        that JSON cannot express."""
        if len(request.messages) < LONG or len((parted := request.parted())[1]) < LONG:
            body = make(request)
            return Body((self._written(body, request.tools),), bool(body.get("stream")))
        system, others = parted
        before_files = request.files_at[0] - len(system) if request.files_at else len(others)
        prefix = self._grown((name, id(others[0])), others, min(before_files, len(others) - _LOOSE), entries)
        whole = prefix.entries.copy()
        whole.add(others[prefix.count :])
        body = make(replace(request, messages=system), entries=whole)
        head, place, tail = self._written(body, request.tools).partition(_PLACE_WRITTEN)
        # A setting may replace all messages.
        pieces = (head, *prefix.pieces, tail) if place and prefix.pieces else (head, place, tail)
        return Body(pieces, bool(body.get("stream")))

    def rest(self) -> int:
        """Drop the beginnings that nobody asked for since the last call, and return their bytes."""
        before = self._size
        for name in [name for name, prefix in self._prefixes.items() if not prefix.used]:
            self._size -= self._prefixes.pop(name).size
        for prefix in self._prefixes.values():
            prefix.used = False
        self._tools.clear()
        return before - self._size

    def _written(self, body: dict[str, Any], tools: Sequence[Mapping[str, Any]]) -> bytes:
        """A body's JSON. Its tools are those of the request unless a setting replaces them."""
        if not tools or not (made := body.get("tools")):
            return json_bytes(body)
        known = self._tools.get(id(tools))
        if known is None or known.given is not tools or known.made != made:
            if len(self._tools) >= _MOST_TOOLS:
                self._tools.clear()
            known = self._tools[id(tools)] = _Tools(tools, made, json_bytes(made))
        names = [*body]
        at = names.index("tools")
        head, tail = (json_bytes({name: body[name] for name in part}) for part in (names[:at], names[at + 1 :]))
        return b"".join((head[:-1], b',"tools":', known.text, b"}" if tail == b"{}" else b"," + tail[1:]))

    def _grown(self, name: Hashable, messages: Sequence[Message], stop: int, entries: Callable[[], Entries]) -> _Prefix:
        """The prefix of these messages, as long as the next request is likely to repeat it: no longer than `stop`."""
        known = self._prefixes.pop(name, None)
        self._size -= known.size if known else 0
        prefix = known if known and known.holds(messages) else _Prefix(entries())
        new = messages[prefix.count : max(prefix.count, stop)]
        first = 0 if known else max(0, len(new) - _NEAR)
        if known:
            others = [*map(is_not, islice(known.latest, prefix.count, None), new), True]
        else:
            others = [*(type(message.get("content")) is list for message in new[first:]), True]
        prefix.grow(new[: first + others.index(True)])
        prefix.latest, prefix.used = messages, True
        if prefix.count:
            self._prefixes[name] = prefix
            self._size += prefix.size
        while self._size > self._most and self._prefixes:
            self._size -= self._prefixes.popitem(last=False)[1].size
        return prefix
