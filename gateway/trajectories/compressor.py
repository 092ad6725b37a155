"""`TrajectoryCompressor`: makes one finished run fit a length by condensing its middle.

A run that cannot be shortened, for whatever reason, comes back as it was and its metrics say why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.context.readable import calls_by_id
from gateway.context.summary_input import INPUT_CHARS, render
from gateway.context.verification import notes_in
from gateway.domain.message import Message, user
from gateway.runtime.errors import ConfigError, GatewayError, SummaryRefused
from gateway.runtime.redaction import Redact
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter
from gateway.store.shared.documents import storable
from gateway.trajectories.metrics import Metrics
from gateway.trajectories.prompts import INSTRUCTIONS, NOTICE, held, messages, opener, task
from gateway.trajectories.region import Region, TrajectorySettings, region
from gateway.trajectories.sharegpt import Change, NotATrajectory, Turn, changed_turns, parse, turns_of

Summarise = Callable[[Sequence[Message], int], Awaitable[str]]
"""messages, most tokens of the answer -> the answer. Raises GatewayError or TimeoutError."""

_ATTEMPTS: Final = 2  # the second one stricter
_LEAST_NOTES: Final = 40  # tokens; shorter notes are not worth a call
_SLACK: Final = 512  # tokens of the summariser's window left for formats and miscounts


class Line(Struct, frozen=True, kw_only=True):
    """The result of a line: its bytes, and the metrics, or the reason why it was passed on as it is."""

    data: bytes
    metrics: Metrics | None = None
    fault: str | None = None

    def row(self) -> dict[str, Any]:
        """Return the line's part of the metrics file."""
        return self.metrics.row() if self.metrics is not None else {"fault": self.fault}


class _Answered(Struct, frozen=True, kw_only=True):
    """Notes, or the reason why there are none, and the cost."""

    notes: str = ""
    problem: str | None = None
    calls: int = 0
    errors: int = 0


class TrajectoryCompressor:
    """Compresses runs, one at a time or many side by side: it keeps nothing between them.

    `window`: the summariser's, in tokens. `redact` is applied to what it reads and what it writes;
    turns that stay are not touched.
    """

    def __init__(
        self,
        settings: TrajectorySettings,
        *,
        summarise: Summarise,
        counter: TokenCounter,
        redact: Redact,
        window: int = 128_000,
    ) -> None:
        self.settings = settings
        self._summarise = summarise
        self._counter = counter
        self._redact = redact
        self._window = window

    def compress(self, turns: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], Metrics]:
        """As `compress_async`, for callers without an event loop."""
        return asyncio.run(self.compress_async(turns))

    async def compress_async(self, turns: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], Metrics]:
        """The `{"from", "value"}` turns of a run, shortened to the target if need be. Raises
        NotATrajectory if they are something else, and ConfigError if no model can be asked at all."""
        change, metrics = await self._shorten(turns_of(turns))
        return ([dict(turn) for turn in turns] if change is None else changed_turns(turns, change)), metrics

    async def compress_line(self, data: bytes) -> Line:
        """One line of a file. A line that is no run is given back with a `fault`. Raises ConfigError."""
        try:
            trajectory = parse(data.decode())
        except UnicodeDecodeError as error:
            return Line(data=data, fault=f"It is not UTF-8 (at byte {error.start + 1:,})")
        except NotATrajectory as error:
            return Line(data=data, fault=str(error))
        change, metrics = await self._shorten(trajectory.turns)
        return Line(data=data if change is None else trajectory.changed(change), metrics=metrics)

    async def _shorten(self, turns: Sequence[Turn]) -> tuple[Change | None, Metrics]:
        counts = [self._counter.text(turn.text) for turn in turns]
        before, target = sum(counts), self.settings.target
        same = Metrics(turns_before=len(turns), turns_after=len(turns), tokens_before=before, tokens_after=before)
        if before <= target:
            return None, replace(same, skipped_under_target=True)
        same = replace(same, still_over_limit=True)
        noticed = self._noticed(turns)
        added = 0 if noticed is None else self._counter.text(turns[noticed].text + NOTICE) - counts[noticed]
        found = region(turns, counts, self.settings, before + added - target)
        if found is None:
            return None, replace(same, problem="Nothing between its protected turns is long enough to condense")
        # Room that a last, long turn frees beyond what was wanted is the summary's, if it needs it.
        room = min(found.tokens - added - 1, max(self.settings.summary, target - before + found.tokens - added))
        answered = await self._notes(turns, counts, found, room)
        same = replace(same, summary_calls=answered.calls, summary_errors=answered.errors, problem=answered.problem)
        if answered.problem is not None:
            return None, same
        count = found.end - found.first
        change = Change(first=found.first, end=found.end, summary=held(answered.notes, count))
        if noticed is not None:
            change = replace(change, notice=NOTICE, noticed=noticed)
        return self._judged(change, found.tokens - added, same)

    def _judged(self, change: Change, freed: int, same: Metrics) -> tuple[Change | None, Metrics]:
        """The change with its figures, unless it makes nothing shorter."""
        first, end = change.first, change.end
        after = same.tokens_before - freed + self._counter.text(change.summary)
        if after >= same.tokens_before:
            return None, replace(same, summary_errors=same.summary_errors + 1, problem="The summary saves nothing")
        return change, replace(
            same,
            turns_after=same.turns_before - (end - first) + 1,
            turns_removed=end - first,
            tokens_after=after,
            region=(first, end),
            still_over_limit=after > self.settings.target,
        )

    def _noticed(self, turns: Sequence[Turn]) -> int | None:
        """Return the number of the turn that gets the notice: a system turn that opens the run, unless it has the
        notice."""
        opening = turns[0] if self.settings.notice else None
        return 0 if opening is not None and opening.speaker == "system" and NOTICE not in opening.text else None

    async def _notes(self, turns: Sequence[Turn], counts: Sequence[int], found: Region, room: int) -> _Answered:
        """Notes whose turn takes at most `room` tokens. A failure is an answer here: it costs this run
        its compression and no other run anything."""
        frame = self._counter.text(opener(found.end - found.first))
        room -= frame
        asked = min(room, self.settings.summary - frame)
        if asked < _LEAST_NOTES:
            return _Answered(problem="There is no room for a summary of what would be condensed")
        limit = asked * 5 // 4
        material = self._material(turns, counts, found, limit)
        problem = ""
        errors = 0
        for attempt in range(1, _ATTEMPTS + 1):
            request: list[Message] = [
                {"role": "system", "content": INSTRUCTIONS},
                user(task(material, tokens=asked, refused=problem)),
            ]
            try:
                answer = await self._summarise(request, limit)
                notes = self._redact(notes_in(answer, limit=limit, room=room, counter=self._counter))
            except SummaryRefused as error:
                errors += 1
                problem = self._redact(str(error))
                continue
            except ConfigError:
                raise
            except (GatewayError, TimeoutError) as error:
                problem = self._redact(str(error)) or "The summariser did not answer in time"
                return _Answered(problem=problem, calls=attempt, errors=errors + 1)
            return _Answered(notes=storable(notes), calls=attempt, errors=errors)
        return _Answered(problem=f"The summary was refused because {problem}", calls=_ATTEMPTS, errors=errors)

    def _material(self, turns: Sequence[Turn], counts: Sequence[int], found: Region, limit: int) -> str:
        """The turns that leave, as the summariser reads them: redacted, long results cut."""
        leaving = slice(found.first, found.end)
        leaves = messages(turns[leaving], counts[leaving])
        tokens = self._window - self._counter.text(INSTRUCTIONS) - limit - _SLACK
        return render(
            leaves, calls_by_id(leaves), self._redact, chars=INPUT_CHARS, tokens=max(1, tokens), counter=self._counter
        )
