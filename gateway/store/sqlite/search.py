"""The full-text index: a message is entered once, and its entry is never rewritten by a compaction.

The index takes messages some time after they were stored, many at once, because FTS5 writes a segment for each
transaction. A search begins with those that wait; another process reads all messages until they are in it. What a crash
left out is entered at the next start: the messages whose numbers are above all that are in the index. Results of tools
stand in the same table under other owners: a search for people's words does not meet them.

FTS5 gives the messages of a term; `ranking` decides which of them answer. (FTS5's own `bm25()` is 0 here, because the
table keeps no positions.)
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.message import HOST, Message, said_in
from gateway.store.records import Found, Meaning, Passage
from gateway.store.shared import ranking, searchable
from gateway.store.shared.documents import parsed
from gateway.store.shared.ranking import ANY, MOST_OF_A_TERM, Talks, Text
from gateway.store.shared.searchable import RETURNED, Kind, kind_of, owner_of, terms_of
from gateway.store.shared.unindexed import ReadIndex, Unindexed
from gateway.store.sqlite import vectors
from gateway.store.sqlite.connection import Connection, change, many, one
from gateway.store.sqlite.messages import MESSAGE_COLUMNS, is_of, message_from, message_of
from gateway.words.misspellings import Vocabulary
from gateway.words.text import Question

T = TypeVar("T")

_OWNER: Final = 12  # bytes of a key's digest
_OWNERS: Final = 256  # of which the numbers are kept
_MERGED: Final = 256  # pages of the index rewritten in one transaction
_MADE: Final = "search_made"  # in `meta`: by which way all entries were made
_BELOW: Final = (
    f"search_below_{searchable.MADE}"  # and while they are made anew: the entries below this number are not yet
)
_GROWN: Final = 1.05  # times as many messages: the words are read anew
_NEWEST: Final = "SELECT rowid FROM message_search ORDER BY rowid DESC LIMIT 1"
# The query of each term, in their order: a statement for each would take longer to prepare than to run.
_NEWEST_OF_EACH: Final = (
    "SELECT (SELECT group_concat(number) FROM (SELECT rowid AS number FROM message_search"
    " WHERE message_search MATCH sought.value ORDER BY rowid DESC LIMIT ?2)) FROM json_each(?1) AS sought"
)
_READ: Final = 500  # messages read at once, where there is no index
RENEWED: Final = 50  # messages entered anew in one transaction


def enter_stored(connection: Connection) -> None:
    """Index the messages that wait for it. Another process may have forgotten one of them meanwhile."""
    sought = json.dumps([number for number, _, _ in connection.stored])
    rows = many(connection, "SELECT id FROM messages WHERE id IN (SELECT value FROM json_each(?))", (sought,))
    there = {row[0] for row in rows}
    for number, key, message in connection.stored:
        if number in there:
            enter(connection, number, key, message)


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
    found = "SELECT id, key, body, note FROM messages WHERE id > ? ORDER BY id"
    for number, key, body, note in many(connection, found, row or (0,)):
        enter(connection, number, key, message_of(body, note))


def enter(connection: apsw.Connection, number: int, key: str, message: Message) -> None:
    """Index a message, if a search should find the message; an entry that is there is made anew."""
    kind = kind_of(message)
    terms = terms_of(message, kind) if kind else []
    if terms:
        owner = owner_of(key, size=_OWNER)
        if kind == "returned":
            owner = f"{owner}{RETURNED} {RETURNED}"  # a term of the key's results, and one of all results
        change(
            connection,
            "INSERT OR REPLACE INTO message_search(rowid, owner, terms) VALUES (?,?,?)",
            (number, owner, " ".join(terms)),
        )


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
    row = one(connection, "SELECT count(*) FROM messages WHERE id < ?", (_below(connection),))
    assert row is not None
    return int(row[0])


def renew_some(connection: apsw.Connection) -> bool:
    """Enter some messages anew whose entries another version made, the newest of them; False: those were the last."""
    below = _below(connection)
    found = "SELECT id, key, body, note FROM messages WHERE id < ? ORDER BY id DESC LIMIT ?"
    rows = many(connection, found, (below, RENEWED))
    leave(connection, [row[0] for row in rows])
    for number, key, body, note in rows:
        enter(connection, number, key, message_of(body, note))
    put = "INSERT INTO meta(name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2"
    if len(rows) == RENEWED:
        change(connection, put, (_BELOW, rows[-1][0]))
        return True
    # With the last of them, or a search would still read all messages for a moment, and forgive no slip.
    change(connection, put, (_MADE, searchable.MADE))
    change(connection, "DELETE FROM meta WHERE name = ?", (_BELOW,))
    return False


def _below(connection: apsw.Connection) -> int:
    row = one(connection, "SELECT value FROM meta WHERE name = ?", (_BELOW,))
    return int(row[0]) if row else _highest(connection) + 1


def leave(connection: apsw.Connection, numbers: Sequence[int]) -> None:
    """Take messages out of the index. Their terms stay in it, unfound, until `merge_some` has come to them."""
    assert isinstance(connection, Connection)
    if connection.stored:
        connection.stored = tuple(each for each in connection.stored if each[0] not in numbers)
    for number in numbers:
        change(connection, "DELETE FROM message_search WHERE rowid = ?", (number,))


def merge_some(connection: apsw.Connection, *, first: bool) -> bool:
    """Rewrite some of the index without the words that were taken out of it; False: nothing is left to rewrite.
    `first`: begin."""
    before = connection.total_changes()
    pages = -_MERGED if first else _MERGED
    change(connection, "INSERT INTO message_search(message_search, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before > 1


class Entries:
    """The numbers of an owner's messages, rising, kept from search to search: eight bytes each. FTS5 takes longer to
    count them, or to find the one before another, than a search may take. Of a message that is deleted meanwhile the
    number stays, and its reader finds nothing: the store begins anew after it has forgotten something."""

    def __init__(self, most: int = _OWNERS) -> None:
        self._most = most
        self._known: OrderedDict[str, array[int]] = OrderedDict()
        self._vocabulary, self._read_at = Vocabulary(), 0

    def vocabulary(self, connection: apsw.Connection) -> Vocabulary:
        """The words of the index, read anew when a twentieth of the messages is new: a word that was said just now is
        still in view."""
        highest = _highest(connection)
        if highest > self._read_at * _GROWN:
            rows = many(connection, "SELECT term FROM search_words")
            self._vocabulary, self._read_at = Vocabulary([row[0] for row in rows]), highest
        return self._vocabulary

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

    def around(self, connection: apsw.Connection, owner: str, number: int, reach: int, *, apart: str = "") -> list[int]:
        """The numbers beside one, and that one, which may be a message of another owner, `apart`."""
        known: Sequence[int] = self._known.get(owner, ())
        if not _holds(known, number) and not _holds(self._known.get(apart, ()), number):
            self._known.pop(owner, None)  # an older message may come late, by the change of a chat's name
            known = self.of(connection, owner)
        place = bisect_left(known, number)
        after = place + 1 if _holds(known, number) else place
        return [*known[max(0, place - reach) : place], number, *known[after : after + reach]]


def _holds(known: Sequence[int], number: int) -> bool:
    place = bisect_left(known, number)
    return place < len(known) and known[place] == number


def passages(
    connection: apsw.Connection,
    entries: Entries,
    words: str,
    key: SessionKey | None,
    limit: int,
    now: float,
    meaning: Meaning | None = None,
    *,
    is_late: bool,
) -> list[Passage]:
    """The passages that answer best, best first: people's and the model's words, then results of tools. `is_late`: the
    last messages may not be in the index; then all messages are read."""
    if is_made(connection) and not (is_late and is_behind(connection)):
        index_of = partial(SqliteIndex, connection, entries, key)
        return ranking.result_of(ranking.search(index_of, words, limit, now, meaning))
    read = _read(connection, words, key)
    index = SqliteIndex(connection, entries, key, None)
    return ranking.result_of(ranking.search(partial(ReadIndex, index, read), words, limit, now))


def _read(connection: apsw.Connection, words: str, key: SessionKey | None) -> Unindexed:
    """Every message of a key, or of all, some at a time."""
    read, last = Unindexed(words), 0
    of_key = "id > ?1 AND (?2 IS NULL OR key = ?2)"
    found = f"SELECT id, session_id, body, note FROM messages WHERE {of_key} ORDER BY id LIMIT ?3"
    while rows := many(connection, found, (last, None if key is None else key.text, _READ)):
        last = rows[-1][0]
        talks = _talks(connection, {row[1] for row in rows})
        for number, session_id, body, note in rows:
            read.take(number, talks.of(session_id), message_of(body, note))
    return read


def _talks(connection: apsw.Connection, sessions: Collection[str]) -> Talks:
    """The talks of these sessions."""
    found = (
        "WITH RECURSIVE above(id, parent_id) AS ("
        "SELECT id, parent_id FROM sessions WHERE id IN (SELECT value FROM json_each(?)) "
        "UNION SELECT s.id, s.parent_id FROM above JOIN sessions s ON s.id = above.parent_id"
        ") SELECT id, parent_id FROM above WHERE parent_id IS NOT NULL"
    )
    return Talks(dict(many(connection, found, (json.dumps(list(sessions)),))))


def holding(
    connection: apsw.Connection, entries: Entries, values: Sequence[str], key: SessionKey, limit: int
) -> list[list[Found]]:
    """For each value the messages of the key that hold the value."""
    return ranking.result_of(ranking.holding([SqliteIndex(connection, entries, key, None)], values, limit))


def around(connection: apsw.Connection, entries: Entries, key: SessionKey, number: int, reach: int) -> list[Found]:
    """A message of the key among its neighbours; empty for any other message."""
    if not is_of(connection, number, key):
        return []
    return ranking.result_of(ranking.around(SqliteIndex(connection, entries, key, "said"), number, reach))


class SqliteIndex:
    """The messages of one kind in a file (None: of either), of one key or of all. No method waits: a search runs from
    its beginning to its end in the thread of the connection."""

    def __init__(
        self, connection: apsw.Connection, entries: Entries, key: SessionKey | None, kind: Kind | None
    ) -> None:
        self._connection = connection
        self._entries = entries
        self._key = key
        self._kind = kind
        self._own, self._apart = ("", "") if key is None else (_whose(key, kind), _whose(key, "returned"))
        self._size: int | None = None

    async def size(self) -> int:
        """Return the number of messages."""
        if self._size is None:
            counted = "SELECT count(*) FROM message_search"
            known = self._entries.of(self._connection, self._own) if self._own else None
            self._size = int(many(self._connection, counted)[0][0]) if known is None else len(known)
        return self._size

    async def listed(self, terms: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """The newest messages of each term."""
        if not terms or (self._own and not await self.size()):  # most chats have no results of tools
            return {}
        sought = json.dumps([self._among(_term(term)) for term in terms])
        rows = many(self._connection, _NEWEST_OF_EACH, (sought, MOST_OF_A_TERM))
        return {term: _numbers_in(row[0]) for term, row in zip(terms, rows, strict=True)}

    async def vocabulary(self) -> Vocabulary:
        """Return the words of all messages; those of another conversation lead to no message of this one."""
        return self._entries.vocabulary(self._connection)

    async def holding(self, sought: Sequence[Question], limit: int) -> Sequence[Sequence[int]]:
        """For each question the messages that hold each of its words: the newest, and the oldest."""
        return [self._with_all(each, limit) if each.wanted else [] for each in sought]

    async def texts(self, numbers: Sequence[int]) -> Mapping[int, Text]:
        """Return the words of the messages."""
        rows = many(
            self._connection,
            "SELECT id, at, session_id, '[' || body || ',' || ifnull(note, '{}') || ']' FROM messages"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(numbers)),),
        )
        found = parsed(row[3] for row in rows)
        return {
            number: Text(said_in({**body, HOST: note}), at, session_id)
            for (number, at, session_id, _), (body, note) in zip(rows, found, strict=True)
        }

    async def read(self, numbers: Sequence[int]) -> Mapping[int, Found]:
        """The messages themselves."""
        rows = many(
            self._connection,
            f"SELECT m.session_id, {MESSAGE_COLUMNS} FROM messages m WHERE m.id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(numbers)),),
        )
        return {row[1]: Found(session_id=row[0], message=message_from(row[1:]), at=row[5]) for row in rows}

    async def around(self, numbers: Sequence[int], reach: int) -> Mapping[int, Sequence[int]]:
        """The messages of the same talk before and after each."""
        runs = {each: self._beside(each, reach) for each in numbers}
        every = json.dumps(list({each for run in runs.values() for each in run}))
        found = (
            "SELECT group_concat(id), session_id FROM messages WHERE id IN (SELECT value FROM json_each(?)) GROUP BY 2"
        )
        rows = many(self._connection, found, (every,)) if reach else []
        if len(rows) <= 1:
            return runs
        session_of: dict[int, str] = {each: row[1] for row in rows for each in _numbers_in(row[0])}
        talks = _talks(self._connection, set(session_of.values()))
        return {each: talks.cut(each, run, session_of) for each, run in runs.items()}

    async def nearest(self, meaning: Meaning) -> Sequence[int]:
        """The messages that mean nearly the same, nearest first."""
        among = self._entries.of(self._connection, self._own) if self._own else None
        return vectors.nearest_to(self._connection, meaning, among)

    async def beside(self, work: Callable[[], T]) -> T:
        """Work that takes long: here, because this thread is for searches alone."""
        return work()

    def _with_all(self, sought: Question, limit: int) -> list[int]:
        words = (" OR ".join(map(_term, alternatives)) for alternatives in sought.wanted)
        match = self._among(" AND ".join(f"({word})" for word in words))
        found = "SELECT rowid FROM message_search WHERE message_search MATCH ? ORDER BY rowid"
        newest = [row[0] for row in many(self._connection, f"{found} DESC LIMIT ?", (match, limit))]
        oldest = many(self._connection, f"{found} LIMIT 1", (match,)) if len(newest) == limit else ()
        return [*newest, *(row[0] for row in oldest)]

    def _among(self, sought: str) -> str:
        """Return the query for these terms among the index's messages."""
        if self._own:
            return f"{self._own} AND {sought}"
        return f'{sought} {"AND" if self._kind == "returned" else "NOT"} owner : "{RETURNED}"'

    def _beside(self, number: int, reach: int) -> list[int]:
        if not reach:
            return [number]
        if self._own:
            return self._entries.around(self._connection, self._own, number, reach, apart=self._apart)
        row = one(self._connection, "SELECT key FROM messages WHERE id = ?", (number,))
        whose = _whose(row[0] if row else "", self._kind)
        found = "SELECT rowid FROM message_search WHERE message_search MATCH ? AND rowid"
        before = many(self._connection, f"{found} < ? ORDER BY rowid DESC LIMIT ?", (whose, number, reach))
        after = many(self._connection, f"{found} > ? ORDER BY rowid LIMIT ?", (whose, number, reach))
        return [*(row[0] for row in reversed(before)), number, *(row[0] for row in after)]


def _whose(key: SessionKey | str, kind: Kind | None) -> str:
    owner = owner_of(str(key), size=_OWNER)
    owners = {"said": f'"{owner}"', "returned": f'"{owner}{RETURNED}"', None: f'("{owner}" OR "{owner}{RETURNED}")'}
    return f"owner : {owners[kind]}"


def _term(term: str) -> str:
    """Return the query for a term, which holds no quotes: letters, digits and marks only; or for any of some."""
    if ANY in term:
        return f"({' OR '.join(map(_term, term.split(ANY)))})"
    return f'terms : "{term[1:]}" *' if term.startswith("^") else f'terms : "{term}"'


def _numbers_in(listed: str | None) -> list[int]:
    """Message numbers that a query gives as one text: to hand over thousands of rows takes longer than to find them."""
    numbers: list[int] = json.loads(f"[{listed}]") if listed else []  # faster than `int` of each
    return numbers


def _highest(connection: apsw.Connection) -> int:
    row = one(connection, "SELECT max(id) FROM messages")
    return (row and row[0]) or 0
