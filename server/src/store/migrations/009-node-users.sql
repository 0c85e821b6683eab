-- A Unix user for each node if the service runs as root, and the removal of deleted nodes.
ALTER TABLE nodes
  ADD COLUMN uid int,
  -- When the removal of its data began, after the retention period. From then on, the node cannot be undeleted.
  ADD COLUMN purging_at timestamptz,
  -- When the removal ended. Only this row is left of the node.
  ADD COLUMN purged_at timestamptz,
  ADD CONSTRAINT nodes_purged_after_deletion CHECK (purging_at IS NULL OR (deleted_at IS NOT NULL AND desired_state = 'deleted')),
  ADD CONSTRAINT nodes_purged_at_last CHECK (purged_at IS NULL OR (purging_at IS NOT NULL AND uid IS NULL));
CREATE UNIQUE INDEX nodes_uid ON nodes (host, uid);
