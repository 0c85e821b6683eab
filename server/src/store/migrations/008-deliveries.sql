-- What a payment is bound to, if that is not its description.
ALTER TABLE gateway_payments ADD COLUMN resource text;

-- `held_until` null: the claim is final. Both columns are in the claim's own row: a statement that has waited for a row lock reads only the
-- locked row again, so in another table it would see what was there before it waited.
ALTER TABLE paid_payments
  ADD COLUMN held_until timestamptz CHECK (held_until IS NULL OR redeemed_at IS NOT NULL),
  ADD COLUMN released_request_ids text[];

-- When the node last reported, a minute or more after the expiry, that nobody had paid. Null: it was not asked, or did not know.
ALTER TABLE gateway_payments ADD COLUMN unpaid_at timestamptz;
-- How many of the challenges of an hour were removed, so that recently issued ones can still be counted.
CREATE TABLE removed_challenges (
  account_id text NOT NULL,
  hour timestamptz NOT NULL,
  count int NOT NULL,
  PRIMARY KEY (account_id, hour)
);
