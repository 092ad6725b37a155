"""A client of the API in a long conversation, while the program is killed again and again.

python -m tests.chaos.api redis --turns 300 --kills 50 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from gateway.domain.message import is_summary, note_of, text_of
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Hang, Reply, summarising
from tests.support.api import Api, Client, heard, serving
from tests.support.program import KEY
from tests.support.redis_server import running


async def killed_again_and_again(api: Api, model: LlmServer, *, turns: int, kills: int, seed: int) -> Client:
    """Say so many things, while the program is killed at random moments of an answer; the client asks until it has
    each."""
    chance = random.Random(seed)
    fatal = sorted(chance.sample(range(1, turns), kills))
    anna = Client(api=api, key=await api.key("anna"))
    for number in range(turns):
        anna.history.append({"role": "user", "content": f"t{number}."})
        if number in fatal:
            reply, model.reply = model.reply, lambda _: Hang()
            calls, moment = model.calls, chance.choice(["accepted", "asked", "answered"])
            if moment == "answered":
                model.reply = reply
            asking = asyncio.ensure_future(anna.post(anna.history, stream=chance.random() < 0.5))
            if moment == "asked":
                await model.until(lambda before=calls: model.calls > before)
            elif moment == "answered":
                await asking
            else:
                await asyncio.sleep(chance.random() / 20)
            await api.kill()
            await asyncio.gather(asking, return_exceptions=True)
            model.reply = reply
            await api.start()
        await anna.again(stream=number % 2 == 0)
    return anna


async def long_conversation(
    folder: Path, url: str, all_die: Callable[[], None], *, turns: int, kills: int, seed: int
) -> int:
    """So many turns in a small window: the store holds each question and its answer once, in their order. Returns the
    number of compactions."""
    reply = summarising(lambda body: Reply(text=f"answer to {heard(body)[-1]} " + "The boats lie here. " * 40))
    small = {"model": {"context_length": 8_000}, "compression": {"min_threshold_tokens": 0}}
    async with (
        LlmServer(reply, api_key=KEY, context_length=8_000) as model,
        serving(folder, model, store={"url": url}, **small) as api,
    ):
        api.all_die = all_die
        await api.start()
        await killed_again_and_again(api, model, turns=turns, kills=kills, seed=seed)
        assert (model.overflows, model.violations) == (0, [])
        await api.kill()
    if url.startswith("redis"):
        return await _examined(RedisStore(url, clock=SystemClock()), turns)
    return await _examined(SqliteStore(folder / "legato.db", clock=SystemClock()), turns)


async def _examined(store: Store, turns: int) -> int:
    await store.open()
    try:
        sessions = await store.sessions(None, 1_000)
        said = dict[str, str]()
        for each in reversed(sessions):
            for message in await store.transcript(each):
                if not is_summary(message) and message["role"] in ("user", "assistant"):
                    said[note_of(message)["id"]] = text_of(message)
        asked = [text for text in said.values() if text.startswith("t")]
        assert asked == [f"t{number}." for number in range(turns)], asked
        answers = [text.partition(". ")[0] for text in said.values() if text.startswith("answer to ")]
        assert answers == [f"answer to t{number}" for number in range(turns)], answers
        return max(each.compaction_count for each in sessions)
    finally:
        await store.aclose()


async def _run(kind: str, turns: int, kills: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "sqlite":
            url, all_die = f"sqlite:///{folder / 'legato.db'}", lambda: None
            done = await long_conversation(folder, url, all_die, turns=turns, kills=kills, seed=seed)
        else:
            with running(folder / "redis") as server:
                found = long_conversation(folder, server.url, server.let_all_die, turns=turns, kills=kills, seed=seed)
                done = await found
    print(f"{kind}: {turns} turns, {kills} kills, {done} compactions; none lost, none doubled")


def main() -> None:
    """Let it happen, and fail if something is lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.api", description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=["sqlite", "redis"])
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    asyncio.run(_run(given.kind, given.turns, given.kills, given.seed))


if __name__ == "__main__":
    main()
