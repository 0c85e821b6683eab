-- without a transaction
-- Most entries are payments. Whoever looks for a revoked key must not read past all of them; and payments are not written into this index.
-- An index whose building was interrupted is invalid, so it is built anew.
DROP INDEX CONCURRENTLY IF EXISTS activity_without_payments;
CREATE INDEX CONCURRENTLY activity_without_payments ON activity (account_id, id DESC) WHERE action NOT LIKE 'payment.%';
