"""What all tests share."""

import pytest

from tests.support.fakes import ManualClock, SequentialIds


@pytest.fixture
def clock():
    """Time that passes only when the test says so."""
    return ManualClock()


@pytest.fixture
def ids():
    """Ids that count."""
    return SequentialIds()
