-- Monitors ask how many items were given up, and people which: neither may walk everything that was ever accepted.
CREATE INDEX inbox_dead ON inbox(id) WHERE outcome = 'dead';
