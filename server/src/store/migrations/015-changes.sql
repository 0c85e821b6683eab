-- Tells every process, once a change has committed, that an account's nodes or log look different now. Not for payments: NOTIFY takes a
-- lock of the whole cluster until the commit is on disk, and payments must not wait for one another. The process that wrote them tells.
CREATE FUNCTION tell_of_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('boltyard_changed', NEW.account_id || ' ' || TG_ARGV[0]);
  RETURN NULL;
END $$;

CREATE TRIGGER new_nodes_are_told AFTER INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION tell_of_change('nodes');
-- Only what a page shows: a node is looked at every half minute, and mostly nothing has changed.
CREATE TRIGGER changed_nodes_are_told AFTER UPDATE ON nodes FOR EACH ROW
  WHEN ((OLD.name, OLD.status, OLD.failure_message, OLD.operation, OLD.update_status, OLD.updated_at, OLD.deleted_at, OLD.has_funds,
         OLD.phase IN ('running', 'unknown'))
        IS DISTINCT FROM
        (NEW.name, NEW.status, NEW.failure_message, NEW.operation, NEW.update_status, NEW.updated_at, NEW.deleted_at, NEW.has_funds,
         NEW.phase IN ('running', 'unknown')))
  EXECUTE FUNCTION tell_of_change('nodes');
CREATE TRIGGER activity_is_told AFTER INSERT ON activity FOR EACH ROW
  WHEN (NEW.action NOT LIKE 'payment.%') EXECUTE FUNCTION tell_of_change('activity');
