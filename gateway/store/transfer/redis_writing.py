"""Facts into an empty Redis store: each as plain commands, many of them in one step.

Sessions, rows, hooks and calls get the numbers in which they come, over all partitions, so that they
stay in one order; every number that is given later is higher by far.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.domain.chat import UNSENT, WAITING, SessionKey
from gateway.domain.chat import OutboundState as State
from gateway.domain.message import noted
from gateway.domain.usage import LedgerEntry
from gateway.store.records import MOST_HEARD
from gateway.store.redis.arguments import listed
from gateway.store.redis.codec import compaction_json, field_text, fields, ledger_json, message_text
from gateway.store.redis.keeping import fact_json, folder_at, pieces
from gateway.store.redis.partitions import PARTITIONS, partition_of_key, partition_of_name
from gateway.store.redis.searching import entries, owner_of
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import dumps, file_json
from gateway.store.shared.facts import Record
from gateway.store.shared.fields import COMPACTION, FILE, USAGE
from gateway.store.shared.searchable import kind_of

_MOST: Final = 500  # commands in one step, so that a step stays short
_MOST_TEXT: Final = 500_000  # characters in one step
# Entries of the ledger with the same time are in the order of their documents, whose numbers must
# therefore have as many digits as those that a store gives.
_CALLS_FROM: Final = 10**15


class Writing:
    """Writes records through `wire`; remembers how many of a kind there were, and the highest number
    that each partition was given."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._given: Counter[str] = Counter()
        self._highest = [0] * PARTITIONS

    async def restore(self, page: Sequence[Record]) -> None:
        """Store records; all of them are there when this returns."""
        commands: dict[int, list[list[str]]] = defaultdict(list)
        for record in page:
            self._given[record.kind] += 1
            partition = _partition(record.data)
            if record.kind in ("events", "messages"):
                number = int(str(record.data["id"]).partition("p")[0])
                self._highest[partition] = max(self._highest[partition], number)
            commands[partition] += _commands(record.kind, record.data, self._given[record.kind])
        await self._run(commands)

    async def complete(self) -> None:
        """No number that a partition gives from now on is one that it was given here."""
        await self._run({partition: [["above", str(number)]] for partition, number in enumerate(self._highest)})

    async def _run(self, commands: Mapping[int, Sequence[list[str]]]) -> None:
        jobs = [
            self._wire.send(partition, "restore", *step)
            for partition, some in commands.items()
            for step in _steps(some)
        ]
        await self._wire.results(jobs)


def _partition(data: Mapping[str, Any]) -> int:
    """Return a record's partition: that of its chat, else that of its name."""
    of_chat = data.get("lane") or data.get("key") or data.get("scope")
    if of_chat is not None:
        return partition_of_key(SessionKey.parse(of_chat))
    return partition_of_name(data["account"])


def _steps(commands: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the parts of each step: the number of commands, then the commands."""
    some: list[str] = []
    count = size = 0
    for words in commands:
        length = sum(map(len, words))
        if count and (count == _MOST or size + length > _MOST_TEXT):
            yield [str(count), *some]
            some, count, size = [], 0, 0
        some += listed(words)
        count, size = count + 1, size + length
    yield [str(count), *some]


def _commands(kind: str, data: dict[str, Any], number: int) -> Iterator[list[str]]:
    """Yield the commands that store a record, the `number`th of its kind, as restore.lua takes them."""
    match kind:
        case "sessions":
            yield from _session(data, number)
        case "messages":
            yield from _message(data)
        case "transcripts":
            yield ["RPUSH", f"transcript:{data['session_id']}", data["message_id"]]
        case "compactions":
            document = compaction_json(COMPACTION.of_texts(data))
            yield ["RPUSH", f"compactions:{data['parent_id']}", document]
            yield ["RPUSH", f"compactions:{data['child_id']}", document]
        case "hooks":  # nobody owes it: the first process to ask will
            yield ["ZADD", "hooks", str(number), data["session_id"]]
        case "events":
            yield from _event(data)
        case "turns":
            facts = {name: data[name] for name in ("steps", "intents", "reply")}
            yield ["HSET", f"turn:{data['item']}", *fields({"session": data["session_id"], **facts})]
        case "approvals":
            yield from _approval(data)
        case "signals":
            yield ["HSET", f"signals:{data['item']}", data["kind"], field_text(data["at"])]
        case "outbox":
            yield from _row(data, number)
        case "ledger":
            yield from _call(data, number)
        case "spending":
            until = [] if data["forget_at"] is None else ["PXAT", str(data["forget_at"])]
            yield ["SET", f"spent:{data['account']}", str(data["spent"]), *until]
        case "pins":
            yield ["SET", f"pins:{data['key']}", data["rules"]]
        case "memory":
            yield ["HSET", f"facts:{data['scope']}", data["id"], fact_json(data)]
        case "memory counters":
            yield ["SET", f"facts_version:{data['scope']}", str(data["version"])]
            yield ["SET", f"facts_number:{data['scope']}", str(data["last_number"])]
        case "reminders":
            yield from _reminder(data)
        case "files":
            yield from _file(data)
        case "forgotten":
            done = dumps({"at": data["at"], "counts": json.loads(data["counts"])})
            yield ["HSET", f"forgotten:{data['key']}", data["deed"], done]
        case "notes":
            yield ["HSET", folder_at(data["account"]), data["name"], data["value"]]
        case "closed chats":
            yield ["HSET", "closed", data["lane"], data["reason"]]
        case "renamed chats":
            for name, called in (("first_names", data["first"]), ("later_names", data["later"])):
                if called is not None:
                    yield ["HSET", name, data["lane"], called]


def _session(data: dict[str, Any], number: int) -> Iterator[list[str]]:
    name, lane = data["id"], data["key"]
    yield ["HSET", f"session:{name}", *fields({**data, "is_tip": None})]
    if data["expires_at"] is not None and data["ended_at"] is None:
        yield ["ZADD", "due", field_text(data["expires_at"]), name]
    if data["is_tip"]:
        yield ["SET", f"tip:{lane}", name]
    yield ["LPUSH", f"sessions:{lane}", name]
    yield ["ZADD", "sessions", str(number), name]


def _message(data: dict[str, Any]) -> Iterator[list[str]]:
    tokens = {} if data["tokens"] is None else {"tokens": data["tokens"]}
    message = noted(json.loads(data["body"]), **json.loads(data["note"] or "{}"), **tokens)
    text = message_text(message, SessionKey.parse(data["key"]), data["session_id"], data["at"])
    yield ["SET", f"message:{data['id']}", text]
    found_as = kind_of(message)
    if found_as and (terms := entries(message)):
        yield ["enter", owner_of(data["key"], found_as), data["id"], " ".join(terms)]


def _approval(data: dict[str, Any]) -> Iterator[list[str]]:
    token = data["token"]
    facts = {f"asked:{token}": data["asked"], f"verdict:{token}": data["verdict"]}
    yield ["HSET", f"turn:{data['item']}", *fields(facts)]
    yield ["HSET", f"asking:{data['chat']}", token, str(data["item"])]


def _call(data: dict[str, Any], number: int) -> Iterator[list[str]]:
    facts = {name: data[name] for name in ("at", "purpose", "provider", "model", "cost_usd")}
    entry = LedgerEntry(usage=USAGE.of_texts(data), **facts)
    text = f"{_CALLS_FROM + number}|{ledger_json(entry, data['session_id'], SessionKey.parse(data['key']))}"
    yield ["ZADD", "ledger", field_text(data["at"]), text]
    yield ["ZADD", f"ledger:{data['key']}", field_text(data["at"]), text]


def _file(data: dict[str, Any]) -> Iterator[list[str]]:
    for place, piece in enumerate(pieces(data["content"])):
        yield ["HSET", f"content:{data['key']}:{data['digest']}", str(place), piece]
    yield ["HSET", f"files:{data['key']}", data["ref"], file_json(FILE.of_texts(data))]
    yield ["ZADD", f"filed:{data['key']}", field_text(data["at"]), data["ref"]]


def _event(data: dict[str, Any]) -> Iterator[list[str]]:
    item, platform = str(data["id"]), data["key"].partition("/")[0]
    facts = {name: data[name] for name in ("key", "inbound", "attempts", "absorbed_by", "outcome", "ended_at")}
    yield ["HSET", f"events:{data['platform']}", data["event_id"], item]
    facts |= {"at": data["accepted_at"], "bypass": data["bypass"] or None}
    yield ["HSET", f"item:{item}", *fields(facts)]
    yield ["RPUSH", f"heard:{data['key']}", item]
    yield ["LTRIM", f"heard:{data['key']}", str(-MOST_HEARD), "-1"]
    if data["outcome"] is None:
        yield ["HINCRBY", "figures", f"waiting:{platform}", "1"]
        if data["bypass"]:  # nobody works on it, as after its process died
            yield ["SADD", "platforms", platform]
            yield ["ZADD", f"bypass_left:{platform}", item, item]
        elif data["absorbed_by"] is not None:
            yield ["SADD", f"absorbed:{data['absorbed_by']}", item]
        else:
            yield ["wait", data["key"], item]
    elif data["outcome"] == "dead":
        yield ["HINCRBY", "figures", "dead", "1"]
        yield ["RPUSH", "dead", item]


def _reminder(data: dict[str, Any]) -> Iterator[list[str]]:
    name, chat, platform = data["id"], data["chat"], data["platform"]
    yield ["HSET", f"reminder:{name}", *fields(data)]
    yield ["ZADD", f"reminders:{data['key']}", str(data["number"]), name]
    if data["open"]:
        yield ["HSET", f"reminders_in:{chat}", name, data["person"]]
        yield ["HINCRBY", f"reminders_by:{chat}", data["person"], "1"]
    if data["due_at"] is not None and not data["parked"]:
        yield ["SADD", "platforms", platform]
        yield ["ZADD", f"reminders_due:{platform}", field_text(data["due_at"]), name]


def _row(data: dict[str, Any], number: int) -> Iterator[list[str]]:
    name, lane, state, ahead = data["id"], data["lane"], data["state"], data["ahead"]
    platform = lane.partition("/")[0]
    address = SessionKey(platform=data["platform"], chat=data["chat"], thread=data["thread"])
    # One that is being sent has no sender, as after its process died.
    claim = "" if state == State.SENDING else None
    # Whatever is emitted later has a higher place.
    own = {"to": data["chat"], "chat": lane, "place": ahead or 0, "claim": claim, "lane": None, "ahead": None}
    yield ["HSET", f"row:{name}", *fields({**data, **own})]
    yield ["ZADD", "rows", str(number), name]
    yield ["ZADD", f"rows:{address}", str(number), name]
    if state in UNSENT:
        yield ["HINCRBY", "figures", f"unsent:{platform}", "1"]
    if ahead is not None:
        yield ["ZADD", f"out:{lane}", str(ahead), name]
        yield ["SADD", "platforms", platform]
        # The chat is looked at when any of its rows is due: that process finds out which is the first.
        yield ["ZADD", f"out_due:{platform}", "LT", field_text(data["due_at"] if state in WAITING else 0), lane]
