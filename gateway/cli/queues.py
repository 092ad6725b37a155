"""`legato outbox` and `legato dead`: messages that people do not see, and messages that were given up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from gateway.cli.options import ConfigOption, JsonOption
from gateway.cli.printing import complain, show_rows

if TYPE_CHECKING:
    from gateway.app.orders import Order, Verb
    from gateway.store.port import Store

T = TypeVar("T")
Row = dict[str, Any]

AllOption = Annotated[bool, typer.Option("--all", help="Also those that were shown.")]
LimitOption = Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="How many at most.")]
IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="ID", help="As `list` names them.")]
ChatOption = Annotated[str | None, typer.Option(metavar="PLATFORM:CHAT", help="All of this chat.")]
AgeOption = Annotated[float | None, typer.Option(min=0, metavar="HOURS", help="All that are older.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Change nothing; print what would be done.")]
_MOST = 10_000


class Ask(Protocol):
    """Runs a question on the configured store, whatever else has it open."""

    def __call__(self, path: Path | None, ask: Callable[[Store], Awaitable[T]]) -> T: ...


class Give(Protocol):
    """Has orders carried out, here or by the gateway that runs; says by whom."""

    def __call__(self, path: Path | None, orders: list[Order]) -> str: ...


def outbox_app(ask: Ask, give: Give) -> typer.Typer:
    """The sub-commands of `legato outbox`."""
    app = typer.Typer(
        help="Messages that people are not shown yet, or never will be.",
        invoke_without_command=True,
        rich_markup_mode=None,
    )

    @app.callback()
    def bare(
        context: typer.Context,
        everything: AllOption = False,
        limit: LimitOption = 50,
        as_json: JsonOption = False,
        config: ConfigOption = None,
    ) -> None:
        """Messages that people are not shown yet, or never will be, newest first."""
        if context.invoked_subcommand is None:
            list_(everything, limit, as_json, config)

    @app.command("list")
    def list_(
        everything: AllOption = False, limit: LimitOption = 50, as_json: JsonOption = False, config: ConfigOption = None
    ) -> None:
        """List them, newest first, each with its reason."""
        from gateway.cli.reports import outbox_rows, outbox_text

        show_rows(ask(config, lambda store: outbox_rows(store, limit, everything=everything)), as_json, outbox_text)

    @app.command()
    def show(ids: Annotated[list[str], typer.Argument(metavar="ID")], config: ConfigOption = None) -> None:
        """Print rows with all that is known of them, as JSON."""
        from gateway.cli.reports import outbox_rows

        rows = ask(config, lambda store: outbox_rows(store, _MOST, everything=True))
        show_rows(_chosen(rows, ids, None, None), True, str)

    @app.command()
    def retry(
        ids: IdsArgument = None,
        chat: ChatOption = None,
        older_than: AgeOption = None,
        dry_run: DryOption = False,
        as_json: JsonOption = False,
        config: ConfigOption = None,
    ) -> None:
        """Show messages that were given up; those that wait are tried again by themselves."""
        from gateway.cli.reports import outbox_rows

        rows = ask(config, lambda store: outbox_rows(store, _MOST, everything=False))
        fit = [row for row in _chosen(rows, ids, chat, older_than) if row["state"] in ("refused", "withheld")]
        _order("retry", fit, dry_run, as_json, lambda orders: give(config, orders))

    @app.command()
    def drop(
        ids: IdsArgument = None,
        chat: ChatOption = None,
        older_than: AgeOption = None,
        dry_run: DryOption = False,
        as_json: JsonOption = False,
        config: ConfigOption = None,
    ) -> None:
        """Give up messages that wait, so that nobody is shown them."""
        from gateway.cli.reports import outbox_rows

        rows = ask(config, lambda store: outbox_rows(store, _MOST, everything=False))
        fit = [row for row in _chosen(rows, ids, chat, older_than) if row["state"] == "pending"]
        _order("drop", fit, dry_run, as_json, lambda orders: give(config, orders))

    return app


def dead_app(ask: Ask, give: Give) -> typer.Typer:
    """The sub-commands of `legato dead`."""
    app = typer.Typer(help="Messages that were given up unanswered.", no_args_is_help=True, rich_markup_mode=None)

    def rows_of(config: Path | None) -> list[Row]:
        from gateway.cli.reports import dead_rows

        return ask(config, lambda store: dead_rows(store, _MOST))

    @app.command("list")
    def list_(limit: LimitOption = 50, as_json: JsonOption = False, config: ConfigOption = None) -> None:
        """List them, newest first."""
        from gateway.cli.reports import dead_text

        show_rows(rows_of(config)[:limit], as_json, dead_text)

    @app.command()
    def show(ids: Annotated[list[str], typer.Argument(metavar="ID")], config: ConfigOption = None) -> None:
        """Print them with all that is known of them, as JSON."""
        show_rows(_chosen(rows_of(config), ids, None, None), True, str)

    @app.command()
    def replay(
        ids: IdsArgument = None,
        chat: ChatOption = None,
        older_than: AgeOption = None,
        dry_run: DryOption = False,
        as_json: JsonOption = False,
        config: ConfigOption = None,
    ) -> None:
        """Have them answered after all, each once, behind what waits in its conversation."""
        fit = [row for row in _chosen(rows_of(config), ids, chat, older_than) if row["kind"] == "message"]
        _order("replay", fit, dry_run, as_json, lambda orders: give(config, orders))

    @app.command()
    def drop(
        ids: IdsArgument = None,
        chat: ChatOption = None,
        older_than: AgeOption = None,
        dry_run: DryOption = False,
        as_json: JsonOption = False,
        config: ConfigOption = None,
    ) -> None:
        """Take them off the list. Their senders were told already."""
        fit = _chosen(rows_of(config), ids, chat, older_than)
        _order("bury", fit, dry_run, as_json, lambda orders: give(config, orders))

    return app


def _chosen(rows: list[Row], ids: list[str] | None, chat: str | None, older_than: float | None) -> list[Row]:
    """The rows that are named, or that fit all of the other conditions."""
    from gateway.runtime.clock import SystemClock

    if not (ids or chat or older_than is not None):
        complain("legato: say which: ids, --chat or --older-than")
        raise typer.Exit(2)
    if unknown := set(ids or ()) - {row["id"] for row in rows}:
        complain(f"legato: there is none with the id {', '.join(sorted(unknown))}; `list` names them")
        raise typer.Exit(1)
    before = SystemClock().now() - (older_than or 0.0) * 3_600
    return [
        row
        for row in rows
        if (not ids or row["id"] in ids)
        and chat in (None, f"{row['platform']}:{row['chat']}")
        and (older_than is None or datetime.fromisoformat(row["created_at"]).timestamp() <= before)
    ]


def _order(verb: Verb, rows: list[Row], dry_run: bool, as_json: bool, give: Callable[[list[Order]], str]) -> None:
    """Have the verb carried out on the rows, and print their ids."""
    from gateway.app.orders import Order

    named = [{"id": row["id"], "platform": row["platform"], "chat": row["chat"]} for row in rows]
    if named and not dry_run:
        complain(give([Order(verb=verb, **each) for each in named]))
    show_rows(
        named, as_json, lambda each: "\n".join(row["id"] for row in each) or "There is none to which this applies."
    )
