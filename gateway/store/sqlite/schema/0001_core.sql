-- The first schema. Migrations are append-only: change nothing here, add a file.
--
-- Order never relies on wall time: rowids (seq, id) give it. Rows in a final state are history and
-- stay; the partial indexes hold only what is unfinished, so history costs nothing.

CREATE TABLE meta(
    name  TEXT PRIMARY KEY,
    value ANY
) WITHOUT ROWID;

-- What was accepted. `outcome` NULL: unfinished. `absorbed_by`: its text went into that item's turn.
CREATE TABLE inbox(
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    platform    TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    key         TEXT NOT NULL,
    inbound     TEXT NOT NULL,            -- JSON
    accepted_at REAL NOT NULL,
    bypass      INTEGER NOT NULL DEFAULT 0,
    attempts    INTEGER NOT NULL DEFAULT 0,
    absorbed_by INTEGER,
    outcome     TEXT,
    ended_at    REAL,
    UNIQUE (platform, event_id)
);
CREATE INDEX inbox_unfinished ON inbox(key, id) WHERE outcome IS NULL;
CREATE INDEX inbox_absorbed ON inbox(absorbed_by) WHERE outcome IS NULL AND absorbed_by IS NOT NULL;

-- How far an unfinished item got; deleted when it ends.
CREATE TABLE turns(
    item       INTEGER PRIMARY KEY,       -- inbox.id
    session_id TEXT,
    steps      INTEGER NOT NULL DEFAULT 0,
    intents    TEXT NOT NULL DEFAULT '[]',
    reply      TEXT                       -- outbox.id of the streaming reply
);

CREATE TABLE signals(
    item INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at   REAL NOT NULL,
    PRIMARY KEY (item, kind)
) WITHOUT ROWID;

CREATE TABLE sessions(
    seq                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    key                TEXT NOT NULL,
    chat_type          TEXT NOT NULL,
    parent_id          TEXT,
    started_at         REAL NOT NULL,
    model              TEXT NOT NULL,
    epoch              INTEGER NOT NULL,
    ended_at           REAL,
    end_reason         TEXT,
    continuation_id    TEXT,
    hook               TEXT NOT NULL,
    title              TEXT,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_usd           REAL NOT NULL,
    last_prompt_tokens INTEGER NOT NULL,
    reported_messages  INTEGER NOT NULL,
    transcript_tokens  INTEGER NOT NULL,
    message_count      INTEGER NOT NULL,
    compaction_count   INTEGER NOT NULL,
    engine_state       TEXT NOT NULL,     -- JSON
    todos              TEXT NOT NULL,     -- JSON
    last_active_at     REAL NOT NULL,
    expires_at         REAL,
    announced          TEXT NOT NULL      -- JSON
);
CREATE INDEX sessions_of_key ON sessions(key, seq);
CREATE INDEX sessions_due ON sessions(expires_at) WHERE ended_at IS NULL AND expires_at IS NOT NULL;

-- Apart from `sessions`, whose row is written with every step: a prompt is long and hardly changes.
CREATE TABLE prompts(
    session_id    TEXT PRIMARY KEY,
    system_prompt TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE tips(
    key        TEXT PRIMARY KEY,
    session_id TEXT NOT NULL
) WITHOUT ROWID;

-- `on_session_end` calls still owed, in the order of the ends.
CREATE TABLE owed_hooks(
    seq        INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE
);

-- Immutable. `session_id` is where a message was first stored; `note` is the host's, without id,
-- tokens and at.
CREATE TABLE messages(
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    key        TEXT NOT NULL,
    session_id TEXT NOT NULL,
    role       TEXT NOT NULL,
    body       TEXT NOT NULL,             -- JSON without the host's note
    note       TEXT,                      -- JSON
    tokens     INTEGER,
    at         REAL NOT NULL
);

CREATE TABLE transcript(
    session_id TEXT NOT NULL,
    position   INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    PRIMARY KEY (session_id, position)
) WITHOUT ROWID;

CREATE TABLE compactions(
    id              INTEGER PRIMARY KEY,
    at              REAL NOT NULL,
    parent_id       TEXT NOT NULL,
    child_id        TEXT NOT NULL,
    trigger         TEXT NOT NULL,
    messages_before INTEGER NOT NULL,
    messages_after  INTEGER NOT NULL,
    tokens_before   INTEGER NOT NULL,
    tokens_after    INTEGER NOT NULL,
    focus           TEXT,
    fallback        INTEGER NOT NULL,
    error           TEXT
);
CREATE INDEX compactions_of_parent ON compactions(parent_id);
CREATE INDEX compactions_of_child ON compactions(child_id);

-- `lane` is the platform and chat whose rows go out in the order of `place`: a row's own seq, or that
-- of the refused row it stands in for. `claim` is the generation (see meta) of the sending process.
CREATE TABLE outbox(
    seq                 INTEGER PRIMARY KEY,
    place               INTEGER NOT NULL,
    lane                TEXT NOT NULL,
    id                  TEXT NOT NULL UNIQUE,
    key                 TEXT NOT NULL,
    platform            TEXT NOT NULL,
    chat                TEXT NOT NULL,
    thread              TEXT,
    kind                TEXT NOT NULL,
    text                TEXT NOT NULL,
    session_id          TEXT,
    answers             TEXT,
    state               TEXT NOT NULL,
    platform_message_id TEXT,
    attempts            INTEGER NOT NULL,
    ambiguous           INTEGER NOT NULL,
    due_at              REAL NOT NULL,
    created_at          REAL NOT NULL,
    error               TEXT,
    claim               INTEGER
);
CREATE INDEX outbox_unfinished ON outbox(lane, place) WHERE state IN ('streaming', 'pending', 'sending');
CREATE INDEX outbox_of_lane ON outbox(lane, seq);

CREATE TABLE ledger(
    id                 INTEGER PRIMARY KEY,
    at                 REAL NOT NULL,
    key                TEXT NOT NULL,
    platform           TEXT NOT NULL,
    session_id         TEXT NOT NULL,
    purpose            TEXT NOT NULL,
    provider           TEXT NOT NULL,
    model              TEXT NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_usd           REAL
);
CREATE INDEX ledger_by_time ON ledger(at);
CREATE INDEX ledger_of_key ON ledger(key, at);

-- Rowid: messages.id. Filled with terms made by gateway.store.shared.text, so the tokenizer has only to
-- split at spaces; contentless, because the text is in `messages` already. Positions are not kept:
-- what needs adjacency is checked against the text itself.
CREATE VIRTUAL TABLE message_search USING fts5(
    owner, terms, content='', contentless_delete=1, detail=column, tokenize='ascii'
);
