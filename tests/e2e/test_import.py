"""`legato import`: another program's conversations are found, resumed, and come once, whatever is killed."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import importing
from gateway.cli.importing import ImportReport, import_file, report_text
from gateway.commands.sessions import heading
from gateway.domain.chat import SessionKey
from gateway.domain.message import note_of, text_of
from gateway.runtime.errors import StoreLocked, UserError
from gateway.store.port import Store
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, config_in, running
from tests.support.program import legato, started
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.redis_server"]

ME = "console:local"
KEY = SessionKey(platform="console", chat="main")


def talk(name: str, *texts: str, title: str = "") -> dict[str, Any]:
    """A conversation of a JSON line, in turn of the person and the model."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text, "at": 1.6e9 + n} for n, text in enumerate(texts)]
    return {"id": name, "title": title, "messages": messages}


def written(path: Path, *talks: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in talks), encoding="utf-8")
    return path


@pytest.fixture
def into(tmp_path: Path, reopened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Import into the same store, of either kind."""
    monkeypatch.setattr(importing, "configured_store", lambda *_, **__: reopened())

    async def bring(path: Path, *, who: str = "", form: str = "jsonl", dry_run: bool = False) -> ImportReport:
        settings = config_in(tmp_path)
        return await import_file(
            settings, form, path, who, ManualClock(1.7e9), dry_run=dry_run, tell=lambda *_: None
        )  # fmt: skip

    return bring


async def sessions(reopened: Callable[[], Store], key: SessionKey | None = KEY) -> list[tuple[str, list[str]]]:
    store = reopened()
    await store.open()
    try:
        return [
            (await heading(store, each), [text_of(message) for message in await store.transcript(each)])
            for each in await store.sessions(key, 1_000)
        ]
    finally:
        await store.aclose()


async def test_another_programs_notes_come_as_notes(
    tmp_path: Path, into: Callable[..., Any], reopened: Callable[[], Store]
) -> None:
    notes = "This session is being continued from a previous conversation. The gate code is 4711. Resume exactly there."
    quoting = f"Why does my log say “{notes}”?"
    path = written(tmp_path / "talks.jsonl", talk("one", notes, "Understood.", quoting, "Because …", "thanks", "Yes."))
    assert (await into(path)).messages == 6
    assert (await into(path)).known == 1
    async with running(tmp_path, adapter=FakeAdapter("console"), store=reopened()) as live:
        where = {"chat": "main", "user": "local"}
        [old] = await live.store.sessions(KEY, 9)
        await live.ask(f"/resume {old.id}", **where)
        await live.ask("go on", **where)
        said = live.model.spoken()
        assert said[0][0] == "user"
        assert said[0][1].startswith("[Notes on the earlier conversation: for reference only]")
        assert said[2] == ("user", quoting)
        assert (await heading(live.store, old)).startswith("Why does my log say")
        for number in range(4):
            await live.ask(f"{number} {'more words ' * 400}", **where)
        await live.ask("/compress", **where)
        await live.ask("and the code?", **where)
        assert [text for _, text in live.model.spoken() if text.startswith("This session")] == []


async def test_what_was_imported_is_found_and_gone_on_with(
    tmp_path: Path, into: Callable[..., Any], reopened: Callable[[], Store]
) -> None:
    file = written(
        tmp_path / "a.jsonl",
        talk("c1", "my cat is called Mitzi", "a nice name", title="Cats 猫"),
        talk("c2", "我的狗叫旺财", "好名字", "اسمي سارة", "أهلا", title="狗"),
    )
    report = await into(file)
    assert (report.owner, report.sessions, report.messages, report.known) == (ME, 2, 6, 0)
    adapter = FakeAdapter(name="console")
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=reopened()) as live:
        assert await live.tip(chat="main") is None
        said = await live.ask("/sessions", chat="main")
        assert "1. Cats 猫 (2 messages, 2020-09-13)\n2. 狗 (4 messages, 2020-09-13)" in said
        assert "my cat is called Mitzi" in await live.ask("/recall Mitzi", chat="main")
        assert "我的狗叫旺财" in await live.ask("/recall 旺财", chat="main")
        assert "There is nothing" not in await live.ask("/recall سارة", chat="main")
        assert "I went back to “Cats 猫” (2 messages)" in await live.ask("/resume 1", chat="main")
        await live.ask("and how old is it?", chat="main")
        sent = [text_of(message) for message in live.model.requests[-1].messages]
        assert sent[-3:] == ["my cat is called Mitzi", "a nice name", "and how old is it?"]
        tip = await live.tip(chat="main")
        assert tip is not None
        assert (tip.message_count, tip.transcript_tokens > 0) == (4, True)
        assert await live.store.pending_hooks(10) == []
        # Nobody else sees them.
        assert "There are no earlier sessions" in await live.ask("/sessions", chat="other")


async def test_each_comes_once_and_what_has_grown_goes_on(
    tmp_path: Path, into: Callable[..., Any], reopened: Callable[[], Store]
) -> None:
    file = written(tmp_path / "a.jsonl", talk("c1", "q1", "a1"), talk("c2", "q2", "a2"), talk("c1", "q1", "a1"))
    first = await into(file, dry_run=True)
    assert (first.sessions, await sessions(reopened)) == (3, [])
    first, again = await into(file), await into(file)
    assert (first.sessions, first.known, again.sessions, again.known) == (2, 1, 0, 3)
    written(file, talk("c1", "q1", "a1", "more", "yes"), talk("c2", "q2 edited", "other", "end"))
    grown, again = await into(file), await into(file)
    assert (grown.sessions, grown.grown, grown.messages, again.sessions) == (2, 2, 5, 0)
    assert sorted(texts for _, texts in await sessions(reopened)) == [
        ["q1", "a1"], ["q1", "a1", "more", "yes"], ["q2", "a2"], ["q2 edited", "other", "end"],
    ]  # fmt: skip
    adapter = FakeAdapter(name="console")
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=reopened()) as live:
        listed = await live.ask("/sessions", chat="main")
        assert [line for line in listed.splitlines() if "q1" in line] == [
            next(x for x in listed.splitlines() if "(4 m" in x)
        ]
        found = await live.store.search("q1", KEY, 10)
        assert len({note_of(hit.hit.message)["id"] for hit in found}) == 1  # shared, not copied


async def test_what_has_changed_since_comes_however_long_it_is(
    tmp_path: Path, into: Callable[..., Any], reopened: Callable[[], Store]
) -> None:
    file = written(tmp_path / "a.jsonl", talk("c1", "q1", "a1", "q2", "a2"), talk("c2", "q", "a"))
    await into(file)
    written(file, talk("c1", "q1", "a1", "edited", "b2"), talk("c1", "q1", "short"), talk("c2", "q"))
    changed, again = await into(file), await into(file)
    assert (changed.sessions, changed.grown, changed.messages, changed.known) == (2, 2, 3, 1)
    assert (again.sessions, again.known) == (0, 3)
    assert sorted(texts for _, texts in await sessions(reopened)) == [
        ["q", "a"], ["q1", "a1", "edited", "b2"], ["q1", "a1", "q2", "a2"], ["q1", "short"],
    ]  # fmt: skip


async def test_what_was_forgotten_of_it_does_not_come_back(
    tmp_path: Path, into: Callable[..., Any], reopened: Callable[[], Store]
) -> None:
    file = written(tmp_path / "a.jsonl", talk("c1", "hello", "hi", "the password is xyzzy", "noted"))
    await into(file)
    adapter = FakeAdapter(name="console")
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=reopened()) as live:
        assert "the password is xyzzy" in await live.ask("/forget xyzzy", chat="main")
        event = await live.tell("/forget 1", chat="main")
        await adapter.until(lambda: any(row.kind == "question" for row in adapter.sent))
        await live.tell("y", chat="main")
        assert "Forgot" in (await live.answer(event)).text
        await live.quiet()
    assert (await into(file)).known == 1
    assert not any("xyzzy" in text for _, all_ in await sessions(reopened) for text in all_)


async def test_two_at_once_bring_it_once(
    tmp_path: Path, reopened: Callable[[], Store], into: Callable[..., Any]
) -> None:
    file = written(tmp_path / "a.jsonl", *(talk(f"c{n}", f"q{n}", "a") for n in range(200)))
    reports = await asyncio.gather(into(file), into(file), return_exceptions=True)
    locked = [each for each in reports if isinstance(each, BaseException)]
    assert all(isinstance(each, StoreLocked) for each in locked)  # a file has one owner
    assert sum(each.sessions for each in reports if isinstance(each, ImportReport)) == 200
    assert len(await sessions(reopened)) == 200


async def test_the_persons_own_sessions_stay_in_front(
    tmp_path: Path, into: Callable[..., Any], reopened: Callable[[], Store]
) -> None:
    async def speak() -> None:
        adapter = FakeAdapter(name="console")
        async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=reopened()) as live:
            await live.ask("my own words", chat="main")
            await live.ask("/new", chat="main")

    await speak()
    await into(written(tmp_path / "a.jsonl", *(talk(f"c{n}", f"q{n}", "a") for n in range(30))))
    titles = [title for title, texts in await sessions(reopened) if texts]
    assert titles == ["my own words", *(f"q{n}" for n in range(30))]
    assert [title for title, texts in await sessions(reopened, None) if texts] == titles
    await speak()
    assert [title for title, texts in await sessions(reopened) if texts][:3] == ["my own words", "my own words", "q0"]


async def test_a_file_that_is_cut_off_keeps_what_came_before(
    tmp_path: Path, into: Callable[..., Any], reopened: Callable[[], Store]
) -> None:
    one = {"uuid": "u1", "name": "t", "chat_messages": [{"sender": "human", "text": "hello"}]}
    file = tmp_path / "conversations.json"
    file.write_text(f'[{json.dumps(one)}, {{"uuid"', encoding="utf-8")
    report = await into(file, form="claude")
    assert (report.sessions, "was cut off" in report.ended) == (1, True)
    assert [texts for _, texts in await sessions(reopened)] == [["hello"]]
    file.write_text("<html>Sign in</html>", encoding="utf-8")
    with pytest.raises(UserError, match="not a JSON array"):
        await into(file, form="claude")


async def test_owners(tmp_path: Path, into: Callable[..., Any], reopened: Callable[[], Store]) -> None:
    file = written(tmp_path / "a.jsonl", talk("c1", "q", "a"))
    for name, sentence in (
        ("nowhere:1", "there is no platform nowhere"), ("telegram", "does not name a person"),
        ("telegram:ann", "must give a number"), ("telegram:4711", "have them do so once"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=sentence):
            await into(file, who=name)
    async with running(
        tmp_path, config=config_in(tmp_path), adapter=FakeAdapter(name="telegram"), store=reopened()
    ) as live:
        await live.ask("hello", chat="-5", user="4711", chat_type="group")
        await live.ask("hello", chat="77", user="4711")
        await live.quiet()
    assert (await into(file, who="telegram:4711")).sessions == 1
    assert ("q", ["q", "a"]) in await sessions(reopened, SessionKey(platform="telegram", chat="77"))
    # Another person has a copy of their own.
    assert (await into(file)).sessions == 1


@pytest.mark.parametrize("grown", [300_000, *(pytest.param(size, marks=pytest.mark.slow) for size in (0, 2_000_000))])
async def test_killed_anywhere_and_run_again_nothing_is_missing_or_twice(tmp_path: Path, grown: int) -> None:
    file = written(tmp_path / "a.jsonl", *(talk(f"c{n}", f"q{n}", "a", f"r{n}", "b") for n in range(1_000)))
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    process = await started(tmp_path, "import", "jsonl", str(file))
    log = tmp_path / "legato.db-wal"
    await eventually(lambda: process.returncode is not None or (log.exists() and log.stat().st_size > grown))
    if process.returncode is None:
        process.send_signal(signal.SIGKILL)
    await process.communicate()
    status, out, err = await legato(tmp_path, "import", "jsonl", str(file), "--json")
    assert status == 0, err
    report = json.loads(out)
    assert report["sessions"] + report["known"] == 1_000
    status, out, _ = await legato(tmp_path, "sessions", "list", "--limit", "10000", "--json")
    listed = json.loads(out)
    assert (len(listed), {each["messages"] for each in listed}) == (1_000, {4})
    status, out, _ = await legato(tmp_path, "doctor")
    assert "no record is missing" in out


async def test_as_a_person_types_it(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a.jsonl", talk("c1", "my cat is called Mitzi", "nice"), {"role": "system", "content": "x"}
    )
    status, out, err = await legato(tmp_path, "import", "jsonl", str(file), "--dry-run")
    assert (status, err) == (0, "")
    assert out.startswith(
        "Legato would import 1 conversation with 2 messages for console:local.\nLeft out:\n        1  instr"
    )
    assert not (tmp_path / "legato.db").exists()
    status, out, _ = await legato(tmp_path, "import", "jsonl", str(file))
    assert "/recall finds what was said in the imported" in out
    foreign = tmp_path / "notes.json"
    foreign.write_text('[{"note": "buy milk"}]', encoding="utf-8")
    for arguments, told in (
        (
            ["word", "a"],
            "Legato cannot read the format 'word'; choose one of hermes, chatgpt, claude, openwebui, jsonl",
        ),
        (["jsonl", "none"], "There is no file none."),
        (["hermes", str(file)], "Name hermes-agent's state.db"),
        (["claude", str(file)], f"looks like a file of JSON lines with messages, so try: legato import jsonl {file}"),
        (["jsonl", str(foreign)], "contains no conversation, so it is not a file of JSON lines with messages."),
    ):
        status, out, err = await legato(tmp_path, "import", *arguments)
        assert (status != 0, out, told in err) == (True, "", True), err


async def test_beside_a_gateway_on_a_file_it_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", talk("c1", "q", "a"))
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    async with running(tmp_path, config=config_in(tmp_path)):
        status, _, err = await legato(tmp_path, "import", "jsonl", str(file))
        assert (status, "uses legato.db. Stop it first" in err) == (1, True), err
        status, out, _ = await legato(tmp_path, "import", "jsonl", str(file), "--dry-run")
        assert (status, "would import 1 conversation" in out) == (0, True)


def test_the_report_names_what_was_left_out() -> None:
    report = ImportReport(owner=ME, sessions=2, messages=9, known=1, grown=1, left_out={"thoughts of the model": 1_234})
    text = report_text(report)
    for part in (
        "Legato imported 2 conversations with 9 messages",
        "1 conversation had grown or changed",
        "1 conversation had been imported before",
        "1,234  th",
    ):
        assert part in text
