"""Facts into an empty store, many in one step.

Sessions, rows, hooks and calls get the numbers in which they come, over all partitions, so that they
stay in one order; every number that is given later is higher by far.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.domain.message import note_of
from gateway.store.moved import (
    Kind,
    MovedAccount,
    MovedCall,
    MovedClosedChat,
    MovedCompaction,
    MovedFile,
    MovedGuestBook,
    MovedHook,
    MovedItem,
    MovedMessage,
    MovedPins,
    MovedReference,
    MovedRenamedChat,
    MovedRow,
    MovedSession,
    Record,
)
from gateway.store.redis import arguments
from gateway.store.redis.arguments import listed
from gateway.store.redis.codec import (
    approval_fields,
    compaction_json,
    ledger_json,
    message_text,
    number,
    session_fields,
)
from gateway.store.redis.filing import pieces
from gateway.store.redis.pairing import GUEST_BOOK
from gateway.store.redis.partitions import PARTITIONS, partition_of, partition_of_key, partition_of_name
from gateway.store.redis.searching import entries, owner_of
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import file_json, guest_book_json, intents_json, pins_json, storable
from gateway.store.shared.searchable import kind_of

_MOST: Final = 250  # records in one step, so that a step stays short
_MOST_TEXT: Final = 500_000  # characters in one step
# Entries of the ledger with the same time are in the order of their documents, whose numbers must
# therefore have as many digits as those that a store gives.
_CALLS_FROM: Final = 10**15
_SCRIPTS: Final[dict[Kind, str]] = {
    "sessions": "restore_sessions",
    "messages": "restore_messages",
    "transcripts": "restore_transcripts",
    "compactions": "restore_compactions",
    "hooks": "restore_hooks",
    "events": "restore_items",
    "outbox": "restore_rows",
    "ledger": "restore_ledger",
    "spending": "restore_spending",
    "pins": "restore_pins",
    "files": "restore_files",
    "pairing": "restore_guest_book",
    "closed chats": "restore_closed_chats",
    "renamed chats": "restore_renamed_chats",
}


class Restoring:
    """Writes records through `wire`; remembers how many of a kind there were, and the highest number
    that each partition was given."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._given: dict[str, int] = defaultdict(int)
        self._highest = [0] * PARTITIONS

    async def restore(self, page: Sequence[Record]) -> None:
        """Store records; all of them are there when this returns."""
        steps: dict[tuple[str, int], list[list[str]]] = defaultdict(list)
        for record in page:
            partition, parts = self._parts(record)
            steps[_SCRIPTS[record.kind], partition].append(parts)
        jobs = [
            self._wire.send(partition, script, *listed_parts)
            for (script, partition), all_parts in steps.items()
            for listed_parts in _in_steps(all_parts)
        ]
        if jobs:
            await self._wire.results(jobs)

    async def complete(self) -> None:
        """No number that a partition gives from now on is one that it was given here."""
        jobs = [self._wire.send(each, "restore_end", str(highest)) for each, highest in enumerate(self._highest)]
        await self._wire.results(jobs)

    def _parts(self, record: Record) -> tuple[int, list[str]]:
        """In which partition a record belongs, and what its script takes."""
        match record:
            case MovedRow():
                to = record.row.to
                parts = [record.row.state, self._number("outbox"), record.stands_for, *arguments.row(record.row)]
                return partition_of(to.platform, to.chat), parts
            case MovedItem():
                partition = partition_of_key(record.key)
                self._raise(partition, record.number)
                return partition, _item(record)
            case MovedMessage():
                partition = partition_of_key(record.key)
                self._raise(partition, note_of(record.message)["id"].partition("p")[0])
                return partition, self._message(record)
            case MovedSession():
                return partition_of_key(record.session.key), self._session(record)
            case MovedReference():
                return partition_of_key(record.key), [record.session_id, record.message_id]
            case MovedCompaction():
                run = record.compaction
                return partition_of_key(record.key), [run.parent_id, run.child_id, compaction_json(run)]
            case MovedHook():
                return partition_of_key(record.key), [record.session_id, self._number("hooks")]
            case MovedCall():
                document = ledger_json(record.entry, record.session_id, record.key)
                text = f"{_CALLS_FROM + int(self._number('ledger'))}|{document}"
                return partition_of_key(record.key), [str(record.key), number(record.entry.at), text]
            case MovedAccount():
                forget_at = "" if record.forget_at is None else str(record.forget_at)
                return partition_of_name(record.account), [record.account, str(record.spent), forget_at]
            case MovedPins():
                return partition_of_key(record.key), [str(record.key), pins_json(record.pins)]
            case MovedFile():
                file = record.file
                parts = [str(record.key), file.ref, number(file.at), file_json(file), file.digest]
                return partition_of_key(record.key), [*parts, *listed([*pieces(record.content)])]
            case MovedGuestBook():
                return partition_of_name(GUEST_BOOK), [str(record.book.version), guest_book_json(record.book)]
            case MovedRenamedChat():
                names = [storable(name or "") for name in (record.first, record.later)]
                return partition_of_key(record.chat), [str(record.chat), *names]
            case MovedClosedChat():
                return partition_of_key(record.chat), [str(record.chat), storable(record.reason)]

    def _number(self, kind: str) -> str:
        self._given[kind] += 1
        return str(self._given[kind])

    def _raise(self, partition: int, given: str) -> None:
        self._highest[partition] = max(self._highest[partition], int(given))

    def _session(self, record: MovedSession) -> list[str]:
        session = record.session
        due = "" if session.expires_at is None or session.ended_at is not None else number(session.expires_at)
        start = [session.id, str(session.key), due, self._number("sessions"), "1" if record.is_tip else "0"]
        return [*start, *listed(session_fields(session))]

    def _message(self, record: MovedMessage) -> list[str]:
        message, note = record.message, note_of(record.message)
        text = message_text(message, record.key, record.session_id, note["at"])
        kind = kind_of(message)
        terms = entries(message) if kind else []
        # Terms hold no spaces; one by one they would be most of what is sent.
        return [note["id"], text, owner_of(str(record.key), kind or "said"), " ".join(terms)]


def _item(record: MovedItem) -> list[str]:
    turn = record.turn
    journal: list[str] = []
    if turn is not None:
        facts = {"session": turn.session_id, "reply": turn.reply_id}
        journal = [text for name, value in facts.items() if value is not None for text in (name, value)]
        journal += ["steps", str(turn.steps), "intents", intents_json(turn.intents)]
        journal += [text for approval in turn.approvals for text in approval_fields(approval)]
    return [
        record.number,
        str(record.key),
        record.platform,
        record.event_id,
        record.document,
        number(record.accepted_at),
        str(record.attempts),
        "1" if record.bypass else "0",
        record.absorbed_by or "",
        record.outcome or "",
        "" if record.ended_at is None else number(record.ended_at),
        *listed(journal),
        *listed([text for kind, at in record.signals for text in (kind, number(at))]),
    ]


def _in_steps(all_parts: Sequence[list[str]]) -> Iterator[list[str]]:
    """What each step takes: how many records, then theirs."""
    some: list[list[str]] = []
    size = 0
    for parts in all_parts:
        length = sum(map(len, parts))
        if some and (len(some) == _MOST or size + length > _MOST_TEXT):
            yield [str(len(some)), *(text for each in some for text in each)]
            some, size = [], 0
        some.append(parts)
        size += length
    yield [str(len(some)), *(text for each in some for text in each)]
