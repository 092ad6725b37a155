"""Files through a whole gateway on a platform made of lists: crashes, platforms without the ability, compaction."""

from __future__ import annotations

import asyncio
import base64
import json
import tracemalloc
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.files.kinds import NOT_TEXT
from gateway.agent.files.quota import FileSettings
from gateway.agent.files.references import digest_in
from gateway.context.policy import CompressionSettings
from gateway.domain.adapter import Limits
from gateway.domain.chat import Attachment, KeptFile, Outbound, SessionKey
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.http import http_client
from gateway.providers.offline.model import is_summary_request
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import AdapterError, ContextOverflow, Disconnected, FileRefused, StoreUnavailable
from gateway.runtime.points import Point
from gateway.runtime.structs import replace
from gateway.store.sqlite.backend import SqliteStore
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.emulators.telegram.people import PIXEL
from tests.support.documents import pdf
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, KillAt, Live, config_in, running
from tests.support.model import FakeModel, Gate, Say, echo, in_turn

SEEING = ModelEntry(provider="offline", name="fake", pictures=True, context_length=100_000)
PICTURE = Attachment(kind="image", ref="r1", name="a.png", mime="image/png")


class FilingAdapter(FakeAdapter):
    """Hands over `files` by their ref, or raises what stands there."""

    def __init__(self, files: Mapping[str, bytes | AdapterError]) -> None:
        super().__init__(limits=Limits(trusted=True, file_bytes=1_000))
        self.files = files
        self.fetched: list[str] = []
        self.shown_files: list[tuple[str, bytes]] = []

    async def fetch(self, file: Attachment) -> bytes:
        self.fetched.append(file.ref)
        found = self.files[file.ref]
        if isinstance(found, bytes):
            return found
        raise found

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        assert outbound.file is not None
        self.shown_files.append((outbound.file.name, content))
        return await self.send(outbound)


class Unsent(FilingAdapter):
    """Begins to show files, and is killed meanwhile: whoever saw one would see it again."""

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        await asyncio.Event().wait()
        raise AssertionError("nothing sets the event")


def shown(model: FakeModel, index: int = -1) -> list[str]:
    """The pictures of a request, as data URLs."""
    contents = [message.get("content") for message in model.requests[index].messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


URL = "data:image/png;base64," + base64.b64encode(PIXEL).decode()


def _has_picture(content: Any) -> bool:
    return isinstance(content, list) and any(part["type"] == "image_url" for part in content)


async def sent(live: Live, text: str, *files: Attachment, **how: Any) -> str:
    inbound = replace(live.adapter.inbound(text, **how), attachments=files)
    await live.adapter.receive(inbound)
    return inbound.event_id


async def test_a_crash_after_a_file_was_fetched_does_not_fetch_it_again(tmp_path: Path) -> None:
    config = config_in(tmp_path, model=SEEING)
    adapter = FilingAdapter({"r1": PIXEL})
    kill = KillAt("turn.model_called")
    async with running(tmp_path, config=config, adapter=adapter, points=kill) as live:
        event = await sent(live, "look", PICTURE)
        await kill.passed.wait()
    again = FilingAdapter({})
    async with running(tmp_path, config=config, adapter=again) as live:
        await live.answer(event)
        assert shown(live.model) == [URL]
    assert adapter.fetched == ["r1"]
    assert again.fetched == []


async def test_the_process_without_the_ability_answers_all_the_same(tmp_path: Path) -> None:
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING)) as live:
        await live.answer(await sent(live, "look", PICTURE))
        assert "this gateway cannot fetch files from Fake" in live.model.spoken()[-1][1]


@pytest.mark.parametrize(("error", "times"), [(Disconnected("no line"), 3), (FileRefused("it is secret"), 1)])
async def test_what_cannot_be_had_is_tried_as_often_as_makes_sense(
    tmp_path: Path, error: AdapterError, times: int
) -> None:
    adapter = FilingAdapter({"r1": error, "r2": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        await live.answer(await sent(live, "look", PICTURE, replace(PICTURE, ref="r2")))
        assert f"could not be fetched: {error}" in live.model.spoken()[-1][1]
        assert shown(live.model) == [URL]
    assert adapter.fetched == ["r1"] * times + ["r2"]


async def test_a_file_that_never_comes_is_given_up(tmp_path: Path) -> None:
    class Stuck(FilingAdapter):
        gate = Gate()

        async def fetch(self, file: Attachment) -> bytes:
            await self.gate.pass_through()
            raise AssertionError("nobody opens it")

    clock = ManualClock()
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=Stuck({}), clock=clock) as live:
        event = await sent(live, "look", PICTURE)
        await Stuck.gate.until_waiting()
        await clock.advance(120)
        await live.answer(event)
        assert "could not be fetched: Fake did not hand it over within 2 minutes" in live.model.spoken()[-1][1]


class SmallDisk(SqliteStore):
    """Has room for words and none for files."""

    async def keep_file(self, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
        raise StoreUnavailable("The disk is full.")


async def test_a_disk_without_room_for_a_file_has_some_for_the_answer(tmp_path: Path) -> None:
    clock, store = ManualClock(), SmallDisk(tmp_path / "legato.db", clock=SystemClock(), concurrency=256)
    config, adapter = config_in(tmp_path, model=SEEING), FilingAdapter({"r1": PIXEL})
    async with running(tmp_path, config=config, adapter=adapter, store=store, clock=clock) as live:
        event = await sent(live, "look", PICTURE)
        await live.advance_until(lambda: live.model.requests, seconds=1.0)
        await live.answer(event)
        assert "which could not be kept here: The disk is full" in live.model.spoken()[-1][1]
    assert adapter.fetched == ["r1"]


async def test_an_album_of_long_texts_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    class Long(FilingAdapter):
        async def fetch(self, file: Attachment) -> bytes:
            return f"line of {file.ref}\n".encode() * 250_000  # three megabytes

    files = [Attachment(kind="document", ref=f"r{number}", name=f"{number}.txt") for number in range(9)]
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=Long({})) as live:
        await live.ask("hello")
        tracemalloc.start()
        try:
            await live.answer(await sent(live, "look", *files))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 20_000_000


async def test_a_person_has_so_much_room_for_files_wherever_they_send_them(tmp_path: Path) -> None:
    """Ten files of a tenth of the room fit, and one of another person."""
    texts = {f"r{number}": f"{number:02} ".encode() * 333 for number in range(30)}
    adapter = FilingAdapter(texts)
    config = config_in(tmp_path, files=FileSettings(per_person_mb=0.01, per_chat_mb=None))
    async with running(tmp_path, config=config, adapter=adapter) as live:
        for number in range(12):
            file = Attachment(kind="document", ref=f"r{number}", name=f"{number}.txt", mime="text/plain")
            await live.answer(await sent(live, "read", file, chat=f"c{number % 3}"))
        notices = [text for chat in ("c0", "c1", "c2") for text in adapter.shown(chat, "notice")]
        assert sorted(notices) == [
            *(
                f'I could not keep a file "{number}.txt", because the room for files of one person is full (0.01 MB); '
                "the files already kept stay, and the operator can raise `files.per_person_mb`."
                for number in (10, 11)
            ),
            "The room for files of one person (0.01 MB) is four fifths full. When it is full, I will take no more "
            "files.",
        ]
        assert "which could not be kept here: the room for files" in live.model.spoken()[-1][1]
        file = Attachment(kind="document", ref="r20", name="20.txt", mime="text/plain")
        await live.answer(await sent(live, "read", file, chat="c0", user="another"))
        assert "20 20 20" in live.model.spoken()[-1][1]
        kept = [len(await live.store.kept_files(SessionKey(platform="fake", chat=f"c{n}"), 99)) for n in range(3)]
        assert sum(kept) == 11


async def test_a_chat_has_so_much_room_for_files_of_all_its_people(tmp_path: Path) -> None:
    adapter = FilingAdapter({f"r{number}": b"x" * 400 for number in range(4)})
    config = config_in(tmp_path, files=FileSettings(per_person_mb=None, per_chat_mb=0.001))
    async with running(tmp_path, config=config, adapter=adapter) as live:
        for number in range(3):
            file = Attachment(kind="document", ref=f"r{number}", name="a.txt", mime="text/plain")
            await live.answer(await sent(live, "read", file, chat="g", chat_type="group", user=f"u{number}"))
        assert "the room for files of this chat is full" in adapter.shown("g", "notice")[-1]


async def test_one_conversations_files_are_not_those_of_another(tmp_path: Path) -> None:
    adapter = FilingAdapter({"r1": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        await live.answer(await sent(live, "look", PICTURE))
        await live.answer(await sent(live, "look", PICTURE, chat="d"))
    assert adapter.fetched == ["r1", "r1"]


@pytest.mark.parametrize("text", ["/title Holidays", "/status", "/nonsense"])
async def test_a_command_says_of_a_file_that_it_had_no_use_for_it(tmp_path: Path, text: str) -> None:
    async with running(tmp_path) as live:
        without = (await live.answer(await sent(live, text))).text
        with_one = (await live.answer(await sent(live, text, PICTURE))).text
        assert with_one.splitlines()[:-1] == without.splitlines()
        assert with_one.endswith(
            "I did not read the file that came with this command. Send the file again without a command."
        )


async def test_a_steered_picture_joins_the_running_turn(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(calls=[("clock", "{}")], gate=gate), Say(text="done")))
    adapter = FilingAdapter({"r1": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter, model=model) as live:
        event = await live.tell("work")
        await gate.until_waiting()
        await sent(live, "/steer this one", PICTURE)
        gate.open()
        await live.answer(event)
        assert shown(model) == [URL]


async def test_names_of_speakers_stand_before_captions_where_a_session_is_shared(tmp_path: Path) -> None:
    adapter = FilingAdapter({"r1": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        where = {"chat_type": "thread", "thread": "t", "user_name": "Ann"}
        await live.answer(await sent(live, "look", PICTURE, **where))
        assert live.model.spoken()[-1][1].startswith("[Ann] look\n[sent with this message: a picture")
        assert await live.ask("/retry", **where)
        assert live.model.spoken(-1) == live.model.spoken(-2)
        assert shown(live.model) == [URL]


async def test_compaction_keeps_references_and_puts_old_pictures_aside(tmp_path: Path) -> None:
    adapter = FilingAdapter({f"r{number}": PIXEL + bytes([number]) for number in range(3)})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        for number in range(3):
            await live.answer(await sent(live, f"picture {number}", replace(PICTURE, ref=f"r{number}")))
            await live.ask("words " * 50)
        assert len(shown(live.model)) == 3
        assert "Compressed" in await live.ask("/compress")
        await live.ask("go on")
        assert len(shown(live.model)) == 1
        session = await live.tip()
        assert session is not None
        lineage = await live.store.lineage(session.id)
        originals = await live.store.transcript(lineage[0])
        contents = [message["content"] for message in originals if isinstance(message.get("content"), list)]
        assert len([part for content in contents for part in content or () if digest_in(part)]) == 3  # nothing is lost


async def test_a_picture_that_was_put_aside_is_asked_about_again_with_the_picture(tmp_path: Path) -> None:
    adapter = FilingAdapter({"r0": PIXEL, "r1": PIXEL + b"1"})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        await live.answer(await sent(live, "picture 0", replace(PICTURE, ref="r0")))
        for number in range(4):
            await live.ask(f"{number} " + "words " * 50)
        await live.answer(await sent(live, "picture 1", replace(PICTURE, ref="r1")))
        assert "Compressed" in await live.ask("/compress")
        for _ in range(2):
            await live.ask("/undo")
        assert await live.ask("/retry") == 'echo: picture 0\n[sent with this message: a picture "a.png"]'
        assert len(shown(live.model)) == 1


async def test_every_request_shows_every_picture_of_its_transcript_however_it_came_about(tmp_path: Path) -> None:
    config, model = config_in(tmp_path, model=SEEING), FakeModel()
    files = {f"r{number}": PIXEL + bytes([number]) for number in range(3)}
    async with running(tmp_path, config=config, adapter=FilingAdapter(files), model=model) as live:
        await live.ask("hello")
        await live.answer(await sent(live, "picture 0", replace(PICTURE, ref="r0")))
        assert len(shown(model)) == 1
        await live.answer(await sent(live, "picture 1", replace(PICTURE, ref="r1")))
        await live.ask("and now?")
        assert len(shown(model)) == 2
        for said, pictures in [("/retry", 2), ("/branch", 0), ("go on", 2), ("/undo 3", 0), ("so?", 1)]:
            await live.ask(said)
            assert not pictures or len(shown(model)) == pictures
    async with running(tmp_path, config=config, adapter=FilingAdapter(files), model=model) as live:
        await live.answer(await sent(live, "picture 2", replace(PICTURE, ref="r2")))
        assert len(shown(model)) == 2
        await live.ask("/pin never show off")
        await live.ask("and now?")
        assert len(shown(model)) == 2
    for request in model.requests:
        contents = [message.get("content") for message in request.messages]
        assert request.files_at == [at for at, content in enumerate(contents) if _has_picture(content)]


async def test_a_picture_that_makes_the_prompt_too_long_is_put_aside_where_nothing_else_makes_room(
    tmp_path: Path,
) -> None:
    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        contents = [message.get("content") for message in request.messages]
        return Say(error=ContextOverflow("Too long.")) if any(map(_has_picture, contents)) else echo(spec, request)

    model, adapter = FakeModel(script), FilingAdapter({"r1": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter, model=model) as live:
        assert (await live.answer(await sent(live, "look", PICTURE))).text.startswith("echo: look\n")
        assert await live.ask("and now?") == "echo: and now?"
        assert len(model.requests) == 3


async def test_notes_are_asked_for_behind_the_very_pictures_that_the_provider_has_in_its_cache(tmp_path: Path) -> None:
    def answering(body: dict[str, Any]) -> Reply:
        notes = is_summary_request(body["messages"])
        return Reply(text="## Active Task\nNone\n## Goal\nHear about foxes." if notes else "heard")

    words = "the quick brown fox jumps over the lazy dog " * 80
    async with LlmServer(answering, context_length=20_000, caches=True) as server, AsyncExitStack() as stack:
        model = ModelEntry(provider="openai", name="main", base_url=server.url, context_length=20_000)
        config = config_in(
            tmp_path, model=model, compression=CompressionSettings(min_threshold_tokens=0, background=False)
        )
        provider = ChatCompletions(http_client(), str)
        stack.push_async_callback(provider.aclose)
        gateway = running(tmp_path, config=config, provider=provider, adapter=FilingAdapter({"r1": PIXEL}))
        live = await stack.enter_async_context(gateway)
        await live.answer(await sent(live, "look", PICTURE))
        for number in range(9):
            await live.ask(f"{number} {words}")
        before = server.requests[-1]["messages"]
        assert URL in str(before)
        assert "Compressed" in await live.ask("/compress")
        assert server.requests[-1]["messages"][: len(before)] == before
        await live.ask("go on")
        assert server.violations == []


# -- files out -----------------------------------------------------------------------------------


def writes(name: str, content: str) -> Say:
    return Say(calls=[("send_file", json.dumps({"name": name, "content": content}))])


def result(model: FakeModel) -> str:
    """Return the result of the model's latest tool call."""
    return next(text for role, text in reversed(model.spoken()) if role == "tool")


async def test_a_file_that_the_model_writes_is_shown_before_its_answer(tmp_path: Path) -> None:
    adapter, model = FilingAdapter({}), FakeModel(in_turn(writes("a.md", "# A\n"), Say(text="there it is")))
    async with running(tmp_path, adapter=adapter, model=model) as live:
        assert await live.ask("write") == "there it is"
        assert result(model) == "The file a.md (4 bytes) is on its way to the person; do not repeat its content."
    assert adapter.shown_files == [("a.md", b"# A\n")]
    assert [row.file is not None for row in adapter.sent] == [True, False]


async def test_a_platform_without_files_and_a_file_that_is_too_large_are_sentences(tmp_path: Path) -> None:
    model = FakeModel(in_turn(writes("a.md", "x"), Say(text="no")))
    async with running(tmp_path, model=model) as live:
        await live.ask("write")
        assert result(model) == "Error: Fake cannot show files here. Put the text into the answer instead."
    adapter, model = FilingAdapter({}), FakeModel(in_turn(writes("a.md", "x" * 1_001), Say(text="no")))
    async with running(tmp_path, adapter=adapter, model=model) as live:
        await live.ask("write")
        assert result(model) == "Error: The file has 1,001 bytes, but Fake shows at most 1,000. Send the file in parts."
    assert adapter.shown_files == []


@pytest.mark.parametrize(
    ("point", "times"),
    [
        ("turn.tools_begun", 1),
        ("turn.tools_ran", 1),
        ("turn.step_recorded", 1),
        ("outbox.before_send", 1),
        ("outbox.after_send", 2),  # nobody noted that it was shown: repeated as often as the platform's limits say
    ],
)
async def test_a_crash_does_not_send_a_file_twice(tmp_path: Path, point: Point, times: int) -> None:
    kill, model = KillAt(point), FakeModel(in_turn(writes("a.md", "x"), Say(text="done")))
    # The row may be on its way already when the turn is killed.
    first = Unsent({}) if point in ("turn.tools_ran", "turn.step_recorded") else FilingAdapter({})
    async with running(tmp_path, adapter=first, model=model, points=kill) as live:
        event = await live.tell("write")
        await kill.passed.wait()
    # Whatever is unknown to the model, it asks for the same once more.
    model = FakeModel(in_turn(writes("a.md", "x"), Say(text="done")))
    then = FilingAdapter({})
    async with running(tmp_path, adapter=then, model=model) as live:
        assert (await live.answer(event)).text == "done"
        await live.quiet()
    assert [*first.shown_files, *then.shown_files] == [("a.md", b"x")] * times


async def test_a_file_whose_adapter_went_away_is_a_visible_error(tmp_path: Path) -> None:
    class Forgetful(FakeAdapter):
        """Says that it shows files, and does not."""

    adapter = Forgetful(limits=Limits(trusted=True, file_bytes=1))  # just as many as are written
    async with running(tmp_path, adapter=adapter, model=FakeModel(in_turn(writes("a.md", "x")))) as live:
        await live.tell("write")
        await live.quiet()
        assert any("the file a.md cannot be shown here" in text for text in live.adapter.shown("c", "error"))


async def test_what_had_no_room_in_a_message_is_read_on(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(9_000))
    read = [
        Say(calls=[("read_file", "{}")]),
        Say(calls=[("read_file", json.dumps({"file": "log.txt", "offset": len(text) - 20, "limit": 50}))]),
        Say(calls=[("read_file", json.dumps({"file": "log.txt", "pattern": "^line 87[0-9]9$"}))]),
    ]
    model = FakeModel(in_turn(Say(text="ok"), *read, Say(text="done")))
    adapter = FilingAdapter({"r9": text.encode()})
    document = Attachment(kind="document", ref="r9", name="log.txt", mime="text/plain", size=len(text))
    async with running(tmp_path, adapter=adapter, model=model) as live:
        await live.answer(await sent(live, "read this", document))
        assert "read_file shows the rest" in model.spoken()[-1][1]
        assert await live.ask("and the end?") == "done"
        listing, page, matches = (content for role, content in model.spoken() if role == "tool")
        assert listing.startswith('"log.txt" (id ')
        assert page.endswith("; this is its end]\n" + text[-20:])
        assert [line.partition(": ")[2] for line in matches.splitlines()[1:]] == [f"line 87{n}9" for n in range(10)]
        session = await live.tip()
        assert session is not None
        assert await live.store.search("8719", session.key, 9) == []  # a file's words are not what was said
        model.script = in_turn(Say(calls=[("read_file", '{"file": "log.txt"}')]), Say(text="no"))
        await live.ask("read it", chat="another")
        assert result(model).startswith("Error: There is no file 'log.txt' in this conversation")


async def test_a_long_pdf_is_read_on_and_what_cannot_be_read_is_told_in_one_notice(tmp_path: Path) -> None:
    pages = [f"This is page number {number}.\n" * 40 for number in range(1, 60)]
    adapter = FilingAdapter({"r1": pdf(*pages), "r2": pdf("x", locked=True), "r3": b"\x00\x01"})
    documents = [Attachment(kind="document", ref=f"r{number}", name=f"{number}.pdf") for number in (1, 2, 3)]
    looks = Say(calls=[("read_file", json.dumps({"file": "1.pdf", "pattern": "number 59"}))])
    model = FakeModel(in_turn(Say(text="ok"), looks, Say(text="done")))
    async with running(tmp_path, adapter=adapter, model=model) as live:
        await live.answer(await sent(live, "read these", *documents))
        heard = model.spoken()[-1][1]
        assert "characters (59 pages), shown below up to character" in heard
        assert '"2.pdf", which you cannot be shown: it is protected by a password; ' in heard
        (notice,) = live.adapter.shown("c", "notice")
        assert notice.split("\n") == [
            'I cannot read "2.pdf": it is protected by a password.',
            f'I cannot read "3.pdf": {NOT_TEXT}.',
        ]
        assert await live.ask("and the end?") == "done"
        assert "This is page number 59." in result(model)
