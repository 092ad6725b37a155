"""Searches by meaning: vectors of messages, made in the background, and of questions.

Messages do not wait for this. Every few seconds one process asks the store for messages without a vector, newest first,
and embeds some; old ones follow slowly. Results are in the store, so after a restart the next process continues. If the
server is away, or a spend cap is reached, a search only loses its second ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from gateway.agent.metering import Metering
from gateway.domain.chat import SessionKey
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Embedded, Embeds, ModelSpec
from gateway.runtime.errors import ProviderError, ProviderUnavailable, SessionNotFound, SpendCapReached
from gateway.store.records import Meaning, Passage, Unembedded, Vector
from gateway.store.shared.vectors import NONE, packed

log = structlog.get_logger(__name__)

LOOK_FOR_VECTORS: Final = 10.0  # seconds between two looks for messages without one
_BATCH: Final = 32  # texts in one call
_BATCHES: Final = 20  # of one look
_PAUSE: Final = 0.2  # seconds between two, in which others have the store and the server
_LONGEST: Final = 4_000  # characters of a text; embedding models read little more
_SECONDS: Final = 30.0  # that a call of the background may take
_ASKED: Final = 2.0  # and one that a search waits for
_REST: Final = 60.0  # seconds for which a server is left alone that failed
_LEASE: Final = "embeddings"
_OF_TEXT: Final = (400, 413, 422)  # refusals that are a text's fault


class Embeddings(Struct, kw_only=True):
    """Gives vectors to what was said, and searches by them. `holder` names this process."""

    spec: ModelSpec
    server: Embeds
    metering: Metering
    redact: Callable[[str], str]
    holder: str
    _length: int = 0  # bytes of a vector, once it is known
    _rests_until: float = 0.0
    _warned: bool = False

    async def search(
        self, words: str, key: SessionKey | None, limit: int, *, hidden: SessionKey | None = None
    ) -> list[Passage]:
        """As the store's, by words and by meaning."""
        meaning = await self.meaning(words, key)
        return await self.metering.store.search(words, key, limit, meaning, hidden=hidden)

    async def meaning(self, words: str, key: SessionKey | None) -> Meaning | None:
        """What words mean, for a search of the store; None: it cannot be known now. `key`: whose session pays."""
        if self._rests or not words.strip():
            return None
        known = await self.metering.store.sessions(key, 1) if key is not None else ()
        try:
            (vector,) = await self._embed([words], known[0] if known else None, _ASKED)
        except (ProviderError, TimeoutError, SpendCapReached) as error:
            self._failed(error)
            return None
        return Meaning(model=self.spec.name, vector=vector) if vector is not NONE else None

    async def look(self) -> None:
        """Give vectors to some messages that have none."""
        if self._rests or not await self.metering.store.hold(_LEASE, self.holder, _SECONDS + LOOK_FOR_VECTORS):
            return
        for _ in range(_BATCHES):
            missing = await self.metering.store.unembedded(self.spec.name, self._length, _BATCH)
            if not missing:
                return
            try:
                await self._keep(missing)
            except (ProviderError, TimeoutError, SpendCapReached) as error:
                self._failed(error)
                return
            await self.metering.store.hold(_LEASE, self.holder, _SECONDS + LOOK_FOR_VECTORS)
            await self.metering.clock.sleep(_PAUSE)

    async def probe(self) -> int:
        """Return how many numbers the server gives for a text. Raises ProviderError and TimeoutError."""
        async with self.metering.clock.limit(_SECONDS):
            return len((await self.server.embed(self.spec, ["ready"])).vectors[0])

    async def _keep(self, missing: Sequence[Unembedded]) -> None:
        """Embed what needs it, and note that all were looked at."""
        texts = {each.message_id: each for each in missing if each.text.strip() and each.key.helper is None}
        vectors: list[Vector] = []
        if texts:
            try:
                session = await self.metering.store.session(missing[0].session_id)
            except SessionNotFound:  # it was forgotten meanwhile
                session = None
            vectors = await self._embed([each.text for each in texts.values()], session, _SECONDS)
        kept = {each.message_id: NONE for each in missing} | dict(zip(texts, vectors, strict=True))
        await self.metering.store.keep_vectors(self.spec.name, missing[0].key, kept)

    async def _embed(self, texts: Sequence[str], session: Session | None, seconds: float) -> list[Vector]:
        """The vectors of texts; NONE for one that the server will not take."""
        try:
            return await self._asked(texts, session, seconds)
        except ProviderError as error:
            if error.status not in _OF_TEXT:
                raise
            if len(texts) > 1:
                return [vector for text in texts for vector in await self._embed([text], session, seconds)]
            log.info("not_embedded", reason=str(error))
            return [NONE]

    async def _asked(self, texts: Sequence[str], session: Session | None, seconds: float) -> list[Vector]:
        told = [self.redact(text)[:_LONGEST] for text in texts]
        if session is None:
            async with self.metering.clock.limit(seconds):
                answer = await self.server.embed(self.spec, told)
        else:
            answer = await self.paid(told, session, self.metering, seconds)
        try:
            vectors = [packed(each) for each in answer.vectors]
        except ValueError as error:
            raise ProviderUnavailable("The embedding server gave a vector without a direction.") from error
        self._length, self._warned = len(vectors[0][1]), False
        return vectors

    async def paid(
        self, told: Sequence[str], session: Session, metering: Metering, seconds: float = _SECONDS
    ) -> Embedded:
        """Return what the server gives for texts; the session pays. Raises ProviderError, TimeoutError and
        SpendCapReached."""
        counted = CanonicalUsage(input_tokens=sum(map(self.metering.counter.text, told)))
        most = self.metering.models.prices.cost_usd(self.spec, counted) or 0.0
        async with metering.paying(session, most * 2) as paid:
            usage: CanonicalUsage | None = counted
            try:
                async with self.metering.clock.limit(seconds):
                    answer = await self.server.embed(self.spec, told)
                usage = CanonicalUsage(input_tokens=answer.tokens) if answer.tokens else counted
            except ProviderError as error:
                usage = error.usage or (counted if error.billable else None)
                raise
            finally:  # a call that was too slow may be billed, too
                if usage is not None:
                    entry = self.metering.models.entry(self.metering.clock.now(), "embedding", self.spec, usage)
                    paid(entry.cost_usd)
                    await self.metering.store.charge(session, [entry])
        return answer

    @property
    def _rests(self) -> bool:
        return self.metering.clock.monotonic() < self._rests_until

    def _failed(self, error: Exception) -> None:
        """Leave the server alone for a while, and log that once."""
        self._rests_until = self.metering.clock.monotonic() + _REST
        if not self._warned:
            log.warning("searches_by_words_alone", model=self.spec.name, reason=str(error) or "it does not answer")
        self._warned = True
