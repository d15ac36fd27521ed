-- Clustered by (garden, id): a list is one range read, and the garden can become a shard key.
CREATE TABLE plants (
  garden TEXT NOT NULL,
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  tag TEXT NOT NULL,
  PRIMARY KEY (garden, id)
) STRICT, WITHOUT ROWID;

-- Lists by tag. With the name, a list is one range read, as it is without a tag.
CREATE INDEX plants_by_tag ON plants (garden, tag, id, name);

-- The highest id from 1 to 2^52 that the garden assigned or was given, exactly how many plants and keys
-- it has, and the number of its last event. Every write keeps it, in its own transaction.
CREATE TABLE gardens (
  garden TEXT NOT NULL PRIMARY KEY,
  last_id INTEGER NOT NULL CHECK (last_id <= 4503599627370496),
  plants INTEGER NOT NULL,
  keys INTEGER NOT NULL,
  last_event INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- What happened in each garden, for as long as it's kept. No index by time: the oldest events of a
-- garden have its lowest numbers.
CREATE TABLE events (
  garden TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  type TEXT NOT NULL,
  user TEXT NOT NULL,
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  tag TEXT NOT NULL,
  PRIMARY KEY (garden, seq)
) STRICT, WITHOUT ROWID;

-- See domain/idempotency.ts.
CREATE TABLE idempotency_keys (
  garden TEXT NOT NULL,
  key BLOB NOT NULL,
  entries BLOB NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (garden, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms);

CREATE TABLE tokens (
  id TEXT NOT NULL PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  user TEXT NOT NULL,
  garden TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('read', 'write')),
  note TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  revoked_at_ms INTEGER,
  last_used_at_ms INTEGER
) STRICT;

-- One row: how often a token was added or revoked. Processes poll it to drop what they remember.
CREATE TABLE token_changes (
  one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  count INTEGER NOT NULL
) STRICT;

INSERT INTO token_changes (one, count) VALUES (1, 0);
