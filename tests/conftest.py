"""What all tests share."""

import pytest
import structlog

from tests.support.fakes import ManualClock, SequentialIds

# Tracebacks as the program writes them. The default draws the variables of every frame, for a second of a core each.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


@pytest.fixture
def clock():
    """Time that passes only when the test says so."""
    return ManualClock()


@pytest.fixture
def ids():
    """Ids that count."""
    return SequentialIds()
