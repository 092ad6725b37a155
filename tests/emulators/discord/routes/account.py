"""The bot itself: who it is, its application, its gateway, its DMs and guilds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.emulators.discord.access import guild_of
from tests.emulators.discord.asked import Asked, snowflake
from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.refusals import bad, not_found


def me(cloud: Cloud, asked: Asked) -> Any:
    """`GET /users/@me`."""
    return {**cloud.bot.as_json(), "verified": True, "mfa_enabled": True, "email": None, "flags": 0, "locale": "en-US"}


def user(cloud: Cloud, asked: Asked) -> Any:
    """`GET /users/{user}`."""
    found = cloud.users.get(asked.identity("user"))
    if found is None:
        raise not_found(10013)
    return found.as_json()


def application(cloud: Cloud, asked: Asked) -> Any:
    """`GET /oauth2/applications/@me` and `GET /applications/@me`."""
    return {
        "id": str(cloud.application),
        "name": cloud.bot.name,
        "icon": None,
        "description": "",
        "summary": "",
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "00" * 32,
        "flags": cloud.application_flags,
        "owner": cloud.owner.as_json(),
        "team": None,
        "bot": cloud.bot.as_json(),
        "approximate_guild_count": len(cloud.guilds_of(cloud.bot)),
        "redirect_uris": [],
        "hook": True,
    }


def gateway(cloud: Cloud, asked: Asked) -> Any:
    """`GET /gateway`."""
    return {"url": cloud.gateway_url}


def gateway_bot(cloud: Cloud, asked: Asked) -> Any:
    """`GET /gateway/bot`."""
    total, left = cloud.settings.sessions_a_day, cloud.starts.left
    limit = {"total": total, "remaining": left, "reset_after": int(cloud.starts.reset_after * 1000) + 1}
    limit["max_concurrency"] = 1
    return {"url": cloud.gateway_url, "shards": cloud.settings.shards, "session_start_limit": limit}


def open_dm(cloud: Cloud, asked: Asked) -> Any:
    """`POST /users/@me/channels`. It opens a DM with anybody; whether they can be written to shows later."""
    found = cloud.users.get(snowflake(asked.form.get("recipient_id"), "recipient_id"))
    if found is None or found is cloud.bot:
        raise bad(50033) if found else not_found(10013)
    return cloud.direct(found).as_json()


def guilds(cloud: Cloud, asked: Asked) -> Any:
    """`GET /users/@me/guilds`."""
    found = sorted(cloud.guilds_of(cloud.bot), key=lambda guild: guild.id)
    after = int(asked.query.get("after", 0))
    chosen = [guild for guild in found if guild.id > after][: int(asked.query.get("limit", 200))]
    return [
        {
            "id": str(guild.id),
            "name": guild.name,
            "icon": None,
            "banner": None,
            "owner": guild.owner is cloud.bot,
            "permissions": str(guild.permissions(cloud.bot)),
            "features": [],
        }
        for guild in chosen
    ]


def guild(cloud: Cloud, asked: Asked) -> Any:
    """`GET /guilds/{guild}`."""
    return guild_of(cloud, asked.identity("guild")).summary()


def member(cloud: Cloud, asked: Asked) -> Any:
    """`GET /guilds/{guild}/members/{user}`."""
    found = guild_of(cloud, asked.identity("guild")).members.get(asked.identity("user"))
    if found is None:
        raise not_found(10007)
    return found.as_json(with_user=True)


def guild_channels(cloud: Cloud, asked: Asked) -> Any:
    """`GET /guilds/{guild}/channels`: all but threads."""
    found = guild_of(cloud, asked.identity("guild")).channels.values()
    return [channel.as_json() for channel in found if not channel.is_thread]


def roles(cloud: Cloud, asked: Asked) -> Any:
    """`GET /guilds/{guild}/roles`."""
    return [role.as_json() for role in guild_of(cloud, asked.identity("guild")).roles.values()]


ROUTES: Final[Mapping[str, Callable[[Cloud, Asked], Any]]] = {
    "GET /users/@me": me,
    "GET /users/@me/guilds": guilds,
    "POST /users/@me/channels": open_dm,
    "GET /users/{user}": user,
    "GET /oauth2/applications/@me": application,
    "GET /applications/@me": application,
    "GET /gateway": gateway,
    "GET /gateway/bot": gateway_bot,
    "GET /guilds/{guild}": guild,
    "GET /guilds/{guild}/channels": guild_channels,
    "GET /guilds/{guild}/roles": roles,
    "GET /guilds/{guild}/members/{user}": member,
}
