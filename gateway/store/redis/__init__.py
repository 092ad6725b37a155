"""The store on a Redis server or cluster, for any number of gateway processes on any hosts.

Every step of the port is one Lua script (`scripts/`, put together from `parts/`) that runs in one of
16 partitions, chosen by platform and chat; all keys of a partition begin with its hash tag, `{p07}:`,
so that a cluster keeps them together. Under it lie

    seq                             the number that item, message, fence and place take from, ever rising
    events:<platform>               the events that are known, for ever: none is accepted twice
    inbox:<key> item:<id> lane:<key> ready:<platform> …        lanes: see parts/lanes.lua
    heard:<key>                     the ids of a key's newest items, ended ones too
    turn:<item> signals:<item> absorbed:<item>                  a turn until it ends
    asking:<chat>                   questions to people: see parts/asking.lua
    session:<id> transcript:<id> message:<id> tip:<key>         conversations: see parts/sessions.lua
    pins:<key>                      the rules of a key: see set_pins.lua
    forgotten:<key>                 deeds of forgetting and what they counted: see forgetting.py
    facts:<scope> facts_version:<scope> facts_number:<scope>    memory: see keeping.py
    reminder:<id> reminders:<key> reminders_in:<chat> reminders_by:<chat>
    reminders_due:<platform>        those that wait: see parts/reminders.lua
    files:<key> filed:<key> content:<key>:<digest>              files and their contents: see keeping.py
    guest_book notes:<folder>       small state: see `Documents` of the port
    row:<id> out:<chat> out_due:<platform> rows rows:<address>  the outbox: see parts/outbox.lua
    closed                          chats in which nothing can be shown any more, and why
    first_names later_names         chats that their platform calls by another name than before
    due due_claims hooks hook_owners compactions:<session>      expiry, hooks owed, compactions
    ledger ledger:<key> figures dead                            reports
    stem:<owner>:<term> words:<owner> searched unindexed        searches: see searching.py
    signs:<owner> vectors:<owner> embedded                      what messages mean: see vectors.py
    members answers:<process> sending:<process> …               the processes, and the claims of each
    lease:<name>                    leases of things that are not chats
    spent:<account> reserved:<call>:<account>                   money spent under caps: see reserve.lua
    rate:<account>:<bucket> silent:<account>:<bucket>           moments to send at: see take.lua

and, beside them, `legato:meta`. Only leases, answers, moments to send at, notes of calls (after a day) and a day's
spending (after a week) expire. A crash of the server loses the end of the append-only file: nothing with
`appendfsync always`, up to a second with `everysec`. A failover to a replica loses the writes that the replica had
not received, unless the server is told to wait for replicas (`min-replicas-to-write`).
"""

from gateway.store.redis.store import RedisStore

__all__ = ["RedisStore"]
