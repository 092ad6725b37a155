"""Makes the filters of system calls in `gateway/runtime/sandbox_files`: `python -m tests.support.syscall_filter`.

A filter is a program for the kernel's classic BPF (linux/filter.h, linux/seccomp.h): eight bytes an instruction. What
is refused looks like a call that this kernel does not have, so that programs do without it.
"""

from __future__ import annotations

import errno
import socket
import struct
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "gateway/runtime/sandbox_files"
ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
# Numbers on x86_64 and aarch64 (asm/unistd_64.h, asm-generic/unistd.h).
REFUSED: Final = {
    # the keys of the session that started the gateway
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # parts of the kernel with a long history of holes, which no ordinary program needs
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # memory that no process of the tree shows as its own, so that its limit would not see it
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    # the kernel's log, which tells of the machine
    "syslog": (103, 116),
    # what only an administrator does, should a privilege ever be there
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
}
SOCKET: Final = (41, 198)
FAMILIES: Final = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)  # vsock reaches a VM's host
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # of struct seccomp_data
_KILL, _ALLOW, _ERROR = 0x80000000, 0x7FFF0000, 0x00050000
_X32: Final = 0x40000000


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def program(machine: str) -> bytes:
    """The filter for a kind of processor."""
    column = list(ARCHITECTURES).index(machine)
    numbers = sorted(each[column] for each in REFUSED.values())
    lines = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, ARCHITECTURES[machine], 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [_instruction(_AT_LEAST, _X32, 0, 1), _instruction(_RETURN, _ERROR | errno.ENOSYS)]
    for number in numbers:
        lines += [_instruction(_EQUAL, number, 0, 1), _instruction(_RETURN, _ERROR | errno.ENOSYS)]
    lines += [_instruction(_EQUAL, SOCKET[column], 1, 0), _instruction(_RETURN, _ALLOW)]
    lines += [_instruction(_LOAD, _FIRST_ARGUMENT)]
    for family in FAMILIES:
        lines += [_instruction(_EQUAL, family, 0, 1), _instruction(_RETURN, _ALLOW)]
    lines += [_instruction(_RETURN, _ERROR | errno.EAFNOSUPPORT)]
    return b"".join(lines)


if __name__ == "__main__":
    for each in ARCHITECTURES:
        FOLDER.joinpath(f"{each}.bpf").write_bytes(program(each))
