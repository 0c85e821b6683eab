-- Apart from 008, which needs the table for itself: writers wait for this one, readers do not.
CREATE INDEX IF NOT EXISTS gateway_payments_unpaid ON gateway_payments (expires_at) WHERE unpaid_at IS NOT NULL;
-- How many can still be paid, counted without a look at the rows.
CREATE INDEX IF NOT EXISTS gateway_payments_open ON gateway_payments (node_id, expires_at) WHERE settled_at IS NULL;
