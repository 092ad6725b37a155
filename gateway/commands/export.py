"""/export: the present conversation as a file, with the original words of everything that was compressed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Final

from gateway.commands.base import CommandContext, command
from gateway.commands.sessions import heading
from gateway.domain.chat import EXPORT, encoded, is_shared
from gateway.domain.message import Message, is_summary, note_of, said_in, text_of, wire
from gateway.domain.session import Session
from gateway.domain.wording import counted, moment, utc
from gateway.runtime.errors import SessionNotFound, ToolError, UserError

_FORMATS: Final = {"": "md", "markdown": "md", "md": "md", "jsonl": "jsonl"}
_MIME: Final = {"md": "text/markdown", "jsonl": "application/jsonl"}
_SHOWN: Final = 12_000  # characters of an export that a platform without files is shown
_MOST_ANCESTORS: Final = 1_000  # sessions: a damaged chain may lead back to its beginning
_USAGE: Final = (
    "/export gives you this conversation as Markdown, and /export jsonl gives it as JSON lines for programs."
)
_EMPTY: Final = "There is nothing to export yet. Send a message first."


@command("export [jsonl]", "Sessions", "save this conversation as a file", bypass=True, elsewhere=("download", "save"))
async def export(ctx: CommandContext) -> str:
    """Send the present conversation as Markdown or as JSON lines."""
    form = _FORMATS.get(ctx.argument.strip().lower())
    if form is None:
        raise UserError(_USAGE)
    session = await ctx.present()
    messages = await originals(ctx, session) if session else []
    if session is None or not messages:
        raise UserError(_EMPTY)
    title = await heading(ctx.store, session)
    zone, you = ctx.sessions.policy.zone, "One of you" if is_shared(ctx.key, ctx.inbound.source) else "You"
    text = as_jsonl(messages, ctx.redact) if form == "jsonl" else as_markdown(messages, title, zone, you)
    try:
        name = f"{_file_name(title)}.{form}"
        files = ctx.files(ctx.item)
        await files.send(name, _MIME[form], encoded(name, text), kind=EXPORT)
        await files.show()
    except ToolError as error:  # this platform shows no files, or none so large
        if len(text) > _SHOWN:
            raise UserError(
                f"{error} In a shell, `legato sessions show {session.id}` prints the whole conversation."
            ) from None
        return text
    return f"The file holds {counted(len(messages), 'message')} of “{title}”. {_USAGE}"


async def originals(ctx: CommandContext, session: Session) -> list[Message]:
    """All that was said in a conversation, in order: for each summary, the messages that were compressed into it."""
    chain = [session]
    while chain[0].parent_id is not None and len(chain) < _MOST_ANCESTORS:
        try:
            chain.insert(0, await ctx.store.session(chain[0].parent_id))
        except SessionNotFound:
            break
    found: dict[str, Message] = {}
    for each in chain:
        if each is session or each.end_reason == "compression":
            for message in await ctx.messages(each):
                note = note_of(message)
                if not is_summary(message) and not note.get("derived_from"):
                    found.setdefault(note["id"], message)
    return list(found.values())


def as_markdown(messages: Sequence[Message], title: str, zone: tzinfo | None, you: str) -> str:
    """Return the words of people and the model, for people to read; `you` is the person who wrote to the bot."""
    blocks = [f"# {title}"]
    for message in messages:
        if message["role"] in ("user", "assistant") and (words := said_in(message).strip()):
            speaker = you if message["role"] == "user" else "Legato"
            at = note_of(message).get("at")
            blocks += [f"**{speaker}**" + ("" if at is None else f" · {moment(at, zone)}"), words]
    return "\n\n".join(blocks) + "\n"


def as_jsonl(messages: Sequence[Message], redact: Callable[[str], str]) -> str:
    """One message a line, in OpenAI's format, with the UTC time at which it was stored. Results of tools are redacted,
    because nobody in the chat saw them."""
    lines = []
    for message in messages:
        plain = {name: value for name, value in wire(message).items() if name != "reasoning_content"}
        if message["role"] == "tool":
            plain["content"] = redact(text_of(message))
        if (at := note_of(message).get("at")) is not None:
            plain["at"] = utc(at)
        lines.append(json.dumps(plain, ensure_ascii=False))
    return "\n".join(lines) + "\n"


def _file_name(title: str) -> str:
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words)[:40].strip("-") or "conversation"


COMMANDS = (export,)
