-- The account that receives what others pay for credit. A name would not do: anyone who could choose that name would get free
-- nodes.
ALTER TABLE accounts ADD COLUMN is_treasury boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX accounts_one_treasury ON accounts (is_treasury) WHERE is_treasury;

-- With this index, a balance is an index-only scan, and a page of the ledger needs no sort.
DROP INDEX credit_of_account;
CREATE INDEX credit_of_account ON credit_entries (account_id, id) INCLUDE (amount_msat);

CREATE FUNCTION unix_minute(at timestamptz) RETURNS bigint LANGUAGE sql STABLE
  RETURN floor(extract(epoch FROM at) / 60)::bigint;
CREATE FUNCTION whole_minute(at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE
  RETURN to_timestamp(unix_minute(at) * 60);

-- What the minutes [from, to) cost. The cost up to each absolute minute is rounded, not the difference, so the parts of a period always add
-- up to the whole, however it is split.
CREATE FUNCTION usage_charge(price_msat_per_day bigint, from_minute bigint, to_minute bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN price_msat_per_day * to_minute / 1440 - price_msat_per_day * from_minute / 1440;

-- When a node cost something, in whole minutes of the database's clock. No foreign key to nodes: usage is owed even if the node's row is
-- deleted before the usage is posted.
CREATE TABLE usage_intervals (
  node_id text NOT NULL,
  account_id text NOT NULL REFERENCES accounts,
  started_at timestamptz NOT NULL CHECK (started_at = whole_minute(started_at)),
  -- Null while the interval is open.
  ended_at timestamptz CHECK (ended_at = whole_minute(ended_at) AND ended_at > started_at),
  -- When the interval was posted to the ledger.
  posted_at timestamptz CHECK (posted_at IS NULL OR ended_at IS NOT NULL),
  PRIMARY KEY (node_id, started_at)
);
CREATE UNIQUE INDEX usage_open ON usage_intervals (node_id) WHERE ended_at IS NULL;
CREATE INDEX usage_unposted ON usage_intervals (account_id) WHERE posted_at IS NULL;
CREATE INDEX usage_to_post ON usage_intervals (node_id, started_at) WHERE posted_at IS NULL AND ended_at IS NOT NULL;

-- A trigger opens and closes intervals in the transaction that changes the node, so no code that changes nodes can forget it. The node's
-- row lock admits one transaction at a time. The function compares what should be with what is stored, not the old row with the new one,
-- so running it again is harmless. A new interval begins no earlier than the last one ended, even if the clock was set back: intervals
-- never overlap and are never negative.
CREATE FUNCTION meter_node() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  metered text;
  costs boolean := false;
  this_minute timestamptz := whole_minute(clock_timestamp());
BEGIN
  IF TG_OP = 'DELETE' THEN
    metered := OLD.id;
  ELSE
    metered := NEW.id;
    costs := NEW.desired_state = 'running' AND NEW.status IN ('provisioning', 'ready') AND NEW.deleted_at IS NULL
      AND NOT (SELECT is_treasury FROM accounts WHERE id = NEW.account_id);
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
CREATE TRIGGER nodes_are_metered AFTER INSERT OR DELETE OR UPDATE OF desired_state, status, deleted_at ON nodes
  FOR EACH ROW EXECUTE FUNCTION meter_node();

-- Nodes of the treasury are not metered. Once an account is no longer the treasury, its nodes are metered.
CREATE FUNCTION meter_nodes_of_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE nodes SET status = status WHERE account_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER treasury_is_not_metered AFTER UPDATE OF is_treasury ON accounts
  FOR EACH ROW EXECUTE FUNCTION meter_nodes_of_account();

-- Nobody was told what nodes cost before this: they begin now.
UPDATE nodes SET status = status;

-- What an account was warned of, and since when it has had no credit.
CREATE TABLE credit_warnings (
  account_id text PRIMARY KEY REFERENCES accounts,
  level text NOT NULL DEFAULT 'none' CHECK (level IN ('none', 'week', 'day', 'empty')),
  -- The newest credit that was known then: only newer credit makes a warning possible that was given before.
  credit_id bigint NOT NULL DEFAULT 0,
  empty_since timestamptz
);

CREATE TABLE top_ups (
  payment_hash bytea PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  node_id text NOT NULL REFERENCES nodes,
  amount_sat bigint NOT NULL CHECK (amount_sat > 0),
  invoice text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  -- The node's word; the ledger's entry is made together with it.
  settled_at timestamptz,
  -- When the node is asked about it next; null when there is nothing left to ask.
  ask_at timestamptz CHECK (ask_at IS NULL OR settled_at IS NULL)
);
CREATE INDEX top_ups_of_account ON top_ups (account_id, expires_at) WHERE settled_at IS NULL;
CREATE INDEX top_ups_to_ask ON top_ups (node_id, ask_at) WHERE ask_at IS NOT NULL;
