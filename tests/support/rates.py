"""Moments to send at, by the steps of a store on a space in memory."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.adapter import Rate
from gateway.store.fleeting import MemoryRecords
from gateway.store.steps import pace


class Rates:
    """What a process knows that sends alone."""

    def __init__(self) -> None:
        self.space = MemoryRecords()

    def take(self, account: str, ticket: str, rates: Sequence[Rate], now: float) -> float:
        wait, _ = self.space.run(pace.take, account, ticket, rates, now)
        return wait

    def hold_off(self, account: str, bucket: str, until: float) -> None:
        self.space.run(pace.hold_off, account, bucket, until)

    def resting(self, account: str, bucket: str, now: float) -> float:
        seconds, _ = self.space.run(pace.resting, account, bucket, now)
        return seconds
