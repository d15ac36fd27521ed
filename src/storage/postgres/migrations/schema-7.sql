-- Only what PostgreSQL, Citus, CockroachDB and YugabyteDB all take. Every table that grows with use has
-- the garden at the head of its key, so that it can be the distribution key. Text that is compared has
-- the collation "C": its order never changes with an upgrade of the machine's locales.
CREATE TABLE plants (
  garden text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text NOT NULL,
  PRIMARY KEY (garden, id)
);

-- Lists by tag.
CREATE INDEX plants_by_tag ON plants (garden, tag COLLATE "C", id);

-- The highest id from 1 to 2^52 that the garden assigned or was given, exactly how many plants and keys
-- it has, and the number of its last event. Whoever writes to a garden locks its row first, and keeps it
-- in the same transaction.
CREATE TABLE gardens (
  garden text COLLATE "C" NOT NULL PRIMARY KEY,
  last_id bigint NOT NULL DEFAULT 0 CHECK (last_id <= 4503599627370496),
  plants bigint NOT NULL DEFAULT 0,
  keys bigint NOT NULL DEFAULT 0,
  last_event bigint NOT NULL DEFAULT 0
);

-- What happened in each garden, for as long as it's kept. No index by time: the oldest events of a
-- garden have its lowest numbers.
CREATE TABLE events (
  garden text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  at_ms bigint NOT NULL,
  type text NOT NULL,
  "user" text NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text NOT NULL,
  PRIMARY KEY (garden, seq)
);

-- See domain/idempotency.ts.
CREATE TABLE idempotency_keys (
  garden text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  entries bytea NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (garden, key)
);

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms);

-- The position tells which of two tokens of the same moment was made first.
CREATE TABLE tokens (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  hash text COLLATE "C" NOT NULL UNIQUE,
  "user" text NOT NULL,
  garden text NOT NULL,
  scope text NOT NULL CHECK (scope IN ('read', 'write')),
  note text NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  last_used_at_ms bigint,
  position bigint NOT NULL
);

-- One row: how often a token was added or revoked. Processes poll it to drop what they remember.
CREATE TABLE token_changes (
  one bigint NOT NULL PRIMARY KEY CHECK (one = 1),
  count bigint NOT NULL
);

INSERT INTO token_changes (one, count) VALUES (1, 0);
