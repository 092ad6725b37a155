"""Counting tokens with the o200k_base vocabulary, offline.

The vocabulary is package data (`gateway/runtime/vocabulary/o200k_base.tiktoken`), checked against its SHA-256,
read once per process when first needed (about 0.25 s and 45 MB) and never fetched from anywhere. One
counter is made by `build` and shared: counting is thread safe.

A program that is to answer soon begins with the commonest eighth of the vocabulary (0.03 s and 9 MB). Later tokens
are merged from earlier ones, so it never counts less than the whole does: 10 % more of English, 15 % of code, half
more of other languages. The whole is read, aside, for the first long text, or once a conversation fills `ROUGH_SHARE`
of its window. So many short conversations never need it, and no rough count decides about a long one. What was
counted roughly keeps its count.

Counts are those of one tokenizer. A model with another one is corrected by the ratio that
`gateway.context.policy.Correction` learns from what its provider reports.

Speed, measured on one core: 1 MB of prose 20 ms; of one repeated letter, of spaces, of Chinese or
of base64 70 to 210 ms. It stays linear because the text is encoded in pieces of at most
`PIECE_CHARS`: tiktoken panics on a megabyte of spaces in one call. Cutting costs at most a few
tokens per piece, always upwards. Beyond `EXACT_CHARS` an even sample is counted and scaled up.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any, Final

import tiktoken

from gateway.runtime.errors import ConfigError
from gateway.runtime.heap import give_back

VOCABULARY_SHA256: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
PIECE_CHARS: Final = 16_384  # at most 64 KB of UTF-8: a code point takes four bytes at most
EXACT_CHARS: Final = 4_000_000  # counted in full up to here; under a second at worst
_LONG: Final = 500  # characters, from which on the last count is remembered
_LONGEST: Final = 100_000  # characters, up to which it is, so that no large text stays in memory
LONG_TO_MEASURE: Final = 4_000  # characters, from which on a count takes more than a millisecond
ROUGH_SHARE: Final = 0.05  # of its window, from which on a conversation is worth the whole vocabulary
_COMMON: Final = 25_000  # tokens, an eighth of all: what most texts are made of
_AT_ONCE: Final = 1 << 16  # bytes of the file: a list of all its lines would be the process's peak
MESSAGE_OVERHEAD: Final = 4  # tokens a chat format spends on role and delimiters
IMAGE_TOKENS: Final = 1_600  # of one image part: a large image at full detail

SOUND_TOKENS: Final = 1_600  # of one sound part: a minute or two, by the ten to thirty tokens a second that models take

IMAGE_TYPES: Final = frozenset({"image", "image_url", "input_image"})

# How o200k_base cuts text into words before it merges bytes. Part of the vocabulary's definition:
# with any other rule the counts would not be the model's.
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CONTRACTION: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_WORDS: Final = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


class TokenCounter:
    """Counts tokens of texts, messages and tool schemas. Raises ConfigError on the first count if
    the vocabulary is missing or damaged; nothing else ever raises. `roughly`: the share of its window that a
    conversation may fill while messages are counted by the commonest tokens alone. `began_rough`: some
    were, and are stored so."""

    def __init__(self, *, roughly: float = 0.0) -> None:
        self._encoding: tiktoken.Encoding | None = None
        self._rough: tiktoken.Encoding | None = None  # for short texts, as long as `_roughly` is so
        self._roughly = roughly
        self.began_rough = roughly > 0.0
        self._loading = threading.Lock()
        self._constants: dict[str, int] = {}
        self._last = ("", 0)  # the last long text, often counted by one stage and again by the next, and its tokens

    def text(self, text: str) -> int:
        """Tokens of `text`. Lone surrogates count as the replacement character they become."""
        if not text:
            return 0
        if not _LONG <= len(text) <= _LONGEST:
            return self._counted(text)
        last, tokens = self._last
        if text is not last:
            tokens = self._counted(text)
            self._last = (text, tokens)
        return tokens

    @property
    def is_exact(self) -> bool:
        """Whether nothing is counted roughly any more: all of the vocabulary has been read."""
        return not self.began_rough or self._encoding is not None

    def takes_long(self, chars: int, filled: float) -> bool:
        """Whether a message of so many characters, which is measured next, is to be measured in a thread, because
        that takes long. `filled`: the share of its window that its conversation takes. Once that is too much, nothing
        more is counted roughly."""
        if filled > self._roughly:
            self._roughly, self._rough = 0.0, None
        return chars > LONG_TO_MEASURE or (self._encoding is None and not self._roughly)

    def _counted(self, text: str) -> int:
        # Python keeps the UTF-8 form inside each string whose form was asked for, unless it is ASCII. The texts that
        # are counted stay in memory, so it is a copy that is given away.
        length = len(text)
        rough = self._rough if length <= LONG_TO_MEASURE else None
        encode = (self._encoding or rough or self._vocabulary(length)).encode_ordinary
        if length <= PIECE_CHARS:
            return len(encode(text if text.isascii() else text[:1] + text[1:]))
        starts = range(0, length, PIECE_CHARS)
        if length <= EXACT_CHARS:
            return sum(len(encode(text[start : start + PIECE_CHARS])) for start in starts)
        sample = starts[:: math.ceil(length / EXACT_CHARS)]
        pieces = [text[start : start + PIECE_CHARS] for start in sample]
        counted = sum(len(encode(piece)) for piece in pieces)
        return math.ceil(counted * length / sum(map(len, pieces)))

    def constant(self, text: str) -> int:
        """Tokens of a text that the program itself brings along and needs again and again: counted once."""
        tokens = self._constants.get(text)
        if tokens is None:
            tokens = self._constants[text] = self.text(text)
        return tokens

    def message(self, message: Mapping[str, Any]) -> int:
        """Tokens a message takes in a prompt: overhead, content, reasoning and tool calls."""
        content = message.get("content")
        total = MESSAGE_OVERHEAD + (self.text(content) if isinstance(content, str) else self._content(content))
        name, reasoning = message.get("name"), message.get("reasoning_content")
        if isinstance(name, str):
            total += self.text(name)
        if isinstance(reasoning, str):
            total += self.text(reasoning)
        calls = message.get("tool_calls")
        if calls and isinstance(calls, Sequence) and not isinstance(calls, str | bytes):
            total += sum(self._call(call) for call in calls)
        return total

    def schemas(self, tools: Iterable[Any]) -> int:
        """Tokens of the tool schemas of a request, as the JSON they are sent as."""
        return sum(MESSAGE_OVERHEAD + self.text(_compact(tool)) for tool in tools)

    def _content(self, content: Any) -> int:
        if content is None:
            return 0
        if isinstance(content, Sequence) and not isinstance(content, bytes):
            return sum(self._part(part) for part in content)
        return self.text(_compact(content))

    def _part(self, part: Any) -> int:
        if isinstance(part, Mapping):
            kind = part.get("type")
            if isinstance(kind, str) and kind in IMAGE_TYPES:
                return IMAGE_TOKENS
            if kind == "input_audio":
                return SOUND_TOKENS
            text = part.get("text")
            if isinstance(text, str):
                return self.text(text)
        return self.text(part if isinstance(part, str) else _compact(part))

    def _call(self, call: Any) -> int:
        """A call may be a dict or, from an SDK, an object; its arguments text or a dict."""
        function = _field(call, "function") or call
        name, arguments = _field(function, "name"), _field(function, "arguments")
        total = MESSAGE_OVERHEAD
        for value in (_field(call, "id"), name, arguments):
            if value is not None:
                total += self.text(value if isinstance(value, str) else _compact(value))
        return total

    def _vocabulary(self, length: int) -> tiktoken.Encoding:
        with self._loading:
            if self._roughly and length <= LONG_TO_MEASURE:
                self._rough = _common()
                return self._rough
            self._roughly, self._rough = 0.0, None
            _common.cache_clear()  # nobody asks for it again
            give_back()
            self._encoding = _whole()
            self._constants.clear()
        return self._encoding


@cache
def _whole() -> tiktoken.Encoding:
    return _read(math.inf)


@cache
def _common() -> tiktoken.Encoding:
    return _read(_COMMON)


def _read(most: float) -> tiktoken.Encoding:
    """About `most` of the first tokens. All take a quarter of a second and 45 MB, and 25 more meanwhile."""
    ranks: dict[bytes, int] = {}
    try:
        with (files("gateway.runtime") / "vocabulary" / "o200k_base.tiktoken").open("rb") as lines:
            if hashlib.file_digest(lines, "sha256").hexdigest() != VOCABULARY_SHA256:  # type: ignore[arg-type]
                raise ConfigError(["The token vocabulary is damaged (its checksum differs). Reinstall legato."])
            lines.seek(0)  # they are in the order of the ranks, which stand behind the tokens
            while len(ranks) < most and (some := lines.readlines(_AT_ONCE)):
                tokens = map(binascii.a2b_base64, b"".join(some).split()[::2])
                ranks.update(zip(tokens, count(len(ranks)), strict=False))
    except OSError as error:
        raise ConfigError([f"The token vocabulary cannot be read ({error.strerror}). Reinstall legato."]) from error
    encoding = tiktoken.Encoding("o200k_base", pat_str=_WORDS, mergeable_ranks=ranks, special_tokens={})
    # The encoder has made its own table by now; what asks for this one is not used here.
    ranks.clear()
    return encoding


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _compact(value: Any) -> str:
    """JSON as it is sent, or whatever text a value has that JSON cannot hold."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(type(value))
