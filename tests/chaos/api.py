"""OpenAI's own client in a long conversation, whose person edits what was said and asks anew, while the program is
killed again and again.

python -m tests.chaos.api redis --turns 300 --kills 50 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from openai import AsyncOpenAI

from gateway.domain.message import Message, is_summary, note_of, text_of
from gateway.domain.notes import without_quotes
from gateway.domain.session import Session
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Hang, Reply, summarising
from tests.support.api import Api, serving
from tests.support.program import KEY
from tests.support.redis_server import running

_SAID: Final = re.compile(r"\b(q\d{4})\.")  # questions, wherever they are repeated
_MOMENTS: Final = ("accepted", "asked", "answered", "somewhere")
_Path = tuple[str, ...]  # a conversation from its first question on: question, answer, question, …


class Person(Struct, kw_only=True):
    """Somebody with OpenAI's client, which holds the history. `shown`: every conversation up to an answer that they
    were ever shown."""

    api: Api
    client: AsyncOpenAI
    chance: random.Random
    path: _Path = ()
    shown: list[_Path] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)

    def moves(self) -> str:
        """Go somewhere in the conversation; returns what is asked there, "" for something new."""
        what = self.chance.random()
        if not self.path or what < 0.7:
            return ""
        if what < 0.82:
            self.did["regenerated"] += 1
            *before, question, _ = self.path
            self.path = tuple(before)
            return question
        if what < 0.96:
            self.did["edited"] += 1
            far = 3 if self.chance.random() < 0.8 else 30
            self.path = self.path[: -2 * self.chance.randint(1, min(far, len(self.path) // 2))]
            return ""
        self.did["went to another branch"] += 1
        self.path = self.chance.choice(self.shown[-30:])
        return ""

    async def ask(self, question: str) -> None:
        """Ask, and hear the answer."""
        self.hear(question, await self.once(question))

    def hear(self, question: str, answer: str) -> None:
        """Go on from this answer."""
        self.path = (*self.path, question, answer)
        self.shown.append(self.path)

    async def once(self, question: str) -> str:
        """The answer to one request, which the client repeats by itself as it does for everybody."""
        roles = ("user", "assistant")
        messages: Any = [{"role": roles[at % 2], "content": text} for at, text in enumerate((*self.path, question))]
        create = self.client.chat.completions.create
        if self.chance.random() < 0.5:
            said = await create(model="legato", messages=messages)
            return str(said.choices[0].message.content)
        words, ends = [], None
        async for chunk in await create(model="legato", messages=messages, stream=True):
            for choice in chunk.choices:
                words.append(choice.delta.content or "")
                ends = choice.finish_reason or ends
        if ends != "stop":
            raise OSError("the stream broke off")
        return "".join(words)


class Model(Struct, kw_only=True):
    """A model whose every answer is another one. It looks at what it is shown: nothing but the conversation that the
    person sees, and the last part of that whole. `wrong`: what was not so."""

    person: Person | None = None
    question: str = ""
    given: int = 0
    wrong: list[str] = field(default_factory=list)

    def __call__(self, body: Mapping[str, Any]) -> Answer:
        """Answer the last question."""
        messages = body["messages"]
        sees = [_name(text) for text in (*(self.person.path if self.person else ()), self.question)]
        seen = {found for each in messages for found in _SAID.findall(without_quotes(text_of(each)))}
        if foreign := seen - set(sees):
            self.wrong.append(f"{self.question}: of another branch: {sorted(foreign)}")
        whole = [*map(_short, (each for each in messages if each["role"] != "system" and not _is_archive(each)))]
        if f" to {sees[-1]}" in text_of(messages[-1]):
            self.wrong.append(f"{self.question}: the answer that was taken back is quoted")
        if whole != [text for text in sees if text in whole] or whole[-1:] != sees[-1:]:
            self.wrong.append(f"{self.question}: shown as {whole}, not as {sees}")
        self.given += 1
        return Reply(text=f"answer {self.given} to {self.question} " + "The boats lie here. " * 40)


async def killed_again_and_again(person: Person, model: Model, server: LlmServer, *, turns: int, kills: int) -> None:
    """Ask so many things, while the program is killed at random moments of a question."""
    chance = person.chance
    fatal = set(chance.sample(range(1, turns), kills))
    for number in range(turns):
        again = person.moves()
        question = model.question = again or f"q{number:04}."
        if number not in fatal:
            await person.ask(question)
            continue
        moment, calls, reply = chance.choice(_MOMENTS), server.calls, server.reply
        if moment in ("accepted", "asked"):
            server.reply = lambda _: Hang()
        asking = asyncio.ensure_future(person.once(question))
        if moment == "asked":
            called = asyncio.ensure_future(server.until(lambda before=calls: server.calls > before))
            await asyncio.wait([asking, called], return_when=asyncio.FIRST_COMPLETED)
            called.cancel()
        elif moment == "answered":
            await asking
        else:
            await asyncio.sleep(chance.random() * (0.05 if moment == "accepted" else 0.4))
        lost = asking.done()  # whoever was shown the answer loses it with their page, and asks again
        await person.api.kill()
        server.reply = reply
        await person.api.start()
        (answer,) = await asyncio.gather(asking, return_exceptions=True)  # the client may try again by itself
        if isinstance(answer, str) and not lost:
            person.hear(question, answer)
        else:
            await person.ask(question)


async def long_conversation(
    folder: Path, url: str, all_die: Callable[[], None], *, turns: int, kills: int, seed: int
) -> str:
    """So many turns in a small window: the store holds each conversation as it was shown, and nothing more. Returns
    what was done."""
    model = Model()
    small = {"model": {"context_length": 8_000}, "compression": {"min_threshold_tokens": 0}}
    async with (
        LlmServer(summarising(model), api_key=KEY, context_length=8_000) as server,
        serving(folder, server, store={"url": url}, **small) as api,
    ):
        api.all_die = all_die
        await api.start()
        async with AsyncOpenAI(base_url=f"{api.url}/v1", api_key=await api.key("anna")) as client:
            person = model.person = Person(api=api, client=client, chance=random.Random(seed))
            await killed_again_and_again(person, model, server, turns=turns, kills=kills)
        wrong = [*map(str, server.violations), *model.wrong]
        assert not wrong, "\n".join(wrong)
        assert server.overflows == 0
        await api.kill()
    clock = SystemClock()
    store: Store = (
        RedisStore(url, clock=clock) if url.startswith("redis") else SqliteStore(folder / "legato.db", clock=clock)
    )
    await store.open()
    try:
        compactions, wrong = await _judged(store, person)
    finally:
        await store.aclose()
    assert not wrong, "\n".join(wrong)
    did = ", ".join(f"{what} {count}" for what, count in sorted(person.did.items()))
    return f"{turns} turns, {kills} kills, {compactions} compactions, {did}; {len(person.shown)} answers shown"


async def _judged(store: Store, person: Person) -> tuple[int, list[str]]:
    """The number of compactions of the longest line, and what is wrong with the store."""
    sessions = {each.id: each for each in await store.sessions(None, 10_000)}
    transcripts = {name: await store.transcript(each) for name, each in sessions.items()}
    ends = [each for each in sessions.values() if each.end_reason != "compression"]  # others go on elsewhere
    paths = [_whole(each, sessions, transcripts) for each in ends]
    said = {note_of(each)["id"]: _short(each) for each in chain(*transcripts.values()) if not _is_archive(each)}
    return max(each.compaction_count for each in sessions.values()), found_wrong(person.shown, paths, [*said.values()])


def found_wrong(shown: Sequence[_Path], stored: Sequence[_Path], said: Sequence[str]) -> list[str]:
    """What is wrong with the conversations that are `stored`, and with each message's words in `said`."""
    wrong = [f"doubled: {text}" for text, count in Counter(said).items() if " " in text and count > 1]
    short = {tuple(_name(text) for text in path) for path in shown}
    there = {path[:at] for path in stored for at in range(2, len(path) + 1, 2)}
    wrong += [f"lost: {' > '.join(path[-6:])}" for path in sorted(short - there)]
    wrong += [f"never shown: {' > '.join(path[-6:])}" for path in sorted(there - short)]
    wrong += [f"unanswered: {path[-1]}" for path in stored if len(path) % 2]
    asked = Counter(text for text in said if " " not in text)
    answered = Counter(text.split()[-1] for text in said if " " in text)
    return wrong + [f"{text}: asked {asked[text]}, answered {answered[text]}" for text in (asked - answered)]


def _whole(session: Session, sessions: Mapping[str, Session], transcripts: Mapping[str, Sequence[Message]]) -> _Path:
    """A session's conversation from its beginning, with what compactions have put away."""
    rows: dict[str, str] = {}
    at: Session | None = session
    while at is not None:
        transcript = transcripts[at.id]
        archives = [place for place, each in enumerate(transcript) if _is_archive(each)]
        own = [(note_of(each)["id"], _short(each)) for each in transcript[max(archives, default=-1) + 1 :]]
        first = next(iter(rows), "")
        rows = dict(takewhile(lambda row, first=first: row[0] != first, own)) | rows  # type: ignore[misc]
        at = sessions.get(at.parent_id or "") if archives else None
    return tuple(rows.values())


def _is_archive(message: Message) -> bool:
    return is_summary(message) or not re.match(r"q\d{4}\.$|answer \d+ to q", without_quotes(text_of(message)))


def _short(message: Message) -> str:
    return _name(without_quotes(text_of(message)))


def _name(text: str) -> str:
    return text.partition(".")[0]


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
    print(f"{kind}, seed {seed}: {done}; none lost, none doubled")


def main() -> None:
    """Let it happen, and fail if something is lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.api", description=__doc__.partition("\n\n")[0])
    parser.add_argument("kind", choices=["sqlite", "redis"])
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    asyncio.run(_run(given.kind, given.turns, given.kills, given.seed))


if __name__ == "__main__":
    main()
