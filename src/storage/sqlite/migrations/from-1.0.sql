-- 1.0 kept an index of the keys that it took over from 0.5.
DROP INDEX idempotency_keys_of_05;

-- 1.0 had no events. The text of each table must be the one of a new file, so none is altered.
ALTER TABLE gardens RENAME TO gardens_of_one;

CREATE TABLE gardens (
  garden TEXT NOT NULL PRIMARY KEY,
  last_id INTEGER NOT NULL CHECK (last_id <= 4503599627370496),
  plants INTEGER NOT NULL,
  keys INTEGER NOT NULL,
  last_event INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

INSERT INTO gardens SELECT garden, last_id, plants, keys, 0 FROM gardens_of_one;

DROP TABLE gardens_of_one;

CREATE TABLE events (
  garden TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  type TEXT NOT NULL,
  user TEXT NOT NULL,
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  tag TEXT NOT NULL,
  PRIMARY KEY (garden, seq)
) STRICT, WITHOUT ROWID;
