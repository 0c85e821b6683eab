-- What nodes cost, added up after each day (UTC). The ledger has an entry for each node and hour, too many to add up for every view of three
-- months. The ledger is append-only, so these rows can be computed from it again at any time.
CREATE TABLE usage_days (
  account_id text NOT NULL REFERENCES accounts,
  day date NOT NULL,
  node_id text NOT NULL,
  amount_msat bigint NOT NULL,
  minutes int NOT NULL,
  PRIMARY KEY (account_id, day, node_id)
);
CREATE TABLE usage_quarter_hours (
  account_id text NOT NULL REFERENCES accounts,
  at timestamptz NOT NULL,
  amount_msat bigint NOT NULL,
  PRIMARY KEY (account_id, at)
);
-- The days that the two tables above cover, without gaps.
CREATE TABLE usage_days_added_up (day date PRIMARY KEY);

-- What a node received that is neither a gateway payment nor a top-up, as the node itself lists it. No foreign key to nodes: receipts
-- are kept even if the node's row is deleted.
CREATE TABLE node_receipts (
  node_id text NOT NULL,
  payment_hash bytea NOT NULL,
  account_id text NOT NULL REFERENCES accounts,
  amount_sat bigint NOT NULL,
  received_at timestamptz NOT NULL,
  PRIMARY KEY (node_id, payment_hash)
);
CREATE INDEX node_receipts_of_account ON node_receipts (account_id, received_at) INCLUDE (node_id, amount_sat);
CREATE TABLE node_receipt_lists (
  node_id text PRIMARY KEY,
  -- By the node's clock. Everything that the node received before is recorded.
  listed_until timestamptz,
  -- By the database's clock: when the node last listed everything, and when it is asked next.
  listed_at timestamptz,
  next_at timestamptz NOT NULL
);
