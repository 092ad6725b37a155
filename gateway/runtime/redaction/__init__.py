"""Credentials never leave: `Redactor` replaces them by `[REDACTED]` and keeps the text around them.

Two layers. The configuration's own secrets are replaced wherever they appear, exactly. All others are recognised by
form: vendors give most keys a prefix of their own (`kinds`), and the rest is given away by the name it is assigned to
(`assignments`: `password: …`, `API_KEY=…`), or by the words around it (`named`, `commands`). A second
reading, without escapes (`encodings`), finds what the first could not see.

Texts come from strangers and may be a megabyte long, so no pattern may backtrack over unbounded
text: every unbounded repeat is possessive (or followed by nothing), and a pattern of several
parts cannot begin inside its own first part. A test walks the parsed patterns to keep it so.
"""

from gateway.runtime.redaction.configured import SHORTEST_SECRET
from gateway.runtime.redaction.places import MARK
from gateway.runtime.redaction.redactor import Redact, Redactor

__all__ = ["MARK", "SHORTEST_SECRET", "Redact", "Redactor"]
