"""What vendors say of models that the library's price table leaves out or has otherwise. Data alone.

`window` is the longest prompt: a vendor's context less what it keeps for an answer, where it does so. Windows of a
server's own, and of the configuration, go before. A row says where its facts were read, and when: `legato models
--known` prints all of them, and which are older than six months.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache, partial
from typing import Final

from msgspec import Struct

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


_READ: Final = date(2026, 11, 27)

# The rows of a vendor, and the page where they were read.
_OPENAI: Final = partial(Known, source="https://platform.openai.com/docs/models", seen=_READ)
_GOOGLE: Final = partial(Known, source="https://ai.google.dev/gemini-api/docs/models", seen=_READ)
_ALIBABA: Final = partial(
    Known, source="https://www.alibabacloud.com/help/en/model-studio/models", of="qwen", seen=_READ
)
_ZAI: Final = partial(Known, source="https://docs.z.ai/guides/overview/pricing", seen=_READ)
_DEEPSEEK: Final = partial(
    Known,
    source="https://api-docs.deepseek.com/quick_start/pricing",
    of="deepseek",
    window=128_000,
    prices=(Tier(read=0.28, write=0.42, cached=0.028),),
    sees=False,
    seen=_READ,
)
_ANTHROPIC: Final = partial(
    Known, source="https://platform.claude.com/docs/en/about-claude/models/overview", sees=True, thinks=True, seen=_READ
)
_MISTRAL: Final = partial(
    Known, source="https://docs.mistral.ai/models", of="mistral", window=256_000, sees=True, seen=_READ
)
_META: Final = partial(Known, source="https://www.llama.com/docs/model-cards-and-prompt-formats/llama4", seen=_READ)

KNOWN: Final = (
    # 400,000 tokens of context are 272,000 of input and 128,000 of output.
    _OPENAI(
        names=r"gpt-5(?:\.[1-3])?(?:-(?:mini|nano|pro|codex(?:-mini|-max)?))?(?:-20\d\d-\d\d-\d\d)?|gpt-5\.4-(?:mini|nano)",
        window=272_000,
        output=128_000,
        sees=True,
        thinks=True,
    ),
    _OPENAI(names=r"gpt-5\.4(?:-pro)?", window=922_000, output=128_000, sees=True, thinks=True),
    _GOOGLE(
        names=r"gemini-(?:2\.5|3(?:\.\d)?)-(?:pro|flash|flash-lite)(?:-preview)?(?:-[\d-]+)?",
        window=1_048_576,
        output=65_536,
        sees=True,
        thinks=True,
    ),
    _ALIBABA(
        names=r"qwen3-max(?:-20\d\d-\d\d-\d\d)?",
        window=258_048,
        output=65_536,
        prices=(
            Tier(up_to=32_000, read=1.2, write=6),
            Tier(up_to=128_000, read=2.4, write=12),
            Tier(read=3, write=15),
        ),
        sees=False,
        thinks=False,
    ),
    _ALIBABA(
        names=r"qwen3-coder-plus(?:-20\d\d-\d\d-\d\d)?",
        window=997_952,
        output=65_536,
        prices=(
            Tier(up_to=32_000, read=1, write=5),
            Tier(up_to=128_000, read=1.8, write=9),
            Tier(up_to=256_000, read=3, write=15),
            Tier(read=6, write=60),
        ),
        sees=False,
        thinks=False,
    ),
    _MISTRAL(names=r"mistral-medium-(?:latest|3\.5|3-5(?:-26-04)?)", prices=(Tier(read=1.5, write=7.5),)),
    _MISTRAL(names=r"mistral-large-(?:2512|3)", prices=(Tier(read=0.5, write=1.5),), thinks=False),
    _ZAI(names=r"glm-(?:4\.[67]|5|5\.1)", window=200_000, output=128_000, sees=False, thinks=True),
    _ZAI(names=r"glm-4\.5(?:-air|-airx|-x)?", window=128_000, output=96_000, sees=False),
    # Hosts run it with less than the million, or ten, of its card; what they say themselves goes before.
    _META(names=r"llama-4-(?:scout|maverick).*", window=131_072, sees=True, thinks=False),
    _DEEPSEEK(names=r"deepseek-chat", output=8_192, thinks=False),
    _DEEPSEEK(names=r"deepseek-reasoner", output=65_536, thinks=True),
    _ANTHROPIC(names=r"claude-(?:opus|sonnet)-4-6", window=1_000_000, output=128_000),
    _ANTHROPIC(names=r"claude-(?:opus|sonnet|haiku)-4-5(?:-\d{8})?", window=200_000, output=64_000),
)


@lru_cache(maxsize=256)
def known(model: str) -> Known | None:
    """Return the row of a model, by its name or what follows a vendor's."""
    name = model.strip().lower().rpartition("/")[2]
    return next((row for row in KNOWN if re.fullmatch(row.names, name)), None)
