"""Discord, over discord.py.

`platform` describes it, with its part of config.yaml. `adapter` shows messages, from any process, and reads while its
process holds the account. `connection` keeps the gateway's socket; `receiving` makes sure that a message is stored
before the next one of its channel is looked at, and `history` asks for what was missed, or said before. `codec` (pure)
says what an update means and `listening` (pure) whether it is for the bot. `formatting` (pure) fits Markdown into
Discord's, `limits` says what Discord allows, `failures` maps the library's errors.
"""
