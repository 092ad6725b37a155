"""`legato replay`: a stored conversation's messages, answered anew by another model, and both answers side by side.

The stored conversation is only read. The new one runs through a whole gateway on a store of its own, which is thrown
away, so its prompts, window and compactions are as they would be; tools are not offered, and nothing is remembered.

Fields of a replay: session, title, model (`was`, `now`), exchanges (each `asked`, and for `was` and `now`: text, tools,
calls, prompt_tokens, output_tokens, cost_usd, unpriced_calls), total (`was`, `now`: the sums, and compactions with
trigger, tokens_before, tokens_after, fallback), ended (why it ended early, or "").
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from gateway.app.build import Parts, build
from gateway.app.config import Config, Setup
from gateway.app.config.environment import PREFIX
from gateway.app.config.models import StoreSettings, ToolSettings
from gateway.app.gateway import Gateway
from gateway.cli.models import asked_of
from gateway.cli.reports import named
from gateway.domain.adapter import Accept, Limits
from gateway.domain.chat import Inbound, Outbound, SessionKey, Source
from gateway.domain.message import Message, is_request, is_summary, note_of, said_in, text_of
from gateway.domain.session import Compaction
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Call

Row = dict[str, Any]
Tell = Callable[[int, int], None]
"""Given how many messages are answered, of how many."""

_NAME: Final = "replay"
_FOREVER: Final = 1e12  # seconds since the epoch
_SUMMED: Final = ("calls", "prompt_tokens", "output_tokens", "cost_usd", "unpriced_calls")


class ReplayedAnswer(Struct, frozen=True, kw_only=True):
    """An answer and what it took. `calls` none: nothing was noted, as of what was imported."""

    text: str
    tools: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()


class Story(Struct, frozen=True, kw_only=True):
    """A stored conversation: its messages' words, the answers, and its compactions."""

    session: str
    title: str
    model: str
    asked: tuple[str, ...]
    answers: tuple[ReplayedAnswer, ...]
    compactions: tuple[Compaction, ...]


async def story_of(store: Store, session_id: str, first: int | None) -> Story:
    """A whole conversation as it was said, up to its `first` messages. Raises SessionNotFound, UserError."""
    with named(session_id):
        lineage = await store.lineage(session_id)
    said: dict[str, Message] = {}
    compactions: dict[tuple[str, str], Compaction] = {}
    for each in lineage:
        for message in await store.transcript(each):
            if not is_summary(message) and not note_of(message).get("derived_from"):
                said.setdefault(note_of(message)["id"], message)
        compactions |= {(one.parent_id, one.child_id): one for one in await store.compactions(each.id)}
    messages = list(said.values())
    starts = [place for place, message in enumerate(messages) if is_request(message)]
    if not starts:
        raise UserError(f"Nobody said anything in the session {session_id}.")
    exchanges = [messages[one:other] for one, other in pairwise([*starts, len(messages)])][:first]
    ids = {each.id for each in lineage}
    calls = [call for call in await store.calls(lineage[0].key, 0.0, _FOREVER) if call.session_id in ids]
    return Story(
        session=session_id,
        title=lineage[-1].title or "",
        model=lineage[-1].model,
        asked=tuple(said_in(each[0]) for each in exchanges),
        answers=tuple(_answer(each, calls, _ends(exchanges, place)) for place, each in enumerate(exchanges)),
        compactions=tuple(compactions.values()),
    )


def _ends(exchanges: Sequence[Sequence[Message]], place: int) -> float:
    """When the next exchange begins."""
    following = exchanges[place + 1 : place + 2]
    return note_of(following[0][0]).get("at", _FOREVER) if following else _FOREVER


def _answer(exchange: Sequence[Message], calls: Sequence[Call], until: float) -> ReplayedAnswer:
    since = note_of(exchange[0]).get("at", 0.0)
    answers = [message for message in exchange if message["role"] == "assistant"]
    return ReplayedAnswer(
        text=next((text for message in reversed(answers) if (text := text_of(message).strip())), ""),
        tools=tuple(call["function"]["name"] for message in answers for call in message.get("tool_calls", ())),
        calls=tuple(call for call in calls if since <= call.entry.at < until),
    )


def settings_for(found: Setup, model: str, provider: str, folder: str, environ: Mapping[str, str]) -> Config:
    """The settings with another model, a store in `folder`, and without all that acts. Raises ConfigError."""
    settings = found.config
    if provider and provider != settings.model.provider:
        entry = asked_of(provider, found, environ, anew=True, **{f"{PREFIX}MODEL__NAME": model}).model
    else:
        own = settings.model.name == model
        entry = settings.model.model_copy(
            update={"name": model}
            | ({} if own else {"context_length": None, "max_output_tokens": None, "prices": None})
        )
    plain = Config()
    return settings.replace(
        model=entry.model_copy(update={"tools": False}),
        fallback_models=(),
        store=StoreSettings(url=f"sqlite:///{folder}/replay.db"),
        tools=ToolSettings(offered={"*": ("-*",)}),
        memory=settings.memory.model_copy(update={"flush": False}),
        budgets=plain.budgets,
        chats={},
        adapters={},
    )


class _Player:
    """A platform on which the stored messages are said again, each once the one before is answered."""

    def __init__(self, story: Story, tell: Tell) -> None:
        self.name = _NAME
        self.limits = Limits(trusted=True)
        self.gateway: Gateway | None = None
        self.answers: list[ReplayedAnswer] = []
        self.compactions: list[Compaction] = []
        self.ended = ""
        self._story = story
        self._tell = tell
        self._shown: asyncio.Queue[Outbound] = asyncio.Queue()

    async def run(self, accept: Accept) -> None:
        """Say all of it; end after an error, which the next would meet, too."""
        for number, text in enumerate(self._story.asked):
            source = Source(platform=_NAME, chat=_NAME, chat_type="direct", user=_NAME)
            said = Inbound(event_id=f"m{number}", source=source, text=text)
            # What begins with a slash was a message then.
            await accept([replace(said, own="") if said.command else said])
            answer = await self._shown.get()
            if answer.kind == "error":
                self.ended = answer.text
                return
            await self._note(answer.text)
            self._tell(number + 1, len(self._story.asked))

    async def _note(self, text: str) -> None:
        assert self.gateway is not None
        store, key = self.gateway.store, SessionKey(platform=_NAME, chat=_NAME)
        known = sum(len(answer.calls) for answer in self.answers)
        calls = (await store.calls(key, 0.0, _FOREVER))[known:]
        self.answers.append(ReplayedAnswer(text=text.strip(), calls=tuple(calls)))
        if (tip := await store.tip(key)) is not None and tip.compaction_count > len(self.compactions):
            found = [one for each in await store.lineage(tip.id) for one in await store.compactions(each.id)]
            self.compactions = list(dict.fromkeys(found))

    async def send(self, outbound: Outbound) -> str:
        """Hear an answer; notices and pieces of it are not waited for."""
        if outbound.kind in ("reply", "error", "command"):
            self._shown.put_nowait(outbound)
        return outbound.id

    async def aclose(self) -> None:
        """There is nothing to let go of."""


async def replayed(
    story: Story,
    found: Setup,
    model: str,
    provider: str,
    environ: Mapping[str, str],
    tell: Tell,
    parts: Parts | None = None,
) -> Row:
    """Answer it anew. Raises ConfigError; a model that fails ends it early."""
    with tempfile.TemporaryDirectory(prefix="legato-replay-") as folder:
        settings = settings_for(found, model, provider, folder, environ)
        player = _Player(story, tell)
        gateway = build(settings, [player], parts or Parts())
        player.gateway = gateway
        await gateway.run()
        if gateway.failure:
            raise UserError(gateway.failure)
    return _row(story, player, model)


def _row(story: Story, player: _Player, model: str) -> Row:
    pairs: list[Row] = [
        {"asked": asked, "was": _facts(was), "now": _facts(now)}
        for asked, was, now in zip(story.asked, story.answers, player.answers, strict=False)
    ]
    return {
        "session": story.session,
        "title": story.title,
        "model": {"was": story.model, "now": model},
        "exchanges": pairs,
        "total": {
            when: _sum(pair[when] for pair in pairs) | {"compactions": [_passed(each) for each in compactions]}
            for when, compactions in (("was", story.compactions), ("now", player.compactions))
        },
        "ended": player.ended,
    }


def _facts(answer: ReplayedAnswer) -> Row:
    entries = [call.entry for call in answer.calls]
    return {
        "text": answer.text,
        "tools": list(answer.tools),
        "calls": len(entries),
        "prompt_tokens": sum(each.usage.prompt_tokens for each in entries),
        "output_tokens": sum(each.usage.output_tokens for each in entries),
        "cost_usd": sum(each.cost_usd or 0.0 for each in entries),
        "unpriced_calls": sum(each.cost_usd is None for each in entries),
    }


def _sum(facts: Iterable[Row]) -> Row:
    every = list(facts)
    return {name: sum(each[name] for each in every) for name in _SUMMED}


def _passed(compaction: Compaction) -> Row:
    names = ("trigger", "tokens_before", "tokens_after", "fallback")
    return {name: getattr(compaction, name) for name in names}
