"""The store on a Redis server or cluster, for any number of gateway processes on any hosts.

Every step of the port is one Lua script (`scripts/`, put together from `parts/`) that runs in one of
16 partitions, chosen by platform and chat; all keys of a partition begin with its hash tag, `{p07}:`,
so that a cluster keeps them together. Under it lie

    seq                             the number that item, message, fence and place take from, ever rising
    events:<platform>               which events are known, for ever: accepting is deduplicated by it
    inbox:<key> item:<id> lane:<key> ready:<platform> …        lanes: see parts/lanes.lua
    turn:<item> signals:<item> absorbed:<item>                  a turn until it ends
    asking:<chat>                   what people are asked: see parts/asking.lua
    session:<id> transcript:<id> message:<id> tip:<key>         conversations: see parts/sessions.lua
    pins:<key>                      the rules of a key: see set_pins.lua
    files:<key> filed:<key> content:<key>:<digest>              files and their contents: see keeping.py
    guest_book                      who was let in by a code, and who asks
    row:<id> out:<chat> out_due:<platform> rows rows:<address>  the outbox: see parts/outbox.lua
    closed                          chats in which nothing can be shown any more, and why
    first_names later_names         chats that their platform calls by another name than before
    due due_claims hooks hook_owners compactions:<session>      what is to be done about sessions
    ledger ledger:<key> figures dead term:<owner>:<term>        what people ask about
    members answers:<process> sending:<process> …               who is there and what each has claimed
    lease:<name>                    leases of things that are not chats
    spent:<account> reserved:<call>:<account>                   what is spent under caps: see reserve.lua
    rate:<account>:<bucket> silent:<account>:<bucket>           when to send: see take.lua

and, beside them, `legato:meta`. Only leases, answers, moments to send at, notes of calls a day after
they were made and a day's spending a week after it ever expire; nothing else is deleted that is not
done with. What a crash of the server can lose is what its append-only file lacks:
nothing with `appendfsync always`, up to a second of it with `everysec`; a failover to a replica can
lose what that one had not received, unless the server is told to wait for it (`min-replicas-to-write`).
"""

from gateway.store.redis.store import RedisStore

__all__ = ["RedisStore"]
