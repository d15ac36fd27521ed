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
  keys bigint NOT NULL DEFAULT 0,
  last_event bigint NOT NULL DEFAULT 0
);
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
CREATE TABLE idempotency_keys (
  garden text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  entries bytea NOT NULL,
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
DELETE FROM token_changes;
INSERT INTO gardens (plants, keys, last_event, last_id, garden) VALUES ('6', '1', '8', '9', 'ada');
INSERT INTO token_changes (one, count) VALUES ('1', '5');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('1', '1794944206131', '-9223372036854775808', 'Plant -9223372036854775808', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('2', '1794944206164', '0', 'Plant 0', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('3', '1794944206184', '7', 'Plant 7', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('4', '1794944206194', '9007199254740993', 'Plant 9007199254740993', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('5', '1794944206217', '9223372036854775807', 'Plant 9223372036854775807', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('6', '1794944206237', '8', 'Größe 🌱', '', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('7', '1794944206263', '9', 'gone', '', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('8', '1794944206274', '9', 'gone', '', 'deleted', 'ada', 'ada');
INSERT INTO idempotency_keys (key, entries, expires_at_ms, garden) VALUES (E'\\x6b65707479f076abdd19a752db7267bfff2f9022', E'\\x01c9b5cb9cad054589e04ac426da8a1d0000000000000008', '32472144000000', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('-9223372036854775808', 'Plant -9223372036854775808', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('0', 'Plant 0', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('7', 'Plant 7', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('8', 'Größe 🌱', '', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('9007199254740993', 'Plant 9007199254740993', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('9223372036854775807', 'Plant 9223372036854775807', 'chosen', 'ada');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794944203074', NULL, NULL, '1794944206294', '1', 'ada', 'write', 'kept', 'ada', 'Ta3FVnBI1I', '5754211dc9f719cf36455491e06e5dedfbbd43c58ff9d970210e06bae3819f2b');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794944204166', NULL, NULL, NULL, '2', 'ada', 'read', '', 'ada', 'adldKqXeuj', 'ecae3169381eaacd7a74018d51b5f6620531ec4ef2abdb9430739a9692959b52');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794944204541', '1', NULL, NULL, '3', 'ada', 'write', 'expired', 'ada', 'OA9wLRqAMs', 'ada7c9de10de2013478a1469dcc87ede4bc3bca352338dfc554b9febaaf812a2');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1794944204810', NULL, '1794944205522', NULL, '4', 'ada', 'write', 'revoked', 'ada', 'DQOBFeCXfl', '6b62c72836f413770cb6da80af2f0a7037776f926ba55de88d81eef68ad4cc8f');
INSERT INTO plantstore_schema (one, version) VALUES ('1', '7');
