-- Lists by tag.
CREATE INDEX CONCURRENTLY plants_by_tag ON plants (garden, tag COLLATE "C", id);
