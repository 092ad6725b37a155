"""Encryption by age (https://age-encryption.org), a program of its own that the operator can use without us."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, Final

from gateway.runtime.errors import UserError
from gateway.runtime.inside import marked

_MARKS: Final = (b"age-encryption.org/v1", b"-----BEGIN AGE ENCRYPTED FILE-----")
MARK_BYTES: Final = max(map(len, _MARKS))
_PIECE: Final = 64 * 1024
_MISSING: Final = "{purpose} needs the program `age`. Install the package `age`, or put the program on the PATH."


def is_sealed(beginning: bytes) -> bool:
    """Whether a file that begins so is encrypted by age."""
    return beginning.startswith(_MARKS)


@contextmanager
def sealing(recipient: str, out: BinaryIO) -> Iterator[IO[bytes]]:
    """Encrypt what is written in this block for the recipient, into `out`. Raises UserError if age fails."""
    arguments = ["--encrypt", "--recipient", recipient]
    with _age(arguments, "backup.recipient", stdin=subprocess.PIPE, stdout=out) as age:
        assert age.stdin is not None, "it is a pipe"
        with suppress(BrokenPipeError), age.stdin as pipe:  # age says why it has ended
            yield pipe
        _check(age)


@contextmanager
def unsealed(source: BinaryIO, identity: Path) -> Iterator[IO[bytes]]:
    """The content of an encrypted file, by the key in the file `identity`. Raises UserError if age fails."""
    arguments = ["--decrypt", "--identity", str(identity)]
    with _age(arguments, "an encrypted backup", stdin=source, stdout=subprocess.PIPE) as age:
        assert age.stdout is not None, "it is a pipe"
        try:
            yield age.stdout
        except UserError:
            if not age.stdout.read(1):  # what came was not whole, and age says why
                _check(age)
            raise
        while age.stdout.read(_PIECE):  # what a tar file is filled up with
            pass
        _check(age)


@contextmanager
def _age(
    arguments: Sequence[str], purpose: str, *, stdin: BinaryIO | int, stdout: BinaryIO | int
) -> Iterator[subprocess.Popen[bytes]]:
    try:
        process = subprocess.Popen(
            ["age", *arguments], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, env=marked(os.environ)
        )
    except FileNotFoundError:
        raise UserError(_MISSING.format(purpose=purpose)) from None
    with process:
        try:
            yield process
        finally:
            process.kill()  # where it has not ended


def _check(age: subprocess.Popen[bytes]) -> None:
    """Wait for the end. Raises UserError if it was none that was wanted."""
    assert age.stderr is not None, "it is a pipe"
    said = age.stderr.read().decode(errors="replace").split("\n")[0].removeprefix("age: ").removeprefix("error: ")
    if age.wait():
        raise UserError(f"age failed: {said.rstrip('.')}.")
