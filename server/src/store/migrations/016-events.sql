-- Events on their way into the feed, written in the transaction of the change that they report. Ids of a sequence are not in commit order,
-- so no reader may remember the last one: a row that commits late would be skipped. The sequencer moves a row to `events` once every
-- transaction that began before its own has ended.
CREATE TABLE event_outbox (
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- The order within a transaction.
  id bigint GENERATED ALWAYS AS IDENTITY,
  account_id text NOT NULL,
  type text NOT NULL,
  -- The payment, node or key that it is about.
  subject text,
  at timestamptz NOT NULL DEFAULT now(),
  -- Without what the sequencer reads from the payment: those fields never change, and the customer waits for this row.
  data jsonb
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX event_outbox_in_order ON event_outbox (xid, id);

CREATE TABLE events (
  account_id text NOT NULL,
  -- Without gaps, so a reader that knows its last number has missed nothing.
  seq bigint NOT NULL,
  id text NOT NULL,
  type text NOT NULL,
  node_id text,
  at timestamptz NOT NULL,
  -- json and not jsonb: it keeps the text, so that each delivery of an event has the same bytes.
  data json NOT NULL,
  PRIMARY KEY (account_id, seq)
);
-- Rows are added in the order of their age, so this small index finds the old ones.
CREATE INDEX events_by_age ON events USING brin (at) WITH (pages_per_range = 32);

CREATE TABLE event_counters (
  account_id text PRIMARY KEY,
  last_seq bigint NOT NULL,
  -- The highest event number that retention has removed.
  removed_seq bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Since when the nodes of an account without credit are being stopped.
ALTER TABLE credit_warnings ADD COLUMN exhausted_at timestamptz;

-- Triggers write the outbox, so that no way of changing a row can forget it, and processes of the version before report their changes too.
CREATE FUNCTION report_activity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event_outbox (account_id, type, subject, data)
  VALUES (NEW.account_id,
          CASE WHEN NEW.action <> 'credit.warning' THEN NEW.action WHEN NEW.detail ->> 'level' = 'empty' THEN 'credit.grace' ELSE 'credit.low' END,
          NEW.target, CASE WHEN NEW.action LIKE 'key.%' THEN NEW.detail || jsonb_build_object('keyId', NEW.target) ELSE NEW.detail END);
  RETURN NULL;
END $$;
CREATE TRIGGER activity_is_reported AFTER INSERT ON activity FOR EACH ROW
  WHEN (NEW.action IN ('payment.settled', 'payment.released', 'credit.topped_up', 'credit.warning', 'credit.exhausted', 'key.created',
                       'key.disabled', 'key.revoked'))
  EXECUTE FUNCTION report_activity();

CREATE FUNCTION report_paid_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO event_outbox (account_id, type, subject) VALUES (NEW.account_id, 'payment.paid', NEW.id);
  END IF;
  -- A claim that is only held may lapse.
  IF NEW.redeemed_at IS NOT NULL AND NEW.held_until IS NULL THEN
    INSERT INTO event_outbox (account_id, type, subject, data)
    VALUES (NEW.account_id, 'payment.redeemed', NEW.id, jsonb_build_object('requestId', NEW.redeem_request_id));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER paid_payments_are_reported AFTER INSERT ON paid_payments FOR EACH ROW EXECUTE FUNCTION report_paid_payment();
CREATE TRIGGER redeemed_payments_are_reported AFTER UPDATE ON paid_payments FOR EACH ROW
  WHEN (NEW.redeemed_at IS NOT NULL AND NEW.held_until IS NULL AND (OLD.redeemed_at IS NULL OR OLD.held_until IS NOT NULL))
  EXECUTE FUNCTION report_paid_payment();

CREATE FUNCTION report_node() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  facts jsonb := jsonb_build_object('nodeId', NEW.id, 'name', NEW.name);
BEGIN
  IF OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL THEN
    INSERT INTO event_outbox (account_id, type, subject, data) VALUES (NEW.account_id, 'node.deleted', NEW.id, facts);
  END IF;
  IF OLD.update_status = 'updating' AND NEW.update_status = 'updated' THEN
    INSERT INTO event_outbox (account_id, type, subject, data)
    VALUES (NEW.account_id, 'node.updated', NEW.id, facts || jsonb_build_object('version', NEW.version));
  END IF;
  -- The version that is wanted changes back only if the previous one runs again.
  IF OLD.update_status = 'updating' AND NEW.update_status = 'failed' AND NEW.desired_version <> OLD.desired_version THEN
    INSERT INTO event_outbox (account_id, type, subject, data)
    VALUES (NEW.account_id, 'node.rolled_back', NEW.id,
            facts || jsonb_build_object('version', NEW.desired_version, 'error', left(NEW.last_update_error, 2000)));
  END IF;
  IF OLD.status <> NEW.status AND NEW.status IN ('ready', 'stopped', 'failed') AND NEW.deleted_at IS NULL THEN
    INSERT INTO event_outbox (account_id, type, subject, data)
    VALUES (NEW.account_id, 'node.' || NEW.status, NEW.id,
            facts || CASE WHEN NEW.status = 'failed' THEN jsonb_build_object('failureMessage', left(NEW.failure_message, 2000)) ELSE '{}' END);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER nodes_are_reported AFTER UPDATE ON nodes FOR EACH ROW
  WHEN ((OLD.status, OLD.update_status, OLD.deleted_at) IS DISTINCT FROM (NEW.status, NEW.update_status, NEW.deleted_at))
  EXECUTE FUNCTION report_node();
