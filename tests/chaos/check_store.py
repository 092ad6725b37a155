"""The promises of a run's store: messages, transcripts, sessions and how they follow one another."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from gateway.agent.tools.runtime import UNKNOWN_OUTCOME
from gateway.delivery.outbox import MAYBE_MISSING
from gateway.turns.turn import PUT_AWAY
from tests.chaos.answers import asked
from tests.chaos.drive import ANSWERS, Evidence, Line
from tests.chaos.script import Event
from tests.chaos.snapshot import Snapshot
from tests.chaos.socket_platform import Send

# The last point of a turn whose intents may be stored: they are before `tools_begun` is passed.
_AMONG_TOOLS: Final = (["turn.model_called"], ["turn.tools_begun"], ["turn.tools_ran"])
_ENDED_BY: Final = {
    "reset": ("Started a fresh session",),
    "undone": ("I undid the last exchange",),
    "switched": ("You are now in a copy", "I went back to"),
    "expired": (PUT_AWAY,),
}


REFUSALS: Final = ("There is nothing to", "There is no session number", "You are already in this session")
INSTEAD: Final = ("I could not show a message here because", MAYBE_MISSING)


class Facts:
    """A run's evidence, looked at from the sides that the checks need."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.events = evidence.plan.events
        self.last: Snapshot = evidence.snapshots[-1]
        self._by_id = {event.id: event for event in self.events}

    @property
    def joins(self) -> bool:
        """Say whether messages join running turns or end them: then not each has a turn of its own."""
        return self.evidence.plan.busy_mode != "queue"

    @cached_property
    def shown(self) -> list[Line]:
        """Everything that people saw, in a terminal and on a platform; for each chat in order."""
        return [*self.evidence.lines, *(_line(send) for send in self.evidence.sends if send.shown)]

    def event(self, event_id: str) -> Event:
        """The event of this id."""
        return self._by_id[event_id]

    def refused(self, event: Event) -> bool:
        """Say whether a command had nothing to work on, and said so. Other errors are about the model or the
        platform, and what they are about is kept all the same."""
        rows = self.last.outbox.values()
        return any(
            kind == "error" and answers == event.id and text.startswith(REFUSALS) for kind, text, answers, _ in rows
        )

    def about(self, token: str) -> Event:
        """The event that a token names."""
        return next(event for event in self.events if event.token == token)

    def answered_in_order(self) -> list[str]:
        """Event ids in the order in which their answers were first shown."""
        answers = (
            fields["answers"]
            for fields in (line.fields for line in self.shown)
            if fields["id"] in self.last.outbox
            and fields["kind"] in ANSWERS
            and fields["answers"]
            and not fields["text"].startswith(INSTEAD)
        )
        return list(dict.fromkeys(answers))

    @cached_property
    def bodies(self) -> dict[int, dict[str, Any]]:
        """Messages by id, as they are told to a model."""
        return {number: json.loads(row[3]) for number, row in self.last.messages.items()}

    @cached_property
    def notes(self) -> dict[int, dict[str, Any]]:
        """Return the host's note on each message."""
        return {number: json.loads(row[4] or "{}") for number, row in self.last.messages.items()}

    def originals(self, key: str) -> list[int]:
        """Messages of a key that were said or done, not made by a compaction, in order."""
        return [
            number
            for number, row in self.last.messages.items()
            if row[0] == key and not self.notes[number].get("summary") and not self.notes[number].get("derived_from")
        ]

    @property
    def keys(self) -> list[str]:
        """Every key there is."""
        return sorted({row[1] for row in self.last.inbox.values()})

    def transcript(self, session_id: str) -> list[int]:
        """A session's messages in order."""
        return [number for (session, _), number in self.last.transcripts.items() if session == session_id]

    def unknown_effects(self) -> set[str]:
        """Arguments of the calls whose outcome the model was told to be unknown."""
        calls = {
            call["id"]: json.loads(call["function"]["arguments"])["token"]
            for body in self.bodies.values()
            for call in body.get("tool_calls", ())
        }
        return {
            calls[body["tool_call_id"]]
            for body in self.bodies.values()
            if body["role"] == "tool" and body["content"] == UNKNOWN_OUTCOME
        }

    def trace(self, process: int) -> list[str]:
        """Return the trace of a process: points, and `hook ID` where an engine's hook was called."""
        return [passed for number, passed in self.evidence.record("trace") if number == process]

    def outcome(self, event: Event) -> str | None:
        """Return the outcome of an event."""
        return self.last.inbox[event.id][2] if event.id in self.last.inbox else None

    def killed_among_tools(self) -> bool:
        """Say whether some process died while a step with side effects was begun and not recorded; where several
        lanes ran, which of them it was cannot be told from the trace."""
        for process in range(self.evidence.kills):
            points = self.trace(process)
            turn = [point for point in points if point.startswith("turn.")]
            if len(self.keys) > 1 or turn[-1:] in _AMONG_TOOLS:
                return True
        return False


def _line(send: Send) -> Line:
    fields = {"id": send.row, "kind": send.kind, "chat": send.chat, "text": send.text, "answers": send.answers}
    return Line(process=send.process, fields=fields)


def nothing_lost(facts: Facts) -> Iterator[str]:
    """From one process to the next, no message row, transcript entry or outcome changes or vanishes."""
    for number, (before, after) in enumerate(zip(facts.evidence.snapshots, facts.evidence.snapshots[1:], strict=False)):
        for what in ("messages", "transcripts"):
            old, new = getattr(before, what), getattr(after, what)
            changed = [name for name, row in old.items() if new.get(name) != row]
            if changed:
                yield f"{what} {changed[:5]} changed or vanished after process {number}"
        for event_id, row in before.inbox.items():
            later = after.inbox.get(event_id)
            if later is None or later[:2] != row[:2] or (row[2] is not None and later[2] != row[2]):
                yield f"the inbox row of {event_id} went from {row} to {later}"
        for session_id, ended in before.sessions.items():
            later = after.sessions.get(session_id)
            if later is None or (ended[1] is not None and later[:3] != ended[:3]):
                yield f"the session {session_id} went from {ended} to {later}"


def messages(facts: Facts) -> Iterator[str]:
    """Per key, what was said reads as one turn after the other: a message, its tool calls each with
    one result, its answer, unless the model failed; every message once, in the order of the events."""
    wanted: dict[str, list[str]] = defaultdict(list)
    failed = {event.token for event in facts.events if facts.outcome(event) == "failed"}
    for event in facts.events:
        if event.token and event.id in facts.last.inbox and not facts.refused(event):
            wanted[facts.last.inbox[event.id][1]].append(event.token)
    for key in facts.keys:
        said: list[str] = []
        open_calls: list[str] = []
        turn = ""
        for number in facts.originals(key):
            body = facts.bodies[number]
            text = str(body.get("content") or "")
            if body["role"] == "user":
                if (turn and not facts.joins and turn not in failed) or open_calls:
                    yield f"{key}: {text[-40:]} came into the middle of {turn}'s turn"
                turn = asked(text)[1]
                said.append(turn)
            elif body["role"] == "tool":
                if body["tool_call_id"] not in open_calls:
                    yield f"{key}: a result without a call in {turn}'s turn"
                else:
                    open_calls.remove(body["tool_call_id"])
            else:
                if (turn not in text and not facts.joins) or open_calls:
                    yield f"{key}: {text[:40]} was said in {turn}'s turn, with {len(open_calls)} calls open"
                open_calls = [call["id"] for call in body.get("tool_calls", ())]
                turn = turn if open_calls else ""
        if (turn and not facts.joins and turn not in failed) or open_calls:
            yield f"{key}: {turn}'s turn has no end"
        if said != wanted[key]:
            yield f"{key}: was told {wanted[key]} and holds {said}"


def sessions(facts: Facts) -> Iterator[str]:
    """A key has at most one open session, its tip; ends and what people were told of them correspond;
    every end but a compaction's had its hook."""
    by_reason: Counter[str] = Counter()
    open_: Counter[str] = Counter()
    called = {session_id for _, session_id in facts.evidence.record("hooks")}
    for session_id, (key, reason, ended_at, hook, continuation, _) in facts.last.sessions.items():
        if reason is None:
            open_[key] += 1
            if facts.last.tips.get(key) != session_id:
                yield f"{key}: {session_id} is open and not its tip"
        else:
            by_reason[reason] += 1
        if (ended_at is None) != (reason is None):
            yield f"{session_id} is half ended"
        real_end = reason not in (None, "compression")
        if hook != ("done" if real_end else "none"):
            yield f"{session_id} ended by {reason} and its hook is {hook}"
        if (session_id in called) != real_end:
            yield f"{session_id} ended by {reason} and its hook was {'' if session_id in called else 'not '}called"
        if (reason == "compression") != (continuation is not None):
            yield f"{session_id} ended by {reason} and its continuation is {continuation}"
    for key, count in open_.items():
        if count > 1:
            yield f"{key} has {count} open sessions"
    told = [text for kind, text, _, _ in facts.last.outbox.values() if kind in ("command", "notice")]
    for reason, sentences in _ENDED_BY.items():
        said = sum(text.startswith(sentences) for text in told)
        if reason == "undone":
            said += sum(event.text == "/retry" and not facts.refused(event) for event in facts.events)
        # Who goes back to an earlier session after a week has none that this would end.
        more = by_reason["expired"] if reason == "switched" else 0
        if not by_reason[reason] <= said <= by_reason[reason] + more:
            yield f"{by_reason[reason]} sessions ended by {reason}, and people were told so {said} times"


def compactions(facts: Facts) -> Iterator[str]:
    """Every compaction ended one session and opened one; one by hand for each that was announced."""
    parents = [parent for _, _, parent, _ in facts.last.compactions]
    ended = [name for name, row in facts.last.sessions.items() if row[1] == "compression"]
    if sorted(parents) != sorted(ended):
        yield f"sessions {ended} ended by compression, and the compactions are of {parents}"
    for _, _, parent, child in facts.last.compactions:
        if facts.last.sessions[parent][4] != child:
            yield f"the continuation of {parent} is not {child}"
        if facts.last.sessions[child][5] < facts.last.sessions[parent][2]:
            yield f"{child} started before {parent} ended"
    by_hand = sum(trigger == "manual" for _, trigger, _, _ in facts.last.compactions)
    told = sum(kind == "command" and text.startswith("Compressed:") for kind, text, _, _ in facts.last.outbox.values())
    if by_hand != told:
        yield f"{by_hand} compactions were made by hand and {told} were announced"


def reachable(facts: Facts) -> Iterator[str]:
    """Yield messages that a compaction took out of view and that cannot be found any more from the session that goes
    on: in its transcript, or through the sources of its messages."""
    sources = {number: [int(each) for each in note.get("derived_from", ())] for number, note in facts.notes.items()}
    for _, _, parent, child in facts.last.compactions:
        found: set[int] = set()
        ahead = facts.transcript(child)
        while ahead:
            number = ahead.pop()
            if number not in found:
                found.add(number)
                ahead += sources[number]
        lost = [number for number in facts.transcript(parent) if number not in found]
        if lost:
            yield f"messages {lost} of {parent} cannot be reached from its continuation {child}"
