"""Forgetting: rows go, and nothing of them stays in the file.

The deed is one transaction, and notes that remains are to be scrubbed. Scrubbing rewrites the search index without the
terms of what is gone (in steps, so that other writes come between) and folds the log into the file. The connection
overwrites whatever it deletes. A file of an earlier Legato was not written so: it is rewritten as a whole, once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import apsw

from gateway.domain.chat import OutboundState as State
from gateway.domain.chat import SessionKey
from gateway.runtime.errors import SessionConflict
from gateway.store.records import Erasure, Forgetting, ItemOutcome, Replacement, Rewriting, Talk, chat_type_of
from gateway.store.shared.documents import ERASED, dumps, storable, wordless
from gateway.store.shared.fields import SESSION
from gateway.store.shared.platforms import chat_name
from gateway.store.sqlite import keeping, messages, search
from gateway.store.sqlite.connection import change, many, one
from gateway.store.sqlite.outbox import UNFINISHED

_REFUSED: Final[ItemOutcome] = "refused"
_KEYED: Final = ("pins", "files", "contents", "reminders")  # tables with nothing but what lies under a key
_SCRUB: Final = "scrub_owed"  # in `meta`, a sum of these:
_REMAINS: Final = 1  # something was forgotten, and its remains are to be scrubbed
_OLD_FILE: Final = 2  # an earlier Legato did not overwrite what it deleted: then the file is rewritten, too
_IS_ANSWER: Final = (  # to the event ?3, or changes such an answer
    "(answers = ?3 OR EXISTS (SELECT 1 FROM outbox AS its WHERE its.id = outbox.edits AND its.answers = ?3))"
)


def counted(connection: apsw.Connection, deed: str) -> Mapping[str, int] | None:
    """Return the counts of a deed; None: it was not done."""
    row = one(connection, "SELECT counts FROM forgotten WHERE deed = ?", (deed,))
    return None if row is None else json.loads(row[0])


def forget(connection: apsw.Connection, deed: Forgetting) -> Mapping[str, int]:
    """Do a deed, once. Raises SessionConflict if the key has another session by now."""
    done = counted(connection, deed.id)
    if done is not None:
        return done
    _check_tip(connection, deed)
    stored = {each.old: _stored(connection, deed, each) for each in deed.replaced}
    gone = {messages.message_number(each): stored.get(each) for each in (*deed.removed, *stored)}
    for session in deed.sessions:
        _rewrite(connection, session, gone)
    for number in gone:
        change(connection, "DELETE FROM messages WHERE id = ?", (number,))
    search.leave(connection, list(gone))
    if deed.pins is not None:
        keeping.put_pins(connection, deed.key, deed.pins)
    keeping.drop_files(connection, deed.key, deed.files)
    for reminder in deed.reminders:
        change(connection, "DELETE FROM reminders WHERE key = ? AND id = ?", (deed.key.text, reminder))
    silence(connection, deed.key, deed.item)
    note_done(connection, deed.id, deed.key, deed.at, deed.counts)
    return deed.counts


def _check_tip(connection: apsw.Connection, deed: Forgetting) -> None:
    row = one(
        connection,
        "SELECT s.id, s.epoch FROM tips t JOIN sessions s ON s.id = t.session_id WHERE t.key = ?",
        (deed.key.text,),
    )
    if row != (None if deed.tip is None else (deed.tip.id, deed.tip.epoch)):
        raise SessionConflict("This conversation was changed by somebody else; look at it again.")


def _stored(connection: apsw.Connection, deed: Forgetting, made: Replacement) -> int:
    (message,) = messages.store(connection, made.session_id, deed.key, [made.message], deed.at)
    return message


def _rewrite(connection: apsw.Connection, session: Rewriting, gone: Mapping[int, int | None]) -> None:
    """Leave messages out of a transcript, or put others into their places."""
    rows = many(
        connection,
        "SELECT position, message_id FROM transcript WHERE session_id = ? ORDER BY position",
        (session.session_id,),
    )
    first = next((position for position, number in rows if number in gone), len(rows))
    rest = [gone.get(number, number) for _, number in rows[first:]]
    left = [number for number in rest if number is not None]
    change(connection, "DELETE FROM transcript WHERE session_id = ? AND position >= ?", (session.session_id, first))
    for position, number in enumerate(left, first):
        change(
            connection,
            "INSERT INTO transcript(session_id, position, message_id) VALUES (?,?,?)",
            (session.session_id, position, number),
        )
    change(
        connection,
        "UPDATE sessions SET message_count = ?, transcript_tokens = max(0, transcript_tokens - ?), title = ?,"
        " flushed_messages = max(0, flushed_messages - (message_count - ?1)), todos = ?, engine_state = '{}',"
        " last_prompt_tokens = 0, reported_messages = 0, epoch = epoch + 1,"
        " rewritten = rewritten + 1 WHERE id = ?",
        (
            first + len(left),
            session.freed,
            SESSION.fact("title", session.title),
            SESSION.fact("todos", session.todos),
            session.session_id,
        ),
    )
    prompt = (storable(session.system_prompt), session.session_id)
    change(connection, "UPDATE prompts SET system_prompt = ? WHERE session_id = ?", prompt)
    change(
        connection,
        "UPDATE compactions SET focus = NULL, error = NULL WHERE parent_id = ?1 OR child_id = ?1",
        (session.session_id,),
    )


def silence(connection: apsw.Connection, key: SessionKey, item: str | None) -> None:
    """Take the words out of what came in and of what was shown under a key. Rows that are not shown yet never will
    be, except those of the item that asks."""
    lane, asks = key.text, -1 if item is None else int(item)
    ended = "SELECT id, inbound FROM inbox WHERE key = ? AND outcome IS NOT NULL"
    came = f"{ended} UNION SELECT id, inbound FROM inbox WHERE id = ?"
    for number, inbound in many(connection, came, (lane, asks)):
        left = wordless(inbound, asked=number == asks)
        if left != inbound:
            change(connection, "UPDATE inbox SET inbound = ? WHERE id = ?", (left, number))
    event = one(connection, "SELECT event_id FROM inbox WHERE id = ?", (asks,))
    own = None if event is None else event[0]
    change(
        connection,
        f"UPDATE outbox SET state = '{State.REFUSED}', error = 'forgotten'"
        f" WHERE lane = ?1 AND key = ?2 AND {UNFINISHED} AND {_IS_ANSWER} IS NOT 1",
        (chat_name(key.address), lane, own),
    )
    change(
        connection,
        "UPDATE outbox SET text = '', file = NULL, buttons = NULL, returns = NULL,"
        " error = iif(error IS NULL, NULL, 'forgotten'),"
        f" state = iif(state = '{State.WITHHELD}', '{State.REFUSED}', state)"
        f" WHERE lane = ? AND key = ? AND NOT {UNFINISHED}",
        (chat_name(key.address), lane),
    )


# -- everything of a key ----------------------------------------------------------------------


def erase(connection: apsw.Connection, deed: Erasure, *, ends_items: bool) -> Mapping[str, int]:
    """Take everything of a key away, once. `ends_items`: also items that wait in its lane."""
    done = counted(connection, deed.id)
    if done is not None:
        return done
    counts = _erase_sessions(connection, deed)
    counts |= _erase_kept(connection, deed)
    if ends_items:
        change(
            connection,
            "UPDATE inbox SET outcome = ?, ended_at = ? WHERE key = ? AND outcome IS NULL",
            (_REFUSED, deed.at, deed.key.text),
        )
    _erase_words(connection, deed)
    note_done(connection, deed.id, deed.key, deed.at, counts)
    return counts


def _erase_sessions(connection: apsw.Connection, deed: Erasure) -> dict[str, int]:
    lane = deed.key.text
    old = "AND ended_at IS NOT NULL AND last_active_at < ?2" if deed.before is not None else "AND ?2 IS NULL"
    ids = [row[0] for row in many(connection, f"SELECT id FROM sessions WHERE key = ?1 {old}", (lane, deed.before))]
    gone = json.dumps(ids)
    held = "SELECT message_id FROM transcript WHERE session_id IN (SELECT value FROM json_each(?1))"
    kept = (
        "SELECT message_id FROM transcript WHERE session_id IN"
        " (SELECT id FROM sessions WHERE key = ?2 AND id NOT IN (SELECT value FROM json_each(?1)))"
    )
    numbers = [row[0] for row in many(connection, f"{held} EXCEPT {kept}", (gone, lane))]
    for number in numbers:
        change(connection, "DELETE FROM messages WHERE id = ?", (number,))
    search.leave(connection, numbers)
    # A message that a later session shares is from now on one of that session.
    change(
        connection,
        "UPDATE messages SET session_id = (SELECT t.session_id FROM sessions s JOIN transcript t ON t.session_id = s.id"
        " WHERE s.key = ?2 AND s.id NOT IN (SELECT value FROM json_each(?1)) AND t.message_id = messages.id"
        f" ORDER BY s.seq LIMIT 1) WHERE id IN ({held} INTERSECT {kept})"
        " AND session_id IN (SELECT value FROM json_each(?1))",
        (gone, lane),
    )
    for session_id in ids:
        for table in ("transcript", "prompts", "owed_hooks", "tips"):
            change(connection, f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
        change(connection, "DELETE FROM compactions WHERE parent_id = ?1 OR child_id = ?1", (session_id,))
        change(connection, "DELETE FROM sessions WHERE id = ?", (session_id,))
        sums = "UPDATE ledger SET key = '', session_id = '' WHERE key = ? AND session_id = ?"
        change(connection, sums, (lane, session_id))
    return {"sessions": len(ids), "messages": len(numbers)}


def _erase_kept(connection: apsw.Connection, deed: Erasure) -> dict[str, int]:
    """Files, and without a moment everything else that lies under the key."""
    lane, before = deed.key.text, deed.before
    old = "SELECT ref FROM files WHERE key = ?1 AND (?2 IS NULL OR at < ?2)"
    refs = [row[0] for row in many(connection, old, (lane, before))]
    keeping.drop_files(connection, deed.key, refs)
    if before is not None:
        return {"files": len(refs)}
    rules = len(keeping.pins(connection, deed.key).rules)
    for table in _KEYED:
        change(connection, f"DELETE FROM {table} WHERE key = ?", (lane,))
    change(connection, f"DELETE FROM notes WHERE {keeping.UNDER} = ?", (lane,))
    change(connection, "UPDATE ledger SET key = '', session_id = '' WHERE key = ?", (lane,))
    return {"files": len(refs), "rules": rules}


def _erase_words(connection: apsw.Connection, deed: Erasure) -> None:
    """Erase the words of messages that came in and of rows that were shown. Events stay known by their ids."""
    lane, asks, before = deed.key.text, -1 if deed.item is None else int(deed.item), deed.before
    for number, inbound in many(connection, "SELECT id, inbound FROM inbox WHERE id = ?", (asks,)):
        change(connection, "UPDATE inbox SET inbound = ? WHERE id = ?", (wordless(inbound, asked=True), number))
    change(
        connection,
        "UPDATE inbox SET inbound = ?3 WHERE key = ?1 AND outcome IS NOT NULL AND (?2 IS NULL OR accepted_at < ?2)",
        (lane, before, ERASED),
    )
    for table in ("turns", "signals", "approvals"):
        ended = "SELECT id FROM inbox WHERE key = ?1 AND outcome IS NOT NULL"
        change(connection, f"DELETE FROM {table} WHERE item IN ({ended})", (lane,))
    event = one(connection, "SELECT event_id FROM inbox WHERE id = ?", (asks,))
    change(
        connection,
        f"DELETE FROM outbox WHERE lane = ?1 AND key = ?2 AND {_IS_ANSWER} IS NOT 1"
        f" AND (?4 IS NULL OR (created_at < ?4 AND NOT {UNFINISHED}))",
        (chat_name(deed.key.address), lane, event and event[0], before),
    )


def talks(connection: apsw.Connection, platform: str | None, person: str | None) -> list[Talk]:
    """The conversations in which a person spoke."""
    found = many(
        connection,
        "SELECT DISTINCT key, coalesce(inbound ->> '$.source.chat_type', '') FROM inbox WHERE json_valid(inbound)"
        " AND (?1 IS NULL OR platform = ?1) AND (?2 IS NULL OR inbound ->> '$.source.user' = ?2)"
        " UNION SELECT DISTINCT key, chat_type FROM sessions WHERE ?1 IS NULL AND ?2 IS NULL ORDER BY 1",
        (platform, person),
    )
    return [Talk(key=SessionKey.parse(key), chat_type=chat_type_of(kind)) for key, kind in found if kind]


def note_done(connection: apsw.Connection, deed: str, key: SessionKey, at: float, counts: Mapping[str, int]) -> None:
    """Remember a deed, and that its remains are to be scrubbed."""
    change(
        connection,
        "INSERT INTO forgotten(deed, key, at, counts) VALUES (?,?,?,?)",
        (deed, key.text, at, dumps(dict(counts))),
    )
    change(
        connection,
        "INSERT INTO meta(name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value | ?2",
        (_SCRUB, _REMAINS),
    )


# -- scrubbing --------------------------------------------------------------------------------


def owes_scrub(connection: apsw.Connection) -> bool:
    """Say whether remains of something forgotten may lie in the file."""
    return bool(_owed(connection) & _REMAINS)


def is_old(connection: apsw.Connection) -> bool:
    """Say whether remains may lie anywhere in the file."""
    return bool(_owed(connection) & _OLD_FILE)


def _owed(connection: apsw.Connection) -> int:
    row = one(connection, "SELECT value FROM meta WHERE name = ?", (_SCRUB,))
    return 0 if row is None else int(row[0])


def scrubbed(connection: apsw.Connection) -> None:
    """Note that nothing is left to scrub."""
    change(connection, "DELETE FROM meta WHERE name = ?", (_SCRUB,))


def rewrite_file(connection: apsw.Connection) -> None:
    """Write the whole file anew, without remains of deleted rows. To be run outside of a transaction."""
    connection.execute("VACUUM").fetchall()


def fold_log(connection: apsw.Connection) -> bool:
    """Fold the log into the file and empty it; False: a reader, such as a backup, holds the log back. To be run outside
    of a transaction."""
    row = one(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    return row is not None and not row[0]
