-- The last known balance and its time: a list of nodes cannot ask each of them, and a node that is down does not answer.
ALTER TABLE nodes ADD COLUMN balance_sat bigint, ADD COLUMN balance_at timestamptz;
