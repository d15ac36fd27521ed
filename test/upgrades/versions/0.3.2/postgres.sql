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
INSERT INTO token_changes (one, count) VALUES ('1', '5');
INSERT INTO idempotency_keys (expires_at_ms, plant_id, request, garden, key) VALUES ('32472144000000', '8', '[null,"Größe 🌱",""]', 'ada', 'kept');
INSERT INTO plants (id, name, tag, garden) VALUES ('-9223372036854775808', 'Plant -9223372036854775808', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('0', 'Plant 0', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('7', 'Plant 7', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('8', 'Größe 🌱', '', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('9007199254740993', 'Plant 9007199254740993', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('9223372036854775807', 'Plant 9223372036854775807', 'chosen', 'ada');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794811901628', NULL, NULL, '1794811905464', '1', 'ada', 'write', 'kept', 'ada', '5YVlObACkt', '6b7277d1db1d4076a21226b93fa150d1cb81ecd0da2f75992aec24ce4ff7f07a');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794811902132', NULL, NULL, NULL, '2', 'ada', 'read', '', 'ada', 'e2J7lHGdss', '1f31c9b724ff52851a0683cba95e3a87d056c54f7e37d47628edbb2d7bff9292');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794811902525', '1', NULL, NULL, '3', 'ada', 'write', 'expired', 'ada', 'h5KupsKXpl', '340074a1d227305eb676b81285240e553ea9b62444f2463c31214adb176859d5');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794811902839', NULL, '1794811904389', NULL, '4', 'ada', 'write', 'revoked', 'ada', 'HjLzfLalg6', 'eae598a88db83b96e8445db7f3e14317d7f7675a8eb7937b3ba4fee0d86d5369');
INSERT INTO plantstore_schema (one, version) VALUES ('1', '2');
