"""Conversations of other programs, read from their exports. Nothing is stored here.

`past` is what a conversation becomes, whoever had it, and makes a valid transcript of it; `arrays` reads a JSON array
of any size one element at a time, `files` finds the exports in an archive. Each other file knows one format: its
`conversations` yields what it could read, and counts in a `Tally` what it left out and why.
"""

from gateway.store.imports.formats import FORMATS, read
from gateway.store.imports.past import Past, Tally

__all__ = ["FORMATS", "Past", "Tally", "read"]
