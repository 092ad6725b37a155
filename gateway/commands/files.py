"""/files: the workspace of the conversation, what changed in it, and the way back."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import Final

from gateway.agent.forgetting import deed_of
from gateway.commands.base import CommandContext, command
from gateway.domain.chat import one_line
from gateway.domain.views import FileChange, WorkspaceView
from gateway.domain.wording import counted, first_of, moment
from gateway.runtime.errors import UserError

_SHOWN: Final = 25  # files, and changes: a telephone shows no more without scrolling
_USAGE: Final = "/files lists the files I work on and what I changed. /files undo reverts my last changes."
_OFF: Final = "I do not work on files here, because the setting tools.workspace is off."
_LEFT: Final = "I cannot restore {paths}, because I kept no copies."
_LOOKED_AT: Final = 500  # sessions
_SIGNS: Final = {"new": "+", "changed": "~", "removed": "−"}


@command(
    "files [undo]", "Conversation", "list the files I work on; undo changes", bypass="bare", elsewhere=("ls", "diff")
)
async def files(ctx: CommandContext) -> str:
    """Show the workspace, or take back what the last turn changed in it."""
    if not has_workspace(ctx):
        raise UserError(_OFF)
    if ctx.argument:
        if ctx.argument.strip().lower() != "undo":
            raise UserError(_USAGE)
        return await _undo(ctx)
    return _shown(await workspace_view(ctx, _SHOWN))


def has_workspace(ctx: CommandContext) -> bool:
    """Whether conversations have workspaces here."""
    return "list_files" in ctx.sessions.toolbox.installed


async def workspace_view(ctx: CommandContext, most: int) -> WorkspaceView:
    """The workspace of the conversation, with at most so many of its files."""
    session = await ctx.present()
    sessions = [each.id for each in await ctx.store.lineage(session.id)] if session else []
    opened = import_module("gateway.agent.workspace.calls").opened
    workspace = await opened(ctx.agents.workspaces, ctx.key, ctx.files(ctx.item))
    seen: WorkspaceView = await asyncio.to_thread(
        import_module("gateway.agent.workspace.report").report, workspace, sessions, most
    )
    return seen


def _shown(report: WorkspaceView) -> str:
    if not report.count and not report.changes:
        return "There are no files here yet. Send me a file, or ask me to write one."
    lines = [f"I work on {counted(report.count, 'file')} here, with {report.size:,} bytes in all:"]
    lines += [f"  {one_line(each.path)} ({each.size:,} bytes)" for each in report.files]
    if report.count > len(report.files):
        lines.append(f"  and {report.count - len(report.files):,} more files")
    if not report.changes:
        return "\n".join([*lines, "I have not changed any files in this session."])
    lines.append("I changed these files in this session:")
    lines += [f"  {_change(each)}" for each in report.changes[:_SHOWN]]
    if len(report.changes) > _SHOWN:
        lines.append(f"  and {len(report.changes) - _SHOWN} more")
    return "\n".join([*lines, "/files undo reverts my last changes."])


def _change(each: FileChange) -> str:
    counts = f" (+{each.came} −{each.went} lines)" if each.came or each.went else ""
    return f"{_SIGNS[each.how]} {one_line(each.path)}{counts}"


async def _undo(ctx: CommandContext) -> str:
    ctx.owned()  # no turn of this conversation runs meanwhile
    workspace = ctx.agents.workspaces.of(ctx.key)
    all_chats = await ctx.store.own_sessions(ctx.key.owner, _LOOKED_AT)
    others = {each.id for each in all_chats if each.key != ctx.key}  # whose work somebody may still need
    undone = await asyncio.to_thread(workspace.undo, deed_of(ctx.item), others)
    if undone is None:
        return "There is nothing to undo, because I have not changed any files here."
    paths = [one_line(os.fsdecode(path)) for path in sorted(undone.record.changes)]
    when = moment(undone.record.turn.at, ctx.sessions.policy.zone)
    told = f"I undid my changes from {when} in {first_of(paths, _SHOWN)}."
    return f"{told} {_LEFT.format(paths=first_of(undone.left, _SHOWN))}" if undone.left else told


COMMANDS = (files,)
