"""The windows that providers state when they refuse a prompt, kept for the life of the process.

A stated limit belongs to a model at its address. It is never below what an earlier call fitted: such a limit is that of
a detour, not of the model. And it holds only where it was met, so that one odd error does not condense the
conversations of others; each of them meets the limit by itself, or never.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from gateway.domain.chat import SessionKey
from gateway.providers.base import ModelSpec
from gateway.runtime.structs import replace

_MOST_MET: Final = 50_000  # conversations that are remembered to have met a limit
_SMALL_WINDOW: Final = 8_192  # tokens; what servers of small models are most often started with

_Model = tuple[str, str, str | None]  # the beginning of a place: provider, name, address


class LearnedWindows(Struct):
    """Limits by model and address, and the conversations that met them."""

    _stated: dict[_Model, int] = field(default_factory=dict)
    _fitted: dict[_Model, int] = field(default_factory=dict)
    _not_length: set[_Model] = field(default_factory=set)  # that refused a shortened prompt, too, without a reason
    _met: set[tuple[SessionKey, _Model]] = field(default_factory=set)

    def fits(self, spec: ModelSpec, tokens: int) -> None:
        """Note that the model took and gave so many tokens in one call."""
        model = spec.place[:3]
        self._fitted[model] = max(tokens, self._fitted.get(model, 0))
        self._not_length.discard(model)

    def reported(self, spec: ModelSpec, window: int) -> None:
        """Note the window that the server itself reports: what it stated with another one is over."""
        if window != spec.context_length:
            self._stated.pop(spec.place[:3], None)
            self._fitted.pop(spec.place[:3], None)

    def may_exceed(self, spec: ModelSpec, tokens: int, *, assumed: bool) -> bool:
        """Say whether a refusal that gives no reason may be about a prompt of so many tokens. No call had so many,
        and they are more than half of the window, or than small servers take where the window is `assumed`."""
        room = _SMALL_WINDOW if assumed else spec.context_length
        return spec.place[:3] not in self._not_length and tokens > max(room // 2, self._fitted.get(spec.place[:3], 0))

    def was_not_length(self, spec: ModelSpec) -> None:
        """Note that a shorter prompt was refused as well; until the model answers, no prompt is shortened for that."""
        self._not_length.add(spec.place[:3])

    def is_credible(self, spec: ModelSpec, limit: int) -> bool:
        """Say whether a stated limit may be the model's window: smaller than the known one, and no call exceeded it."""
        return self._fitted.get(spec.place[:3], 0) <= limit < spec.context_length

    def meet(self, spec: ModelSpec, key: SessionKey, limit: int | None) -> ModelSpec:
        """Return the model as a conversation knows it after its prompt was too long. `limit`: as stated now; None has
        an earlier statement count."""
        model = spec.place[:3]
        if limit is not None and self.is_credible(spec, limit):
            self._stated[model] = limit
        if model in self._stated:
            if len(self._met) >= _MOST_MET:
                self._met.clear()
            self._met.add((key, model))
        return self.of(spec, key)

    def of(self, spec: ModelSpec, key: SessionKey) -> ModelSpec:
        """Return the model with the window that this conversation knows."""
        stated = self._stated.get(spec.place[:3])
        if stated is None or (key, spec.place[:3]) not in self._met or stated >= spec.context_length:
            return spec
        return replace(spec, context_length=stated)
