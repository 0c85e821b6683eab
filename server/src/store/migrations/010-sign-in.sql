-- Failed sign-ins and the pause that follows them. Like rate_limits: it costs no fsync, and a crash only lets everybody begin anew.
CREATE UNLOGGED TABLE sign_in_failures (
  -- A keyed hash of who is guessed at: what strangers type into a form, passwords included, is not kept here.
  key bytea PRIMARY KEY,
  failures int NOT NULL,
  paused_until timestamptz NOT NULL,
  forget_at timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_by_end ON sign_in_failures (forget_at);

-- Made by a stranger at an open door, without an invitation. Accounts from before this column count as known.
ALTER TABLE accounts ADD COLUMN is_self_registered boolean NOT NULL DEFAULT false;
