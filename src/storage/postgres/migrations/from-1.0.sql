-- 1.0 kept an index of the keys that it took over from 0.5.
DROP INDEX idempotency_keys_of_05;

-- 1.0 had no events.
ALTER TABLE gardens ADD COLUMN last_event bigint NOT NULL DEFAULT 0;

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
