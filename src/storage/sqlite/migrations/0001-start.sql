-- Clustered by (garden, id): a list is one range read, and the garden can become a shard key.
CREATE TABLE plants (
  garden TEXT NOT NULL,
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  tag TEXT NOT NULL,
  PRIMARY KEY (garden, id)
) STRICT, WITHOUT ROWID;

-- The highest id that a garden assigned or was given, so that no assigned id comes twice.
CREATE TABLE gardens (
  garden TEXT NOT NULL PRIMARY KEY,
  last_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The request is kept to tell a repeated one from another one under the same key.
CREATE TABLE idempotency_keys (
  garden TEXT NOT NULL,
  key TEXT NOT NULL,
  request TEXT NOT NULL,
  plant_id INTEGER NOT NULL,
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
