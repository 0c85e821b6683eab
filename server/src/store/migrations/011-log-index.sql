-- Only statements that say log_id > 0 can use this index. For any other its first column is a trap: as long as statistics are missing or
-- old, the planner takes an account to have one payment, and reads all of them where it should look one up.
DROP INDEX paid_payments_in_log;
CREATE INDEX paid_payments_in_log ON paid_payments (account_id, log_id) WHERE log_id > 0;
-- While a table is small, reading it whole is the cheapest plan, and that plan is kept until the next statistics, however much it has grown.
-- So the first statistics of this one, whose rows are narrow, are made when it is large enough for the index.
ALTER TABLE paid_payments SET (autovacuum_analyze_threshold = 1000, autovacuum_vacuum_threshold = 1000);
