-- A node lists what it has received when its balance has changed since the last list was begun, and otherwise only once an hour.
ALTER TABLE node_receipt_lists ADD COLUMN begun_at timestamptz, ADD COLUMN balance_sat bigint;
