"""The full-text index: a `tsvector` of a message's terms. They are our own, not the server's, so that languages without
spaces are found here as in every store, and a message is found by its conversation and a word together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from gateway.store.draft import Draft
from gateway.store.kinds import MESSAGE, MessageRecord
from gateway.store.postgres.records import ServerRecords
from gateway.store.records import Vector
from gateway.store.searching import Wanted
from gateway.store.shared import searchable
from gateway.store.shared.searchable import kind_of, owner_of, terms_of
from gateway.store.steps.sessions import message

_MOST_BYTES: Final = 500_000  # of a message's terms
_LONGEST: Final = 500  # letters of a term
_RENEWED: Final = 100  # entries made anew in one transaction

_OF: Final = "kind <> '' AND (%s = '' OR kind = %s)"
_IN: Final = "(%s = '' OR lane = %s)"
_ENTER: Final = (
    "INSERT INTO entry(number, lane, kind, session, made, terms)"
    " VALUES (%s, %s, %s, %s, %s, array_to_tsvector(%s::text[]))"
    " ON CONFLICT (number) DO UPDATE SET lane = excluded.lane, session = excluded.session, made = excluded.made,"
    " terms = excluded.terms"
)
_LISTED: Final = (  # `+ 0`: or the server might look at all messages for a rare word
    f"SELECT ARRAY(SELECT number FROM entry WHERE terms @@ sought.term::tsquery AND {_OF} ORDER BY number + 0 {{}}"
    " LIMIT %s) FROM unnest(%s::text[]) WITH ORDINALITY AS sought(term, place) ORDER BY place"
)
_NEIGHBOUR: Final = "ARRAY(SELECT n.number FROM entry n WHERE n.lane = e.lane AND n.kind = %s AND n.number"
_BESIDE: Final = (
    f"SELECT e.number, {_NEIGHBOUR} < e.number ORDER BY n.number DESC LIMIT %s),"
    f" {_NEIGHBOUR} > e.number ORDER BY n.number LIMIT %s) FROM entry e WHERE e.number = ANY(%s)"
)
ENTRIES: Final = (
    'CREATE TABLE entry(number bigint PRIMARY KEY, lane text COLLATE "C" NOT NULL, kind text NOT NULL,'
    " session text NOT NULL, made integer NOT NULL, terms tsvector NOT NULL, signs bytea, numbers bytea)",
    "ALTER TABLE entry ALTER COLUMN terms SET STATISTICS 0, ALTER COLUMN lane SET STATISTICS 0",
    "CREATE INDEX entry_terms ON entry USING gin(terms)",
    "CREATE INDEX entry_lane ON entry(lane, kind, number)",
    "CREATE INDEX entry_made ON entry(made, number)",
    "CREATE INDEX entry_unembedded ON entry(number) WHERE kind = 'said' AND signs IS NULL",
)


class ServerEntries(ServerRecords):
    """The records with the index."""

    def size(self, kind: str, lane: str) -> int:
        return int(self.all(f"SELECT count(*) FROM entry WHERE {_OF} AND {_IN}", kind, kind, lane, lane)[0])

    def listed(
        self, kind: str, lane: str, sought: Sequence[Wanted], most: int, *, oldest: bool = False
    ) -> list[list[int]]:
        owner = [[_lane_term(lane)]] if lane else []
        queries = [" & ".join(map(_any, [*owner, *each])) for each in sought]
        return self.all(_LISTED.format("ASC" if oldest else "DESC"), kind, kind, most, queries)

    def beside(
        self, kind: str, lane: str, numbers: Sequence[int], reach: int
    ) -> Iterable[tuple[int, list[int], list[int]]]:
        return self.rows(_BESIDE, kind, reach, kind, reach, list(numbers))

    def sessions(self, numbers: Sequence[int]) -> dict[int, str]:
        return dict(self.rows("SELECT number, session FROM entry WHERE number = ANY(%s)", list(numbers)))

    def words(self) -> list[str]:
        return sorted(self.all("SELECT word FROM ts_stat('SELECT terms FROM entry') WHERE NOT starts_with(word, '@')"))

    def newest(self) -> int:
        return int(self.all("SELECT coalesce(max(number), 0) FROM entry")[0])

    def renew_some(self) -> bool:
        """Make some entries of another version again, newest first; False if these were the last."""
        outdated = "SELECT number FROM entry WHERE made <> %s ORDER BY number DESC LIMIT %s"
        numbers = self.all(outdated, searchable.MADE, _RENEWED)
        for said in self.many(MESSAGE, numbers):
            self.enter(said)
        return len(numbers) == _RENEWED

    def left(self, made: int) -> int:
        return int(self.all("SELECT count(*) FROM entry WHERE made < %s OR made > %s", made, made)[0])

    def enter(self, said: MessageRecord) -> None:
        """Enter a message, or replace its entry; its vector stays."""
        whole, lane = message(said), said.key.text
        kind = kind_of(whole)
        terms = _fitting([_lane_term(lane), *terms_of(whole, kind)]) if kind else []
        values = (said.number, lane, kind or "", said.session_id, searchable.MADE, terms)
        self.connection.execute(_ENTER, values)

    def write(self, draft: Draft) -> None:
        with self.connection.pipeline():
            super().write(draft)
            for number, said in draft.records.get(MESSAGE, {}).items():
                if said is None:
                    self.connection.execute("DELETE FROM entry WHERE number = %s", (number,))
                else:
                    self.enter(said)

    def vectors_of(self) -> tuple[str, int]:
        model, length = json.loads(next(iter(self.all("SELECT value FROM meta WHERE name = 'vectors'")), '["", 0]'))
        return model, length

    def embedded_by(self, model: str, length: int, *, anew: bool) -> None:
        if anew:
            self.connection.execute("UPDATE entry SET signs = NULL, numbers = NULL WHERE signs IS NOT NULL")
        put = "INSERT INTO meta VALUES ('vectors', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        self.connection.execute(put, (json.dumps([model, length]),))

    def unembedded(self, most: int, *, anew: bool) -> list[int]:
        lacking = "kind = 'said'" if anew else "kind = 'said' AND signs IS NULL"
        return self.all(f"SELECT number FROM entry WHERE {lacking} ORDER BY number DESC LIMIT %s", most)

    def embed(self, number: int, vector: Vector) -> None:
        self.connection.execute("UPDATE entry SET signs = %s, numbers = %s WHERE number = %s", (*vector, number))

    def signs(self, lane: str, most: int) -> Iterable[tuple[int, bytes]]:
        newest = f"SELECT number, signs FROM entry WHERE length(numbers) > 0 AND {_IN} ORDER BY number DESC LIMIT %s"
        return self.rows(newest, lane, lane, most)

    def values(self, numbers: Sequence[int]) -> Iterable[tuple[int, bytes]]:
        return self.rows("SELECT number, numbers FROM entry WHERE number = ANY(%s)", list(numbers))


def _lane_term(lane: str) -> str:
    """A conversation as a term that no word can be."""
    return f"@{owner_of(lane, size=8)}"


def _fitting(terms: Sequence[str]) -> list[str]:
    """The terms that the server takes."""
    short = [each.encode("utf-8", "ignore").decode() for each in terms if len(each) < _LONGEST]
    sizes = accumulate(len(each.encode()) for each in short)
    return [each for each, size in zip(short, sizes, strict=True) if each and size < _MOST_BYTES]


def _any(terms: Sequence[str]) -> str:
    """The query for any of these terms, which hold letters, digits and marks only."""
    return " | ".join(f"'{each[1:]}':*" if each.startswith("^") else f"'{each}'" for each in terms).join("()")
