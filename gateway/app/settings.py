"""What the configuration means to single rooms, in their own words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time
from zoneinfo import ZoneInfo

from gateway.app.config import Config
from gateway.context.policy import CompressionSettings, HygieneRules
from gateway.domain.chat import ChatType
from gateway.domain.expiry import ExpiryPolicy
from gateway.turns.reception import TurnRules


def compression(config: Config) -> CompressionSettings:
    """The compressor's budgets."""
    return CompressionSettings(
        threshold=config.compression.threshold,
        target_ratio=config.compression.target_ratio,
        protect_first_n=config.compression.protect_first_n,
        protect_last_n=config.compression.protect_last_n,
        min_threshold_tokens=config.compression.min_threshold_tokens,
    )


def expiry_policy(config: Config) -> Callable[[str, ChatType], ExpiryPolicy]:
    """When sessions of a platform and chat type end by themselves."""
    expiry = config.sessions.expiry
    policy = ExpiryPolicy(
        mode=expiry.mode,
        idle_minutes=expiry.idle_minutes,
        daily_at=time.fromisoformat(expiry.daily_at),
        zone=ZoneInfo(expiry.timezone) if expiry.timezone else None,
        notify=expiry.notify,
    )
    return lambda *_: policy


def hygiene_rules(config: Config) -> HygieneRules:
    """When the pass before a turn compacts."""
    return HygieneRules(
        enabled=config.compression.enabled,
        threshold=config.hygiene.threshold,
        min_messages=config.hygiene.min_messages,
        max_messages=config.hygiene.max_messages,
        timeout=config.hygiene.timeout,
    )


def turn_rules(config: Config) -> TurnRules:
    """How turns behave."""
    return TurnRules(
        groups=config.sessions.groups,
        threads=config.sessions.threads,
        busy_mode=config.sessions.busy_mode,
        deadline=config.turns.deadline,
        inactivity=config.turns.inactivity,
        lane_cap=config.turns.lane_cap,
    )
