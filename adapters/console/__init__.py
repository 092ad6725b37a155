"""The terminal: JSON lines for programs, plain pipes for shells, a prompt for people.

The interactive mode is in `adapters.console.interactive`, imported only by who needs it: it pulls
in a terminal library that the other two do without.
"""

from adapters.console.adapter import JsonConsole, PipeConsole

__all__ = ["JsonConsole", "PipeConsole"]
