"""Kept files as a model sees them: the references in a request become contents, or words about files that the model
is not shown.

Whether a model takes pictures is configured, or found out. A request with pictures or sounds that is refused is made
again with fewer of them (`_plans`), until one is answered:

    the model says that it takes none   without all of them, from then on
    the body is too large               with the newest half, by size, from then on with no more than that
    anything else                       without those that it has not taken before, or without all of them

A file without which a request is answered that was refused with it is not shown to the model again by this process. A
prompt that is too long counts only when nothing else makes room (`put_aside`). So a picture never makes a conversation
unanswerable.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import accumulate
from typing import Any, Final

import structlog
from msgspec import Struct

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

_ModelKey = tuple[str, str, str | None]  # the beginning of a place: provider, name, address


class _Plan(Struct, frozen=True, kw_only=True):
    """What a request shows: files of at most `room` bytes, newest first and at least one, without `hidden`. `refused`:
    those that an answer proves to be the reason of a refusal."""

    room: int
    hidden: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


class FileView:
    """Shows requests to providers. Remembers which files each model takes, for the life of the process."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._encoded: OrderedDict[tuple[SessionKey, str], tuple[str, str]] = OrderedDict()
        self._size = 0
        self._blind: set[_ModelKey] = set()
        self._taken: set[tuple[_ModelKey, str]] = set()
        self._refused: set[tuple[_ModelKey, str]] = set()
        self._rooms: dict[_ModelKey, int] = {}  # bytes of files that a server took, which refused more

    def sees(self, spec: ModelSpec) -> bool:
        """Whether the model can be shown pictures, as far as is known."""
        return spec.pictures is not False and spec.place[:3] not in self._blind

    def stream(
        self, provider: Provider, spec: ModelSpec, request: ModelRequest, key: SessionKey
    ) -> AsyncGenerator[ModelEvent, None]:
        """`provider.stream`, with the files of `key` that the request refers to. May raise StoreUnavailable, too."""
        found = references_in(request.messages) if request.files_at is None else request.files_at
        return self._shown(provider, spec, request, key, found) if found else provider.stream(spec, request)

    async def _shown(
        self, provider: Provider, spec: ModelSpec, request: ModelRequest, key: SessionKey, found: Sequence[int]
    ) -> AsyncGenerator[ModelEvent, None]:
        model = spec.place[:3]
        plan = _Plan(room=self._rooms.get(model, _MOST_BYTES))
        plans: Iterator[_Plan] = iter(())
        refusal: ProviderError | None = None
        while True:
            messages, shown = await self._filled(spec, request.messages, key, found, plan)
            begun = False
            try:
                async with aclosing(provider.stream(spec, replace(request, messages=messages))) as events:
                    async for event in events:
                        if not begun and not isinstance(event, Restarted):
                            begun = True
                            self._learn(spec, plan, shown, refusal)
                        yield event
                return
            except (ProviderRejected, ContextOverflow) as error:
                if begun or not shown or not _may_be_of_files(error):
                    raise
                if refusal is None:
                    new = [digest for digest in shown if (model, digest) not in self._taken]
                    plans = _plans(plan.room, error, shown, new)
                refusal = error
                following = next(plans, None)
                if following is None:
                    raise
                plan = following
                for event in anew(error):
                    yield event

    def put_aside(self, spec: ModelSpec, messages: Sequence[Message]) -> bool:
        """Show this model none of the files in these messages any more, because nothing else makes room. False if it
        was shown none."""
        model = spec.place[:3]
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

    def _learn(self, spec: ModelSpec, plan: _Plan, shown: Collection[str], refusal: ProviderError | None) -> None:
        """Note that the model answers a request with the files `shown`, after a `refusal` of the same with more."""
        model = spec.place[:3]
        self._remember(self._taken, model, shown)
        if refusal is None:
            return
        if isinstance(refusal, PicturesRefused) and spec.pictures is not True:
            self._blind.add(model)
            log.warning("model_takes_no_pictures", model=spec.name, error=str(refusal))
            return
        if not plan.hidden:
            self._rooms[model] = plan.room
        self._remember(self._refused, model, plan.refused)
        if not isinstance(refusal, ContextOverflow):
            self._taken.difference_update((model, digest) for digest in plan.hidden)
        log.warning("files_refused", model=spec.name, files=len(plan.hidden), room=plan.room, error=str(refusal))

    def _remember(self, among: set[tuple[_ModelKey, str]], model: _ModelKey, digests: Collection[str]) -> None:
        if len(among) > _MOST_KNOWN:
            among.clear()
        among.update((model, digest) for digest in digests)

    # -- filling in -------------------------------------------------------------------------

    async def _filled(
        self, spec: ModelSpec, messages: Sequence[Message], key: SessionKey, found: Sequence[int], plan: _Plan
    ) -> tuple[list[Message], dict[str, int]]:
        """The messages as this model is shown them, and the files among them that it is shown, newest first, with their
        bytes. `found` are the places that refer to any."""
        made = list(messages)
        shown = dict[str, int]()
        room = plan.room
        for index in reversed(found):
            content: list[Any] = []
            for part in reversed(_parts(made[index])):
                digest = digest_in(part)
                if digest is None:
                    content.append(part)
                    continue
                words = self._hidden(spec, part, digest, plan.hidden)
                # No file behind the first without room is loaded, because none of them is shown.
                loaded = None if words or room <= 0 else await self._content(key, digest)
                size = 0 if loaded is None else 3 * len(loaded[1]) // 4
                room -= size
                if loaded is not None and (room >= 0 or not shown):
                    shown[digest] = size
                    content.append(filled(part, *loaded))
                else:
                    content.append(_in_words(part, words or PUT_ASIDE))
            copy: dict[str, Any] = {**made[index], "content": content[::-1]}
            made[index] = copy  # type: ignore[call-overload]
        return made, shown

    def _hidden(self, spec: ModelSpec, part: Mapping[str, Any], digest: str, hidden: Collection[str]) -> str | None:
        """The words in place of a part that the model is not shown; None if it is shown."""
        picture = part.get("type") == "image_url"
        able = self.sees(spec) if picture else part["input_audio"].get("format") in spec.sounds
        if able and digest not in hidden and (spec.place[:3], digest) not in self._refused:
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
        if name in self._encoded:  # someone else has just loaded it, too
            return found
        self._encoded[name] = found
        self._size += len(found[1])
        while self._size > _REMEMBERED and len(self._encoded) > 1:
            self._size -= len(self._encoded.popitem(last=False)[1][1])
        return found


def _plans(room: int, refusal: ProviderError, shown: Mapping[str, int], new: Sequence[str]) -> Iterator[_Plan]:
    """What to show instead, one after another, of files that were refused together. `new`: those among them that the
    model has not taken before."""
    every = frozenset(shown)
    if isinstance(refusal, PicturesRefused):
        yield _Plan(room=room, hidden=every)
    elif isinstance(refusal, ContextOverflow):
        sizes = [*accumulate(shown.values())]
        while len(sizes) > 1:
            half = sizes[-1] // 2
            sizes = [size for size in sizes if size <= half] or sizes[:1]
            yield _Plan(room=half)
        yield _Plan(room=room, hidden=every, refused=frozenset([*shown][:1]))
    else:
        yield _Plan(room=room, hidden=frozenset(new) or every, refused=frozenset(new))


def _may_be_of_files(error: ProviderRejected | ContextOverflow) -> bool:
    """Whether a request may have been refused for its files. If it has too many tokens, a compaction comes
    first."""
    if isinstance(error, ContextOverflow):
        return error.bulky
    return not isinstance(error, QuotaExceeded) and error.status not in (401, 403)


def _parts(message: Message) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else ()


def _in_words(part: Mapping[str, Any], words: str) -> dict[str, Any]:
    marks = {"cache_control": part["cache_control"]} if "cache_control" in part else {}
    return {"type": "text", "text": words, **marks}
