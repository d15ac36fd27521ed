-- SHA-256 of each idempotency key and of its request. The table of before, which held their text, stays
-- empty: a service of 0.3 may have the file open while a command of a newer version migrates it.
CREATE TABLE idempotency_hashes (
  garden TEXT NOT NULL,
  key_hash BLOB NOT NULL,
  request_hash BLOB NOT NULL,
  plant_id INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (garden, key_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_hashes_by_expiry ON idempotency_hashes (expires_at_ms);
