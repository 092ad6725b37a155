"""Files out and in: photos, documents, voice and the like, albums, downloads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tests.emulators.telegram import access
from tests.emulators.telegram.cloud import Cloud
from tests.emulators.telegram.files import MEDIA
from tests.emulators.telegram.parameters import Parameters
from tests.emulators.telegram.refusals import bad

_ALBUMS = itertools.count(13_000_000_000_000_001)
_IN_ALBUMS: Final = ("photo", "video", "audio", "document")


def _send(kind: str, cloud: Cloud, parameters: Parameters) -> Any:
    stored = cloud.files.take(kind, parameters.file(kind))
    caption = access.caption_of(cloud, parameters) if kind not in ("sticker", "video_note") else {}
    markup = access.markup_of(parameters)
    chat = access.chat_of(cloud, parameters, writing=True)
    place = access.place_of(cloud, chat, parameters)
    content = cloud.files.content(kind, stored, parameters.integer("duration", 3))
    return cloud.show(chat, {**content, **caption}, reply_markup=markup, **place).as_json()


def send_media_group(cloud: Cloud, parameters: Parameters) -> Any:
    """`sendMediaGroup`: two to ten items, shown as one album."""
    items = parameters.structure("media", "media")
    if not isinstance(items, list):
        raise bad("Expected an Array of InputMedia")
    if not 2 <= len(items) <= 10:
        raise bad("Wrong number of media in the album")
    files = [_item(cloud, parameters, item) for item in items]
    kinds = {kind for kind, _, _ in files}
    if len(kinds) > 1 and kinds & {"audio", "document"}:
        raise bad("Documents and audio files can be only grouped in an album with messages of the same type")
    chat = access.chat_of(cloud, parameters, writing=True)
    place = access.place_of(cloud, chat, parameters)
    album = str(next(_ALBUMS))
    shown = []
    for _, stored, caption in files:
        content = {**stored, **caption, "media_group_id": album}
        shown.append(cloud.show(chat, content, **place).as_json())
    return shown


def _item(cloud: Cloud, parameters: Parameters, item: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    if not isinstance(item, dict):
        raise bad("Can't parse InputMedia: expected an Object")
    kind = str(item.get("type"))
    if kind not in _IN_ALBUMS:
        raise bad(f'Can\'t parse InputMedia: type "{kind}" is unsupported')
    fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in item.items()}
    own = parameters.with_values(fields)
    content = cloud.files.content(kind, cloud.files.take(kind, own.file("media")))
    return kind, content, access.caption_of(cloud, own)


def get_file(cloud: Cloud, parameters: Parameters) -> Any:
    """`getFile`."""
    return cloud.files.release(parameters.text("file_id"))


def _name(kind: str) -> str:
    return "send" + "".join(part.capitalize() for part in kind.split("_"))


METHODS: Final[dict[str, Callable[[Cloud, Parameters], Any]]] = {
    **{_name(kind): partial(_send, kind) for kind in MEDIA},
    "sendMediaGroup": send_media_group,
    "getFile": get_file,
}
