"""Markdown made into what Telegram shows: texts with entities, no longer than one message may be.

`split` is asked first and `render` later, for each part by itself, as each part is stored and sent by
itself. Entities are sent, never Telegram's own Markdown: a text with entities cannot fail to parse.
"""

from adapters.telegram.characters import LONGEST
from adapters.telegram.entities import Entity
from adapters.telegram.rendering import Rendered, caption, fits_caption, render
from adapters.telegram.splitting import split

__all__ = ["LONGEST", "Entity", "Rendered", "caption", "fits_caption", "render", "split"]
