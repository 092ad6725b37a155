"""Slack, over slack_sdk's client of the Web API.

`platform` describes it, with its part of config.yaml. `adapter` shows messages, from any process, and reads while its
process holds the account: `socket` keeps Socket Mode's connection, or `endpoint` is called by Slack. `receiving` makes
sure that a message is stored before Slack is told so, and `history` asks for what was missed, or said before. `codec`
(pure) says what an event means. `formatting` (pure) fits Markdown into Slack's rich text, `limits` says what Slack
allows, `calls` makes calls and maps their errors.
"""
