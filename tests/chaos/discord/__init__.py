"""A bot on the emulated Discord whose calls fail, whose gateway breaks and whose process is killed: what do people see
in the end?

`script` draws from a seed what happens; `bot` is the program; `bots.run` carries a schedule out, `laboratory` keeps
what was seen; `check` looks at that. `python -m tests.chaos.run discord --runs 200` runs it.

Before a run begins, a first process is told one message in each place, and ends in peace: a bot cannot list the private
chats that it has, so nothing can be fetched from one that it has never heard of.
"""
