"""An engine in the style of hermes-agent's plug-ins, as the text of a folder's `__init__.py`.

It holds a connection, so no copy of it can be made. It keeps every turn it is shown in a database, asks the model for
notes with `call_llm`, imported when needed, offers a tool by a bare schema, and notes whom it worked for.
"""

SOURCE = """
import hashlib
import json
import sqlite3

from agent.context_engine import ContextEngine

from .shelf import Shelf


class Keeper(ContextEngine):
    def __init__(self):
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._shelf = None
        self._session = ""

    @property
    def name(self):
        return "keeper"

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage.get("prompt_tokens", 0)

    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens

    def on_session_start(self, session_id, **kwargs):
        self._shelf = self._shelf or Shelf(kwargs["hermes_home"])
        self._session = session_id
        self._shelf.note("start", session_id, kwargs.get("boundary_reason"), kwargs.get("old_session_id"),
                         kwargs.get("conversation_id"), kwargs.get("platform"), kwargs.get("context_length"))

    def on_session_end(self, session_id, messages):
        self._keep(messages)
        self._shelf.note("end", session_id, len(messages))

    def compress(self, messages, current_tokens=None, focus_topic=None):
        from agent.auxiliary_client import call_llm

        assert messages[0]["role"] == "system" and messages[0]["content"], "the system prompt comes first"
        self._keep(messages)
        head, middle, tail = messages[:1], messages[1:-3], messages[-3:]
        while tail and tail[0]["role"] != "user":
            middle, tail = middle + tail[:1], tail[1:]
        prompt = [{"role": "user", "content": "Sum up:\\n" + "\\n".join(str(m["content"]) for m in middle)[-2000:]}]
        answer = call_llm(task="compression", messages=prompt, max_tokens=500, temperature=0.2)
        notes = answer.choices[0].message.content
        self.compression_count += 1
        self.last_prompt_tokens = -1
        self._shelf.note("compress", self._session, notes[:40])
        return [dict(head[0], content=head[0]["content"] + "\\n(compacted)"),
                {"role": "user", "content": "[Notes] " + notes},
                {"role": "assistant", "content": "I have read the notes."}, *tail]

    def get_tool_schemas(self):
        return [{"name": "keeper_grep", "description": "Finds kept turns.",
                 "parameters": {"type": "object", "properties": {"words": {"type": "string"}}}}]

    def handle_tool_call(self, name, args, **kwargs):
        return json.dumps({"found": self._shelf.find(args["words"]), "seen": len(kwargs.get("messages", []))})

    def _keep(self, messages):
        for message in messages:
            if message["role"] in ("user", "assistant") and not str(message["content"]).startswith("[Notes]"):
                digest = hashlib.sha256((message["role"] + str(message["content"])).encode()).hexdigest()
                self._shelf.keep(digest, message["role"], str(message["content"]))


def register(ctx):
    ctx.register_context_engine(Keeper())
"""

SHELF = """
import sqlite3
from pathlib import Path


class Shelf:
    def __init__(self, home):
        self._db = sqlite3.connect(Path(home) / "keeper.db")
        self._db.execute("CREATE TABLE IF NOT EXISTS kept (digest TEXT, role TEXT, content TEXT)")
        self._db.execute("CREATE TABLE IF NOT EXISTS heard (what TEXT)")

    def keep(self, digest, role, content):
        if not self._db.execute("SELECT 1 FROM kept WHERE digest = ?", (digest,)).fetchone():
            self._db.execute("INSERT INTO kept VALUES (?, ?, ?)", (digest, role, content))
            self._db.commit()

    def note(self, *what):
        from agent.context_engine import ContextEngine

        assert ContextEngine is not None
        self._db.execute("INSERT INTO heard VALUES (?)", (repr(what),))
        self._db.commit()

    def find(self, words):
        rows = self._db.execute("SELECT content FROM kept WHERE content LIKE ?", ("%" + words + "%",))
        return [row[0] for row in rows]
"""
