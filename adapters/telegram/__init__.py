"""Telegram, over python-telegram-bot.

`adapter` reads and sends; `codec` (pure) says what an update means; `formatting` (pure) turns
Markdown into text and entities; `failures` maps the library's errors; `receiving` makes sure that an
update is stored before Telegram is told that it was received; `limits` says what Telegram allows.
"""
