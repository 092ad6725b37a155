"""The promise that a chat which said "retry after" is left alone for so long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tests.chaos.bots.stalls import stood_still
from tests.chaos.clocks import PACE
from tests.chaos.telegram.evidence import Evidence
from tests.emulators.journal import Call, Violation

CROSSED: Final = "calls that crossed a 429 on its way"
ON_ITS_WAY: Final = 0.1 * PACE  # a tenth of a real second


def silence_is_kept(evidence: Evidence, counts: Counter[str]) -> Iterator[str]:
    """No call comes while its chat is to be left alone. What was sent while Telegram said so could not know, nor can
    a process whose predecessor died before it had noted it."""
    telegram = evidence.street.telegram
    refused = [call for call in telegram.journal.calls if call.status == 429]
    own = {_own(violation, refused).number for violation in telegram.violations if "left alone" in violation.text}
    said = [call for call in refused if call.number not in own]
    for violation in telegram.violations:
        begun = max((call.at for call in said if _came_before(call, violation)), default=None)
        if begun is None or not _could_not_know(begun, violation, evidence):
            after = "" if begun is None else f" ({violation.at - begun:.2f} s after it said so)"
            yield f"Telegram: {violation}{after}"
        else:
            counts[CROSSED] += 1


def _own(violation: Violation, refused: Sequence[Call]) -> Call:
    """The call that a violation is."""
    return max(
        (
            call
            for call in refused
            if (call.chat_id, call.method) == (violation.chat_id, violation.method) and call.at <= violation.at
        ),
        key=lambda call: call.at,
    )


def _came_before(call: Call, violation: Violation) -> bool:
    return call.chat_id == violation.chat_id and call.at <= violation.at


def _could_not_know(begun: float, violation: Violation, evidence: Evidence) -> bool:
    deaths = [death.at for death in evidence.deaths if death.at >= begun]
    awake = (until - begun - stood_still(evidence.stalls, begun, until) for until in (violation.at, *deaths))
    return any(seconds <= ON_ITS_WAY for seconds in awake)
