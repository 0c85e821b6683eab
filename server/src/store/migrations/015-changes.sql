-- Notifies every process, after the commit, that an account's nodes or log have changed. Not for payments: a commit with NOTIFY holds a lock
-- of the whole database cluster until it is on disk, and payments must not wait for one another. The process that wrote them notifies.
CREATE FUNCTION tell_of_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('boltyard_changed', NEW.account_id || ' ' || TG_ARGV[0]);
  RETURN NULL;
END $$;

CREATE TRIGGER new_nodes_are_told AFTER INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION tell_of_change('nodes');
-- Only changes that pages show: a node is observed every half minute, and usually nothing has changed.
CREATE TRIGGER changed_nodes_are_told AFTER UPDATE ON nodes FOR EACH ROW
  WHEN ((OLD.name, OLD.status, OLD.failure_message, OLD.operation, OLD.update_status, OLD.updated_at, OLD.deleted_at, OLD.has_funds,
         OLD.phase IN ('running', 'unknown'))
        IS DISTINCT FROM
        (NEW.name, NEW.status, NEW.failure_message, NEW.operation, NEW.update_status, NEW.updated_at, NEW.deleted_at, NEW.has_funds,
         NEW.phase IN ('running', 'unknown')))
  EXECUTE FUNCTION tell_of_change('nodes');
CREATE TRIGGER activity_is_told AFTER INSERT ON activity FOR EACH ROW
  WHEN (NEW.action NOT LIKE 'payment.%') EXECUTE FUNCTION tell_of_change('activity');
