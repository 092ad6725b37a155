"""The state that an engine keeps across restarts: strikes, the summariser's cooldown, the tokenizer's ratio.

Strikes (anti-thrashing): a pass that saved under 10 %, or that left the next real prompt over the threshold, is a
strike. Two in a row block automatic passes until a real fit, a model switch or a manual `/compress`. A fit is a
reported prompt under the threshold after a pass that helped. While passes are blocked, or after a pass that hardly
helped, the prompt must lie 10 % under the threshold: the few tokens of a useless pass must not lift its own block.

Cooldown: after a failure the summariser rests. Malformed answers and broken streams 30 s, transient failures 60 s,
repeated time-outs 60, 300, 900 s, no provider or a refused key, quota or payment 600 s. The times are wall times,
because a cooldown survives restarts; a clock that jumped back cannot prolong a cooldown. `force` bypasses them all.

Correction: providers count tokens differently than our tokenizer does; their ratio is learned from their reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from msgspec import Meta, Struct, ValidationError, convert

from gateway.context.policy import EFFECTIVE_SAVING
from gateway.runtime.errors import ProviderRateLimited, ProviderRejected, ProviderUnavailable, QuotaExceeded
from gateway.runtime.structs import replace

STRIKES_TO_BLOCK: Final = 2
SMALL_PROMPT: Final = 200  # tokens; the constant overheads of a smaller prompt would dominate its ratio
_LOWEST, _HIGHEST = 0.5, 4.0  # ratios of tokenizers
_SAMPLES: Final = 8  # the newest report weighs at least an eighth

Failure = Literal["malformed", "transient", "timeout", "unconfigured", "refused"]

_SECONDS: Final[Mapping[Failure, tuple[float, ...]]] = {
    "malformed": (30.0,),
    "transient": (60.0,),
    "timeout": (60.0, 300.0, 900.0),
    "unconfigured": (600.0,),
    "refused": (600.0,),
}
_REFUSALS: Final = (401, 402, 403)


class _Kept(Struct, frozen=True, kw_only=True):
    """A part of the state; its fields are JSON-able, and `asdict` gives them."""

    @classmethod
    def load(cls, state: object) -> Self:
        """Return the part with the fields of `state`; a fresh part if `state` is anything else."""
        if not isinstance(state, Mapping) or not state.keys() >= {*cls.__struct_fields__}:
            return cls()
        try:
            return convert(state, cls)
        except ValidationError:
            return cls()


class Strikes(_Kept, frozen=True, kw_only=True):
    """Useless automatic passes in a row. `awaiting`: a pass that looked useful waits for the next report."""

    count: Annotated[int, Meta(ge=0)] = 0
    awaiting: bool = False

    @property
    def blocked(self) -> bool:
        """Whether automatic passes are held back."""
        return self.count >= STRIKES_TO_BLOCK

    def after_pass(self, *, effective: bool) -> Strikes:
        """Return the strikes after an automatic pass."""
        return replace(self, awaiting=True) if effective else Strikes(count=self.count + 1)

    def after_report(self, prompt_tokens: int, threshold_tokens: int) -> Strikes:
        """Return the strikes after a provider reported the size of a prompt."""
        if prompt_tokens <= 0 or threshold_tokens <= 0:
            return self
        if self.awaiting:
            return Strikes(count=self.count + 1 if prompt_tokens >= threshold_tokens else 0)
        if self.count and prompt_tokens < threshold_tokens * (1 - EFFECTIVE_SAVING):
            return Strikes()
        return self


def classify(error: BaseException) -> Failure:
    """The kind of failure that an error of the summariser is."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, QuotaExceeded) or (isinstance(error, ProviderRejected) and error.status in _REFUSALS):
        return "refused"
    if isinstance(error, ProviderUnavailable):
        if error.timed_out:
            return "timeout"
        return "malformed" if error.malformed else "transient"
    return "transient"


class Cooldown(_Kept, frozen=True, kw_only=True):
    """How long a failed summariser rests. `since` and `until` are seconds since the epoch."""

    kind: Failure | None = None
    since: float = 0.0
    until: float = 0.0
    timeouts: Annotated[int, Meta(ge=0)] = 0  # in a row

    def active(self, now: float) -> bool:
        """Whether the summariser rests at `now`."""
        return self.kind is not None and self.since <= now < self.until

    def after(self, kind: Failure, now: float, error: BaseException | None = None) -> Cooldown:
        """The cooldown that a failure at `now` starts."""
        timeouts = self.timeouts + 1 if kind == "timeout" else 0
        ladder = _SECONDS[kind]
        seconds = ladder[min(max(timeouts - 1, 0), len(ladder) - 1)]
        if isinstance(error, ProviderRateLimited) and error.retry_after is not None:
            seconds = max(seconds, error.retry_after)
        return Cooldown(kind=kind, since=now, until=now + seconds, timeouts=timeouts)


class Correction(_Kept, frozen=True, kw_only=True):
    """The running ratio of a provider's token counts to ours."""

    ratio: Annotated[float, Meta(ge=_LOWEST, le=_HIGHEST)] = 1.0
    samples: Annotated[int, Meta(ge=0, le=_SAMPLES)] = 0

    def observed(self, own: int, reported: int) -> Correction:
        """Return the ratio after a provider reported `reported` tokens of a prompt that counts `own` by us."""
        if own < SMALL_PROMPT or reported <= 0:
            return self
        seen = min(_HIGHEST, max(_LOWEST, reported / own))
        samples = min(self.samples + 1, _SAMPLES)
        return Correction(ratio=self.ratio + (seen - self.ratio) / samples, samples=samples)

    def apply(self, own: int) -> int:
        """Return our count as the provider would report it."""
        return int(own * self.ratio + 0.5)

    def invert(self, reported: int) -> int:
        """Return a provider's figure as we would count it."""
        return int(reported / self.ratio)
