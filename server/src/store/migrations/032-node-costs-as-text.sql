-- As in 021, for databases that ran an earlier form of it: otherwise later migrations could not add columns with a default to these tables.
CREATE OR REPLACE FUNCTION node_costs(node nodes, account accounts) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT node.desired_state = 'running' AND node.status IN ('provisioning', 'ready') AND node.deleted_at IS NULL
    AND NOT account.is_treasury
$$;
