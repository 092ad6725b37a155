"""A bot on the emulated WhatsApp whose calls fail, to whom Meta's webhooks come late, twice or not at all, and whose
process is killed: what do people see in the end?

`script` draws from a seed what happens; `bot` is the program; `bots.run` carries a schedule out, `laboratory` keeps
what was seen; `check` looks at that. `python -m tests.chaos.run whatsapp --runs 200` runs it. The bot has four numbers.
"""
