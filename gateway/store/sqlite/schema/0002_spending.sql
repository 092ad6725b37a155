-- What was spent under spend caps, in millionths of a US dollar. `spent` includes what is reserved.
-- `forget_at` (seconds since the epoch): a day's account that nobody asks for any more.
CREATE TABLE spending(
    account   TEXT PRIMARY KEY,
    spent     INTEGER NOT NULL,
    forget_at REAL
) WITHOUT ROWID;
CREATE INDEX spending_over ON spending(forget_at) WHERE forget_at IS NOT NULL;

-- Calls under way. `generation` (see meta): those of an earlier one are never settled any more.
CREATE TABLE reservations(
    generation INTEGER NOT NULL,
    id         TEXT NOT NULL,
    account    TEXT NOT NULL,
    amount     INTEGER NOT NULL,
    PRIMARY KEY (generation, id, account)
) WITHOUT ROWID;
