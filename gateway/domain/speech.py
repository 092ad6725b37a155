"""Spoken words: the port of a transcriber, and the check of its result."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct, field

from gateway.domain.usage import CanonicalUsage
from gateway.runtime.patterns import late

LONGEST: Final = 20_000  # characters of what is taken from one recording: an hour and a half of speech

_UNHEARD: Final = late("[\x00-\x08\x0e-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_NOISE: Final = late(r"(?:\[[^\]]{0,80}+\]|\([^)]{0,80}+\)|\*[^*]{0,80}+\*|[♪♫…\W_])*+")
# What Whisper writes where nobody speaks, as its training had it under silence; without signs and capitals.
_PHANTOMS: Final = frozenset({
    "thanksforwatching", "thankyouforwatching", "thankyousomuchforwatching", "thankyouverymuchforwatching",
    "pleasesubscribe", "dontforgettolikeandsubscribe", "subtitlesbytheamaraorgcommunity", "subtitlesbyamaraorg",
    "untertitelderamaraorgcommunity", "untertitelimauftragdeszdffürfunk2017", "vielendankfürszuschauen",
    "soustitresréalisésparlacommunautédamaraorg", "soustitresréalisésparaamaraorg", "merciavoirregardé",
    "subtítulosrealizadosporlacomunidaddeamaraorg", "graciasporver", "sottotitolicreatidallacomunitàamaraorg",
    "продолжениеследует", "субтитрысделалdimatorzok", "редакторсубтитровасемкинкорректораегорова",
    "ご視聴ありがとうございました", "시청해주셔서감사합니다", "字幕by索兰娅", "字幕由amaraorg社区提供", "谢谢观看",
    "謝謝觀看", "请不吝点赞订阅转发打赏支持明镜与点点栏目", "請不吝點讚訂閱轉發打賞支持明鏡與點點欄目",
})  # fmt: skip


class Transcript(Struct, frozen=True, kw_only=True):
    """The words of a recording, as a model wrote them down. `seconds`: how long the recording is, as far as they said
    it; `silent`: they believe that nobody speaks in it."""

    text: str
    seconds: float | None = None
    silent: bool = False
    usage: CanonicalUsage = field(default_factory=CanonicalUsage)

    @property
    def words(self) -> str:
        """Return the words in one line; "" if there are none."""
        line = " ".join(_UNHEARD.sub(" ", self.text[: 2 * LONGEST]).split())[:LONGEST]
        if self.silent or _NOISE.fullmatch(line):
            return ""
        bare = "".join(sign for sign in line.casefold() if sign.isalnum())
        return "" if bare in _PHANTOMS else line


class Transcriber(Protocol):
    """Writes recordings down. `provider`, `model`: how the ledger calls them; `free`: they cost nothing."""

    provider: str
    model: str
    free: bool

    async def transcribe(self, sound: bytes, form: str, digest: str) -> Transcript:
        """Write down a recording of this format (see `files.kinds.sound_format`), whose SHA-256 in hex is `digest`.
        Raises MediaFailed, and CancelledError: the caller limits the time."""


def recorded_seconds(content: bytes, form: str) -> float | None:
    """Return the length of an Ogg or WAV recording in seconds, by its own marks; None for other forms."""
    if form == "wav":
        rate = int.from_bytes(content[28:32], "little")
        return (max(0, len(content) - 44) / rate if rate else 0) or None
    last = content.rfind(b"OggS")
    if form != "ogg" or last < 0 or len(content) < last + 14:
        return None
    position = int.from_bytes(content[last + 6 : last + 14], "little", signed=True)
    # https://www.rfc-editor.org/rfc/rfc7845 (Opus counts at 48 kHz); Vorbis names its rate in its first packet.
    at = content.find(b"\x01vorbis", 0, 512)
    rate = int.from_bytes(content[at + 12 : at + 16], "little") if at >= 0 else 48_000
    return position / rate if position > 0 and rate else None
