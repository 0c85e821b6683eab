-- Sessions of the operator's pages. The token itself is in the configuration only.
CREATE TABLE operator_sessions (
  -- SHA-256 of what the cookie carries: who reads this table cannot sign in with it.
  cookie_hash bytea PRIMARY KEY,
  -- A keyed hash of the operator token that the session was started with. With another token configured, the session is over.
  token_mac bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX operator_sessions_by_end ON operator_sessions (expires_at);
