"""Everything in one database of a PostgreSQL server, for any number of processes on any hosts."""
