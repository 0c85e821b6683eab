-- A process of the previous version must not redeem between the copy and the commit: its redemption would be lost.
LOCK TABLE gateway_payments, activity IN ACCESS EXCLUSIVE MODE;

-- A payment is paid if it has a row here. A column of the payment would cost more: its row is 1.5 kB wide, and each update writes all of
-- it again, and an entry in each of its indexes if the page is full. This row is also the entry in the activity log, so only one row is
-- written. The statement that inserts it reads the payment. A foreign key would lock the payment's row, which writes that row after all.
CREATE TABLE paid_payments (
  account_id text NOT NULL,
  -- The id of the payment.
  id text NOT NULL,
  -- Its place in the activity log, among the rows of activity.
  log_id bigint NOT NULL DEFAULT nextval('activity_id_seq'),
  paid_at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  redeemed_at timestamptz,
  redeem_request_id text CHECK (redeem_request_id IS NULL OR redeemed_at IS NOT NULL),
  -- Keeps the payments of an account together, in the order of their creation, so recent ones are one range.
  PRIMARY KEY (account_id, id)
) WITH (fillfactor = 80);
-- Neither index contains a column that a redemption writes, so a redemption changes no index.
CREATE INDEX paid_payments_in_log ON paid_payments (account_id, log_id);

-- Each payment has a log entry from the same transaction. If the entry is missing, the payment still stays paid.
INSERT INTO paid_payments (account_id, id, log_id, paid_at, actor, redeemed_at, redeem_request_id)
  SELECT account_id, p.id, coalesce(line.log_id, nextval('activity_id_seq')), paid_at, coalesce(line.actor, node_id), redeemed_at,
         redeem_request_id
  FROM gateway_payments p LEFT JOIN (
    SELECT DISTINCT ON (account_id, target) account_id, target AS id, id AS log_id, actor FROM activity
    WHERE action = 'payment.paid' ORDER BY account_id, target, activity.id) line USING (account_id, id)
  WHERE paid_at IS NOT NULL;
DELETE FROM activity a USING paid_payments p WHERE a.account_id = p.account_id AND a.id = p.log_id;
ALTER TABLE gateway_payments DROP COLUMN paid_at, DROP COLUMN redeemed_at, DROP COLUMN redeem_request_id;

CREATE VIEW activity_log AS
  SELECT account_id, id, at, actor, action, target, detail FROM activity
  UNION ALL
  SELECT account_id, log_id, paid_at, actor, 'payment.paid', id, '{}' FROM paid_payments;
