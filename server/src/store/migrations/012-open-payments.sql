-- Separate from 008, which locks the table for readers too. Only writers wait for these indexes.
CREATE INDEX IF NOT EXISTS gateway_payments_unpaid ON gateway_payments (expires_at) WHERE unpaid_at IS NOT NULL;
-- Counts the challenges that can still be paid with an index-only scan.
CREATE INDEX IF NOT EXISTS gateway_payments_open ON gateway_payments (node_id, expires_at) WHERE settled_at IS NULL;
