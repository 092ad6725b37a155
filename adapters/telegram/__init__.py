"""Telegram, over python-telegram-bot.

`platform` describes it, with its part of config.yaml, and `making` makes the bot. `adapter` sends and polls, `webhook`
is the other way to read, called at an `endpoint`; `receiving` makes sure that an update is stored before Telegram is
told that it was received. `updates` is what is read of Telegram's JSON, and `codec` (pure) says what it means.
`formatting` (pure) turns Markdown into text and entities, `limits` says what Telegram allows and `menu` what it offers.
`requests` is the way there, through a proxy if need be, and `failures` maps the library's errors.
"""
