"""An OpenAI-compatible server with people, over aiohttp's.

`platform` describes it, with its part of config.yaml. `adapter` is the platform, and `server` judges requests and leads
them to their routes. `shapes` reads requests and writes answers, and `history` tells which conversation a request
belongs to; both do no input or output. `desk` hands messages over, each once, `answers` are what requests wait for, and
`missed` is what waits for a request. `chat` has the routes of Chat Completions, `responses` (with `responses_shapes`)
and `embeddings` the others.
"""
