"""The meaning of a question that somebody asks in a shell, beside any gateway. Its cost is in no ledger: the store is
opened for reading."""

from __future__ import annotations

from collections.abc import Callable

from gateway.app.config import Config
from gateway.app.models import models_alone
from gateway.cli.printing import complain
from gateway.providers.base import Embeds
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import ProviderError
from gateway.store.records import Meaning
from gateway.store.shared.vectors import packed

_SECONDS = 10.0  # that the server may take


async def meaning_of(settings: Config, words: str, redact: Callable[[str], str]) -> Meaning | None:
    """The vector of the words by the configured embedding model; None where it cannot be asked, which is told."""
    async with models_alone(settings, redact) as models:
        spec = models.embedding
        server = models.servers.get(spec.provider) if spec else None
        if spec is None or not isinstance(server, Embeds):
            return None
        try:
            async with SystemClock().limit(_SECONDS):
                answer = await server.embed(spec, [redact(words)])
            return Meaning(model=spec.name, vector=packed(answer.vectors[0]))
        except (ProviderError, TimeoutError, ValueError) as error:
            complain(f"The search goes by words alone. {str(error) or 'The embedding server does not answer.'}")
            return None
