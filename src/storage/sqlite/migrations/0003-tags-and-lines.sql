-- Lists by tag. With the name, a list is one range read, as it is without a tag.
CREATE INDEX plants_by_tag ON plants (garden, tag, id, name);

-- What a row remembers of lines that were sent together; see key-rows.ts.
ALTER TABLE idempotency_hashes ADD COLUMN lines BLOB;
