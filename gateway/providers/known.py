"""What vendors say of models that the library's price table leaves out or has otherwise. Data alone.

`window` is the longest prompt: a vendor's context less what it keeps for an answer, where it does so. Windows of a
server's own, and of the configuration, go before. A row says where its facts were read, and when: `legato models
--known` prints all of them, and which are older than six months.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

from gateway.domain.usage import CanonicalUsage

OLD_AFTER: Final = 183  # days; vendors change prices and windows a few times a year


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """US dollars for a million tokens of calls whose prompt has at most `up_to` tokens (None: any)."""

    up_to: int | None = None
    read: float
    write: float
    cached: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
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


_OPENAI: Final = "https://platform.openai.com/docs/models"
_GOOGLE: Final = "https://ai.google.dev/gemini-api/docs/models"
_ALIBABA: Final = "https://www.alibabacloud.com/help/en/model-studio/models"
_ZAI: Final = "https://docs.z.ai/guides/overview/pricing"
_DEEPSEEK: Final = "https://api-docs.deepseek.com/quick_start/pricing"
_ANTHROPIC: Final = "https://platform.claude.com/docs/en/about-claude/models/overview"
_MISTRAL: Final = "https://docs.mistral.ai/models"
_META: Final = "https://www.llama.com/docs/model-cards-and-prompt-formats/llama4"
_READ: Final = date(2026, 11, 27)

KNOWN: Final = (
    # 400,000 tokens of context are 272,000 of input and 128,000 of output.
    Known(
        names=r"gpt-5(?:\.[1-3])?(?:-(?:mini|nano|pro|codex(?:-mini|-max)?))?(?:-20\d\d-\d\d-\d\d)?|gpt-5\.4-(?:mini|nano)",
        window=272_000,
        output=128_000,
        sees=True,
        thinks=True,
        source=_OPENAI,
        seen=_READ,
    ),
    Known(
        names=r"gpt-5\.4(?:-pro)?", window=922_000, output=128_000, sees=True, thinks=True, source=_OPENAI, seen=_READ
    ),
    Known(
        names=r"gemini-(?:2\.5|3(?:\.\d)?)-(?:pro|flash|flash-lite)(?:-preview)?(?:-[\d-]+)?",
        window=1_048_576,
        output=65_536,
        sees=True,
        thinks=True,
        source=_GOOGLE,
        seen=_READ,
    ),
    Known(
        names=r"qwen3-max(?:-20\d\d-\d\d-\d\d)?",
        of="qwen",
        window=258_048,
        output=65_536,
        prices=(
            Tier(up_to=32_000, read=1.2, write=6),
            Tier(up_to=128_000, read=2.4, write=12),
            Tier(read=3, write=15),
        ),
        sees=False,
        thinks=False,
        source=_ALIBABA,
        seen=_READ,
    ),
    Known(
        names=r"qwen3-coder-plus(?:-20\d\d-\d\d-\d\d)?",
        of="qwen",
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
        source=_ALIBABA,
        seen=_READ,
    ),
    Known(
        names=r"mistral-medium-(?:latest|3\.5|3-5(?:-26-04)?)",
        of="mistral",
        window=256_000,
        prices=(Tier(read=1.5, write=7.5),),
        sees=True,
        source=_MISTRAL,
        seen=_READ,
    ),
    Known(
        names=r"mistral-large-(?:2512|3)",
        of="mistral",
        window=256_000,
        prices=(Tier(read=0.5, write=1.5),),
        sees=True,
        thinks=False,
        source=_MISTRAL,
        seen=_READ,
    ),
    Known(
        names=r"glm-(?:4\.[67]|5|5\.1)",
        window=200_000,
        output=128_000,
        sees=False,
        thinks=True,
        source=_ZAI,
        seen=_READ,
    ),
    Known(names=r"glm-4\.5(?:-air|-airx|-x)?", window=128_000, output=96_000, sees=False, source=_ZAI, seen=_READ),
    # Hosts run it with less than the million, or ten, of its card; what they say themselves goes before.
    Known(names=r"llama-4-(?:scout|maverick).*", window=131_072, sees=True, thinks=False, source=_META, seen=_READ),
    Known(
        names=r"deepseek-chat",
        of="deepseek",
        window=128_000,
        output=8_192,
        prices=(Tier(read=0.28, write=0.42, cached=0.028),),
        sees=False,
        thinks=False,
        source=_DEEPSEEK,
        seen=_READ,
    ),
    Known(
        names=r"deepseek-reasoner",
        of="deepseek",
        window=128_000,
        output=65_536,
        prices=(Tier(read=0.28, write=0.42, cached=0.028),),
        sees=False,
        thinks=True,
        source=_DEEPSEEK,
        seen=_READ,
    ),
    Known(
        names=r"claude-(?:opus|sonnet)-4-6",
        window=1_000_000,
        output=128_000,
        sees=True,
        thinks=True,
        source=_ANTHROPIC,
        seen=_READ,
    ),
    Known(
        names=r"claude-(?:opus|sonnet|haiku)-4-5(?:-\d{8})?",
        window=200_000,
        output=64_000,
        sees=True,
        thinks=True,
        source=_ANTHROPIC,
        seen=_READ,
    ),
)


@lru_cache(maxsize=256)
def known(model: str) -> Known | None:
    """Return the row of a model, by its name or what follows a vendor's."""
    name = model.strip().lower().rpartition("/")[2]
    return next((row for row in KNOWN if re.fullmatch(row.names, name)), None)
