"""What an object of eight fields costs, as a Struct and as a standard dataclass: `python -m tests.bench.structs`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from time import process_time
from timeit import repeat
from typing import Any, Final

import msgspec

_FIELDS: Final = "\n".join(f"    {name}: int" for name in "abcdefgh")
_SOURCES: Final = {
    "dataclass": f"@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)\nclass Made:\n{_FIELDS}",
    "Struct": f"class Made(msgspec.Struct, frozen=True, kw_only=True):\n{_FIELDS}",
}
_COPY: Final[dict[str, Callable[..., Any]]] = {"dataclass": dataclasses.replace, "Struct": msgspec.structs.replace}


def _microseconds(do: Callable[[], object], number: int = 20_000) -> float:
    """The best of seven rounds: others' work only adds."""
    return min(repeat(do, number=number, repeat=9, timer=process_time)) / number * 1_000_000


def _of(kind: str) -> dict[str, float]:
    code, copy = compile(_SOURCES[kind], kind, "exec"), _COPY[kind]
    room: dict[str, Any] = {"dataclasses": dataclasses, "msgspec": msgspec, "__name__": __name__}
    exec(code, room)
    made, values = room["Made"], dict.fromkeys("abcdefgh", 1)
    one = made(**values)
    return {
        "make one": _microseconds(lambda: made(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8)),
        "copy with one other value": _microseconds(lambda: copy(one, a=2)),
        "hash": _microseconds(lambda: hash(one)),
        "define the class": _microseconds(lambda: exec(code, dict(room)), number=100),
    }


def main() -> None:
    """Print the table of decision 82."""
    dataclass, struct = (_of(kind) for kind in _SOURCES)
    for name, slow in dataclass.items():
        print(f"{name:26} {slow:8.2f} µs  {struct[name]:8.2f} µs  {slow / struct[name]:4.0f} : 1")


if __name__ == "__main__":
    main()
