"""The folder of a conversation: what its tools read, write and run in.

`folders.py` says where it is, and `calls.py` what its tools do there. `names.py` judges the names that models write,
`tree.py` opens what they name, without following a link. `versions.py` keeps what was there before each change, and
`workspace.py` is all of it together. `looking.py` walks through what somebody may look for, which `ignored.py` decides;
`edits.py` replaces texts and shows what changed.
"""
