-- SHA-256 of each idempotency key and of its request. The table of before, which held their text, stays:
-- instances of 0.3 write to it while they are replaced one by one, and its last rows expire a day later.
CREATE TABLE idempotency_hashes (
  garden text COLLATE "C" NOT NULL,
  key_hash bytea NOT NULL,
  request_hash bytea NOT NULL,
  plant_id bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (garden, key_hash)
);

CREATE INDEX idempotency_hashes_by_expiry ON idempotency_hashes (expires_at_ms);

-- No fewer than the keys of the garden; null: nobody has counted.
ALTER TABLE gardens ADD COLUMN keys_bound bigint;
