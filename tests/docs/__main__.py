"""Write what `docs/` takes from the program: `python -m tests.docs`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from tests.docs import charts, features, forms, rooms, tables, telegram, terminal, window
from tests.docs.settings import as_markdown
from tests.support.programs import programs

ROOT = Path(__file__).parents[2]


async def _session(drawn: Callable[[Path], Awaitable[str]]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return await drawn(Path(folder))


def _drawn(scene: Callable[[Path], Awaitable[str]]) -> str:
    return asyncio.run(_session(scene))


WRITTEN: dict[str, Callable[[], str]] = {
    "docs/configuration.md": lambda: tables.page_with("docs/configuration.md", settings=as_markdown()),
    "docs/context.md": lambda: tables.page_with("docs/context.md", spent=tables.spent()),
    "docs/operations.md": lambda: tables.page_with("docs/operations.md", metrics=tables.metrics()),
    "docs/performance.md": lambda: tables.page_with(
        "docs/performance.md", budgets=tables.budgets(), ratios=tables.ratios(), gateways=tables.gateways()
    ),
    "docs/platforms.md": lambda: tables.page_with("docs/platforms.md", abilities=tables.abilities()),
    "docs/providers.md": lambda: tables.page_with("docs/providers.md", vendors=tables.vendors()),
    "docs/pictures/cost.svg": charts.cost,
    "docs/pictures/matrix.svg": lambda: forms.drawn("Where an account, an id and a room are on Matrix", forms.MATRIX),
    "docs/pictures/rooms.svg": rooms.drawn,
    "docs/pictures/slack.svg": lambda: forms.drawn("Where Slack's tokens are", forms.SLACK),
    "docs/pictures/soak.svg": charts.soak,
    "docs/pictures/spent.svg": charts.spent,
    "docs/pictures/whatsapp.svg": lambda: forms.drawn("Where WhatsApp's token, secret and number are", forms.WHATSAPP),
    "docs/pictures/window.svg": window.drawn,
    "docs/pictures/terminal.svg": lambda: asyncio.run(_session(terminal.drawn)),
    "docs/pictures/telegram.svg": lambda: asyncio.run(_session(telegram.drawn)),
    **{
        f"docs/pictures/{name.replace('_', '-')}.svg": partial(_drawn, scene) for name, scene in features.SCENES.items()
    },
}
"""The files that this command writes, and how each is made."""

PHOTOGRAPHED: dict[str, str] = {
    "docs/pictures/page.svg": "film",
    "docs/pictures/page.png": "desk",
    "docs/pictures/page-phone.png": "phone",
    "docs/pictures/page-settings.png": "settings-wide-light",
    "docs/pictures/page-window.png": "window-wide-light",
    "docs/pictures/page-operator.png": "operator-wide-dark",
}
"""The same of pictures that a browser takes, where there is one: each machine's fonts are its own."""


def _picture(size: str) -> bytes:
    from tests.docs.gallery import photograph  # a browser is needed for these alone
    from tests.docs.page import filmed, photographed

    with tempfile.TemporaryDirectory() as folder:
        if size not in ("film", "desk", "phone"):
            asyncio.run(photograph(Path(folder), [size]))
            return Path(folder, f"{size}.png").read_bytes()
        return asyncio.run(filmed(Path(folder)) if size == "film" else photographed(Path(folder), size))


def main() -> None:
    """Write the files whose paths are given, or all."""
    for name in sys.argv[1:] or [*WRITTEN, *(PHOTOGRAPHED if programs()["chromium"].path else ())]:
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in PHOTOGRAPHED:
            path.write_bytes(_picture(PHOTOGRAPHED[name]))
        else:
            path.write_text(WRITTEN[name](), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
