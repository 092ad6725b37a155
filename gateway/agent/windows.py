"""The windows that providers state when they refuse a prompt. They are kept in the store's notes, so that a start need
not be refused once more.

A stated limit belongs to a model at its address, for as long as the window that is otherwise known of it stays the
same. It is never below what an earlier call fitted: such a limit is that of a detour, not of the model. And it holds
only where it was met, so that one odd error does not condense the conversations of others; each of them meets the limit
by itself, or never.
"""

from __future__ import annotations

import hashlib
from typing import Final

import structlog
from msgspec import Struct, ValidationError, field, json

from gateway.domain.chat import SessionKey
from gateway.providers.base import ModelSpec
from gateway.runtime.errors import StoreError
from gateway.runtime.structs import replace
from gateway.store.port import Documents

log = structlog.get_logger(__name__)

_FOLDER: Final = "windows"
_MOST_MET: Final = 1_000  # conversations that are remembered to have met a limit, the latest
_SMALL_WINDOW: Final = 8_192  # tokens; what servers of small models are most often started with

_Model = tuple[str, str, str | None]  # the beginning of a place: provider, name, address


class _Stated(Struct, frozen=True):
    """A limit of a model whose window was otherwise known as `window`, and the conversations that met it, by digest."""

    limit: int
    window: int
    met: tuple[str, ...] = ()


class LearnedWindows(Struct):
    """Limits by model and address, and the conversations that met them."""

    _store: Documents | None = None
    _stated: dict[_Model, _Stated] = field(default_factory=dict)
    _fitted: dict[_Model, int] = field(default_factory=dict)
    _not_length: set[_Model] = field(default_factory=set)  # that refused a shortened prompt, too, without a reason

    async def remember(self, store: Documents) -> None:
        """Take up what was stated before this process began, and keep there what will be."""
        self._store = store
        for name, text in (await store.notes(_FOLDER)).items():
            try:
                self._stated.setdefault(json.decode(name, type=_Model), json.decode(text, type=_Stated))
            except ValidationError as error:
                log.warning("window_note_unread", note=name, error=str(error))

    async def keep(self, spec: ModelSpec) -> None:
        """Keep what was stated of a model for later processes. A store that cannot take it costs the next one a
        refused call."""
        model = spec.place[:3]
        if (stated := self._stated.get(model)) and self._store:
            try:
                await self._store.set_notes(_FOLDER, {json.encode(model).decode(): json.encode(stated).decode()})
            except StoreError as error:
                log.warning("window_not_kept", model=spec.name, error=str(error))

    def fits(self, spec: ModelSpec, tokens: int) -> None:
        """Note that one call took and gave so many tokens."""
        model = spec.place[:3]
        self._fitted[model] = max(tokens, self._fitted.get(model, 0))
        self._not_length.discard(model)

    def reported(self, spec: ModelSpec, window: int) -> None:
        """Note the window that the server itself reports: what it stated with another one is over."""
        if window != spec.context_length:
            self._stated.pop(spec.place[:3], None)
            self._fitted.pop(spec.place[:3], None)

    def may_exceed(self, spec: ModelSpec, tokens: int, *, assumed: bool) -> bool:
        """Whether a refusal without a reason may be about the length of a prompt: no call had so many tokens, and they
        are more than half of the window, or than small servers take if the window is `assumed`."""
        room = _SMALL_WINDOW if assumed else spec.context_length
        return spec.place[:3] not in self._not_length and tokens > max(room // 2, self._fitted.get(spec.place[:3], 0))

    def was_not_length(self, spec: ModelSpec) -> None:
        """Note that a shorter prompt was refused as well; until the model answers, no prompt is shortened for that."""
        self._not_length.add(spec.place[:3])

    def otherwise(self, spec: ModelSpec) -> int | None:
        """The window that is otherwise known of a model whose server stated the one that it has here; None: it stated
        none."""
        stated = self._stated.get(spec.place[:3])
        return stated.window if stated is not None and stated.limit == spec.context_length else None

    def meet(self, spec: ModelSpec, key: SessionKey, limit: int | None) -> ModelSpec:
        """Return the model as a conversation knows it after its prompt was too long. `limit`: as stated now, which may
        be its window if it is smaller than the known one, and no call exceeded it; None has an earlier statement
        count."""
        model = spec.place[:3]
        before = self._stated.get(model)
        if limit is not None and self._fitted.get(model, 0) <= limit < spec.context_length:
            window = before.window if before and before.limit == spec.context_length else spec.context_length
            self._stated[model] = _Stated(limit, window)
        if (stated := self._stated.get(model)) is not None:
            others = [each for each in stated.met if each != _digest(key)]
            self._stated[model] = replace(stated, met=(*others, _digest(key))[-_MOST_MET:])
        return self.of(spec, key)

    def of(self, spec: ModelSpec, key: SessionKey) -> ModelSpec:
        """Return the model with the window that this conversation knows."""
        stated = self._stated.get(spec.place[:3])
        if stated is None or stated.window != spec.context_length or _digest(key) not in stated.met:
            return spec
        return replace(spec, context_length=stated.limit)


def _digest(key: SessionKey) -> str:
    return hashlib.sha256(str(key).encode()).hexdigest()[:12]
