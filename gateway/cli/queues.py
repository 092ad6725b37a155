"""`legato outbox` and `legato dead`: messages that people do not see, and messages that were given up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.printing import complain, show_rows
from gateway.cli.program import Commands, ConfigOption, JsonOption, ask_store, fail, give, misused
from gateway.runtime.clock import SystemClock

if TYPE_CHECKING:
    from gateway.app.orders import Verb

Row = dict[str, Any]

AllOption = Annotated[bool, typer.Option("--all", help="List the messages that were shown, too.")]
LimitOption = Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="List at most N messages.")]
IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Give the ids as `list` prints them.")]
ChatOption = Annotated[str | None, typer.Option(metavar="PLATFORM:CHAT", help="Select all messages in this chat.")]
AgeOption = Annotated[
    float | None, typer.Option(min=0, metavar="HOURS", help="Select all messages that are more than HOURS old.")
]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Change nothing. Print what would be done.")]
_MOST = 10_000

outbox_app = Commands(help="Messages that have not been shown to people yet.")
dead_app = Commands(help="Messages that Legato gave up on.")


@outbox_app.command("list")
def outbox_list(
    everything: AllOption = False, limit: LimitOption = 50, as_json: JsonOption = False, config: ConfigOption = None
) -> None:
    """List these messages, newest first, each with its reason."""
    from gateway.cli.reports import outbox_rows, outbox_text

    show_rows(ask_store(config, lambda store: outbox_rows(store, limit, everything=everything)), as_json, outbox_text)


@outbox_app.command("show")
def outbox_show(ids: Annotated[list[str], typer.Argument(metavar="ID")], config: ConfigOption = None) -> None:
    """Print everything about some messages, as JSON."""
    show_rows(_chosen(_outbox(config, everything=True), ids, None, None), True, str)


@dead_app.command("list")
def dead_list(limit: LimitOption = 50, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List these messages, newest first."""
    from gateway.cli.reports import dead_text

    show_rows(_dead(config)[:limit], as_json, dead_text)


@dead_app.command("show")
def dead_show(ids: Annotated[list[str], typer.Argument(metavar="ID")], config: ConfigOption = None) -> None:
    """Print everything about some messages, as JSON."""
    show_rows(_chosen(_dead(config), ids, None, None), True, str)


def _outbox(config: Path | None, *, everything: bool = False) -> list[Row]:
    from gateway.cli.reports import outbox_rows

    return ask_store(config, lambda store: outbox_rows(store, _MOST, everything=everything))


def _dead(config: Path | None) -> list[Row]:
    from gateway.cli.reports import dead_rows

    return ask_store(config, lambda store: dead_rows(store, _MOST))


def _chosen(rows: list[Row], ids: list[str] | None, chat: str | None, older_than: float | None) -> list[Row]:
    if not (ids or chat or older_than is not None):
        misused("say which messages: give ids, --chat or --older-than")
    if unknown := set(ids or ()) - {row["id"] for row in rows}:
        fail(f"there is no message with the id {', '.join(sorted(unknown))}; `list` shows the ids")
    before = SystemClock().now() - (older_than or 0.0) * 3_600
    return [
        row
        for row in rows
        if (not ids or row["id"] in ids)
        and chat in (None, f"{row['platform']}:{row['chat']}")
        and (older_than is None or datetime.fromisoformat(row["created_at"]).timestamp() <= before)
    ]


def _add_order(
    app: typer.Typer,
    name: str,
    verb: Verb,
    rows: Callable[[Path | None], list[Row]],
    fit: Callable[[Row], bool],
    help_: str,
) -> None:
    """Add a command that has a verb carried out on those of the chosen rows that are `fit` for it."""

    @app.command(name, help=help_)
    def order(
        ids: IdsArgument = None,
        chat: ChatOption = None,
        older_than: AgeOption = None,
        dry_run: DryOption = False,
        as_json: JsonOption = False,
        config: ConfigOption = None,
    ) -> None:
        from gateway.app.orders import Order

        chosen = filter(fit, _chosen(rows(config), ids, chat, older_than))
        named = [{"id": row["id"], "platform": row["platform"], "chat": row["chat"]} for row in chosen]
        if named and not dry_run:
            complain(give(config, [Order(verb=verb, **each) for each in named]))
        show_rows(named, as_json, lambda each: "\n".join(row["id"] for row in each) or "There is no such message.")


_add_order(
    outbox_app,
    "retry",
    "retry",
    _outbox,
    lambda row: row["state"] in ("refused", "withheld"),
    "Try again to show messages that Legato gave up on. Legato tries waiting messages anyway.",
)
_add_order(
    outbox_app,
    "drop",
    "drop",
    _outbox,
    lambda row: row["state"] == "pending",
    "Drop waiting messages, so that nobody sees them.",
)
_add_order(
    dead_app,
    "replay",
    "replay",
    _dead,
    lambda row: row["kind"] == "message",
    "Have messages answered after all, each one once, after the messages that wait in the same conversation.",
)
_add_order(
    dead_app,
    "drop",
    "bury",
    _dead,
    lambda _: True,
    "Take messages off the list. The senders have already been told that these messages will not be answered.",
)
