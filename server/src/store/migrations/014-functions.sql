-- The service reads all times through these functions. PostgreSQL inlines them, so a call costs no more than its body.
CREATE FUNCTION unix_seconds(at timestamptz) RETURNS bigint LANGUAGE sql STABLE
  RETURN floor(extract(epoch FROM at))::bigint;
CREATE FUNCTION unix_ms(at timestamptz) RETURNS bigint LANGUAGE sql STABLE
  RETURN floor(extract(epoch FROM at) * 1000)::bigint;

-- Whether a node costs something now. Metering, the remaining credit and the forecast must all use this one rule.
CREATE FUNCTION node_costs(node nodes, account accounts) RETURNS boolean LANGUAGE sql STABLE
  RETURN (node).desired_state = 'running' AND (node).status IN ('provisioning', 'ready') AND (node).deleted_at IS NULL
    AND NOT (account).is_treasury;

-- As in 004, but with the rule in node_costs.
CREATE OR REPLACE FUNCTION meter_node() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  metered text;
  costs boolean := false;
  this_minute timestamptz := whole_minute(clock_timestamp());
BEGIN
  IF TG_OP = 'DELETE' THEN
    metered := OLD.id;
  ELSE
    metered := NEW.id;
    SELECT node_costs(NEW, account) INTO costs FROM accounts account WHERE id = NEW.account_id;
  END IF;
  IF costs THEN
    INSERT INTO usage_intervals (node_id, account_id, started_at)
    SELECT NEW.id, NEW.account_id, greatest(this_minute, (
      SELECT ended_at FROM usage_intervals WHERE node_id = NEW.id ORDER BY started_at DESC LIMIT 1))
    WHERE NOT EXISTS (SELECT 1 FROM usage_intervals WHERE node_id = NEW.id AND ended_at IS NULL);
  ELSE
    -- A minute that has begun counts, once: who stops before each one ends would otherwise run for nothing. What is to begin after this
    -- one began in a minute that is counted already, or by a clock that was set back.
    DELETE FROM usage_intervals WHERE node_id = metered AND ended_at IS NULL AND started_at > this_minute;
    UPDATE usage_intervals SET ended_at = this_minute + interval '1 minute' WHERE node_id = metered AND ended_at IS NULL;
  END IF;
  RETURN NULL;
END $$;
