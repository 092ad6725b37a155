"""The doubts about calls that the schedule itself causes: only so often may somebody see something twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from adapters.telegram.formatting import render
from gateway.delivery.markdown.tables import without_columns
from gateway.domain.adapter import REPEATED
from tests.chaos.bots.model import TOKEN
from tests.chaos.bots.run import Death
from tests.chaos.bots.stores import Row
from tests.chaos.telegram.evidence import Evidence
from tests.emulators.journal import Call

Words = tuple[str, str]
"""A chat, and what is to be read in it."""


def shown_as(row: Row) -> str:
    """Return the visible text of a row."""
    if row.kind == "reply":
        return render(row.text).text.strip()
    return (without_columns(row.text) if row.kind == "command" else row.text).strip()


def read_in(call: Call) -> str:
    """Return the visible text of a call."""
    return unmarked(str(call.parameters.get("text", "")))


def unmarked(text: str) -> str:
    """Return a message's text without the mark of a repeat."""
    return text.strip().removeprefix(REPEATED.strip()).strip()


@dataclass(slots=True)
class Doubts:
    """`lost`: numbers of the sends that were done without their outcome on record. `struck`: how many sends of
    something had an unknown outcome, done or not."""

    lost: set[int] = field(default_factory=set)
    struck: Counter[Words] = field(default_factory=Counter)

    @classmethod
    def of(cls, evidence: Evidence) -> Doubts:
        """Answers that were lost on purpose, and sends that a process died over."""
        doubts = cls()
        sends = list(evidence.street.telegram.journal.of("sendMessage"))
        for call in sends:
            if not call.answered:
                doubts._strike(call, evidence)
        for death in evidence.deaths:
            doubts._die(death, [call for call in sends if call.number <= death.last_call], evidence)
        return doubts

    def _strike(self, call: Call, evidence: Evidence) -> None:
        self.struck[evidence.street.chats[call.chat_id], read_in(call)] += 1
        if call.done:
            self.lost.add(call.number)

    def _die(self, death: Death, sends: list[Call], evidence: Evidence) -> None:
        """A row without a message whose send was begun: its newest send that is on no row's record was its own."""
        recorded = {(row.chat, row.message) for row in death.rows}
        open_calls = [
            call for call in sends if call.done and call.answered and evidence.street.noted(call) not in recorded
        ]
        for row in death.rows:
            if row.message is not None or row.state not in ("sending", "streaming"):
                continue
            own = [call for call in open_calls if _is_of(row, call, evidence) and call.number not in self.lost]
            if own:
                self._strike(own[-1], evidence)
            elif row.state == "sending":
                self.struck[row.chat, shown_as(row)] += 1


def _is_of(row: Row, call: Call, evidence: Evidence) -> bool:
    if evidence.street.chats[call.chat_id] != row.chat:
        return False
    if row.state == "sending":
        return read_in(call) == shown_as(row)
    tokens = {heard.said.token for heard in evidence.street.heard if heard.place == place_of(row.answers)}
    return bool(tokens & set(TOKEN.findall(read_in(call))))


def place_of(event: str | None) -> tuple[str, int]:
    """The chat and the number of the message that an event brought."""
    _, _, chat, number = (event or ":::0").split(":")
    return chat, int(number)
