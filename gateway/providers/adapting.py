"""Doing without the parts of a request that a model refuses (`features`), in one place."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final, cast

import structlog

from gateway.providers.base import Completed, Feature, ModelEvent, ModelRequest, ModelSpec, Provider, Restarted, anew
from gateway.providers.features import nearest_effort, without
from gateway.runtime.errors import FeatureRefused
from gateway.runtime.structs import replace

log = structlog.get_logger(__name__)

_SETTINGS: Final[tuple[Feature, ...]] = ("tools", "stream", "system_role")


class Adapting:
    """A `Provider` around another one. It leaves out the features that a model refuses. Each lesson holds for the life
    of the process; the settings of a model may say so beforehand, or forbid it."""

    def __init__(self, provider: Provider) -> None:
        self.name = provider.name
        self._provider = provider
        self._refused: dict[tuple[str, str | None], frozenset[Feature]] = {}  # by name and address
        self._instead: dict[tuple[str, str | None], dict[Feature, str]] = {}

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """As the inner provider's. A refusal of a feature is answered by a call without it."""
        model = (spec.name, spec.base_url)
        omitted = self._refused.get(model, frozenset()) | _switched_off(spec)
        instead = self._instead.get(model, {})
        while True:
            begun = False
            try:
                asked = without(request, omitted)
                asked = replace(asked, instead=instead) if instead else asked
                async with aclosing(self._provider.stream(spec, asked)) as events:
                    async for event in events:
                        if not begun and not isinstance(event, Restarted):
                            begun = True
                            self._learn(spec, omitted)
                        yield replace(event, omitted=omitted) if isinstance(event, Completed) and omitted else event
                return
            except FeatureRefused as error:
                feature = _asked_for(spec, cast(Feature, error.feature))
                if feature == "schema_extras" and feature in omitted:  # nor the plain schemas: no tools at all
                    feature = "tools"
                if not begun and feature not in instead and (value := _another(spec, feature, error.allowed)):
                    log.info("tried_instead", model=spec.name, feature=feature, value=value, cause=str(error))
                    self._instead[model] = instead = {**instead, feature: value}
                elif begun or feature in omitted or not _may_omit(spec, request, feature):
                    raise
                else:
                    log.info("tried_without", model=spec.name, feature=feature, cause=str(error))
                    omitted |= {feature}
                for lost in anew(error):
                    yield lost

    def _learn(self, spec: ModelSpec, omitted: frozenset[Feature]) -> None:
        """The model answers without these."""
        known = self._refused.get((spec.name, spec.base_url), frozenset())
        if omitted and (new := omitted - known - _switched_off(spec)):
            log.warning("model_refuses", model=spec.name, features=sorted(new))
            self._refused[spec.name, spec.base_url] = known | new

    async def aclose(self) -> None:
        """Close the inner provider."""
        await self._provider.aclose()


def _switched_off(spec: ModelSpec) -> frozenset[Feature]:
    """The features that a model's settings leave out."""
    return frozenset(name for name in _SETTINGS if getattr(spec.settings, name, "auto") is False)


def _may_omit(spec: ModelSpec, request: ModelRequest, feature: Feature) -> bool:
    """Whether a refused feature was asked for, and its setting does not insist on it."""
    if feature in _SETTINGS and getattr(spec.settings, feature, "auto") is True:
        return False
    if feature in ("temperature", "reasoning_effort"):
        return getattr(spec.settings, feature, None) is not None
    if feature == "thinking":
        return _thinks(spec)
    if feature == "cache_marks":
        return spec.cache_marks
    if feature == "tool_choice":
        return request.tool_choice == "none"
    return bool(request.tools) or feature not in ("tools", "schema_extras")


def _asked_for(spec: ModelSpec, feature: Feature) -> Feature:
    """The feature that a refusal is about: servers say "thinking" of an effort, too."""
    if feature == "thinking" and not _thinks(spec):
        return "reasoning_effort"
    return feature


def _thinks(spec: ModelSpec) -> bool:
    """Whether a model's settings ask for thinking, or for none."""
    return (
        getattr(spec.settings, "thinking", "auto") != "auto"
        or getattr(spec.settings, "thinking_tokens", None) is not None
    )


def _another(spec: ModelSpec, feature: Feature, allowed: Sequence[str]) -> str | None:
    """The value to be tried in place of the configured one."""
    if feature == "reasoning_effort":
        wanted: str | None = getattr(spec.settings, "reasoning_effort", None)
        return nearest_effort(wanted, allowed) if wanted else None
    if feature == "thinking" and getattr(spec.settings, "thinking_tokens", None) is not None and allowed:
        return allowed[0]
    return None
