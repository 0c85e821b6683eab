-- The last known balance and its time. A list of nodes cannot ask every node, and a node that is down does not answer.
ALTER TABLE nodes ADD COLUMN balance_sat bigint, ADD COLUMN balance_at timestamptz;
