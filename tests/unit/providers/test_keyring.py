"""Several keys for one model, and programs that give keys out."""

import sys
from collections.abc import AsyncGenerator

import pytest

from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, TextDelta
from gateway.providers.keyring import Keyring, has_more_than_a_key
from gateway.providers.plugin import ServedModel
from gateway.runtime.errors import (
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)
from tests.support.fakes import ManualClock

REFUSED = ProviderRejected("no", status=401)


class Locked:
    """A server that knows what to say to each key; says "done" to all others."""

    name = "locked"

    def __init__(self, **errors: ProviderError) -> None:
        self.errors = errors
        self.keys: list[str | None] = []
        self.says_first = False

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.keys.append(spec.api_key)
        if self.says_first:
            yield TextDelta(text="do")
        if error := self.errors.get(spec.api_key or ""):
            raise error
        yield Completed(text="done")

    async def reported_window(self, spec: ModelSpec) -> int | None:
        self.keys.append(spec.api_key)
        return 1_000

    async def aclose(self) -> None: ...


def with_keys(*keys: str) -> ModelSpec:
    settings = ServedModel.model_validate({"provider": "x", "name": "m", "api_keys": keys})
    return ModelSpec(provider="x", name="m", settings=settings, key_header="api-key")


def by_program(code: str) -> ModelSpec:
    settings = ServedModel(provider="x", name="m", api_key_command=f"{sys.executable} -c '{code}'")
    return ModelSpec(provider="x", name="m", settings=settings, key_header="api-key")


async def call(ring: Keyring, spec: ModelSpec) -> str:
    events = [event async for event in ring.stream(spec, ModelRequest(messages=[]))]
    last = events[-1]
    assert isinstance(last, Completed)
    return last.text


async def test_one_key_is_used_until_it_is_limited_and_then_rests() -> None:
    clock, server = ManualClock(), Locked()
    ring, spec = Keyring(server, clock), with_keys("a", "b", "c")
    for _ in range(3):
        await call(ring, spec)
    server.errors = {"a": ProviderRateLimited("slow down", retry_after=90.0)}
    await call(ring, spec)
    server.errors = {}
    await call(ring, spec)
    assert server.keys == ["a", "a", "a", "a", "b", "b"]
    await clock.advance(91)
    await call(ring, spec)
    assert server.keys[-1] == "a"


@pytest.mark.parametrize("error", [REFUSED, ProviderRejected("no", status=403), QuotaExceeded("no credit", status=402)])
async def test_a_refused_key_gives_way_to_the_next(error: ProviderError) -> None:
    server = Locked(a=error, b=error)
    assert await call(Keyring(server, ManualClock()), with_keys("a", "b", "c")) == "done"
    assert server.keys == ["a", "b", "c"]


async def test_where_every_key_is_refused_the_last_refusal_is_told() -> None:
    server = Locked(a=REFUSED, b=QuotaExceeded("the last"))
    with pytest.raises(QuotaExceeded, match="the last"):
        await call(Keyring(server, ManualClock()), with_keys("a", "b"))
    assert server.keys == ["a", "b"]


@pytest.mark.parametrize("error", [ProviderUnavailable("away"), ProviderRejected("bad request", status=400)])
async def test_what_is_not_the_keys_fault_is_told_at_once(error: ProviderError) -> None:
    server = Locked(a=error)
    with pytest.raises(type(error)):
        await call(Keyring(server, ManualClock()), with_keys("a", "b"))
    assert server.keys == ["a"]


async def test_an_answer_that_began_is_not_begun_again_with_another_key() -> None:
    server = Locked(a=ProviderRateLimited("slow down"))
    server.says_first = True
    ring = Keyring(server, ManualClock())
    with pytest.raises(ProviderRateLimited):
        await call(ring, with_keys("a", "b"))
    assert await call(ring, with_keys("a", "b")) == "done"
    assert server.keys == ["a", "b"]


async def test_a_programs_key_is_kept_for_ten_minutes_and_asked_for_again_where_it_is_refused(tmp_path) -> None:
    count = tmp_path / "count"
    spec = by_program(f'p = open("{count}", "a+"); p.write("x"); p.seek(0); print("key" + str(len(p.read())))')
    clock, server = ManualClock(), Locked()
    ring = Keyring(server, clock)
    await call(ring, spec)
    assert await ring.reported_window(spec) == 1_000
    await clock.advance(601)
    await call(ring, spec)
    server.errors = {"key2": REFUSED}
    await call(ring, spec)
    assert server.keys == ["key1", "key1", "key2", "key2", "key3"]
    server.errors = {"key3": REFUSED, "key4": REFUSED}
    with pytest.raises(ProviderRejected):  # a new one is tried once
        await call(ring, spec)
    assert server.keys[5:] == ["key3", "key4"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit(3)", r"gave no key \(exit code 3\)"),
        ('print("two words")', "it did not print exactly one word"),
        ("pass", "it did not print exactly one word"),
        ('import sys; sys.exit("please log in")', "please log in"),
    ],
)
async def test_a_program_that_gives_no_key_is_told(code: str, said: str) -> None:
    with pytest.raises(ProviderUnavailable, match=said):
        await call(Keyring(Locked(), ManualClock()), by_program(code))


async def test_a_program_that_is_not_there_is_told() -> None:
    settings = ServedModel(provider="x", name="m", api_key_command="no-such-program-here --now")
    with pytest.raises(ProviderRejected, match="cannot be run"):
        await call(Keyring(Locked(), ManualClock()), ModelSpec(provider="x", name="m", settings=settings))


async def test_a_model_with_one_key_is_called_as_it_is() -> None:
    server = Locked()
    spec = ModelSpec(provider="x", name="m", api_key="only", settings=ServedModel(provider="x", name="m"))
    await call(Keyring(server, ManualClock()), spec)
    assert server.keys == ["only"]
    assert not has_more_than_a_key(spec.settings)
    assert has_more_than_a_key(with_keys("a").settings)
