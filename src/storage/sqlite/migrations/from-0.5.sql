-- Counts the plants and keys of every garden, once. What is created here is exactly as in schema-4.sql,
-- because a restored backup must have that schema.
ALTER TABLE gardens RENAME TO old_gardens;
DROP TABLE idempotency_keys;

CREATE TABLE gardens (
  garden TEXT NOT NULL PRIMARY KEY,
  last_id INTEGER NOT NULL CHECK (last_id <= 4503599627370496),
  plants INTEGER NOT NULL,
  keys INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
  garden TEXT NOT NULL,
  key BLOB NOT NULL,
  entries BLOB NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (garden, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms);
CREATE INDEX idempotency_keys_of_05 ON idempotency_keys (expires_at_ms) WHERE key < x'21';

-- 0.5 kept the whole hash of a key and of its request, and a plant's id as a number.
INSERT INTO idempotency_keys (garden, key, entries, expires_at_ms)
  SELECT garden,
      unhex('00' || hex(CASE WHEN lines IS NULL THEN substr(key_hash, 1, 16) ELSE key_hash END)),
      coalesce(lines, unhex(hex(substr(request_hash, 1, 16)) || printf('%016x', plant_id))),
      expires_at_ms
    FROM idempotency_hashes;

-- 0.5 assigned ids above 2^52, and left out the row of a garden that had only ids that don't count.
INSERT INTO gardens (garden, last_id, plants, keys)
  SELECT garden, min(max(last_id), 4503599627370496), sum(plants), sum(keys) FROM (
    SELECT garden, last_id, 0 AS plants, 0 AS keys FROM old_gardens
    UNION ALL
    SELECT garden, coalesce(max(id) FILTER (WHERE id BETWEEN 1 AND 4503599627370496), 0), count(*), 0
      FROM plants GROUP BY garden
    UNION ALL
    SELECT garden, 0, 0, count(*) FROM idempotency_keys GROUP BY garden
  ) GROUP BY garden;

DROP TABLE old_gardens;
DROP TABLE idempotency_hashes;
