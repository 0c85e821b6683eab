-- What a payment is bound to, when that is not its description.
ALTER TABLE gateway_payments ADD COLUMN resource text;

-- Null: the claim is final. In the row of the claim itself, and so are the requests that gave theirs back: a statement that waited for
-- another one looks at this row again, and at no other.
ALTER TABLE paid_payments
  ADD COLUMN held_until timestamptz CHECK (held_until IS NULL OR redeemed_at IS NOT NULL),
  ADD COLUMN released_request_ids text[];

-- When the node last said, asked a minute or more after the expiry, that nobody paid. Null: it was not asked, or did not know.
ALTER TABLE gateway_payments ADD COLUMN unpaid_at timestamptz;
-- How many were removed of those made in an hour, so that what was issued lately can still be counted.
CREATE TABLE removed_challenges (
  account_id text NOT NULL,
  hour timestamptz NOT NULL,
  count int NOT NULL,
  PRIMARY KEY (account_id, hour)
);
