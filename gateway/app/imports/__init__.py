"""Conversations of other programs, read from their exports. Nothing is stored here.

`past` is what a conversation becomes, whoever had it, and makes a valid transcript of it; `arrays` reads a JSON array
of any size one element at a time, `reading` opens the files and knows the formats. Each other file is one format: its
`conversations` yields what it could read, and counts in a `Tally` what it left out and why.
"""

from gateway.app.imports.past import Past, Tally, measured
from gateway.app.imports.reading import FORMATS, read, size_of

__all__ = ["FORMATS", "Past", "Tally", "measured", "read", "size_of"]
