-- One Unix user per node where the service runs as root, and the end of a deleted node.
ALTER TABLE nodes
  ADD COLUMN uid int,
  -- Past its retention: it cannot be brought back any more, and its data is being removed.
  ADD COLUMN purging_at timestamptz,
  -- Nothing is left of it but this row.
  ADD COLUMN purged_at timestamptz,
  ADD CONSTRAINT nodes_purged_after_deletion CHECK (purging_at IS NULL OR (deleted_at IS NOT NULL AND desired_state = 'deleted')),
  ADD CONSTRAINT nodes_purged_at_last CHECK (purged_at IS NULL OR (purging_at IS NOT NULL AND uid IS NULL));
CREATE UNIQUE INDEX nodes_uid ON nodes (host, uid);
