"""The description of the terminal as a platform. It loads none of its adapters."""

from __future__ import annotations

from adapters.console.codec import DEFAULT_CHAT, DEFAULT_USER
from adapters.console.folder import LARGEST
from gateway.domain.adapter import Limits
from gateway.domain.platform import Platform

LIMITS = Limits(trusted=True, operator=DEFAULT_USER, file_bytes=LARGEST, direct_chat=lambda _: DEFAULT_CHAT)
"""What holds in every mode; whoever runs a terminal's turns elsewhere needs no more."""

PLATFORM = Platform(
    name="console",
    title="the terminal",
    create="adapters.console.adapter:create",
    hint="The person reads your replies in a terminal: plain text, short lines, no tables wider than 80 characters.",
    limits=LIMITS,
    in_shell=True,
)
