-- Lists by tag.
CREATE INDEX plants_by_tag ON plants (garden, tag, id);

-- What a row remembers of lines that were sent together; see key-rows.ts.
ALTER TABLE idempotency_hashes ADD COLUMN lines BLOB;
