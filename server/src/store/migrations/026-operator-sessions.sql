-- Sessions of the operator's pages. The operator token itself is only in the configuration.
CREATE TABLE operator_sessions (
  -- SHA-256 of the token in the cookie, so that reading this table is not enough to sign in.
  cookie_hash bytea PRIMARY KEY,
  -- A keyed hash of the operator token that the session was started with. Once another token is configured, the session has ended.
  token_mac bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX operator_sessions_by_end ON operator_sessions (expires_at);
