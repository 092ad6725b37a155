"""A whole answer as a terminal shows it, where no prompt is open."""

from __future__ import annotations

import shutil
from io import StringIO
from typing import Final

from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.utils import get_cwidth, is_dumb_terminal

from adapters.console.interactive import STYLE
from adapters.console.screen import ReplyFlow
from adapters.console.wrapping import wrap
from gateway.domain.terminal import printable

_PLAIN: Final = "\x1b[0m"  # the end of all styles


def styled(text: str) -> str:
    """Lay the Markdown of an answer out for the terminal behind stdout, without a line end."""
    if is_dumb_terminal():
        return printable(text).rstrip()
    columns, rows = shutil.get_terminal_size()
    fragments = wrap(ReplyFlow().finish(text, columns=columns), columns=columns, cells=get_cwidth)
    written = StringIO()
    output = Vt100_Output(written, lambda: Size(rows=rows, columns=columns), enable_cpr=False)
    print_formatted_text(output, FormattedText(fragments), STYLE)
    return written.getvalue().replace("\r\n", "\n").removesuffix(_PLAIN).rstrip("\n") + _PLAIN
