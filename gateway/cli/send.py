"""`legato send`: a text from a script to a chat, through the outbox of the gateway that runs, or of the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.app.config.sentences import did_you_mean
from gateway.app.orders import Order, leave, left
from gateway.app.plugins import keyed_platform
from gateway.domain.chat import EVENT, ChatAddress
from gateway.domain.place import HOME as HOME
from gateway.domain.platform import AdapterSettings, Platform
from gateway.people.keys import Keys
from gateway.people.people import Home
from gateway.runtime.clock import Clock, Ids, SystemClock, lasting_id
from gateway.runtime.errors import UserError
from gateway.store.port import Documents, Store
from gateway.store.shared.documents import storable

_LONGEST: Final = 100_000  # characters: a book is sent as a file


def place_named(
    text: str, thread: str | None, platforms: Mapping[str, Platform], served: Mapping[str, AdapterSettings]
) -> ChatAddress:
    """PLATFORM:CHAT, of `platforms`, those of them `served` that are enabled. Raises UserError."""
    name, colon, chat = text.partition(":")
    if not (name and colon and chat and chat.isprintable()):
        raise UserError(f"{text!r} does not name a chat: write PLATFORM:CHAT, as `legato outbox list --all` does")
    platform = platforms.get(name)
    if platform is None:
        raise UserError(f"there is no platform {name}{did_you_mean(name, platforms) or '; see `legato check`'}")
    if platform.settings is not None and not (name in served and served[name].enabled):
        raise UserError(f"{platform.title} is not switched on here: set adapters.{name}.enabled to true first")
    if problem := platform.place_problem(chat):
        raise UserError(f"{text} {problem}")
    return ChatAddress(platform=name, chat=chat, thread=thread)


async def home_of(store: Documents, said: str | None) -> ChatAddress:
    """The home chat, for the word `home`; `said`: as config.yaml names it. Raises UserError where there is none."""
    return (await Home(store=store, said=said).needed()).to


def order_for(to: ChatAddress, text: str, key: str, clock: Clock, ids: Ids, task: str | None = None) -> Order:
    """The order to show a text there, or with a `task` ("": the usual one), to have the agent read it. One with the
    same `key` is the same order; "": it is one of its own. Raises UserError for a text that is too long."""
    text = storable(text)
    if len(text) > _LONGEST:
        raise UserError(
            f"the text has {len(text):,} characters, and may have at most {_LONGEST:,}: send a part, or a link"
        )
    row_id = lasting_id("o", "send", to.platform, to.chat, to.thread, key) if key else ids.new("o")
    return Order(
        verb="send" if task is None else "ask",
        id=row_id,
        platform=to.platform,
        chat=to.chat,
        thread=to.thread,
        text=text,
        task=task or "",
        at=clock.now(),
    )


async def send(store: Store, order: Order) -> dict[str, Any]:
    """Leave the order, unless it is known already. Returns its row: `id`, and `state`: `left` now, `waiting` since
    earlier, or that of the row in the outbox. Raises UserError where the chat is of a key that is not there."""
    if order.platform == keyed_platform():
        await Keys(store=store, clock=SystemClock()).of(order.chat)
    known = await store.rows(order.address, [order.id])
    if (await store.named(f"{EVENT}{order.id}", [order.platform])).fates:
        return {"id": order.id, "state": "taken"}
    if known:
        return {"id": order.id, "state": str(known[0].state)}
    waits = (await left(store)).get(order.name)
    if waits is not None:
        return {"id": order.id, "state": "waiting"}
    await leave(store, [order])
    return {"id": order.id, "state": "left"}


def sentence(row: Mapping[str, Any]) -> str:
    """What became of it, for a person."""
    if row["state"] == "left":
        return "The text is stored, and Legato sends it within ten seconds, or as soon as it runs."
    return f"A text with this id already exists (its state is {row['state']}), so Legato did nothing."
