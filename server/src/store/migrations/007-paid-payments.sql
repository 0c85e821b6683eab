-- A process of the version before that still runs must not redeem between the copy and the end: its word would be lost.
LOCK TABLE gateway_payments, activity IN ACCESS EXCLUSIVE MODE;

-- What makes a payment paid is a row of its own, not a mark in the payment's: that one is 1.5 kB wide, and was written whole once more,
-- into each of its indexes too whenever its page was full. This one is also the line of the activity log, so that there is one thing to
-- write. It is made by a statement that reads the payment; a reference would lock that row, and so write it after all.
CREATE TABLE paid_payments (
  account_id text NOT NULL,
  -- The payment's.
  id text NOT NULL,
  -- Its place in the activity log, among the lines that are rows of activity.
  log_id bigint NOT NULL DEFAULT nextval('activity_id_seq'),
  paid_at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  redeemed_at timestamptz,
  redeem_request_id text CHECK (redeem_request_id IS NULL OR redeemed_at IS NOT NULL),
  -- The payments of an account beside one another, in the order they were made: lately paid ones are one range.
  PRIMARY KEY (account_id, id)
) WITH (fillfactor = 80);
-- Neither index names what a redemption writes.
CREATE INDEX paid_payments_in_log ON paid_payments (account_id, log_id);

-- Each was written together with its line. But the payment is the truth: one whose line is gone stays paid.
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
