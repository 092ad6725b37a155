"""A Redis store as the source or the target of a migration."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO, Any, Final

from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreError, StoreLocked, StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.redis.admission import (
    FORMAT,
    READABLE_FROM,
    RECORDS,
    check_ours,
    establish,
    living,
    reason,
    refusal,
    survey,
)
from gateway.store.redis.bringing import former_records
from gateway.store.redis.connection import CallHeader
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint, ask, used
from gateway.store.redis.keyspace import BROUGHT, LOCK, META, clients, keys, of_meta
from gateway.store.redis.mark import LEASE, MARK, check_whole
from gateway.store.redis.partitions import partition_of_name
from gateway.store.redis.whole import Filling, Whole
from gateway.store.redis.wire import Wire
from gateway.store.steps.copying import Copied, copied_from

_CLIENT: Final = "legato-migrate"  # the name of a migration in the server's list, to tell it from gateways
_LEASE_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 5.0  # half of a gateway's lease
_LEASED_IN: Final = partition_of_name(LEASE)
_OURS: Final = "{p??}:*"  # every key of a store but the facts about it
# What a store that has never held anything may have; everything else is somebody's.
_EMPTY: Final = re.compile(
    r"\{p\d\d\}:(seq|members|platforms|(answers|commits|lease|ready|rate|silent|member|ticket|bucket):.*"
    r"|[in]:(member|lease|ticket|bucket)\..*)"
)
_WIPED: Final = 500  # keys deleted at a time
_IN_USE: Final = re.compile(r"\{p\d\d\}:(answers|commits|lease):.*")  # by this migration


class RedisSource:
    """A database that no gateway uses, held by a lease while it is read; nothing else is written to it."""

    def __init__(self, url: str, *, clock: Clock, timeout: float = 10.0) -> None:
        self._endpoint = Endpoint(url, timeout=timeout, name=_CLIENT)
        self.name = self._endpoint.address()
        self._clock = clock
        self._background = Background()
        self._owner = os.urandom(8).hex()
        self._open_wire: Wire | None = None
        self._store_id = ""
        self._is_former = False  # of the layout that is brought over
        self._last_number = 0
        self._is_lost = False

    @property
    def identity(self) -> str:
        return self._store_id

    async def open(self) -> None:
        with self._reached():
            await self._open()

    async def _open(self) -> None:
        self._connect(await self._found())
        await self._take()
        await self._check_unused()

    async def _found(self) -> str:
        """The id of the store that is there. Raises StoreUnavailable."""
        found = await survey(self._endpoint)
        check_ours(self._endpoint, found)
        if not found.meta:
            raise StoreUnavailable(f"There is no store at {self._endpoint}. Check the address.")
        check_whole(self._endpoint, found.meta)
        self._is_former = int(found.meta.get("format", "1")) < RECORDS
        return found.meta["id"]

    def _connect(self, store_id: str) -> None:
        self._store_id = store_id
        caller = CallHeader(owner=self._owner, channel=f"legato:{store_id}")
        self._open_wire = Wire(
            self._endpoint,
            caller=caller,
            clock=self._clock,
            background=self._background,
            patience=self._endpoint.timeout,
        )
        self._open_wire.open()

    async def _take(self) -> None:
        """Hold the lease from now on, so that no gateway opens the store. Raises StoreLocked."""
        if not await self._hold():
            raise StoreLocked(
                f"Another migration works on the database at {self._endpoint}. Wait until it has ended (one that was "
                "killed is forgotten after ten seconds)."
            )
        self._background.start(self._keep_hold(), name="migration lease")

    async def _hold(self) -> bool:
        life = str(int(_LEASE_SECONDS * 1_000))
        reply: list[Any] = await self._wire.run(_LEASED_IN, "hold", LEASE, self._owner, life)
        return bool(reply[0])

    async def _keep_hold(self) -> None:
        while not self._is_lost:
            await self._clock.sleep(_LEASE_SECONDS / 6)
            try:
                # Had it run out, a gateway may have come and gone since: renewing it would hide that.
                holder = await self._wire.ask(_LEASED_IN, "GET", f"lease:{LEASE}")
                self._is_lost = holder != self._owner or not await self._hold()
            except StoreUnavailable:
                self._is_lost = True

    async def check(self) -> None:
        if self._is_lost:
            raise StoreUnavailable(
                f"This process was held up for so long that a gateway may have used {self.name} meanwhile. "
                "Run `legato migrate` again."
            )

    async def _check_unused(self) -> None:
        """Raises StoreLocked if a gateway is there, and says where it runs as far as the server knows."""
        if await of_meta(self._endpoint, "EXISTS", LOCK) or (
            self._is_former and await of_meta(self._endpoint, "HEXISTS", META, BROUGHT)
        ):
            raise StoreLocked(
                f"The database at {self._endpoint} is being updated to this version. Let `legato run` finish that, "
                "then run `legato migrate` again."
            )
        alive = await living(self._endpoint)
        if not alive:
            return
        hosts = sorted({host async for host, name in clients(self._endpoint) if name == "legato"})
        where = f" on {', '.join(hosts)}" if hosts else ""
        count = "A gateway uses" if alive == 1 else f"{alive} gateways use"
        raise StoreLocked(
            f"{count} the database at {self._endpoint}{where}. Stop every `legato run` and `legato chat` with this "
            "store.url (one that was killed is forgotten after ten seconds), then run `legato migrate` again."
        )

    async def dump(self) -> AsyncGenerator[Sequence[Copied], None]:
        with self._reached():
            if self._is_former:
                async with former_records(self._endpoint, self._wire, lambda _: None) as filled:
                    self._last_number = filled.last_number()
                    for page in filled.pages():
                        yield page
                return
            whole = Whole(self._endpoint, self._wire)
            self._last_number = await whole.last_number()
            async with aclosing(whole.pages()) as pages:
                async for page in pages:
                    yield page

    async def last_number(self) -> int:
        return self._last_number

    async def aclose(self) -> None:
        wire, self._open_wire = self._open_wire, None
        if wire is not None:
            wire.submit(_LEASED_IN, "let_go", LEASE, self._owner)
            await wire.drain()
        await self._background.aclose()
        if wire is not None:
            await wire.aclose()

    @property
    def _wire(self) -> Wire:
        if self._open_wire is None:
            raise StoreUnavailable("The store is closed.")
        return self._open_wire

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except UNREACHABLE as error:
            raise refusal(self._endpoint, error) or StoreUnavailable(
                f"Redis at {self._endpoint} cannot be reached ({reason(error)}). Check that it runs and that the "
                "address is right."
            ) from error


class RedisSnapshot(RedisSource):
    """The same beside running gateways, whose writes the server holds back while everything is read: for less than a
    gateway's lease, or it would be taken for dead. Where none runs, none starts meanwhile, and there is no hurry."""

    _beside = False

    async def _open(self) -> None:
        self._connect(await self._found())
        self._beside = bool(await living(self._endpoint))
        if not self._beside:
            await self._take()
            await self._check_unused()

    async def dump(self) -> AsyncGenerator[Sequence[Copied], None]:
        if not self._beside:
            async for page in super().dump():
                yield page
            return
        with TemporaryFile() as kept:  # what is done with a page takes longer than reading it
            await self._read_into(kept)
            kept.seek(0)
            with suppress(EOFError):
                while True:
                    yield [copied_from(*each) for each in pickle.load(kept)]

    async def _read_into(self, kept: IO[bytes]) -> None:
        began = self._clock.monotonic()
        await self._ask_primaries("CLIENT", "PAUSE", str(int(_PAUSE_SECONDS * 1_000)), "WRITE")
        try:
            async for page in super().dump():
                if self._clock.monotonic() - began >= _PAUSE_SECONDS:
                    raise StoreUnavailable(
                        f"{self.name} cannot be read in {_PAUSE_SECONDS:g} seconds, which is as long as the gateways "
                        "there can be held up. Stop them, or back up the files of the server."
                    )
                pickle.dump([(each.name, each.key, each.document) for each in page], kept)
        finally:
            await self._ask_primaries("CLIENT", "UNPAUSE")

    async def _ask_primaries(self, *command: str) -> None:
        with self._reached():
            for address in await self._endpoint.primaries():
                async with used(self._endpoint.connect(address)) as connection:
                    await ask(connection, *command, seconds=self._endpoint.timeout)


class RedisTarget(RedisSource):
    """A database that is filled, or filled again from its start if an earlier migration left it half-filled."""

    async def _open(self) -> None:
        found = await survey(self._endpoint)
        check_ours(self._endpoint, found)
        meta = found.meta or await establish(self._endpoint)
        self._store_id = meta["id"]
        if MARK not in meta:
            await self._check_empty()
        self._connect(self._store_id)
        await self._take()
        # As it is now that no other migration can change it.
        self._is_marked = bool(await of_meta(self._endpoint, "HEXISTS", META, MARK))
        self._filling = Filling(self._wire, self._owner)

    async def _check_empty(self) -> None:
        async with aclosing(keys(self._endpoint, _OURS)) as names:
            async for name in names:
                if not _EMPTY.fullmatch(name):
                    raise StoreUnavailable(
                        f"The database at {self._endpoint} is not empty. A migration needs an empty store, so choose "
                        "another one, such as another number at the end of the address."
                    )

    async def begin(self, origin: str) -> None:
        with self._reached():
            await of_meta(self._endpoint, "HSET", META, MARK, origin)
            try:
                # A process that came before the lease was taken is still there, or has left what it wrote.
                await self._check_unused()
                if not self._is_marked:
                    await self._check_empty()
            except StoreError:
                if not self._is_marked:
                    await of_meta(self._endpoint, "HDEL", META, MARK)
                raise
            forms = {"format": FORMAT, "readable_from": READABLE_FROM}
            await of_meta(self._endpoint, "HSET", META, *(str(each) for form in forms.items() for each in form))
            await self._wipe()

    async def _wipe(self) -> None:
        """Delete what an earlier migration wrote: nobody else has opened the store since it was marked."""
        doomed: list[tuple[int, tuple[str, str]]] = []
        async with aclosing(keys(self._endpoint, _OURS)) as names:
            async for name in names:
                if not _IN_USE.fullmatch(name):
                    doomed.append((int(name[2:4]), ("UNLINK", name.partition(":")[2])))
                if len(doomed) == _WIPED:
                    await self._wire.ask_all(doomed)
                    doomed.clear()
        await self._wire.ask_all(doomed)

    async def restore(self, page: Sequence[Copied]) -> None:
        await self._filling.restore(page)

    async def complete(self, last_number: int) -> None:
        await self._filling.complete(last_number)

    async def publish(self) -> None:
        with self._reached():
            await of_meta(self._endpoint, "HDEL", META, MARK)
