"""The folder of a conversation: what its tools read, write and run in.

`folders.py` says where it is, and `calls.py` what its tools do there. `names.py` checks the names that models write,
`tree.py` opens what they name, without following links, and walks through what somebody may look for. `versions.py`
keeps what was there before each change, and `workspace.py` puts all of it together. `edits.py` replaces text and shows
what changed.
"""
