"""The page of the real program: beside a terminal, by itself, and where it cannot be served."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar

from tests.support.console_terminal import chatting
from tests.support.program import legato, legato_run
from tests.support.waiting import eventually


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def configured(folder: Path, port: int, *, enabled: bool = False) -> None:
    (folder / "config.yaml").write_text(f"adapters: {{web: {{enabled: {str(enabled).lower()}, port: {port}}}}}\n")


async def shown(link: str) -> str:
    """The chat behind a link."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as http, http.get(link) as answer:
        return await answer.text()


async def test_a_terminal_opens_with_the_page_beside_it(tmp_path: Path) -> None:
    configured(tmp_path, free_port())
    async with chatting(tmp_path, "--page", columns=200) as terminal:
        await terminal.sees("Ctrl-D leaves")
        link = re.search(r"http://127.0.0.1:\d+/login\?key=[\w-]+", terminal.text)
        assert link is not None
        assert 'aria-label="Chats and pages"' in await shown(link[0])
        terminal.types("hello\r")
        await terminal.sees("offline model. I need no key")
        terminal.types("\x04")
        assert await terminal.left() == 0


@pytest.mark.parametrize("enabled", [False, True])
async def test_a_port_that_is_taken_stops_no_terminal(tmp_path: Path, taken: int, enabled: bool) -> None:
    configured(tmp_path, taken, enabled=enabled)
    async with chatting(tmp_path, *(() if enabled else ("--page",)), columns=200) as terminal:
        await terminal.sees("Ctrl-D leaves")
        assert terminal.text.count(f"The page cannot be opened at 127.0.0.1:{taken} (Address already in use)") == 1
        terminal.types("hello\r")
        await terminal.sees("offline model. I need no key")
        terminal.types("\x04")
        assert await terminal.left() == 0


async def test_a_terminal_opens_no_page_unasked(tmp_path: Path) -> None:
    configured(tmp_path, port := free_port())
    async with chatting(tmp_path, columns=200) as terminal:
        await terminal.sees("Ctrl-D leaves")
        assert "page" not in terminal.text
        with socket.create_server(("127.0.0.1", port)):
            pass


@pytest.mark.parametrize("form", ["console", "json"])
async def test_a_start_without_a_terminal_says_what_it_serves_and_the_link_and_an_end_that_it_ended(
    tmp_path: Path, form: str
) -> None:
    configured(tmp_path, free_port(), enabled=True)
    quiet = {"LEGATO__LOG__LEVEL": "error", "LEGATO__LOG__FORMAT": form}
    async with legato_run(tmp_path, **quiet) as process:
        lines = [(await process.stderr.readline()).decode().rstrip("\n") for _ in range(3 if form == "json" else 4)]
        process.send_signal(signal.SIGTERM)
        _, rest = await process.communicate()
    lines += rest.decode().splitlines()
    said = lines if form == "console" else [part for line in lines for part in json.loads(line)["text"].split("\n")]
    assert said[0].endswith(" starts. It serves the page.")
    assert said[1] == "Answers come from the offline model (no key, no network). Legato keeps everything in legato.db."
    link = re.fullmatch(r"http://127.0.0.1:\d+/login\?key=[\w-]+", said[3])  # alone, so that no line cuts it
    assert link is not None
    assert (tmp_path / "legato-home" / "page-link").read_text() == f"{link[0]}\n"
    assert said[4:] == ["Legato has ended."]


async def test_it_is_served_without_a_terminal_by_the_link_in_its_file(tmp_path: Path) -> None:
    configured(tmp_path, free_port(), enabled=True)
    file = tmp_path / "legato-home" / "page-link"
    async with legato_run(tmp_path) as process:
        await eventually(file.exists)
        assert file.stat().st_mode & 0o077 == 0
        assert "legato access link" in await shown(file.read_text().partition("/login")[0]), "without a login"
        status, link, _ = await legato(tmp_path, "access", "link")
        assert (status, link) == (0, file.read_text())
        assert 'aria-label="Chats and pages"' in await shown(link.strip())
        assert await legato(tmp_path, "access", "link") != (0, link, ""), "it works once"
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 0
    status, _, told = await legato(tmp_path, "access", "link")
    assert (status, file.exists()) == (1, True)
    assert told.startswith("legato: no page is open here: `legato chat --page` opens the page")


async def test_a_shell_ends_the_logins_of_a_running_page(tmp_path: Path) -> None:
    configured(tmp_path, free_port(), enabled=True)
    file = tmp_path / "legato-home" / "page-link"
    async with legato_run(tmp_path), ClientSession(cookie_jar=CookieJar(unsafe=True)) as http:
        await eventually(file.exists)
        link = file.read_text().strip()
        async with http.get(link) as answer:
            assert 'aria-label="Chats and pages"' in await answer.text()
        assert await legato(tmp_path, "access", "logout", "anna") == (0, "anna is not logged in.\n", "")
        status, out, _ = await legato(tmp_path, "access", "logout", "web:owner")
        assert (status, out) == (0, "owner: 1 login ended. The browsers are logged out within ten seconds.\n")

        async def ended() -> bool:
            async with http.get(link.partition("/login")[0]) as answer:
                return 'aria-label="Chats and pages"' not in await answer.text()

        await eventually(ended)


async def test_a_taken_port_is_said_where_nothing_else_is_served(tmp_path: Path, taken: int) -> None:
    configured(tmp_path, taken, enabled=True)
    status, _, err = await legato(tmp_path, "run")
    assert status != 0
    assert f"The page cannot be opened at 127.0.0.1:{taken} (Address already in use)" in err
    assert "Traceback" not in err


async def test_a_page_for_others_needs_people_and_a_name(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text('adapters: {web: {enabled: true, host: "0.0.0.0"}}\n')
    status, _, err = await legato(tmp_path, "run")
    assert status == 2
    assert "adapters.web.people is needed where others can reach the page" in err
    assert "adapters.web.url is needed where others can reach the page" in err
    assert not (tmp_path / "legato-home" / "page-link").exists()
