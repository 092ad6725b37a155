"""Kept files as a model sees them: the references in a request become contents, or words about files that the model
is not shown.

Whether a model takes pictures is configured, or found out. A request with pictures or sounds that is refused is made
once more without those that the model has not taken before. If the second request is answered, these files were the
reason, and this process does not show them to the model again; a model that says that it takes no pictures is shown
none. A body that is too large for a server counts as such a refusal; a prompt that is too long counts only when
nothing else makes room (`put_aside`). So a picture never makes a conversation unanswerable.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import structlog

from gateway.agent.files.kinds import picture_type
from gateway.agent.files.references import digest_in, filled, references_in
from gateway.domain.chat import SessionKey
from gateway.domain.message import Message
from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec, Provider, Restarted, anew
from gateway.runtime.errors import ContextOverflow, PicturesRefused, ProviderError, ProviderRejected, QuotaExceeded
from gateway.runtime.structs import replace
from gateway.store.port import FileStore

log = structlog.get_logger(__name__)

_MOST_BYTES: Final = 20 * 1024 * 1024  # shown in one request, the newest first; APIs take bodies of 30 to 50 MB
_REMEMBERED: Final = 64 * 1024 * 1024  # characters of encoded contents, so that each step does not load them anew
_MOST_KNOWN: Final = 50_000  # files of which it is remembered which model takes them

PICTURE_HIDDEN: Final = (
    "[A picture is here that this model cannot be shown. If it matters, tell the person so; /model changes the model.]"
)
SOUND_HIDDEN: Final = "[A recording is here that this model cannot hear. If it matters, tell the person so.]"
PUT_ASIDE: Final = "[A picture or recording is here; it is no longer in view.]"

_ModelKey = tuple[str, str | None, str]


class FileView:
    """Shows requests to providers. Remembers which files each model takes, for the life of the process."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._encoded: OrderedDict[tuple[SessionKey, str], tuple[str, str]] = OrderedDict()
        self._size = 0
        self._blind: set[_ModelKey] = set()
        self._taken: set[tuple[_ModelKey, str]] = set()
        self._refused: set[tuple[_ModelKey, str]] = set()

    def sees(self, spec: ModelSpec) -> bool:
        """Say whether the model may be shown pictures, as far as is known."""
        return spec.pictures is not False and _key(spec) not in self._blind

    def stream(
        self, provider: Provider, spec: ModelSpec, request: ModelRequest, key: SessionKey
    ) -> AsyncGenerator[ModelEvent, None]:
        """`provider.stream`, with the files of `key` that the request refers to. May raise StoreUnavailable, too."""
        found = references_in(request.messages) if request.files_at is None else request.files_at
        return self._shown(provider, spec, request, key, found) if found else provider.stream(spec, request)

    async def _shown(
        self, provider: Provider, spec: ModelSpec, request: ModelRequest, key: SessionKey, found: Sequence[int]
    ) -> AsyncGenerator[ModelEvent, None]:
        model, begun = _key(spec), False
        messages, shown = await self._filled(spec, request.messages, key, found)
        new = {digest for digest in shown if (model, digest) not in self._taken}
        try:
            async with aclosing(provider.stream(spec, replace(request, messages=messages))) as events:
                async for event in events:
                    begun = begun or not isinstance(event, Restarted)
                    yield event
            self._remember(self._taken, model, shown)
            return
        except (ProviderRejected, ContextOverflow) as error:
            if begun or not shown or not _may_be_of_files(error):
                raise
            refusal = error
        for event in anew(refusal):
            yield event
        hidden = shown if isinstance(refusal, PicturesRefused) or not new else new
        messages, _ = await self._filled(spec, request.messages, key, found, hidden=hidden)
        answered = False
        async with aclosing(provider.stream(spec, replace(request, messages=messages))) as events:
            async for event in events:
                if not answered and not isinstance(event, Restarted):
                    answered = True
                    self._learn(spec, hidden, refusal)
                yield event

    def put_aside(self, spec: ModelSpec, messages: Sequence[Message]) -> bool:
        """Show this model none of the files in these messages any more, because nothing else makes room. False: it was
        shown none."""
        model = _key(spec)
        parts = (part for message in messages for part in _parts(message))
        shown = {
            digest
            for part in parts
            if (digest := digest_in(part)) is not None and not self._hidden(spec, part, digest, ())
        }
        self._remember(self._refused, model, shown)
        if shown:
            log.warning("files_put_aside", model=spec.name, files=len(shown))
        return bool(shown)

    def _learn(self, spec: ModelSpec, hidden: Collection[str], refusal: ProviderError) -> None:
        """Note that the model answers the same request without these files."""
        model = _key(spec)
        if isinstance(refusal, PicturesRefused) and spec.pictures is not True:
            self._blind.add(model)
            log.warning("model_takes_no_pictures", model=spec.name, error=str(refusal))
        else:
            self._remember(self._refused, model, hidden)
            log.warning("files_refused", model=spec.name, files=len(hidden), error=str(refusal))

    def _remember(self, among: set[tuple[_ModelKey, str]], model: _ModelKey, digests: Collection[str]) -> None:
        if len(among) > _MOST_KNOWN:
            among.clear()
        among.update((model, digest) for digest in digests)

    # -- filling in -------------------------------------------------------------------------

    async def _filled(
        self,
        spec: ModelSpec,
        messages: Sequence[Message],
        key: SessionKey,
        found: Sequence[int],
        hidden: Collection[str] = (),
    ) -> tuple[list[Message], set[str]]:
        """The messages as this model is shown them, and the files among them that it is shown. `found` are the places
        that refer to any. The newest files have precedence in the room that there is."""
        made = list(messages)
        shown: set[str] = set()
        room = _MOST_BYTES
        for index in reversed(found):
            content: list[Any] = []
            for part in reversed(_parts(made[index])):
                digest = digest_in(part)
                if digest is None:
                    content.append(part)
                    continue
                words = self._hidden(spec, part, digest, hidden)
                # No file behind the first without room is loaded, because none of them is shown.
                loaded = None if words or room <= 0 else await self._content(key, digest)
                if loaded is not None:
                    room -= 3 * len(loaded[1]) // 4
                if loaded is not None and room >= 0:
                    shown.add(digest)
                    content.append(filled(part, *loaded))
                else:
                    content.append(_in_words(part, words or PUT_ASIDE))
            copy: dict[str, Any] = {**made[index], "content": content[::-1]}
            made[index] = copy  # type: ignore[call-overload]
        return made, shown

    def _hidden(self, spec: ModelSpec, part: Mapping[str, Any], digest: str, hidden: Collection[str]) -> str | None:
        """The words in the place of a part that the model is not shown; None: it is shown."""
        picture = part.get("type") == "image_url"
        able = self.sees(spec) if picture else part["input_audio"].get("format") in spec.sounds
        if able and digest not in hidden and (_key(spec), digest) not in self._refused:
            return None
        return PICTURE_HIDDEN if picture else SOUND_HIDDEN

    async def _content(self, key: SessionKey, digest: str) -> tuple[str, str] | None:
        """A content's type and the content in base64."""
        name = (key, digest)
        if name in self._encoded:
            self._encoded.move_to_end(name)
            return self._encoded[name]
        content = await self._store.file_content(key, digest)
        if content is None:
            return None
        found = (picture_type(content) or "application/octet-stream", base64.b64encode(content).decode())
        if name in self._encoded:  # somebody else has just loaded it, too
            return found
        self._encoded[name] = found
        self._size += len(found[1])
        while self._size > _REMEMBERED and len(self._encoded) > 1:
            self._size -= len(self._encoded.popitem(last=False)[1][1])
        return found


def _may_be_of_files(error: ProviderRejected | ContextOverflow) -> bool:
    """Say whether a request may have been refused for its files. If it has too many tokens, a compaction comes
    first."""
    if isinstance(error, ContextOverflow):
        return error.bulky
    return not isinstance(error, QuotaExceeded) and error.status not in (401, 403)


def _key(spec: ModelSpec) -> _ModelKey:
    return (spec.provider, spec.base_url, spec.name)


def _parts(message: Message) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else ()


def _in_words(part: Mapping[str, Any], words: str) -> dict[str, Any]:
    marks = {"cache_control": part["cache_control"]} if "cache_control" in part else {}
    return {"type": "text", "text": words, **marks}
