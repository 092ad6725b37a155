"""Puts the gateway together, starts it and ends it."""

import sys

if "rich" not in sys.modules:  # structlog would load it for tracebacks in colours, which no log of ours has
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog  # noqa: F401

    del sys.modules["rich"]
