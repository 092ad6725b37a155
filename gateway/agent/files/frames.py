"""Frames and the sound of a video, taken by a decoder on the machine. Without one, a video only has its platform's
preview frame."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from gateway.runtime import program
from gateway.runtime.clock import Clock

log = structlog.get_logger(__name__)

MOST_FRAMES: Final = 4
SOUND: Final = "m4a"
_LONGEST: Final = 3_600.0  # seconds of a video that are looked at
_UNKNOWN: Final = 8.0  # seconds, of a video that does not say how long it is
_SECONDS: Final = 20.0  # that the decoder may take
_FORMATS: Final = "mov,mp4,matroska,webm,gif,avi,mpegts,flv"
_WIDTH: Final = 640  # pixels
_MOST_BYTES: Final = 1_000_000  # of one frame


class Frames(Struct, frozen=True, kw_only=True):
    """Takes frames and sounds with ffmpeg (https://ffmpeg.org/ffmpeg.html), in a folder of its own, within a time."""

    ffmpeg: str
    clock: Clock

    async def of(self, video: bytes, seconds: float | None) -> list[bytes]:
        """At most `MOST_FRAMES` frames as JPEGs, evenly from the beginning to the end; none if it cannot be read."""
        length = min(max(seconds or _UNKNOWN, 1.0), _LONGEST)
        looks = f"fps={MOST_FRAMES}/{length:.2f}:round=up,scale='min({_WIDTH},iw)':-2"
        how = ("-an", "-sn", "-frames:v", str(MOST_FRAMES), "-vf", looks, "%d.jpg")
        return await self._made(video, length, how, _pictures)

    async def sound(self, video: bytes, most: float) -> bytes:
        """The sound of its first `most` seconds as `SOUND`, small enough to be written down; b"" if it has none."""
        how = ("-vn", "-sn", "-ac", "1", "-ar", "16000", "-c:a", "aac", "-b:a", "32k", f"sound.{SOUND}")
        made = await self._made(video, most, how, lambda folder: [(folder / f"sound.{SOUND}").read_bytes()])
        return made[0] if made else b""

    async def _made(
        self, video: bytes, length: float, how: Sequence[str], read: Callable[[Path], list[bytes]]
    ) -> list[bytes]:
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="legato-video-"))
        try:
            await asyncio.to_thread((folder / "video").write_bytes, video)
            # Nothing that a playlist names is opened: a stranger could name any file or address.
            reading = f"-protocol_whitelist file -format_whitelist {_FORMATS} -max_alloc 200000000 -threads 1"
            argv = [self.ffmpeg, *f"-nostdin -v error {reading} -t {length:.2f} -i video".split(), *how]
            environment = {"PATH": os.environ.get("PATH", "")}
            ended = await program.run(argv, folder=folder, environment=environment, seconds=_SECONDS, clock=self.clock)
            if ended.late or ended.code:
                log.info("video_not_decoded", late=ended.late, code=ended.code, output=ended.output[-300:])
            return await asyncio.to_thread(read, folder)
        except FileNotFoundError:
            return []  # it has no sound, or there is no decoder any more
        except OSError as error:
            log.warning("decoder_not_run", error=str(error))
            return []
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))


def frames(clock: Clock) -> Frames | None:
    """What takes frames, if the machine has a decoder."""
    found = shutil.which("ffmpeg")
    return None if found is None else Frames(ffmpeg=found, clock=clock)


def _pictures(folder: Path) -> list[bytes]:
    made = (folder / f"{number}.jpg" for number in range(1, MOST_FRAMES + 1))
    return [each.read_bytes() for each in made if each.exists() and 0 < each.stat().st_size <= _MOST_BYTES]
