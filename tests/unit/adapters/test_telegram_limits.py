"""However many messages wait, no second and no minute holds more of them than Telegram allows."""

from bisect import insort

from adapters.telegram.limits import rates
from gateway.domain.adapter import earliest
from gateway.domain.chat import ChatAddress


def moments(chats: list[str]) -> list[float]:
    """Return the times of messages to these chats, all asked for at one instant."""
    taken: dict[str, list[float]] = {}
    given = []
    for chat in chats:
        limits = rates(ChatAddress(platform="telegram", chat=chat))
        moment = earliest([taken.setdefault(limit.bucket, []) for limit in limits], limits, 0.0)
        for limit in limits:
            insort(taken[limit.bucket], moment)
        given.append(moment)
    return given


def test_messages_to_many_chats_go_one_by_one() -> None:
    given = sorted(moments([str(number) for number in range(90)]))
    late = [moment + (0.05 if moment < 0.5 else 0.0) for moment in given]
    assert max(sum(start <= moment < start + 1.0 for moment in late) for start in late) <= 30
    assert given[0] == 0.0
    assert given[-1] < 90 / 27


def test_a_group_has_a_second_more_than_its_minute() -> None:
    given = moments(["-5"] * 41)
    assert given[20] - given[0] >= 61.0
    assert given[40] - given[20] >= 61.0
