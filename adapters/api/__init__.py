"""An OpenAI-compatible server with people, over aiohttp's.

`shapes` reads requests and writes answers, and does no input or output.
"""
