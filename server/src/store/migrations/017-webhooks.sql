CREATE TABLE webhooks (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts (id),
  url text NOT NULL,
  -- Types of events, and groups such as payment.*; null: all of them.
  types text[],
  -- Null: events of all nodes, and those that belong to none.
  node_ids text[],
  description text,
  enabled boolean NOT NULL DEFAULT true,
  -- Null while it is enabled, or if its owner disabled it.
  disabled_reason text,
  -- The master key that both secrets are sealed under.
  key_id text NOT NULL,
  secret bytea NOT NULL,
  -- Signs as well until then, so that receivers have time to learn the new secret.
  previous_secret bytea,
  previous_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_success_at timestamptz,
  -- The first failure since the last success.
  failing_since timestamptz,
  -- Its deliveries are removed in batches, and then this row.
  deleted_at timestamptz
) WITH (fillfactor = 50);
CREATE INDEX webhooks_of_account ON webhooks (account_id) WHERE deleted_at IS NULL;

-- One event on its way to one webhook.
CREATE TABLE webhook_deliveries (
  webhook_id text NOT NULL REFERENCES webhooks (id),
  -- The number of the event in its account's feed. The event is stored only there, so every attempt sends the same bytes.
  seq bigint NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the next attempt is due; null once there is none.
  next_at timestamptz DEFAULT now() CHECK ((next_at IS NULL) = (status <> 'pending')),
  -- How many attempts of the schedule have been made. Sending again starts the schedule anew.
  tries integer NOT NULL DEFAULT 0,
  -- Set while a process is making an attempt.
  lease_until timestamptz,
  -- Voids the result of a process that lost its lease.
  lease_epoch integer NOT NULL DEFAULT 0,
  -- The latest attempts, oldest first.
  attempts jsonb NOT NULL DEFAULT '[]',
  PRIMARY KEY (webhook_id, seq)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at, seq) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (webhook_id) WHERE lease_until IS NOT NULL;
-- Few of many, for the list that an owner reads after a failure.
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, seq) WHERE status = 'failed';
