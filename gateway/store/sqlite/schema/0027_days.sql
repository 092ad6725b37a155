-- What the model calls of a day came to (UTC, counted from 1970), so that a report reads no call one by one.
CREATE TABLE ledger_days(
    day                INTEGER NOT NULL,
    platform           TEXT NOT NULL,
    purpose            TEXT NOT NULL,
    model              TEXT NOT NULL,
    calls              INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_usd           REAL NOT NULL,
    unpriced_calls     INTEGER NOT NULL,
    PRIMARY KEY (day, platform, purpose, model)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger_days
    SELECT CAST(at / 86400 AS INTEGER), platform, purpose, model, count(*), sum(input_tokens), sum(output_tokens),
        sum(cache_read_tokens), sum(cache_write_tokens), sum(reasoning_tokens), total(cost_usd),
        count(*) - count(cost_usd)
    FROM ledger GROUP BY 1, 2, 3, 4;
CREATE TRIGGER ledger_days_grow AFTER INSERT ON ledger BEGIN
    INSERT INTO ledger_days VALUES (CAST(new.at / 86400 AS INTEGER), new.platform, new.purpose, new.model, 1,
        new.input_tokens, new.output_tokens, new.cache_read_tokens, new.cache_write_tokens, new.reasoning_tokens,
        ifnull(new.cost_usd, 0.0), new.cost_usd IS NULL)
    ON CONFLICT DO UPDATE SET calls = calls + 1,
        input_tokens = input_tokens + excluded.input_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost_usd = cost_usd + excluded.cost_usd,
        unpriced_calls = unpriced_calls + excluded.unpriced_calls;
END;

-- Rows that were given up: people ask for them, among all that were ever shown.
CREATE INDEX outbox_given_up ON outbox(seq) WHERE state IN ('refused', 'withheld');
