-- Deployment-wide settings, such as the check value of the master key.
CREATE TABLE settings (
  name text PRIMARY KEY,
  value bytea NOT NULL
);

CREATE TABLE accounts (
  id text PRIMARY KEY,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  name text NOT NULL,
  -- The first characters, to tell keys apart in a list. The key itself is not stored.
  prefix text NOT NULL,
  hash bytea NOT NULL UNIQUE,
  scopes text[] NOT NULL CHECK ('nodes:read' = ANY (scopes)),
  disabled boolean NOT NULL DEFAULT false,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX api_keys_of_account ON api_keys (account_id);

-- Append-only: a balance is the sum of its entries, so a changed entry would change the balance without a trace.
CREATE TABLE credit_entries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  amount_msat bigint NOT NULL,
  kind text NOT NULL,
  reason text NOT NULL,
  -- What caused the entry. Unique for each kind, so that no cause is booked twice.
  reference text,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX credit_of_account ON credit_entries (account_id);
CREATE UNIQUE INDEX credit_once ON credit_entries (kind, reference) WHERE reference IS NOT NULL;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'this table is append-only';
END $$;
CREATE TRIGGER credit_entries_are_final BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE activity (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  target text,
  detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX activity_of_account ON activity (account_id, id DESC);

-- Unlogged, so a count costs no fsync. A crash empties the table, and every client starts a new window.
CREATE UNLOGGED TABLE rate_limits (
  key text PRIMARY KEY,
  hits int NOT NULL,
  resets_at timestamptz NOT NULL
);
CREATE INDEX rate_limits_by_end ON rate_limits (resets_at);
