"""The store that the configuration names, and the folders around it."""

from __future__ import annotations

from collections.abc import Callable

from gateway.app.config import Config
from gateway.app.config.environment import HOME_VARIABLE
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import UserError
from gateway.runtime.owners import leave_to_owner, make_private
from gateway.runtime.supervisor import end_process
from gateway.store.port import Store


def configured_store(
    config: Config,
    *,
    clock: Clock | None = None,
    read_only: bool = False,
    waits: bool = True,
    told: Callable[[str], None] = lambda _: None,
) -> Store:
    """The store of the configuration. `read_only` opens a SQLite file beside a running gateway (any
    number of processes share a server). A server that is away is waited for where `waits`, and never by
    `read_only`; `told` is given a sentence about that, and about an upgrade of the file."""
    path = config.database
    clock = clock or SystemClock()
    if config.store.is_postgres:
        return _on_postgres(config, clock, waits=waits and not read_only, told=told)
    if path is None:
        from gateway.store.redis import RedisStore

        return RedisStore(
            config.store.url, clock=clock, waits=waits and not read_only, concurrency=config.turns.concurrent, told=told
        )
    from gateway.store.sqlite.backend import SqliteStore

    return SqliteStore(
        path,
        clock=clock,
        concurrency=config.turns.concurrent,
        read_only=read_only,
        broken=end_process,
        told=told,
        keeps_copy=config.store.keep_copy,
    )


def _on_postgres(config: Config, clock: Clock, *, waits: bool, told: Callable[[str], None]) -> Store:
    try:
        from gateway.store.postgres.backend import PostgresStore
    except ImportError as error:
        raise UserError(f"store.url needs PostgreSQL's driver ({error}): pip install 'legato[postgres]'") from None
    return PostgresStore(config.store.url, clock=clock, concurrency=config.turns.concurrent, waits=waits, told=told)


def make_folders(config: Config, *, home: bool = True) -> None:
    """Make the folder for relative paths and, if wanted, the gateway's own. Raises UserError."""
    wanted = [config.at(""), *([config.home] if home else [])]
    for path in wanted:
        try:
            if not path.exists():
                make_private(path)
                leave_to_owner(path.parent, path)
        except OSError as error:
            raise UserError(
                f"the folder {path} cannot be made ({error.strerror}); choose another place with {HOME_VARIABLE}, or "
                "with store.url for the store"
            ) from error
