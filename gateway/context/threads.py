"""The thread in which an engine's plain functions run, and how they ask a model from there."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from gateway.domain.message import Message

T = TypeVar("T")


class BlockingModel:
    """`call_model` for an engine whose plain functions run in a thread; the thread waits for the loop. `context` is
    that of the engine's present call, because a thread that the engine starts knows neither the program nor the
    turn."""

    def __init__(self, call_model: Callable[..., Any], loop: asyncio.AbstractEventLoop) -> None:
        self._call_model = call_model
        self._loop = loop
        self._thread = threading.get_ident()  # made on the loop
        self.context = contextvars.copy_context()
        # Both are touched on the loop only, so no call can begin during the cancellation of others.
        self._pending: set[asyncio.Task[Any]] = set()
        self._cancelled = 0  # the number of cancellations; a call on its way at such a time is not begun

    def __call__(self, messages: Sequence[Message], max_tokens: int) -> Any:
        """Ask the model. Raises RuntimeError on the event loop's own thread, where the wait would never end."""
        if threading.get_ident() == self._thread:
            raise RuntimeError("call_model blocks: call it from a plain function, not from a coroutine")
        asked = self._ask(messages, max_tokens, self._cancelled)
        return self.context.copy().run(asyncio.run_coroutine_threadsafe, asked, self._loop).result()

    async def _ask(self, messages: Sequence[Message], max_tokens: int, cancelled: int) -> Any:
        task = asyncio.current_task()
        if task is None or cancelled != self._cancelled:
            raise asyncio.CancelledError
        self._pending.add(task)
        try:
            reply = self._call_model(messages, max_tokens)
            return await reply if inspect.isawaitable(reply) else reply
        finally:
            self._pending.discard(task)

    def cancel(self) -> None:
        """Release a thread whose turn was cancelled."""
        self._cancelled += 1
        for task in tuple(self._pending):
            task.cancel()


class OwnThread:
    """The thread in which an engine's plain functions run, because some things, such as a connection to SQLite, belong
    to the thread that made them. A call that comes while another one runs gets a thread of its own, because the other
    may never return. In the loop's pool it would take a place from everybody, and the process would wait for it at its
    end."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._started = False
        self._busy = False

    async def call(self, call: Callable[[], T]) -> T:
        """Return `call()`, made there."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        own, self._busy = not self._busy, True

        def deliver(settle: Callable[[Any], None], outcome: Any) -> None:
            if not future.done():
                settle(outcome)

        def work() -> None:
            settle: Callable[[Any], None] = future.set_exception
            outcome: Any
            try:
                outcome, settle = call(), future.set_result
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                # A future carries neither; a thread that left in silence would be waited for without an end.
                uncarried = isinstance(error, StopIteration | asyncio.CancelledError)
                outcome = RuntimeError(repr(error)) if uncarried else error
            if own:
                self._busy = False  # before anybody can call again
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(deliver, settle, outcome)

        in_context = partial(contextvars.copy_context().run, work)
        if not own:
            _thread(in_context)
        else:
            if not self._started:
                self._started = True
                _thread(partial(_run_all, self._calls))
            self._calls.put(in_context)
        return await future

    def end(self) -> None:
        """Let the thread end when it has nothing to do."""
        self._calls.put(None)


def _run_all(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()


def _thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="context-engine", daemon=True).start()
