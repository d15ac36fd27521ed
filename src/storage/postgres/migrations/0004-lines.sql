-- What a row remembers of lines that were sent together; see key-rows.ts. Instances of 0.4 leave it null.
ALTER TABLE idempotency_hashes ADD COLUMN lines bytea;
