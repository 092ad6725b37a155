"""Files: what people and the bot send, how it looks in a message, and what may be downloaded.

Limits: https://core.telegram.org/bots/api#getfile (20 MB) and #sending-files (50 MB, photos 10 MB; for the
sides of photos see `pictures`).
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from dataclasses import dataclass
from typing import Any, Final

from tests.emulators.telegram.parameters import Upload
from tests.emulators.telegram.pictures import is_too_odd
from tests.emulators.telegram.refusals import bad

LARGEST_DOWNLOAD: Final = 20 * 1024 * 1024
LARGEST_UPLOAD: Final = 50 * 1024 * 1024
LARGEST_PHOTO: Final = 10 * 1024 * 1024
MEDIA: Final = ("photo", "document", "voice", "audio", "video", "animation", "sticker", "video_note")
_FOLDERS: Final = {"photo": "photos", "voice": "voice", "audio": "music", "video": "videos", "sticker": "stickers"}
_IMAGES: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file on Telegram's servers. `size` may say more than there is, so that a test need not make 20 MB."""

    id: str
    unique_id: str
    kind: str
    name: str
    mime_type: str
    content: bytes
    size: int
    path: str

    def as_json(self) -> dict[str, Any]:
        """Return the fields of every kind of media."""
        return {"file_id": self.id, "file_unique_id": self.unique_id, "file_size": self.size}


class Files:
    """All files; those that `getFile` was asked for can be downloaded."""

    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}
        self._released: dict[str, StoredFile] = {}
        self._numbers = itertools.count(1)

    def add(
        self, kind: str, content: bytes, *, name: str = "", mime_type: str = "", size: int | None = None
    ) -> StoredFile:
        """Keep a file; its ids are like real ones, long and without meaning."""
        number = next(self._numbers)
        digest = base64.urlsafe_b64encode(hashlib.sha384(f"{kind} {number}".encode()).digest()).decode()
        extension = name.rpartition(".")[2] if "." in name else {"photo": "jpg", "voice": "oga"}.get(kind, "bin")
        stored = StoredFile(
            id=f"AgACAgQAAx{digest}",
            unique_id=f"AQAD{digest[:12]}",
            kind=kind,
            name=name,
            mime_type=mime_type,
            content=content,
            size=len(content) if size is None else size,
            path=f"{_FOLDERS.get(kind, 'documents')}/file_{number}.{extension}",
        )
        self._files[stored.id] = stored
        return stored

    def take(self, kind: str, given: Upload | str | None) -> StoredFile:
        """The file of a request: an upload is kept, an id is looked up. Raises Refusal."""
        if given is None or given == "":
            raise bad(f"There is no {kind.replace('_', ' ')} in the request")
        if isinstance(given, Upload):
            self._check(kind, given)
            return self.add(kind, given.content, name=given.name, mime_type=given.content_type)
        if given.startswith(("http://", "https://")):
            raise bad("Failed to get HTTP URL content")
        if given not in self._files:
            raise bad("Wrong file identifier/HTTP URL specified")
        return self._files[given]

    def _check(self, kind: str, upload: Upload) -> None:
        size = len(upload.content)
        if not size:
            raise bad("File must be non-empty")
        if kind == "photo" and size > LARGEST_PHOTO:
            raise bad(f"File of size {size} bytes is too big for a photo; the maximum size is {LARGEST_PHOTO} bytes")
        if size > LARGEST_UPLOAD:
            raise bad("File is too big")
        if kind == "photo" and not upload.content.startswith(_IMAGES):
            raise bad("IMAGE_PROCESS_FAILED")
        if kind == "photo" and is_too_odd(upload.content):
            raise bad("PHOTO_INVALID_DIMENSIONS")

    def release(self, file_id: str) -> dict[str, Any]:
        """`File`, which from now on can be downloaded. Raises Refusal."""
        stored = self._files.get(file_id)
        if stored is None:
            raise bad("Invalid file_id" if file_id else "file_id not specified")
        if stored.size > LARGEST_DOWNLOAD:
            raise bad("File is too big")
        self._released[stored.path] = stored
        return {**stored.as_json(), "file_path": stored.path}

    def at(self, path: str) -> StoredFile | None:
        """Return the file that can be downloaded from a path."""
        return self._released.get(path)

    def content(
        self, kind: str, stored: StoredFile, duration: int = 3, thumbnail: bytes | None = None
    ) -> dict[str, Any]:
        """The part of a message that shows a file as this kind of media."""
        body = stored.as_json()
        if kind == "photo":
            small = self.add("photo", stored.content[:1024], name="small.jpg")
            return {"photo": [{**small.as_json(), "width": 90, "height": 60}, {**body, "width": 1280, "height": 853}]}
        if kind in ("document", "audio", "video", "animation", "voice"):
            body |= {name: value for name, value in _described(stored).items() if value and kind != "voice"}
        if kind in ("voice", "audio", "video", "animation", "video_note"):
            body["duration"] = duration
        if kind == "voice":
            body["mime_type"] = stored.mime_type or "audio/ogg"
        if kind in ("video", "animation"):
            body |= {"width": 640, "height": 480}
        if kind == "sticker":
            body |= {"type": "regular", "width": 512, "height": 512, "is_animated": False, "is_video": False}
        if kind == "video_note":
            body["length"] = 240
        if thumbnail is not None:
            preview = self.add("photo", thumbnail, name="thumbnail.jpg")
            body["thumbnail"] = {**preview.as_json(), "width": 320, "height": 240}
        return {kind: body}


def _described(stored: StoredFile) -> dict[str, str]:
    return {"file_name": stored.name, "mime_type": stored.mime_type}
