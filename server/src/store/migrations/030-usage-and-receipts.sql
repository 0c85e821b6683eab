-- What nodes cost, added up when a day (UTC) is over: the ledger has an entry for each node and hour, too many to add up for each view of a
-- quarter of a year. The ledger is final, so these can be made again from it at any time.
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
-- The days that the two above cover, without gaps.
CREATE TABLE usage_days_added_up (day date PRIMARY KEY);

-- What a node received that is neither a gateway payment nor a top-up, as the node itself lists it. No reference to nodes: what was received
-- stays received.
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
  -- By the node's clock: all that it received before is recorded.
  listed_until timestamptz,
  -- By ours: when it last listed everything, and when it is asked next.
  listed_at timestamptz,
  next_at timestamptz NOT NULL
);
