-- Node numbers are never reused, even after a deletion. A count of the nodes would reuse them.
ALTER TABLE accounts ADD COLUMN nodes_made int NOT NULL DEFAULT 0;

CREATE TABLE nodes (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  -- The host of the node. A second host that starts it would run the same seed twice.
  host text NOT NULL,
  port int,
  lightning_id text NOT NULL,
  name text NOT NULL,
  auto_liquidity text NOT NULL,
  access_mode text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),

  -- What the API returns.
  status text NOT NULL DEFAULT 'provisioning' CHECK (status IN ('provisioning', 'ready', 'stopped', 'failed')),
  failure_message text CHECK (failure_message IS NULL OR status = 'failed'),
  update_status text CHECK (update_status IN ('updating', 'updated', 'failed')),
  update_completed_at timestamptz,
  last_update_error text,

  -- What was requested.
  desired_state text NOT NULL DEFAULT 'running' CHECK (desired_state IN ('running', 'stopped', 'deleted')),
  desired_version text NOT NULL,
  desired_run int NOT NULL DEFAULT 1,
  -- The operation that a caller waits for. A node has at most one.
  operation text CHECK (operation IN ('start', 'stop', 'restart', 'update', 'delete')),
  operation_id text,
  operation_deadline timestamptz,
  operation_result text CHECK (operation_result IN ('done', 'failed')),

  -- What was observed, and what happened before.
  phase text NOT NULL DEFAULT 'unknown',
  version text,
  history jsonb NOT NULL,
  -- The last reliable observation. One that is made while channels are offline or syncing never sets it to false.
  has_funds boolean NOT NULL DEFAULT false,

  lease_owner text,
  lease_epoch bigint NOT NULL DEFAULT 0,
  lease_until timestamptz,
  next_at timestamptz NOT NULL DEFAULT now(),

  deleted_at timestamptz,
  UNIQUE (host, port)
);
CREATE INDEX nodes_of_account ON nodes (account_id, id) WHERE deleted_at IS NULL;
CREATE INDEX nodes_due ON nodes (host, next_at);

-- Sealed under two different keys: what the dashboard may use, and what only the runtime opens. Kept until the node is purged.
CREATE TABLE node_secrets (
  node_id text PRIMARY KEY REFERENCES nodes,
  key_id text NOT NULL,
  dashboard_access bytea NOT NULL,
  material bytea NOT NULL
);
CREATE INDEX node_secrets_by_key ON node_secrets (key_id);

CREATE TABLE idempotency_keys (
  api_key_id text NOT NULL REFERENCES api_keys,
  route text NOT NULL,
  key text NOT NULL,
  body_hash bytea NOT NULL,
  -- Null while the first request runs. Then its response, sealed so that it opens only with the caller's secret.
  answer bytea,
  status int,
  running_until timestamptz NOT NULL,
  attempt text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (api_key_id, route, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
