"""The terminal: JSON lines for programs, plain pipes for shells, a prompt for people.

The interactive mode is in `adapters.console.interactive`, imported only by who needs it: it pulls
in a terminal library that the other two do without.
"""

from adapters.console.adapter import JsonConsole, PipeConsole
from adapters.console.folder import LARGEST
from gateway.domain.adapter import Limits

LIMITS = Limits(trusted=True, file_bytes=LARGEST)
"""What holds in every mode: whoever runs a terminal's turns elsewhere need know no more."""

__all__ = ["LIMITS", "JsonConsole", "PipeConsole"]
