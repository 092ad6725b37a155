"""WhatsApp, over the Cloud API of Meta.

`platform` describes it, with its part of config.yaml. `adapter` shows messages, from any process, and hears those that
Meta brings to `endpoint`, in all of them; `subscription` asks Meta to call, and looks whether it does. `codec` (pure)
says what an event means, `formatting` (pure) fits Markdown into WhatsApp's signs, `messages` (pure) are the bodies of
what is sent. `calls` makes calls and maps their errors, `files` carries files, `limits` says what WhatsApp allows.
"""
