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
