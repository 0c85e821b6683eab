-- As in 014, but as text: newer minor releases of PostgreSQL (15.20, 17.12) refuse to add a column with a default to a table whose row type is
-- used by a function that is kept parsed.
CREATE OR REPLACE FUNCTION node_costs(node nodes, account accounts) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT node.desired_state = 'running' AND node.status IN ('provisioning', 'ready') AND node.deleted_at IS NULL
    AND NOT account.is_treasury
$$;

-- Wallets that came from elsewhere, and nodes that went elsewhere.
ALTER TABLE nodes
  ADD COLUMN adopted_at timestamptz,
  -- Every release in the life of its wallet, here or elsewhere, oldest first. A copy that does not name the last one is from before it.
  ADD COLUMN releases text[] NOT NULL DEFAULT '{}',
  -- Handed over to another installation. It stays deleted here, whatever a process of any version does: elsewhere it may run.
  ADD COLUMN released_at timestamptz,
  -- When its wallet was last written to a directory. Until then the only copy of its channels is here, so it is never purged.
  ADD COLUMN exported_at timestamptz,
  ADD CONSTRAINT nodes_released_for_good CHECK (released_at IS NULL OR (deleted_at IS NOT NULL AND desired_state = 'deleted'));

-- Two daemons with one seed lose money. Seeds that are generated here are all different; an existing one could be adopted twice.
CREATE UNIQUE INDEX nodes_adopted_once ON nodes (lightning_id) WHERE adopted_at IS NOT NULL AND released_at IS NULL;
