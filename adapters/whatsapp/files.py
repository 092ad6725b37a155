"""Files as WhatsApp takes them: https://developers.facebook.com/documentation/business-messaging/whatsapp/business-phone-numbers/media

It shows few kinds of pictures, sounds and videos as such. Others are documents, of which it takes offices' and texts.
"""

from __future__ import annotations

from typing import Any, Final

from adapters.whatsapp.calls import GraphCalls
from adapters.whatsapp.limits import LARGEST
from gateway.domain.chat import KeptFile
from gateway.runtime.errors import DeliveryRefused

_SHOWN: Final = {
    "image": ("image/jpeg", "image/png"),
    "audio": ("audio/aac", "audio/amr", "audio/mp4", "audio/mpeg", "audio/ogg"),
    "video": ("video/3gpp", "video/mp4"),
    "sticker": ("image/webp",),
}
BARE: Final = ("audio", "sticker")  # what has no caption
_TEXTS: Final = ("application/json", "application/xml", "application/x-yaml", "application/javascript")
_OFFICE: Final = ("pdf", "msword", "vnd.ms-", "vnd.openxmlformats-officedocument.")


def kind_of(file: KeptFile) -> tuple[str, str]:
    """The type of the message that shows a file, and the type by which the file is handed over. Raises
    DeliveryRefused."""
    mime = file.mime.partition(";")[0].strip().lower()
    kind = next((kind for kind, known in _SHOWN.items() if mime in known), None)
    if kind is not None and file.size > LARGEST[kind]:
        most = f"{LARGEST[kind] / 1024**2:g} MB"
        raise DeliveryRefused(f"{file.name or 'the file'} is larger than the {most} that WhatsApp takes of this kind")
    if kind is not None:
        return kind, mime
    if mime.startswith("text/") or mime in _TEXTS:
        return "document", "text/plain"
    if mime.removeprefix("application/").startswith(_OFFICE):
        return "document", mime
    raise DeliveryRefused(f"{file.name or 'the file'}: WhatsApp takes no files of the type {mime or 'unknown'}")


async def shown(calls: GraphCalls, number: str, file: KeptFile, content: bytes, caption: str) -> dict[str, Any]:
    """The content of a message with a file, which is handed over first. Raises AdapterError."""
    kind, mime = kind_of(file)
    name = file.name or "file"
    part: dict[str, Any] = {"id": await calls.upload(number, name, mime, content)}
    if kind == "document":
        part["filename"] = name
    if file.is_voice and mime == "audio/ogg":
        part["voice"] = True
    if caption and kind not in BARE:
        part["caption"] = caption
    return {"type": kind, kind: part}
