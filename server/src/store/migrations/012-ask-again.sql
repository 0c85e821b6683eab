-- Apart from 008, which needs the table for itself: this takes long where there are many payments, and leaves it readable meanwhile.
-- Nobody wrote down what nodes said before: they are asked once more, and then unpaid challenges of before can be removed too.
UPDATE gateway_payments SET ask_at = now() WHERE settled_at IS NULL AND ask_at IS NULL AND unpaid_at IS NULL;

CREATE INDEX IF NOT EXISTS gateway_payments_unpaid ON gateway_payments (expires_at) WHERE unpaid_at IS NOT NULL;
-- How many can still be paid, counted without a look at the rows.
CREATE INDEX IF NOT EXISTS gateway_payments_open ON gateway_payments (node_id, expires_at) WHERE settled_at IS NULL;
