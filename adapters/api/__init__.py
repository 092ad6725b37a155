"""An OpenAI-compatible server with people, over aiohttp's.

`platform` describes it, with its part of config.yaml. `adapter` is the platform, and `server` judges requests and leads
them to their routes. `shapes` reads requests and writes answers, and does no input or output.
"""
