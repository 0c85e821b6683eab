-- People repeat requests too, and are no API key. Whoever it is, the row is gone a day later.
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_api_key_id_fkey;
ALTER TABLE idempotency_keys RENAME COLUMN api_key_id TO caller_id;

-- What came in lately, without a look at the rows themselves. A settlement moves ask_at, which is in an index already, so that no
-- update that touched no index before touches one now.
CREATE INDEX gateway_payments_settled ON gateway_payments (account_id, settled_at) INCLUDE (amount_sat) WHERE settled_at IS NOT NULL;
