"""`python -m tests.emulators NAME`: play a platform or a server of models by hand. README.md says how.

It prints what goes into config.yaml. A platform reads what a person says there, a line each.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from typing import Final

from tests.emulators import discord, telegram
from tests.emulators.discord.intents import KNOWN, Intent
from tests.emulators.embeddings import EmbeddingServer
from tests.emulators.lines import Lines, OnDiscord, OnSlack, OnTelegram, OnWhatsApp, Person
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import by_hand, summarising
from tests.emulators.search import SearchServer
from tests.emulators.slack import SlackServer
from tests.emulators.transcription import TranscriptionServer
from tests.emulators.whatsapp import WhatsAppServer


async def _telegram(given: argparse.Namespace) -> None:
    settings = telegram.Settings(privacy=not given.no_privacy)
    limits = None if given.no_limits else telegram.Limits()
    async with telegram.TelegramServer(settings, limits=limits, host=given.host, port=given.port) as server:
        await _played(OnTelegram(server))


async def _discord(given: argparse.Namespace) -> None:
    settings = discord.Settings(allowed_intents=int(KNOWN & ~Intent.MESSAGE_CONTENT if given.no_content else KNOWN))
    limits = None if given.no_limits else discord.Limits()
    async with discord.DiscordServer(settings, limits=limits, host=given.host, port=given.port) as server:
        await _played(OnDiscord(server))


async def _slack(given: argparse.Namespace) -> None:
    async with SlackServer(limited=not given.no_limits, host=given.host, port=given.port) as server:
        await _played(OnSlack(server))


async def _whatsapp(given: argparse.Namespace) -> None:
    async with WhatsAppServer(limited=not given.no_limits, host=given.host, port=given.port) as server:
        await _played(OnWhatsApp(server))


async def _played(person: Person) -> None:
    print(person.configuration, flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await Lines(person, lambda text: print(text, flush=True)).run(reader)


async def _llm(given: argparse.Namespace) -> None:
    model = LlmServer(summarising(by_hand), host=given.host, port=given.port, context_length=given.context_length)
    async with model as server:
        await _serve(f'model: {{provider: openai, name: test-model, base_url: "{server.url}"}}\n{_KEY}')


async def _embeddings(given: argparse.Namespace) -> None:
    async with EmbeddingServer(port=given.port) as server:
        line = f'search: {{embeddings: {{provider: openai, name: tiny, base_url: "{server.url}"}}}}'
        await _serve(f"{line}\n{_KEY}")


async def _transcription(given: argparse.Namespace) -> None:
    async with TranscriptionServer(given.says, port=given.port) as server:
        await _serve(f'transcription: {{base_url: "{server.url}", model: whisper-1}}')


async def _search(given: argparse.Namespace) -> None:
    async with SearchServer("searxng", port=given.port) as server:
        await _serve(f'tools: {{search: {{provider: searxng, base_url: "{server.url}"}}}}')


_KEY: Final = "\n# .env beside it\nOPENAI_API_KEY=any"


async def _serve(lines: str) -> None:
    print(f"# config.yaml\n{lines}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve until the person leaves or the program is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.emulators", description=__doc__)
    names = parser.add_subparsers(required=True, metavar="NAME")

    def emulator(
        name: str, port: int, serve: Callable[[argparse.Namespace], Awaitable[None]], what: str
    ) -> Callable[..., object]:
        added = names.add_parser(name, help=what, description=what)
        added.set_defaults(serve=serve)
        added.add_argument("--port", type=int, default=port)
        return added.add_argument

    add = emulator("telegram", 8081, _telegram, "A loopback Telegram, with you as its people.")
    add("--host", default="127.0.0.1")
    add("--no-privacy", action="store_true", help="the bot sees everything in groups")
    add("--no-limits", action="store_true", help="no flood control")
    add = emulator("discord", 8082, _discord, "A loopback Discord, with you as its people.")
    add("--host", default="127.0.0.1")
    add("--no-content", action="store_true", help="the portal does not allow Message Content")
    add("--no-limits", action="store_true", help="no rate limits")
    add = emulator("slack", 8083, _slack, "A loopback Slack, which reads what a person says there from its input.")
    add("--host", default="127.0.0.1")
    add("--no-limits", action="store_true", help="no rate limits")
    add = emulator("whatsapp", 8084, _whatsapp, "A loopback WhatsApp, which reads what a person says there.")
    add("--host", default="127.0.0.1")
    add("--no-limits", action="store_true", help="no rate limits")
    add = emulator("llm", 8900, _llm, "A strict server of the APIs of models, which does what a message says.")
    add("--host", default="127.0.0.1")
    add("--context-length", type=int, default=128_000, help="of its model, in tokens")
    add = emulator("transcription", 8901, _transcription, "A server that hears words in every recording.")
    add("--says", default="Buy milk and call Ann.")
    emulator("embeddings", 8902, _embeddings, "A server of an embedding model with a few synonyms.")
    emulator("search", 8903, _search, "A SearXNG that finds the same two pages for everything.")
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(given.serve(given))


if __name__ == "__main__":
    main()
