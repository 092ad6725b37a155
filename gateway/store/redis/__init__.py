"""The store on a Redis server or cluster, for any number of gateway processes on any hosts.

Every step of the port runs in the process, in one of 16 partitions, chosen by platform and chat (`routes.py`); what it
saw is checked and what it puts is kept by one script (`records.py`, `scripts/commit.lua`). All keys of a partition
begin with its hash tag, `{p07}:`, so that a cluster keeps them together. Under it lie

    seq                             the number above which the partition gives others, ever rising
    <kind>:<key>                    a record of `gateway.store.kinds`: a version, and a JSON document
    i:<kind>.<index>:<name>         the keys of the records that stand under a name of an index, by their place
    n:<kind>.<index>                the names that an index ever had
    s:<session>                     a transcript: the numbers of its messages
    commits:<process>               the number of a process's last step: none is done twice
    unindexed gone gone:<message>   what the search index owes: see entries.py
    stem:<owner>:<term> words:<owner> searched                  searches: see searching.py
    signs:<owner> vectors:<owner> embedded                      what messages mean: see vectors.py
    lease:legato migrate            while `legato migrate` works here

and, beside them, `legato:meta`. Only commits and the lease expire. `new:<attempt>:` begins the records of a
database of an earlier version while they are brought over (`bringing.py`, `former.py`). A crash of the server loses the
end of the append-only file: nothing with `appendfsync always`, up to a second with `everysec`. A failover to a replica
loses the writes that the replica had not received, unless the server is told to wait for replicas
(`min-replicas-to-write`).
"""

from gateway.store.redis.store import RedisStore

__all__ = ["RedisStore"]
