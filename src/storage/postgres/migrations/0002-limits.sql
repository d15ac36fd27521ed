-- No fewer than the plants of the garden: creates raise it, deletions leave it. Null: nobody has counted.
-- A garden that seems full by it is counted, so no deletion has to wait for its row.
ALTER TABLE gardens ADD COLUMN plants_bound bigint;

-- What all instances together poured into the buckets of a rate limit, by the database's clock. A bucket
-- that has run out is as good as none.
CREATE TABLE rate_buckets (
  key bigint NOT NULL PRIMARY KEY,
  poured_at_us bigint NOT NULL,
  empty_at_us bigint NOT NULL
);
