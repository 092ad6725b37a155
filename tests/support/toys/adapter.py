"""The parrot at work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway.domain.adapter import Accept, Finding, Limits
from gateway.domain.chat import Inbound, Outbound, Source
from gateway.domain.platform import AdapterHost
from toys.platform import ParrotSettings

_PAUSE = 0.05  # seconds between two looks at the file


class Parrot:
    """`Adapter`. Each line is a message of Polly's; its number makes its event id, so that none is taken twice."""

    name = "parrot"
    limits = Limits(text_units=1_000)

    def __init__(self, settings: ParrotSettings, host: AdapterHost) -> None:
        self._ears = Path(settings.ears)
        self._beak = Path(settings.beak)
        self._clock = host.clock

    async def run(self, accept: Accept) -> None:
        """Listen until cancelled."""
        polly = Source(platform=self.name, chat="perch", chat_type="direct", user="polly")
        heard = 0
        while True:
            lines = self._ears.read_text().splitlines() if self._ears.exists() else []
            batch = [
                Inbound(event_id=f"line-{number}", source=polly, text=line, sent_at=self._clock.now())
                for number, line in enumerate(lines)
            ][heard:]
            if batch:
                await accept(batch)
                heard = len(lines)
            await self._clock.sleep(_PAUSE)

    async def send(self, outbound: Outbound) -> str:
        """Say it."""
        with self._beak.open("a") as file:
            file.write(f"{outbound.text}\n")
        return outbound.id

    async def probe(self) -> Sequence[Finding]:
        """For `legato check`."""
        return [Finding(what="parrot", ok=True, detail=f"hears {self._ears}")]

    async def aclose(self) -> None:
        """Nothing is open."""
