"""The exports of other programs: what comes, in which order, and what is left out."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.app.imports import Past, Tally, jsonl, read, size_of
from gateway.app.imports.past import moment, paired
from gateway.domain.message import Message, note_of, text_of
from gateway.runtime.errors import UserError

NONE = "(The export holds no result.)"
Brought = tuple[list[Past], dict[str, int]]


@pytest.fixture
def brought(tmp_path: Path) -> Callable[[str, Any], Brought]:
    """Read a file that holds this: bytes, or JSON."""

    def bring(form: str, content: Any) -> Brought:
        path = tmp_path / f"export.{form}"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        tally = Tally()
        return list(read(form, path, tally)), dict(tally.left_out)

    return bring


def told(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(each["role"], text_of(each)) for each in messages]


def check_pairs(messages: Sequence[Message]) -> None:
    """Every call has its result right behind it, and every result its call."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == []
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert len(set(waiting)) == len(waiting)
        assert all(
            isinstance(json.loads(call["function"]["arguments"]), dict) for call in message.get("tool_calls", ())
        )
    assert waiting == []


# -- ChatGPT ---------------------------------------------------------------------------------


def node(number: str, parent: str | None, role: str, text: Any, **more: Any) -> dict[str, Any]:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message = {
        "author": {"role": role, "name": more.pop("name", None)},
        "content": content,
        "create_time": 1.7e9,
        **more,
    }
    return {"id": number, "parent": parent, "children": [], "message": message}


def talk(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    mapping = {"root": {"id": "root", "parent": None, "children": [], "message": None}}
    mapping |= {each["id"]: each for each in nodes}
    for each in nodes:
        if each["parent"] in mapping:
            mapping[each["parent"]]["children"].append(each["id"])
    return {"title": "A talk", "conversation_id": "c1", "create_time": 1.6e9, "mapping": mapping, **more}


def test_the_branch_that_was_in_view_comes(brought: Callable[[str, Any], Brought]) -> None:
    nodes = [
        node("s", "root", "system", "You are ChatGPT"),
        node("1", "s", "user", "hello 你好"),
        node("2", "1", "assistant", "the first answer"),
        node("2b", "1", "assistant", "the second answer مرحبا"),
        node("3", "2b", "user", "thanks"),
    ]
    (past,), left_out = brought("chatgpt", [talk(*nodes, current_node="3", default_model_slug="gpt-4o")])
    assert (past.title, past.source, past.started_at, past.model) == ("A talk", "c1", 1.6e9, "gpt-4o")
    assert told(past.messages) == [("user", "hello 你好"), ("assistant", "the second answer مرحبا"), ("user", "thanks")]
    assert note_of(past.messages[0])["at"] == 1.7e9
    assert left_out == {"messages of other branches": 1, "instructions and settings": 1}


def test_without_a_current_node_the_last_leaf_is_the_end(brought: Callable[[str, Any], Brought]) -> None:
    nodes = [node("1", "root", "user", "q"), node("2", "1", "assistant", "a"), node("2b", "1", "assistant", "b")]
    for given in ({}, {"current_node": None}, {"current_node": "gone"}, {"current_node": ["x"]}):
        (past,), _ = brought("chatgpt", [talk(*nodes, **given)])
        assert told(past.messages) == [("user", "q"), ("assistant", "b")]


def test_a_tree_that_leads_back_to_itself_ends(brought: Callable[[str, Any], Brought]) -> None:
    nodes = [node("1", "2", "user", "q"), node("2", "1", "assistant", "a")]
    (past,), _ = brought("chatgpt", [talk(*nodes, current_node="2")])
    assert told(past.messages) == [("user", "q"), ("assistant", "a")]


def test_a_call_at_the_end_is_text(brought: Callable[[str, Any], Brought]) -> None:
    nodes = [node("1", "root", "user", "q"), node("2", "1", "assistant", "print(1)", recipient="python")]
    (past,), _ = brought("chatgpt", [talk(*nodes, current_node="2")])
    assert told(past.messages) == [("user", "q"), ("assistant", "print(1)")]


def test_tools_pictures_and_thoughts(brought: Callable[[str, Any], Brought]) -> None:
    nodes = [
        node("1", "root", "user", {"content_type": "multimodal_text",
                                   "parts": [{"content_type": "image_asset_pointer"}, "what is this?"]}),
        node("2", "1", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
        node("3", "2", "assistant", {"content_type": "code", "text": "print(1)"}, recipient="python"),
        node("4", "3", "tool", {"content_type": "execution_output", "text": "1"}, name="python"),
        node("5", "4", "tool", "and more", name="python"),
        node("6", "5", "assistant", "it is one", recipient="all"),
        node("7", "6", "assistant", "lost call", recipient="browser"),
        node("8", "7", "user", "my settings", metadata={"is_visually_hidden_from_conversation": True}),
        node("9", "8", "critic", "?"),
    ]  # fmt: skip
    (past,), left_out = brought("chatgpt", [talk(*nodes, current_node="9")])
    check_pairs(past.messages)
    assert told(past.messages) == [
        ("user", "[image asset pointer]\nwhat is this?"), ("assistant", ""), ("tool", "1"),
        ("assistant", "[python returned]\nand more"), ("assistant", "it is one"), ("assistant", "lost call"),
    ]  # fmt: skip
    assert json.loads(past.messages[1]["tool_calls"][0]["function"]["arguments"]) == {"input": "print(1)"}
    assert left_out == {
        "thoughts of the model": 1,
        "instructions and settings": 1,
        "messages of an unknown kind": 1,
        "results of tools without a call: they came as text": 1,
    }


HOSTILE: list[Any] = [
    None, 5, "text", [],
    {}, {"mapping": None}, {"mapping": []}, {"mapping": {"a": None, "b": 3, "c": {"message": "x"}}},
    {"mapping": {"a": {"message": {"author": "me", "content": 3, "metadata": []}, "parent": {"x": 1}}}},
    {"title": {"x": 1}, "conversation_id": [1], "create_time": "never", "mapping": {}},
    talk(node("1", "root", "user", "\x00\ud800 \u202e evil \x1b[31m"), create_time=float("inf"), title="\x1b]0;x\x07"),
    talk(node("1", "root", "user", {"content_type": "text", "parts": [None, 3, {"text": ["deep", {"text": "er"}]}]})),
    talk(node("1", "root", "user", "x", create_time=-1e300), current_node="1", default_model_slug={"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize("entry", HOSTILE)
def test_no_entry_stops_the_others(brought: Callable[[str, Any], Brought], entry: Any) -> None:
    whole = talk(node("1", "root", "user", "still here"), conversation_id="c2")
    pasts, _ = brought("chatgpt", [entry, whole])
    assert told(pasts[-1].messages) == [("user", "still here")]
    for past in pasts:
        check_pairs(past.messages)


def test_an_archive_with_several_files(brought: Callable[[str, Any], Brought]) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        for number in range(2):
            one = talk(node("1", "root", "user", f"q{number}"), conversation_id=f"c{number}")
            archive.writestr(f"export/conversations-00{number}.json", json.dumps([one]))
    pasts, _ = brought("chatgpt", data.getvalue())
    assert [past.source for past in pasts] == ["c0", "c1"]
    with pytest.raises(UserError, match=r"The archive .* is damaged"):
        brought("chatgpt", data.getvalue()[:-40])
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(UserError, match=r"contains no conversations\.json"):
        brought("chatgpt", empty.getvalue())


# -- Claude ----------------------------------------------------------------------------------


def test_blocks_tools_and_attachments(brought: Callable[[str, Any], Brought]) -> None:
    messages = [
        {"sender": "human", "text": "read it", "created_at": "2025-01-02T03:04:05.678Z",
         "content": [{"type": "text", "text": "read it"}],
         "attachments": [{"file_name": "a]\nb.txt", "extracted_content": "the words"}],
         "files": [{"file_name": "p.png"}]},
        {"sender": "assistant", "text": "flat", "created_at": "2025-01-02T03:05:00Z", "content": [
            {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "t1", "name": "web search", "input": {"q": "x"}},
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}]},
            {"type": "text", "text": "Here it is."}, {"type": "hologram"}]},
        {"sender": "human", "text": "", "content": [{"type": "text", "text": ""}]},
        {"sender": "assistant", "text": "only flat", "content": []},
        {"sender": "god", "text": "x"}, None, 3,
    ]  # fmt: skip
    (past,), left_out = brought("claude", [{"uuid": "u1", "name": "  Reading\nlist ", "chat_messages": messages}])
    check_pairs(past.messages)
    assert (past.source, past.title) == ("u1", "Reading list")
    assert told(past.messages) == [
        ("user", "read it\n\n[a) b.txt]\nthe words\n\n[p.png]"), ("assistant", "Let me look."), ("tool", "found"),
        ("assistant", "Here it is."), ("assistant", "only flat"),
    ]  # fmt: skip
    assert past.messages[1]["tool_calls"][0]["function"]["name"] == "web_search"
    assert note_of(past.messages[0])["at"] == pytest.approx(1735787045.678)
    assert left_out == {
        "thoughts of the model": 1, "parts of an unknown kind": 1, "messages without words": 1,
        "messages of an unknown kind": 3,
    }  # fmt: skip


def message(name: str, parent: str | None, sender: str, text: str, at: int = 0) -> dict[str, Any]:
    """A message of Claude's; `at`: minutes."""
    made = {"uuid": name, "sender": sender, "text": text, "created_at": f"2025-01-02T03:{at:02}:00Z"}
    return made if parent is None else {**made, "parent_message_uuid": parent}


EDITED = [
    message("1", "00000000-0000-4000-8000-000000000000", "human", "which cat?", 1),
    message("2", "1", "assistant", "a tabby", 2),
    message("3", "1", "assistant", "a Siamese", 3),
    message("4", "3", "human", "and its colour?", 4),
    message("5", "4", "assistant", "brown", 5),
    message("6", "3", "human", "and its age?", 6),
    message("7", "6", "assistant", "nine", 7),
]


@pytest.mark.parametrize("leaf", [{}, {"current_leaf_message_uuid": "7"}, {"current_leaf_message_uuid": "gone"}])
def test_of_edited_questions_and_second_answers_the_branch_in_view_comes(
    brought: Callable[[str, Any], Brought], leaf: dict[str, str]
) -> None:
    (past,), left_out = brought("claude", [{"uuid": "u1", "chat_messages": EDITED, **leaf}])
    assert [text for _, text in told(past.messages)] == ["which cat?", "a Siamese", "and its age?", "nine"]
    assert left_out == {"messages of other branches": 3}


def test_the_leaf_that_claude_names_is_the_end(brought: Callable[[str, Any], Brought]) -> None:
    (past,), _ = brought("claude", [{"uuid": "u1", "chat_messages": EDITED, "current_leaf_message_uuid": "5"}])
    assert [text for _, text in told(past.messages)] == ["which cat?", "a Siamese", "and its colour?", "brown"]


def test_messages_of_an_older_export_follow_one_another(brought: Callable[[str, Any], Brought]) -> None:
    older = [message(str(each), None, ("human", "assistant")[each % 2], f"m{each}", 9 - each) for each in range(4)]
    older += [message("9", "gone", "human", "m4"), message("9", None, "assistant", "m5"), None]  # type: ignore[list-item]
    (past,), left_out = brought("claude", [{"uuid": "u1", "chat_messages": older}])
    assert [text for _, text in told(past.messages)] == [f"m{each}" for each in range(6)]
    assert left_out == {"messages of an unknown kind": 1}


@pytest.mark.parametrize(
    "messages",
    [
        [{"sender": "human", "text": "x", "attachments": 5, "files": True}],
        [{"sender": "human", "text": "x", "uuid": ["x"], "parent_message_uuid": {}, "created_at": 10**400}],
        [{"sender": "assistant", "content": [{"type": "tool_result", "tool_use_id": {}, "content": None}]}],
        [{"sender": "assistant", "content": [{"type": "tool_use"}, {"type": "tool_use"}, {"type": "tool_result"}]}],
        [{"sender": "assistant", "content": [None, 1, "x", [], {"type": ["text"]}]}],
        [{"sender": "human", "content": "a text", "attachments": "none", "files": [None, {"file_name": 3}]}],
    ],
)
def test_odd_blocks_make_valid_transcripts(brought: Callable[[str, Any], Brought], messages: list[Any]) -> None:
    said = {"sender": "human", "text": "hello"}
    (past,), _ = brought("claude", [{"uuid": "u", "chat_messages": [said, *messages]}])
    check_pairs(past.messages)


# -- Open WebUI ------------------------------------------------------------------------------


def chat(*messages: dict[str, Any], end: str | None = None, **more: Any) -> dict[str, Any]:
    """A chat as Open WebUI exports it."""
    tree = {each["id"]: each for each in messages}
    inner = {"title": "inner", "models": ["llama3:8b"], "history": {"messages": tree, "currentId": end}, "messages": []}
    return {"id": "w1", "title": "Cats", "chat": inner, "created_at": 1_600_000_000, "archived": False, **more}


def spoken(name: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "parentId": parent,
        "childrenIds": [],
        "role": role,
        "content": content,
        "timestamp": 1.7e9,
    } | more


def test_of_a_chat_the_branch_that_was_in_view_comes(brought: Callable[[str, Any], Brought]) -> None:
    messages = [
        spoken("1", None, "user", "which cat? 猫", files=[
            {"type": "file", "name": "cats.txt", "file": {"data": {"content": "tabby"}}}, {"type": "image"}]),
        spoken("2", "1", "assistant", "a tabby", model="llama3:8b"),
        spoken("3", "1", "assistant", "a Siamese", model="qwen"),
        spoken("4", "3", "user", "thanks", timestamp=1.7e9 + 5),
    ]  # fmt: skip
    for end in ("4", None, "gone"):
        (past,), left_out = brought("openwebui", [chat(*messages, end=end)])
        assert (past.source, past.title, past.started_at, past.model) == ("w1", "Cats", 1.6e9, "llama3:8b")
        assert told(past.messages) == [
            ("user", "which cat? 猫\n\n[cats.txt]\ntabby\n\n[image]"), ("assistant", "a Siamese"), ("user", "thanks"),
        ]  # fmt: skip
        assert note_of(past.messages[0])["at"] == 1.7e9
        assert left_out == {"messages of other branches": 1}


def test_a_chat_of_a_first_version_is_a_list(brought: Callable[[str, Any], Brought]) -> None:
    said = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
    ]
    for history in ({}, {"history": {"messages": {}, "currentId": None}}):
        (past,), left_out = brought("openwebui", [{"id": "w", "chat": {"messages": said, **history}}])
        assert told(past.messages) == [("user", "q"), ("assistant", "a")]
        assert left_out == {"instructions and settings": 1}


def test_thoughts_and_tools_within_the_words_of_an_answer(brought: Callable[[str, Any], Brought]) -> None:
    answer = (
        '<details type="reasoning" duration="3">\n<summary>Thought for 3 seconds</summary>\n> hm\n</details>\n'
        'Let me look.\n<details type="tool_calls" done="true" id="t1" name="web search"'
        ' arguments="{&quot;q&quot;: &quot;a &gt; b&quot;}" result="&quot;found&quot;" files="">\n'
        "<summary>Tool Executed</summary>\n</details>\nHere: <details><summary>more</summary>kept</details>"
        '<details type="code_interpreter" done="true" output="4">\n<summary>Analyzed</summary>\nprint(2+2)\n</details>'
        'Done <details type="reasoning" cut off'
    )
    (past,), left_out = brought(
        "openwebui", [chat(spoken("1", None, "user", "q"), spoken("2", "1", "assistant", answer))]
    )
    check_pairs(past.messages)
    assert told(past.messages) == [
        ("user", "q"), ("assistant", "Let me look."), ("tool", '"found"'),
        ("assistant", "Here: <details><summary>more</summary>kept</details>"), ("tool", "4"),
        ("assistant", 'Done <details type="reasoning" cut off'),
    ]  # fmt: skip
    looked, computed = (past.messages[place]["tool_calls"][0]["function"] for place in (1, 3))
    assert (looked["name"], json.loads(looked["arguments"])) == ("web_search", {"q": "a > b"})
    assert json.loads(computed["arguments"]) == {"input": "print(2+2)"}
    assert left_out == {"thoughts of the model": 1}


@pytest.mark.parametrize(
    "entry",
    [
        None, {"chat": None}, {"chat": {"history": 3, "messages": "x"}}, {"chat": {"history": {"messages": [1]}}},
        chat(spoken("1", "2", "user", "q"), spoken("2", "1", "assistant", "a"), end="1"),
        chat(spoken("1", None, ["user"], None, files=7), {"id": "2", "parentId": {}}, end=["x"], created_at=10**400),
        chat(spoken("1", None, "user", [{"type": "image_url"}], timestamp=10**400), title={"x": 1}),
    ],
)  # fmt: skip
def test_no_chat_stops_the_others(brought: Callable[[str, Any], Brought], entry: Any) -> None:
    pasts, _ = brought(
        "openwebui", [chat(spoken("1", None, "user", "first")), entry, chat(spoken("1", None, "user", "last"))]
    )
    assert [text for past in (pasts[0], pasts[-1]) for _, text in told(past.messages)] == ["first", "last"]
    for past in pasts:
        check_pairs(past.messages)


# -- JSON lines ------------------------------------------------------------------------------


def lines(*rows: Any) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def test_lines_of_sessions(brought: Callable[[str, Any], Brought]) -> None:
    data = lines(
        {"role": "system", "content": "x"},
        {"role": "user", "content": "q1", "session": "a", "at": "2024-05-06T07:08:09"},
        {"role": "assistant", "content": "a1", "session": "a"}, {"role": "user", "content": "q2", "session": "b"},
        {"role": "user", "content": "q3", "session": "a"}, {"role": "user", "content": "q4"}, [1], {"role": "x"},
    ) + b"\nnot json\n\n\xff\n"  # fmt: skip
    pasts, left_out = brought("jsonl", data)
    assert [(past.source, told(past.messages)) for past in pasts] == [
        ("a", [("user", "q1"), ("assistant", "a1")]), ("b", [("user", "q2")]), ("a (2)", [("user", "q3")]),
        ("export.jsonl", [("user", "q4")]),
    ]  # fmt: skip
    assert left_out == {"instructions and settings": 1, "lines that are not JSON objects": 3, "lines without a role": 1}


def test_a_conversation_a_line(brought: Callable[[str, Any], Brought]) -> None:
    rows = [
        {"messages": [{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": "a"}]} for n in (1, 2, 1)
    ]
    pasts, _ = brought("jsonl", lines(*rows))
    assert [told(past.messages)[0][1] for past in pasts] == ["q1", "q2", "q1"]
    assert pasts[0].source == pasts[2].source != pasts[1].source  # the same words are the same conversation


def test_a_session_of_any_length_comes_in_parts(brought: Callable[[str, Any], Brought]) -> None:
    rows = [{"role": role, "content": f"{n}"} for n in range(6_000) for role in ("user", "assistant")]
    pasts, _ = brought("jsonl", lines(*rows))
    assert [len(past.messages) for past in pasts] == [5_000, 5_000, 2_000]
    assert [past.source for past in pasts] == ["export.jsonl", "export.jsonl (2)", "export.jsonl (3)"]


# -- hermes-agent ----------------------------------------------------------------------------


def state(
    path: Path, sessions: Sequence[dict[str, Any]], messages: Sequence[dict[str, Any]], *, old: bool = False
) -> bytes:
    """A state.db with these rows; `old`: of the first schema, without the columns that came later."""
    connection = sqlite3.connect(path)
    later = "" if old else ", parent_session_id TEXT, title TEXT, end_reason TEXT, model_config TEXT"
    connection.execute(f"CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL{later})")
    later = (
        "" if old else ", _compressed_summary INTEGER DEFAULT 0, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0"
    )
    connection.execute(
        "CREATE TABLE messages(id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,"
        f" tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL{later})"
    )
    for table, rows in (("sessions", sessions), ("messages", messages)):
        for row in rows:
            names = ", ".join(row)
            connection.execute(f"INSERT INTO {table}({names}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
    connection.commit()
    connection.close()
    data = path.read_bytes()
    path.unlink()
    return data


def row(session: str, role: str, content: str | None, at: float, **more: Any) -> dict[str, Any]:
    return {"session_id": session, "role": role, "content": content, "timestamp": at, **more}


def test_a_line_that_does_not_end_is_not_held_whole(
    brought: Callable[[str, Any], Brought], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "_LONGEST", 1_000)
    with pytest.raises(UserError, match="a line larger than"):
        brought("jsonl", '{"role": "user", "content": "' + "x" * 2_000)


def test_a_compressed_lineage_is_one_conversation(tmp_path: Path, brought: Callable[[str, Any], Brought]) -> None:
    calls = json.dumps([{"id": "t", "type": "function", "function": {"name": "shell", "arguments": '{"c": 1}'}}])
    data = state(
        tmp_path / "s.db",
        [
            {"id": "a", "source": "cli", "started_at": 100.0, "end_reason": "compression", "title": "Old"},
            {"id": "b", "source": "cli", "started_at": 200.0, "parent_session_id": "a", "title": "New"},
            {"id": "c", "source": "telegram", "started_at": 300.0},
            {"id": "d", "source": "cli", "started_at": 400.0, "model_config": '{"_delegate_from": "c"}'},
        ],
        [
            row("a", "user", "q1", 101.0), row("a", "assistant", None, 102.0, tool_calls=calls),
            row("a", "tool", "done", 103.0, tool_call_id="t", tool_name="shell"), row("a", "assistant", "a1", 104.0),
            row("b", "user", "[CONTEXT COMPACTION — REFERENCE ONLY] …", 201.0), row("b", "assistant", "a1", 202.0),
            row("b", "user", "q2", 203.0), row("b", "assistant", "gone", 204.0, active=0),
            row("b", "assistant", "kept", 205.0, active=0, compacted=1),
            row("b", "user", "sum", 206.0, _compressed_summary=1), row("b", "user", "q1", 207.0),
            row("c", "user", "\x00json:" + json.dumps([{"type": "text", "text": "hi"}]), 301.0),
            row("c", "session_meta", "x", 302.0), row("d", "user", "sub", 401.0),
        ],
    )  # fmt: skip
    pasts, left_out = brought("hermes", data)
    assert [(past.source, past.title) for past in pasts] == [("c", ""), ("a", "New")]
    assert told(pasts[0].messages) == [("user", "hi")]
    assert told(pasts[1].messages) == [
        ("user", "q1"), ("assistant", ""), ("tool", "done"), ("assistant", "a1"), ("user", "q2"), ("assistant", "kept"),
        ("user", "q1"),
    ]  # fmt: skip
    check_pairs(pasts[1].messages)
    assert left_out == {
        "runs of sub-agents": 1, "messages that were undone": 1, "messages of an unknown kind": 1,
        "summaries of a compression: what they stand for came along": 2,
    }  # fmt: skip


def test_a_file_of_its_first_version(tmp_path: Path, brought: Callable[[str, Any], Brought]) -> None:
    data = state(
        tmp_path / "s.db", [{"id": "a", "source": "cli", "started_at": 1e9}], [row("a", "user", "q", 1e9)], old=True
    )
    (past,), _ = brought("hermes", data)
    assert (past.title, told(past.messages)) == ("", [("user", "q")])


def test_lineages_that_lead_back_to_themselves_end(tmp_path: Path, brought: Callable[[str, Any], Brought]) -> None:
    circle = [
        {"id": one, "source": "cli", "started_at": 1e9, "end_reason": "compression", "parent_session_id": other}
        for one, other in (("a", "b"), ("b", "a"), ("c", "c"))
    ]
    brought("hermes", state(tmp_path / "s.db", circle, [row("a", "user", "q", 1e9)]))


@pytest.mark.parametrize("data", [b"", b"hello" * 1_000, b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_no_state_is_refused(brought: Callable[[str, Any], Brought], data: bytes) -> None:
    with pytest.raises(UserError, match=r"state\.db"):
        brought("hermes", data)


# -- what they share -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1.7e9, 1.7e9), (1_700_000_000_000, 1.7e9), ("2023-11-14T22:13:20Z", 1.7e9),
        ("2023-11-14T23:13:20+01:00", 1.7e9), (None, None), ("soon", None), (True, None), (float("nan"), None),
        (-5, None), (1e400, None), ({}, None), ("9" * 99, None), (10**400, None), (-(10**400), None),
    ],
)  # fmt: skip
def test_moments(value: Any, seconds: float | None) -> None:
    assert moment(value) == seconds


def test_calls_with_equal_or_missing_ids_keep_their_results_apart() -> None:
    def called(call_id: str) -> Any:
        return {"id": call_id, "type": "function", "function": {"name": "t", "arguments": "{}"}}

    given: list[Any] = [
        {"role": "assistant", "content": None, "tool_calls": [called("x"), called("x")]},
        {"role": "tool", "tool_call_id": "x", "content": "one"},
        {"role": "assistant", "content": None, "tool_calls": [called("")]},
        {"role": "tool", "tool_call_id": "", "content": "two"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [called("y")]},
    ]
    made = list(paired(given, Tally()))
    check_pairs(made)
    assert [text_of(each) for each in made] == ["", "one", NONE, "", "two", "q", "", NONE]


ONES = {
    "chatgpt": [talk(node("1", "root", "user", "hello"))],
    "claude": [{"uuid": "u", "chat_messages": [message("1", None, "human", "hello")]}],
    "openwebui": [chat(spoken("1", None, "user", "hello"))],
    "jsonl": {"role": "user", "content": "hello"},
}


@pytest.mark.parametrize("given", ONES)
@pytest.mark.parametrize("form", ONES)
def test_a_file_of_another_format_is_refused_and_its_own_named(
    brought: Callable[[str, Any], Brought], form: str, given: str
) -> None:
    if form == given:
        assert len(brought(form, ONES[given])[0]) == 1
        return
    with pytest.raises(UserError, match=f"looks like .*, so try: legato import {given} "):
        brought(form, ONES[given])


@pytest.mark.parametrize("form", ONES)
@pytest.mark.parametrize(
    "content", [[], {}, [{"notes": []}, {"notes": []}], [[1]], b"hello", b"SQLite format 3\0" + bytes(99), b"\n{]\n"]
)
def test_a_foreign_file_is_refused(brought: Callable[[str, Any], Brought], form: str, content: Any) -> None:
    with pytest.raises(UserError):
        brought(form, content)


def test_an_export_that_was_unpacked_is_read(tmp_path: Path) -> None:
    for number, folder in enumerate((tmp_path, tmp_path / "inner")):
        folder.mkdir(exist_ok=True)
        (folder / "users.json").write_text("[{}]")
        one = {"uuid": str(number), "chat_messages": [message("1", None, "human", f"q{number}")]}
        (folder / "conversations.json").write_text(json.dumps([one]))
    assert sorted(past.source for past in read("claude", tmp_path, Tally())) == ["0", "1"]
    assert size_of("claude", tmp_path) == sum(each.stat().st_size for each in tmp_path.rglob("conversations.json"))
    with pytest.raises(UserError, match=r"There is no file .*state\.db"):
        list(read("hermes", tmp_path, Tally()))


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        list(read("jsonl", tmp_path / "none", Tally()))
    with pytest.raises(UserError, match=r"contains no file \*\.jsonl, so it is not a file of JSON lines with messages"):
        list(read("jsonl", tmp_path, Tally()))
