-- without a transaction
-- Most entries are payments. Whoever looks for a revoked key must not read past all of them; and payments are not written into this index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS activity_without_payments ON activity (account_id, id DESC) WHERE action NOT LIKE 'payment.%';
