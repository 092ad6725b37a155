"""The full-text index: a message is entered once, and its entry is never rewritten by a compaction.

The index takes messages some time after they were stored, many at once, because FTS5 writes a segment for each
transaction. A search begins with those that wait; another process does not find these yet. What a crash left out is
entered at the next start: the messages whose numbers are above all that are in the index. Results of tools
stand in the same table under other owners: a search for people's words does not meet them.

FTS5 gives the messages of a term; `ranking` decides which of them answer. (FTS5's own `bm25()` is 0 here, because the
table keeps no positions.)

Beside the index lie vectors of messages. `meta` says whose they are, and which messages were looked at: those between
two numbers, so that new messages come first and old ones follow. The file deletes a vector with its message.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import apsw

from gateway.store.kinds import MESSAGE, MessageRecord
from gateway.store.records import Vector
from gateway.store.searching import Wanted
from gateway.store.shared import searchable
from gateway.store.shared.searchable import RETURNED, kind_of, owner_of, terms_of
from gateway.store.sqlite.connection import Connection, change, many, one
from gateway.store.steps.sessions import message

_OWNER: Final = 12  # bytes of a key's digest
_OWNERS: Final = 256  # of which the numbers are kept
_MERGED: Final = 256  # pages of the index rewritten in one transaction
_MADE: Final = "search_made"  # in `meta`: by which way all entries were made
_BELOW: Final = (
    f"search_below_{searchable.MADE}"  # and while they are made anew: the entries below this number are not yet
)
_VECTORS: Final = "vectors"  # in `meta`
_TOP: Final = (1 << 63) - 1
_NEWEST: Final = "SELECT rowid FROM message_search ORDER BY rowid DESC LIMIT 1"
# The query of each term, in their order: a statement for each would take longer to prepare than to run.
_LISTED: Final = (
    "SELECT (SELECT group_concat(number) FROM (SELECT rowid AS number FROM message_search"
    " WHERE message_search MATCH sought.value ORDER BY rowid {} LIMIT ?2)) FROM json_each(?1) AS sought"
)
_PUT: Final = "INSERT INTO meta(name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2"
RENEWED: Final = 50  # messages entered anew in one transaction


# -- entering ------------------------------------------------------------------------------------------


def enter_stored(connection: Connection) -> None:
    """Index the messages that wait for it. Another process may have forgotten one of them meanwhile."""
    sought = json.dumps([said.number for said in connection.stored])
    rows = many(connection, "SELECT key FROM message WHERE key IN (SELECT value FROM json_each(?))", (sought,))
    there = {row[0] for row in rows}
    for said in connection.stored:
        if said.number in there:
            enter(connection, said)


def is_behind(connection: apsw.Connection) -> bool:
    """Whether a message was stored after the last one that the index holds."""
    row = one(connection, _NEWEST) or (0,)
    found = "SELECT 1 FROM messages WHERE id > ? AND role IN ('user', 'assistant', 'tool') LIMIT 1"
    return one(connection, found, row) is not None


def enter_missed(connection: apsw.Connection) -> None:
    """Index the messages that were stored last and that no process came to index."""
    row = one(connection, _NEWEST)
    if row is None and not is_made(connection):  # all entries are made anew
        return
    for said in _said(connection, "key > ? ORDER BY key", row or (0,)):
        enter(connection, said)


def _said(connection: apsw.Connection, which: str, values: Sequence[Any]) -> list[MessageRecord]:
    return [MESSAGE.record(row[0]) for row in many(connection, f"SELECT doc FROM message WHERE {which}", values)]


def enter(connection: apsw.Connection, said: MessageRecord) -> None:
    """Index a message, if a search should find the message; an entry that is there is made anew."""
    whole = message(said)
    kind = kind_of(whole)
    terms = terms_of(whole, kind) if kind else []
    if terms:
        owner = owner_of(said.key.text, size=_OWNER)
        if kind == "returned":
            owner = f"{owner}{RETURNED} {RETURNED}"  # a term of the key's results, and one of all results
        entry = (said.number, owner, " ".join(terms))
        connection.execute("INSERT OR REPLACE INTO message_search(rowid, owner, terms) VALUES (?,?,?)", entry)


def is_made(connection: apsw.Connection) -> bool:
    """Whether all entries were made as this version makes them."""
    return one(connection, "SELECT 1 FROM meta WHERE name = ? AND value = ?", (_MADE, searchable.MADE)) is not None


def is_outdated(connection: apsw.Connection) -> bool:
    """Whether entries are to be made anew; a new file has none, which is noted."""
    return bool(_highest(connection)) or renew_some(connection)


def left(connection: apsw.Connection) -> int:
    """Return the number of messages whose entries another version made."""
    if is_made(connection):
        return 0
    row = one(connection, "SELECT count(*) FROM message WHERE key < ?", (_below(connection),))
    assert row is not None
    return int(row[0])


def renew_some(connection: apsw.Connection) -> bool:
    """Enter some messages anew whose entries another version made, the newest of them; False: those were the last."""
    some = _said(connection, "key < ? ORDER BY key DESC LIMIT ?", (_below(connection), RENEWED))
    leave(connection, [said.number for said in some])
    for said in some:
        enter(connection, said)
    if len(some) == RENEWED:
        change(connection, _PUT, (_BELOW, some[-1].number))
        return True
    # With the last of them, or a search would still read all messages for a moment, and forgive no slip.
    change(connection, _PUT, (_MADE, searchable.MADE))
    change(connection, "DELETE FROM meta WHERE name = ?", (_BELOW,))
    return False


def _below(connection: apsw.Connection) -> int:
    row = one(connection, "SELECT value FROM meta WHERE name = ?", (_BELOW,))
    return int(row[0]) if row else _highest(connection) + 1


def _highest(connection: apsw.Connection) -> int:
    row = one(connection, "SELECT max(key) FROM message")
    return (row and row[0]) or 0


def leave(connection: apsw.Connection, numbers: Sequence[int]) -> None:
    """Take messages out of the index. Their terms stay in it, unfound, until `merge_some` has come to them."""
    assert isinstance(connection, Connection)
    if connection.stored:
        connection.stored = tuple(said for said in connection.stored if said.number not in numbers)
    for number in numbers:
        change(connection, "DELETE FROM message_search WHERE rowid = ?", (number,))


def merge_some(connection: apsw.Connection, *, first: bool) -> bool:
    """Rewrite some of the index without the words that were taken out of it; False: nothing is left to rewrite.
    `first`: begin."""
    before = connection.total_changes()
    pages = -_MERGED if first else _MERGED
    change(connection, "INSERT INTO message_search(message_search, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before > 1


# -- asking --------------------------------------------------------------------------------------------


class OwnerNumbers:
    """The numbers of an owner's messages, rising, kept from search to search: eight bytes each. FTS5 takes longer to
    count them, or to find the one before another, than a search may take. Of a message that is deleted meanwhile the
    number stays, and its reader finds nothing: the store begins anew after it has forgotten something."""

    def __init__(self, most: int = _OWNERS) -> None:
        self._most = most
        self._known: OrderedDict[str, array[int]] = OrderedDict()

    def of(self, connection: apsw.Connection, owner: str) -> Sequence[int]:
        """All of them; the new ones are added."""
        known = self._known.pop(owner, None) or array("q")
        newest = known[-1] if known else -1
        added = "SELECT group_concat(rowid) FROM message_search WHERE message_search MATCH ? AND rowid > ?"
        row = one(connection, added, (owner, newest))
        if new := sorted(_numbers_in(row[0] if row else None)):
            known = known + array("q", new)
        self._known[owner] = known
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return known

    def beside(
        self, connection: apsw.Connection, owner: str, number: int, reach: int, *, apart: str = ""
    ) -> tuple[int, list[int], list[int]]:
        """A number, those before it, nearest first, and those after it. It may be a message of another owner,
        `apart`."""
        known: Sequence[int] = self._known.get(owner, ())
        if not _holds(known, number) and not _holds(self._known.get(apart, ()), number):
            self._known.pop(owner, None)  # an older message may come late, by the change of a chat's name
            known = self.of(connection, owner)
        place = bisect_left(known, number)
        after = place + 1 if _holds(known, number) else place
        return number, [*reversed(known[max(0, place - reach) : place])], [*known[after : after + reach]]


def _holds(known: Sequence[int], number: int) -> bool:
    place = bisect_left(known, number)
    return place < len(known) and known[place] == number


class FileEntries:
    """The index and the vectors of a file."""

    def __init__(self, connection: apsw.Connection, owners: OwnerNumbers) -> None:
        self._connection = connection
        self._owners = owners

    def size(self, kind: str, lane: str) -> int:
        if lane:
            return len(self._owners.of(self._connection, _owner(lane, kind)))
        return int(many(self._connection, "SELECT count(*) FROM message_search")[0][0])

    def listed(
        self, kind: str, lane: str, sought: Sequence[Wanted], most: int, *, oldest: bool = False
    ) -> list[list[int]]:
        among = _owner(lane, kind) if lane else ""
        matches = [" AND ".join(filter(None, (among, *map(_any, each)))) for each in sought]
        if not lane:
            apart = f'{"AND" if kind == "returned" else "NOT"} owner : "{RETURNED}"'
            matches = [f"({each}) {apart}" for each in matches]
        query = _LISTED.format("" if oldest else "DESC")
        return [_numbers_in(row[0]) for row in many(self._connection, query, (json.dumps(matches), most))]

    def beside(
        self, kind: str, lane: str, numbers: Sequence[int], reach: int
    ) -> Iterator[tuple[int, list[int], list[int]]]:
        lanes = dict.fromkeys(numbers, lane) if lane else self._of_messages("messages", numbers)
        for number, name in lanes.items():
            own, apart = _owner(name, kind), _owner(name, "returned")
            yield self._owners.beside(self._connection, own, number, reach, apart=apart)

    def sessions(self, numbers: Sequence[int]) -> dict[int, str]:
        return self._of_messages("doc ->> '$.session_id'", numbers)

    def _of_messages(self, value: str, numbers: Sequence[int]) -> dict[int, str]:
        query = f"SELECT key, {value} FROM message WHERE key IN (SELECT value FROM json_each(?))"
        return dict(many(self._connection, query, (json.dumps(list(numbers)),)))

    def words(self) -> list[str]:
        return [row[0] for row in many(self._connection, "SELECT term FROM search_words")]

    def newest(self) -> int:
        return _highest(self._connection)

    def left(self, made: int) -> int:
        return left(self._connection)

    # -- vectors ----------------------------------------------------------------------------

    def vectors_of(self) -> tuple[str, int]:
        model, length, _, _ = self._looked_at()
        return model, length

    def _looked_at(self) -> tuple[str, int, int, int]:
        """The model, the length of its vectors, and the lowest and the highest message that was looked at."""
        row = one(self._connection, "SELECT value FROM meta WHERE name = ?", (_VECTORS,))
        model, length, lowest, highest = json.loads(row[0]) if row else ("", 0, _TOP, 0)
        return model, length, lowest, highest

    def embedded_by(self, model: str, length: int, *, anew: bool) -> None:
        _, _, lowest, highest = self._looked_at()
        if anew:
            change(self._connection, "DELETE FROM message_vectors")
            lowest, highest = _TOP, 0
        change(self._connection, _PUT, (_VECTORS, json.dumps((model, length, lowest, highest))))

    def unembedded(self, most: int, *, anew: bool) -> list[int]:
        """Messages that were not looked at: new ones, oldest first, or else old ones, newest first."""
        _, _, lowest, highest = self._looked_at()
        if anew:
            lowest = highest = _TOP
        query = "SELECT key FROM message WHERE key"
        rows = many(self._connection, f"{query} > ? ORDER BY key LIMIT ?", (highest, most))
        rows = rows or many(self._connection, f"{query} < ? ORDER BY key DESC LIMIT ?", (lowest, most))
        return [row[0] for row in rows]

    def embed(self, number: int, vector: Vector) -> None:
        if any(vector):
            put = "INSERT OR REPLACE INTO message_vectors SELECT key, ?2, ?3 FROM message WHERE key = ?1"
            change(self._connection, put, (number, *vector))
        model, length, lowest, highest = self._looked_at()
        state = (model, length, min(lowest, number), max(highest, number))
        change(self._connection, _PUT, (_VECTORS, json.dumps(state)))

    def signs(self, lane: str, most: int) -> Iterable[tuple[int, bytes]]:
        if lane:
            return self._vectors("signs", self._owners.of(self._connection, _owner(lane, "said"))[-most:])
        newest = "SELECT id, signs FROM message_vectors ORDER BY id DESC LIMIT ?"
        return [(row[0], row[1]) for row in many(self._connection, newest, (most,))]

    def values(self, numbers: Sequence[int]) -> Iterable[tuple[int, bytes]]:
        return self._vectors("numbers", numbers)

    def _vectors(self, column: str, numbers: Sequence[int]) -> list[tuple[int, bytes]]:
        found = f"SELECT id, {column} FROM message_vectors WHERE id IN (SELECT value FROM json_each(?))"
        return [(row[0], row[1]) for row in many(self._connection, found, (json.dumps(list(numbers)),))]


def _owner(lane: str, kind: str) -> str:
    owner = owner_of(lane, size=_OWNER)
    owners = {"said": f'"{owner}"', "returned": f'"{owner}{RETURNED}"', "": f'("{owner}" OR "{owner}{RETURNED}")'}
    return f"owner : {owners[kind]}"


def _any(terms: Sequence[str]) -> str:
    """The query for any of these terms, which hold no quotes: letters, digits and marks only."""
    return f"({' OR '.join(map(_term, terms))})"


def _term(term: str) -> str:
    return f'terms : "{term[1:]}" *' if term.startswith("^") else f'terms : "{term}"'


def _numbers_in(listed: str | None) -> list[int]:
    """Message numbers that a query gives as one text: to hand over thousands of rows takes longer than to find them."""
    numbers: list[int] = json.loads(f"[{listed}]") if listed else []  # faster than `int` of each
    return numbers
