"""Models behind one port (`base`), one package per API.

    a package     plugin          its description, its host and its settings
    a call        server          one request over HTTP, the same for every API (http, sse)
                  bodies          its body; of a long conversation, only the new end is encoded
                  calls           ids and arguments of earlier tool calls
                  retry           another attempt
                  adapting        the request without what a model refused (features)
                  keyring         the key of each call, of several or of a program
    an answer     answer          words apart from thoughts, tool calls, why it ended (thinking, written)
                  usage           what it used
    a refusal     errors          as one of Legato's own errors
                  overflow        was it too long, and for which length?
    a model       vendors         who has models, at which address
                  catalog         prices and windows that are known beforehand (known: our own rows)
                  windows         the list of a server's models
    beside        transcription   recordings, written down
                  media           texts said aloud, pictures made; what such servers have in common

The packages are `openai/`, `openai_responses/`, `anthropic/` and `offline/`.
"""
