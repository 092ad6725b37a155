"""Times in sentences for people."""

import pytest

from gateway.domain.wording import lasting


@pytest.mark.parametrize(
    ("seconds", "said", "short"),
    [
        (0.4, "0 seconds", "0 s"),
        (1, "1 second", "1 s"),
        (20, "20 seconds", "20 s"),
        (119.4, "119 seconds", "119 s"),
        (600, "10 minutes", "10 min"),
        (5_400, "90 minutes", "90 min"),
        (43_200, "12 h", "12 h"),
        (19_200, "5 h 20 min", "5 h 20 min"),
        (-5, "0 seconds", "0 s"),
    ],
)
def test_a_time_is_told_in_the_unit_that_people_would_choose(seconds: float, said: str, short: str) -> None:
    assert (lasting(seconds), lasting(seconds, short=True)) == (said, short)
