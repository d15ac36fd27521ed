CREATE TABLE plantstore_schema (one bigint NOT NULL PRIMARY KEY, version bigint NOT NULL);
CREATE TABLE plants (
  garden text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text NOT NULL,
  PRIMARY KEY (garden, id)
);
CREATE TABLE gardens (
  garden text COLLATE "C" NOT NULL PRIMARY KEY,
  last_id bigint NOT NULL CHECK (last_id <= 9007199254740991)
);
CREATE TABLE idempotency_keys (
  garden text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  request text NOT NULL,
  plant_id bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (garden, key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms);
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
CREATE TABLE token_changes (
  one bigint NOT NULL PRIMARY KEY CHECK (one = 1),
  count bigint NOT NULL
);
INSERT INTO token_changes (one, count) VALUES (1, 0);
ALTER TABLE gardens ADD COLUMN plants_bound bigint;
CREATE TABLE rate_buckets (
  key bigint NOT NULL PRIMARY KEY,
  poured_at_us bigint NOT NULL,
  empty_at_us bigint NOT NULL
);
CREATE TABLE idempotency_hashes (
  garden text COLLATE "C" NOT NULL,
  key_hash bytea NOT NULL,
  request_hash bytea NOT NULL,
  plant_id bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (garden, key_hash)
);
CREATE INDEX idempotency_hashes_by_expiry ON idempotency_hashes (expires_at_ms);
ALTER TABLE gardens ADD COLUMN keys_bound bigint;
ALTER TABLE idempotency_hashes ADD COLUMN lines bytea;
CREATE INDEX  plants_by_tag ON plants (garden, tag COLLATE "C", id);
DELETE FROM token_changes;
INSERT INTO gardens (last_id, plants_bound, keys_bound, garden) VALUES ('9', NULL, NULL, 'ada');
INSERT INTO token_changes (one, count) VALUES ('1', '5');
INSERT INTO idempotency_hashes (lines, key_hash, request_hash, plant_id, expires_at_ms, garden) VALUES (NULL, E'\\x79f076abdd19a752db7267bfff2f9022161d120dea919fdaca2ffdfc24ca8c96', E'\\x01c9b5cb9cad054589e04ac426da8a1dcf3f88f23bc573b440b5c007f7fab87f', '8', '32472144000000', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('-9223372036854775808', 'chosen', 'Plant -9223372036854775808', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('0', 'chosen', 'Plant 0', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('7', 'chosen', 'Plant 7', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('8', '', 'Größe 🌱', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('9007199254740993', 'chosen', 'Plant 9007199254740993', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('9223372036854775807', 'chosen', 'Plant 9223372036854775807', 'ada');
INSERT INTO tokens ("position", created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, note, "user", garden, scope, id, hash) VALUES ('1', '1794811855073', NULL, NULL, '1794811856864', 'kept', 'ada', 'ada', 'write', 'LrWz4CdubB', 'd0527896cf18edbf460bd4be47f9a78db352fb3f2c107b9b21a99f1b692b711a');
INSERT INTO tokens ("position", created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, note, "user", garden, scope, id, hash) VALUES ('2', '1794811855409', NULL, NULL, NULL, '', 'ada', 'ada', 'read', 'TLNu4zwWkT', '1e9dc782c49bb0eea588e1261bc5bc97a5f6d264a57e150d946c7655f5828cc8');
INSERT INTO tokens ("position", created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, note, "user", garden, scope, id, hash) VALUES ('3', '1794811855630', '1', NULL, NULL, 'expired', 'ada', 'ada', 'write', 'nLVNte7hmf', 'e5d809a58cf66e8eb8e5b33c6c8059f9ad8fe4686590031d3e0b24d6bb6c1ad3');
INSERT INTO tokens ("position", created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, note, "user", garden, scope, id, hash) VALUES ('4', '1794811855865', NULL, '1794811856569', NULL, 'revoked', 'ada', 'ada', 'write', 'gbm3KjW3Et', 'b45c6613c932ce23956d264c80620d54a24fbfc104f55bb70a4e306040d080f8');
INSERT INTO plantstore_schema (version, one) VALUES ('5', '1');
