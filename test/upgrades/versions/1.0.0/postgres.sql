CREATE TABLE plantstore_schema (one bigint NOT NULL PRIMARY KEY, version bigint NOT NULL);
CREATE TABLE plants (
  garden text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text NOT NULL,
  PRIMARY KEY (garden, id)
);
CREATE INDEX plants_by_tag ON plants (garden, tag COLLATE "C", id);
CREATE TABLE gardens (
  garden text COLLATE "C" NOT NULL PRIMARY KEY,
  last_id bigint NOT NULL DEFAULT 0 CHECK (last_id <= 4503599627370496),
  plants bigint NOT NULL DEFAULT 0,
  keys bigint NOT NULL DEFAULT 0
);
CREATE TABLE idempotency_keys (
  garden text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  entries bytea NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (garden, key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms);
CREATE INDEX idempotency_keys_of_05 ON idempotency_keys (expires_at_ms) WHERE key < '\x21'::bytea;
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
DELETE FROM token_changes;
INSERT INTO gardens (keys, last_id, plants, garden) VALUES ('1', '9', '6', 'ada');
INSERT INTO token_changes (count, one) VALUES ('5', '1');
INSERT INTO idempotency_keys (key, entries, expires_at_ms, garden) VALUES (E'\\x6b65707479f076abdd19a752db7267bfff2f9022', E'\\x01c9b5cb9cad054589e04ac426da8a1d0000000000000008', '32472144000000', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('-9223372036854775808', 'chosen', 'Plant -9223372036854775808', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('0', 'chosen', 'Plant 0', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('7', 'chosen', 'Plant 7', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('8', '', 'Größe 🌱', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('9007199254740993', 'chosen', 'Plant 9007199254740993', 'ada');
INSERT INTO plants (id, tag, name, garden) VALUES ('9223372036854775807', 'chosen', 'Plant 9223372036854775807', 'ada');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", "user", note, garden, scope, id, hash) VALUES ('1794880590935', NULL, NULL, '1794880593132', '1', 'ada', 'kept', 'ada', 'write', 'CJpBa3zeDl', 'd671080a43c324a08d547b48c48c2382bfc6680a88dca3e7374d8ab3b993f16a');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", "user", note, garden, scope, id, hash) VALUES ('1794880591293', NULL, NULL, NULL, '2', 'ada', '', 'ada', 'read', 'kZAya1stGQ', '594e292ca4365ede14113d347e96851879197aada0a84e35e05f08caeb16b19e');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", "user", note, garden, scope, id, hash) VALUES ('1794880591554', '1', NULL, NULL, '3', 'ada', 'expired', 'ada', 'write', 'WfnhYEpLKx', 'a93f21a054b6ad16dd93722c492bf4ee409db8603fac4cddb25783230247f0ee');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", "user", note, garden, scope, id, hash) VALUES ('1794880591862', NULL, '1794880592614', NULL, '4', 'ada', 'revoked', 'ada', 'write', 'Rehxj4u4WB', '44a7ad683d5534d6c2025c8bd2710a438792c7516568a43a85f53e78df8ec962');
INSERT INTO plantstore_schema (version, one) VALUES ('6', '1');
