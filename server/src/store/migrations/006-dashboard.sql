-- Idempotent requests also come from people, who have no API key. Rows are deleted after a day.
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_api_key_id_fkey;
ALTER TABLE idempotency_keys RENAME COLUMN api_key_id TO caller_id;

-- Finds recent settlements with an index-only scan. A settlement also changes ask_at, which is in an index already, so this index makes no
-- update change an index that changed none before.
CREATE INDEX gateway_payments_settled ON gateway_payments (account_id, settled_at) INCLUDE (amount_sat) WHERE settled_at IS NOT NULL;
