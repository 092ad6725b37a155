"""The answer of `/embeddings`, which OpenAI, Ollama, llama.cpp, vLLM and LiteLLM give alike
(https://platform.openai.com/docs/api-reference/embeddings/create)."""

from __future__ import annotations

import math
from typing import Any

from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Embedded
from gateway.providers.usage import told
from gateway.runtime.errors import ProviderRejected, ProviderUnavailable


def embedded(answer: Any, count: int) -> Embedded:
    """The vectors of an answer about so many texts. Raises ProviderRejected where there was no such page, and
    ProviderUnavailable for another answer."""
    if answer is None:
        raise ProviderRejected(
            "The server has no such embedding model. Check search.embeddings.name and search.embeddings.base_url."
        )
    usage = told(answer, "chat_completions")
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise _unusable("The embedding server answered something else.", usage) from error
    whole = len(vectors) == count and all(vectors) and len({len(each) for each in vectors}) == 1
    if not whole or not all(math.isfinite(number) for each in vectors for number in each):
        raise _unusable("The embedding server's vectors are not whole.", usage)
    return Embedded(vectors=vectors, tokens=usage.prompt_tokens if usage else 0)


def _unusable(text: str, usage: CanonicalUsage | None) -> ProviderUnavailable:
    """The error for an answer that cost something all the same."""
    error = ProviderUnavailable(text, malformed=True, billable=True)
    error.usage = usage
    return error
