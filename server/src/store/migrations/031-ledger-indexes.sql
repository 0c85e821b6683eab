-- without a transaction
-- A page of the ledger, and its sum, for a kind or a period.
CREATE INDEX CONCURRENTLY IF NOT EXISTS credit_entries_of_kind ON credit_entries (account_id, kind, id) INCLUDE (amount_msat, created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS credit_entries_of_period ON credit_entries (account_id, created_at) INCLUDE (kind, amount_msat);
-- A day of everyone's entries, or of everyone's validations. Rows are added in the order of their times, so a few pages are enough.
CREATE INDEX CONCURRENTLY IF NOT EXISTS credit_entries_by_time ON credit_entries USING brin (created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS paid_payments_by_time ON paid_payments USING brin (paid_at);
