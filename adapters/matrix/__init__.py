"""Matrix, by the client-server API alone.

`platform` describes it, with its part of config.yaml. `adapter` shows messages, from any process, and reads while its
process holds the account. `homeserver` makes the calls and keeps the login; `receiving` reads what `/sync` brings, room
by room, and `rooms` what the bot knows and asks of a room. `codec` (pure) says what an event means, `formatting` (pure)
makes HTML of Markdown, `limits` says what one message may hold.
"""
