"""A bot on the emulated Slack whose calls fail, whose socket breaks and whose process is killed: what do people see in
the end?

`script` draws from a seed what happens; `bot` is the program; `bots.run` carries a schedule out, `laboratory` keeps
what was seen; `check` looks at that. `python -m tests.chaos.run slack --runs 200` runs it.

Before a run begins, a first process is told one message in each place, and ends in peace: of a thread in which the bot
never took part, nothing can be fetched.
"""
