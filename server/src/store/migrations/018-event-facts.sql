-- The facts of a payment never change, so its events need no copy of them: looking them up and writing them took most of the time that an event
-- costs, and most events are never read.
ALTER TABLE events RENAME TO event_log;
ALTER TABLE event_log ALTER COLUMN data DROP NOT NULL;
-- The payment that an event is about; null in events of nodes, credit and keys, and in those written before this column existed.
ALTER TABLE event_log ADD COLUMN payment_id text;

-- The body of a webhook must be the same in every attempt, and data is part of it: whatever changes this view must leave the events that exist
-- as they are. The payment is looked up by its key, one by one: a join could be planned as a scan of all payments.
CREATE VIEW events AS
  SELECT e.account_id, e.seq, e.id, e.type, coalesce(e.node_id, payment.node_id) AS node_id, e.at,
         CASE WHEN e.payment_id IS NULL OR payment.facts IS NULL THEN coalesce(e.data, '{}')
              WHEN e.data IS NULL THEN payment.facts
              ELSE (payment.facts::jsonb || e.data::jsonb)::json END AS data
  FROM event_log e LEFT JOIN LATERAL (
    SELECT node_id, json_build_object('paymentId', id, 'nodeId', node_id, 'protocol', protocol, 'amountSat', amount_sat,
      'description', description, 'resource', resource) AS facts
    FROM gateway_payments WHERE id = e.payment_id LIMIT 1) payment ON true;
