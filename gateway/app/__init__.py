"""Puts the gateway together, starts it and ends it."""

import sys

# Two libraries would load rich, a tenth of the start and 6 MB: httpx for its own program, which nobody calls here, and
# structlog for tracebacks in colours, which no log of ours has.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog  # noqa: F401

    del sys.modules["rich"]
