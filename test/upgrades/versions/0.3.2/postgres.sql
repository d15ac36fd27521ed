CREATE TABLE plantstore_schema (one bigint NOT NULL PRIMARY KEY, version bigint NOT NULL);
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

-- The highest id that a garden assigned or was given, so that no assigned id comes twice. Whoever
-- creates plants in a garden locks its row first.
CREATE TABLE gardens (
  garden text COLLATE "C" NOT NULL PRIMARY KEY,
  last_id bigint NOT NULL CHECK (last_id <= 9007199254740991)
);

-- The request is kept to tell a repeated one from another one under the same key.
CREATE TABLE idempotency_keys (
  garden text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  request text NOT NULL,
  plant_id bigint NOT NULL,
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

-- No fewer than the plants of the garden: creates raise it, deletions leave it. Null: nobody has counted.
-- A garden that seems full by it is counted, so no deletion has to wait for its row.
ALTER TABLE gardens ADD COLUMN plants_bound bigint;

-- What all instances together poured into the buckets of a rate limit, by the database's clock. A bucket
-- that has run out is as good as none.
CREATE TABLE rate_buckets (
  key bigint NOT NULL PRIMARY KEY,
  poured_at_us bigint NOT NULL,
  empty_at_us bigint NOT NULL
);

DELETE FROM token_changes;
INSERT INTO gardens (last_id, plants_bound, garden) VALUES ('9', NULL, 'ada');
INSERT INTO token_changes (one, count) VALUES ('1', '2');
INSERT INTO idempotency_keys (expires_at_ms, plant_id, request, garden, key) VALUES ('32472144000000', '8', '[null,"Größe 🌱",""]', 'ada', 'kept');
INSERT INTO plants (id, name, tag, garden) VALUES ('-9223372036854775808', 'Plant -9223372036854775808', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('0', 'Plant 0', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('7', 'Plant 7', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('8', 'Größe 🌱', '', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('9007199254740993', 'Plant 9007199254740993', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('9223372036854775807', 'Plant 9223372036854775807', 'chosen', 'ada');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794777616704', NULL, NULL, '1794777617319', '1', 'ada', 'write', 'kept', 'ada', 'YzgX82Nmin', 'd711d3a0bf29a2b46668fae0e85d7caddcea478fee896da7db86c66bd23da3f4');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794777616884', NULL, NULL, NULL, '2', 'ada', 'read', '', 'ada', '3CC9ZaKY3M', '152fe784eacfc7962e487af8120ff567b503d76160c76aa854c13a6e5311f8fe');
INSERT INTO plantstore_schema (one, version) VALUES ('1', '2');
