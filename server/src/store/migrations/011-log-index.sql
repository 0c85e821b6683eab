-- Only statements with the condition log_id > 0 can use this index. Others must not: while statistics are missing or old, the planner
-- expects an account to have one payment, and would read all payments of the account instead of looking one up.
DROP INDEX paid_payments_in_log;
CREATE INDEX paid_payments_in_log ON paid_payments (account_id, log_id) WHERE log_id > 0;
-- While a table is small, a sequential scan is the cheapest plan, and it remains the plan until the next ANALYZE, however much the table
-- grows. These thresholds delay the first ANALYZE of this table, whose rows are narrow, until it is large enough for the index.
ALTER TABLE paid_payments SET (autovacuum_analyze_threshold = 1000, autovacuum_vacuum_threshold = 1000);
