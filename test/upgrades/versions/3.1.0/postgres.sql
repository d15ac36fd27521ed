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
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('1', '1795122004236', '-9223372036854775808', 'Plant -9223372036854775808', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('2', '1795122004251', '0', 'Plant 0', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('3', '1795122004254', '7', 'Plant 7', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('4', '1795122004259', '9007199254740993', 'Plant 9007199254740993', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('5', '1795122004262', '9223372036854775807', 'Plant 9223372036854775807', 'chosen', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('6', '1795122004264', '8', 'Größe 🌱', '', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('7', '1795122004270', '9', 'gone', '', 'created', 'ada', 'ada');
INSERT INTO events (seq, at_ms, id, name, tag, type, "user", garden) VALUES ('8', '1795122004273', '9', 'gone', '', 'deleted', 'ada', 'ada');
INSERT INTO idempotency_keys (key, entries, expires_at_ms, garden) VALUES (E'\\x6b65707479f076abdd19a752db7267bfff2f9022', E'\\x01c9b5cb9cad054589e04ac426da8a1d0000000000000008', '32472144000000', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('-9223372036854775808', 'Plant -9223372036854775808', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('0', 'Plant 0', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('7', 'Plant 7', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('8', 'Größe 🌱', '', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('9007199254740993', 'Plant 9007199254740993', 'chosen', 'ada');
INSERT INTO plants (id, name, tag, garden) VALUES ('9223372036854775807', 'Plant 9223372036854775807', 'chosen', 'ada');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1795122003735', NULL, NULL, '1795122004276', '1', 'ada', 'write', 'kept', 'ada', 'HUroGl6fm2', '34e5c990047d0455f183ec0581833e21eed2fa3344d769317dce9d238a964152');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1795122003838', NULL, NULL, NULL, '2', 'ada', 'read', '', 'ada', '2wADQhcENw', '720780936a8de941e2304f87eb1a6b063563e9d76ae833b57cb9f6e64ce30fdd');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1795122003887', '1', NULL, NULL, '3', 'ada', 'write', 'expired', 'ada', 'a9h5prBQBc', '3b48911800c78aa719481f4fd852029f7e6563a633b3ebbaff1baa66a17c938d');
INSERT INTO tokens (created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, "position", garden, scope, note, "user", id, hash) VALUES ('1795122003929', NULL, '1795122004009', NULL, '4', 'ada', 'write', '', 'eve', 'ETDj7UfI37', 'bd629c94b22e9ed491ba66ea09cf6d40fddd208822db69db72d413111da213f5');
INSERT INTO plantstore_schema (one, version) VALUES ('1', '7');
