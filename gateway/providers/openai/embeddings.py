"""The answer of `/embeddings`, which OpenAI, Ollama, llama.cpp, vLLM and LiteLLM give alike
(https://platform.openai.com/docs/api-reference/embeddings/create)."""

from __future__ import annotations

import math
from typing import Any

from gateway.providers.base import Embedded
from gateway.runtime.errors import ProviderRejected, ProviderUnavailable


def embedded(answer: Any, count: int) -> Embedded:
    """The vectors of an answer about so many texts. Raises ProviderRejected where there was no such page, and
    ProviderUnavailable for another answer."""
    if answer is None:
        raise ProviderRejected(
            "The server has no such embedding model. Check search.embeddings.name and search.embeddings.base_url."
        )
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
        tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise ProviderUnavailable("The embedding server answered something else.", malformed=True) from error
    whole = len(vectors) == count and all(vectors) and len({len(each) for each in vectors}) == 1
    if not whole or not all(math.isfinite(number) for each in vectors for number in each):
        raise ProviderUnavailable("The embedding server's vectors are not whole.", malformed=True)
    return Embedded(vectors=vectors, tokens=max(0, tokens))
