-- Counts the plants and keys of every garden, once, while nobody writes. An instance of 0.5 that is still
-- running can't create plants afterwards.
LOCK TABLE plants, gardens, idempotency_hashes IN ACCESS EXCLUSIVE MODE;

DROP TABLE idempotency_keys;
DROP TABLE rate_buckets;

CREATE TABLE idempotency_keys (
  garden text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  entries bytea NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (garden, key)
);

-- 0.5 kept the whole hash of a key and of its request, and a plant's id as a number.
INSERT INTO idempotency_keys (garden, key, entries, expires_at_ms)
  SELECT garden,
      '\x00'::bytea || CASE WHEN lines IS NULL THEN substr(key_hash, 1, 16) ELSE key_hash END,
      coalesce(lines, substr(request_hash, 1, 16) || int8send(plant_id)),
      expires_at_ms
    FROM idempotency_hashes;

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms);
CREATE INDEX idempotency_keys_of_05 ON idempotency_keys (expires_at_ms) WHERE key < '\x21'::bytea;
DROP TABLE idempotency_hashes;

ALTER TABLE gardens
  DROP CONSTRAINT gardens_last_id_check,
  DROP COLUMN plants_bound,
  DROP COLUMN keys_bound,
  ALTER COLUMN last_id SET DEFAULT 0,
  ADD COLUMN plants bigint NOT NULL DEFAULT 0,
  ADD COLUMN keys bigint NOT NULL DEFAULT 0;

-- 0.5 assigned ids above 2^52.
UPDATE gardens SET last_id = 4503599627370496 WHERE last_id > 4503599627370496;
ALTER TABLE gardens ADD CHECK (last_id <= 4503599627370496);

INSERT INTO gardens (garden, last_id, plants)
  SELECT garden, coalesce(max(id) FILTER (WHERE id BETWEEN 1 AND 4503599627370496), 0), count(*)
    FROM plants GROUP BY garden
  ON CONFLICT (garden) DO UPDATE
    SET last_id = greatest(gardens.last_id, excluded.last_id), plants = excluded.plants;

INSERT INTO gardens (garden, keys) SELECT garden, count(*) FROM idempotency_keys GROUP BY garden
  ON CONFLICT (garden) DO UPDATE SET keys = excluded.keys;
