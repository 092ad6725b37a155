"""What vendors say of models that the library's price table leaves out or has otherwise, from `known.json`.

`window` is the longest prompt: a vendor's context less what it keeps for an answer, where it does so. Windows of a
server's own, and of the configuration, go before. A row says where its facts were read, and when: `legato models
--known` prints all of them, and which are older than six months.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct, json

from gateway.domain.usage import CanonicalUsage

OLD_AFTER: Final = 183  # days; vendors change prices and windows a few times a year


class Tier(Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens of calls whose prompt has at most `up_to` tokens (None: any)."""

    up_to: int | None = None
    read: float
    write: float
    cached: float | None = None


class Known(Struct, frozen=True, kw_only=True):
    """A model, or a family of models. `names`: a pattern of the whole name, without a vendor before a slash. `of`: the
    vendor whose prices these are. None: nobody says, or the library knows."""

    names: str
    of: str = ""
    window: int | None = None
    output: int | None = None
    prices: Sequence[Tier] = ()
    sees: bool | None = None
    thinks: bool | None = None
    source: str
    seen: date

    def cost_usd(self, usage: CanonicalUsage) -> float | None:
        """Return the cost of a call in US dollars; None without a price."""
        fits = (tier for tier in self.prices if tier.up_to is None or usage.prompt_tokens <= tier.up_to)
        tier = next(fits, self.prices[-1] if self.prices else None)
        if tier is None:
            return None
        cached = tier.read if tier.cached is None else tier.cached
        fresh = usage.input_tokens + usage.cache_write_tokens
        return (fresh * tier.read + usage.cache_read_tokens * cached + usage.output_tokens * tier.write) / 1_000_000


# 400,000 tokens of OpenAI's context are 272,000 of input and 128,000 of output. Hosts run Llama 4 with less than the
# million, or ten, of its card; what they say themselves goes before.
KNOWN: Final = json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=tuple[Known, ...])


@lru_cache(maxsize=256)
def known(model: str) -> Known | None:
    """Return the row of a model, by its name or what follows a vendor's."""
    name = model.strip().lower().rpartition("/")[2]
    return next((row for row in KNOWN if re.fullmatch(row.names, name)), None)
