-- Keys that expire, and keys that have two secrets for a while after a rotation.
ALTER TABLE api_keys
  ADD COLUMN expires_at timestamptz,
  ADD COLUMN rotated_at timestamptz,
  -- The secret before the last rotation. A key has at most two secrets, and the previous one always expires.
  ADD COLUMN previous_hash bytea,
  ADD COLUMN previous_until timestamptz,
  ADD CONSTRAINT api_keys_previous_secret_ends CHECK ((previous_hash IS NULL) = (previous_until IS NULL));
CREATE UNIQUE INDEX api_keys_by_previous_hash ON api_keys (previous_hash) WHERE previous_hash IS NOT NULL;

-- The log of API requests, kept for a week. No foreign keys: each insert would lock rows of `accounts` and `api_keys`, and those rows are
-- never deleted.
CREATE TABLE api_requests (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id text NOT NULL,
  key_id text NOT NULL,
  at timestamptz NOT NULL,
  method text NOT NULL,
  -- The pattern of the route, never a path: paths contain ids.
  route text NOT NULL,
  status smallint NOT NULL,
  error_code text,
  duration_ms real NOT NULL,
  request_id text NOT NULL
);
CREATE INDEX api_requests_of_account ON api_requests (account_id, id);
CREATE INDEX api_requests_of_key ON api_requests (key_id, id);
CREATE INDEX api_requests_of_route ON api_requests (account_id, route, id);
CREATE INDEX api_requests_failed ON api_requests (account_id, id) WHERE status >= 400;
CREATE INDEX api_requests_by_request_id ON api_requests (account_id, request_id);

-- Outlives the log, and counts the requests that the log leaves out. Days are in UTC.
CREATE TABLE api_key_usage (
  key_id text NOT NULL,
  day date NOT NULL,
  requests bigint NOT NULL,
  errors bigint NOT NULL,
  PRIMARY KEY (key_id, day)
);
