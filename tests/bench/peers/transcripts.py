"""The material for both sides: plain messages, the same every time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gateway.context import identifiers
from gateway.domain.message import Message, assistant, noted, tool_result, user, wire
from gateway.runtime.tokens import TokenCounter
from tests.bench.long import messages

REQUEST: Final = "Now compare both reports and tell me which figure is wrong."
_LINES: Final = 30  # of a tool's result in `work`: about 2,200 characters


def talk(count: int) -> list[Message]:
    """Questions and answers in English, every third with a call and a result of about 900 characters."""
    return messages(count)


def work(count: int) -> list[Message]:
    """An agent at work: a request, then ten calls with long results, each another file."""
    made: list[Message] = []
    number = 0
    while len(made) < count:
        number += 1
        made.append(user(f"Task {number}: find out why /srv/app/job_{number}.py is slow and write it down."))
        for step in range(10):
            name = f"call_{number}_{step}"
            arguments = f'{{"path": "/srv/app/job_{number}/part_{step}.py", "offset": {step * 60}}}'
            call = {"id": name, "type": "function", "function": {"name": "read_file", "arguments": arguments}}
            made.append(assistant(None, [call]))  # type: ignore[list-item]
            made.append(tool_result(name, _listing(number, step)))
        made.append(assistant(f"Task {number} is done: the loop in line {number * 3} reads the file again each time."))
    return made[: len(made) - (len(made) - count) // 22 * 22]


def _listing(number: int, step: int) -> str:
    return "\n".join(
        f"{line:>5}  value_{line} = compute(rows[{number * line}], limit={step + line}, mode='fast')  # see #{number}"
        for line in range(_LINES)
    )


def chinese(count: int) -> list[Message]:
    """Questions and answers in Chinese, without tools."""
    made: list[Message] = []
    for number in range(count // 2):
        made.append(user(f"第{number}个问题：请检查第{number * 7}号订单的发货记录，看看为什么没有收到，下一步怎么办。"))
        made.append(
            assistant(
                f"第{number}号回答：记录显示包裹在星期三离开仓库，星期五到达当地网点，之后没有新的消息。建议先联系快递公司确认位置，"
                f"如果两天之内仍然没有结果，就为客户重新发货，并把运费记在第{number * 3}号账户上。"
            )
        )
    return made


KINDS: Final[Mapping[str, Callable[[int], list[Message]]]] = {"talk": talk, "work": work, "Chinese": chinese}


def given(kind: str, count: int) -> list[dict[str, Any]]:
    """About `count` messages of a kind and a last request, without any note of ours."""
    return [wire(message) for message in (*KINDS[kind](count - 1), user(REQUEST))]


def stored(messages: Sequence[dict[str, Any]], counter: TokenCounter) -> list[Message]:
    """The same as our store hands them over: with counts and identifiers, found once."""
    return [
        noted(message, id=str(number), at=1.0, tokens=counter.message(message), identifiers=identifiers.found(message))  # type: ignore[arg-type]
        for number, message in enumerate(messages)
    ]
