"""A bot on the emulated Matrix server whose calls fail, whose answers of `/sync` are lost or late, and whose process is
killed: what do people see in the end?

`script` draws from a seed what happens; `bot` is the program; `bots.run` carries a schedule out, `laboratory` keeps
what was seen; `check` looks at that. `python -m tests.chaos.run matrix --runs 200` runs it.
"""
