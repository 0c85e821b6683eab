-- What a payment is bound to, when that is not its description.
ALTER TABLE gateway_payments ADD COLUMN resource text;

-- Null: the claim is final. In the row of the claim itself, and so are the requests that gave theirs back: a statement that waited for
-- another one looks at this row again, and at no other.
ALTER TABLE paid_payments
  ADD COLUMN held_until timestamptz CHECK (held_until IS NULL OR redeemed_at IS NOT NULL),
  ADD COLUMN released_request_ids text[];

-- When the node last said, asked a minute or more after the expiry, that nobody paid. Null: it was not asked, or did not know.
ALTER TABLE gateway_payments ADD COLUMN unpaid_at timestamptz;
CREATE INDEX gateway_payments_unpaid ON gateway_payments (expires_at) WHERE unpaid_at IS NOT NULL;
-- How many were removed of those made in an hour, so that what was issued lately can still be counted.
CREATE TABLE removed_challenges (
  account_id text NOT NULL,
  hour timestamptz NOT NULL,
  count int NOT NULL,
  PRIMARY KEY (account_id, hour)
);
-- Nobody wrote down what nodes said before: they are asked once more, and then these can be removed too.
UPDATE gateway_payments SET ask_at = now() WHERE settled_at IS NULL AND ask_at IS NULL;

-- How many can still be paid, counted without a look at the rows.
CREATE INDEX gateway_payments_open ON gateway_payments (node_id, expires_at) WHERE settled_at IS NULL;
