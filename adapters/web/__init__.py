"""A page to talk to, and to see inside; over aiohttp's server.

`platform` describes it, with its part of config.yaml. `adapter` is the platform; `server` answers requests, and `guard`
says which of them. `log` is what a chat shows, made of the store alone, and `stream` keeps an open page equal to it.
`pages` are the pages, of the elements that `markup` makes, and `rendering` turns Markdown into these. `charts` draws.
"""
