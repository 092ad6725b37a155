"""A bot on the emulated Telegram whose calls fail and whose process is killed: what do people see in the end?

`script` draws from a seed who says what, which calls fail and when the bot dies; `bot` is the program; `bots.run`
carries a schedule out, `laboratory` keeps the `evidence`; `check` looks at what was seen, `drafted` at what was seen of
it before, `silence` at what Telegram asked for; `doubts` says how often the schedule itself left the bot in doubt.
`python -m tests.chaos.run telegram --runs 200` runs it.

What is not tried: an edit that Telegram carries out so late that a newer one was carried out before it. Nobody could
mend that, because nobody is told.
"""
