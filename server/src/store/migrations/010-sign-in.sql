-- Failed sign-ins and the pauses that follow them. Unlogged like rate_limits: a write costs no fsync, and a crash only resets the counts.
CREATE UNLOGGED TABLE sign_in_failures (
  -- A keyed hash of who was to be signed in. The text is not stored, because people also type passwords into that field.
  key bytea PRIMARY KEY,
  failures int NOT NULL,
  paused_until timestamptz NOT NULL,
  forget_at timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_by_end ON sign_in_failures (forget_at);

-- Registered without an invitation, while registration was open. Accounts older than this column count as invited.
ALTER TABLE accounts ADD COLUMN is_self_registered boolean NOT NULL DEFAULT false;
