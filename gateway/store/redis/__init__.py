"""The store on a Redis server or cluster, for any number of gateway processes on any hosts."""

from gateway.store.redis.store import RedisStore

__all__ = ["RedisStore"]
