"""A replay to be looked at: as a table in a terminal, and as one page of HTML that needs nothing else."""

from __future__ import annotations

import io
import os
from html import escape
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.domain.terminal import printable
from gateway.domain.wording import counted
from gateway.runtime.errors import UserError

Row = dict[str, Any]

_SHOWN: Final = 1_500  # characters of a message in the table; the page and --json have all
_WIDE: Final = 100  # columns where nobody looks
_NOTE: Final = "Tools were not run: an answer that once used some may differ for that alone."
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; table-layout: fixed; width: 100%; }}
th, td {{ border-top: 1px solid #8886; padding: .6rem; text-align: start; vertical-align: top; }}
td p {{ margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }}
small {{ color: #777; display: block; margin-top: .4rem; }}
tr.asked td {{ background: #8881; font-weight: 600; }}
</style></head><body><h1>{title}</h1><p>{note}</p>
<table><thead><tr><th>{was}</th><th>{now}</th></tr></thead><tbody>
{rows}
<tr><th>{was_total}</th><th>{now_total}</th></tr></tbody></table>{ended}</body></html>
"""


def replay_text(replay: Row) -> str:
    """A table with both answers side by side."""
    console = Console(file=io.StringIO(), width=_width(), legacy_windows=False)
    table = Table(box=box.ROUNDED, show_lines=True, expand=True, show_footer=True)
    table.add_column("you said", ratio=2, footer=Text(_NOTE, style="italic"))
    for when, name in (("was", "then"), ("now", "now")):
        footer = Text(_total_line(replay["total"][when]))
        table.add_column(Text(f"{name}: {_plain(replay['model'][when]) or 'unknown model'}"), ratio=3, footer=footer)
    for pair in replay["exchanges"]:
        table.add_row(Text(_plain(pair["asked"])), *(_cell(pair[when]) for when in ("was", "now")))
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip("\n")


def _width() -> int:
    try:
        return max(60, os.get_terminal_size(1).columns)
    except OSError:
        return _WIDE


def _cell(answer: Row) -> Text:
    return Text(f"{_plain(answer['text']) or '(no words)'}\n— {_facts_line(answer)}")


def _plain(text: str) -> str:
    """A text that cannot steer the terminal, and is no longer than a table bears."""
    shown = printable(text)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} … ({len(shown):,} characters)"


def _facts_line(answer: Row) -> str:
    if not answer["calls"]:
        facts = ["no calls were noted"]
    else:
        facts = [
            f"{answer['prompt_tokens']:,} tokens in, {answer['output_tokens']:,} out",
            f"${answer['cost_usd']:.4f}",
        ]
    used = [f"tools: {', '.join(answer['tools'])}"] if answer["tools"] else []
    return ", ".join([*facts, *used])


def _cost(facts: Row) -> str:
    unpriced = facts["unpriced_calls"]
    if unpriced == facts["calls"] > 0:
        return "no price"
    return f"${facts['cost_usd']:.4f}" + (f" and {counted(unpriced, 'call')} without a price" if unpriced else "")


def _total_line(total: Row) -> str:
    passes = total["compactions"]
    told = [
        f"{each['trigger']}: {each['tokens_before']:,} → {each['tokens_after']:,} tokens"
        + (" (without a model)" if each["fallback"] else "")
        for each in passes
    ]
    calls = f"{counted(total['calls'], 'call')}, {total['prompt_tokens']:,} tokens in, {total['output_tokens']:,} out"
    return f"{calls}, {_cost(total)}; {counted(len(passes), 'compaction')}" + (f" ({'; '.join(told)})" if told else "")


def replay_page(replay: Row) -> str:
    """One page of HTML. Every word is escaped, and nothing on it is loaded or run."""
    rows = []
    for pair in replay["exchanges"]:
        rows.append(f'<tr class="asked"><td colspan="2" dir="auto"><p>{escape(pair["asked"])}</p></td></tr>')
        rows.append(f"<tr>{_page_cell(pair['was'])}{_page_cell(pair['now'])}</tr>")
    return _PAGE.format(
        title=escape(replay["title"] or f"Session {replay['session']}"),
        note=escape(_NOTE),
        was=escape(f"then: {replay['model']['was'] or 'unknown model'}"),
        now=escape(f"now: {replay['model']['now']}"),
        rows="\n".join(rows),
        was_total=escape(_total_line(replay["total"]["was"])),
        now_total=escape(_total_line(replay["total"]["now"])),
        ended=f"<p>{escape(ended_text(replay))}</p>" if replay["ended"] else "",
    )


def _page_cell(answer: Row) -> str:
    return f'<td dir="auto"><p>{escape(answer["text"])}</p><small>{escape(_facts_line(answer))}</small></td>'


def ended_text(replay: Row) -> str:
    """Why it ended early."""
    return f"It ended after {counted(len(replay['exchanges']), 'message')}: {replay['ended']}"


def write_page(replay: Row, file: Path) -> None:
    """Write the page into a new file, for its owner alone. Raises UserError."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as page:
            page.write(replay_page(replay))
    except FileExistsError:
        raise UserError(f"{file} exists already: name a new file.") from None
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}).") from error
