-- The second factor of signing in with a password: codes of an authenticator app (RFC 6238).
CREATE TABLE people_two_factor (
  person_id text PRIMARY KEY REFERENCES people ON DELETE CASCADE,
  -- The master key that the secret is sealed under.
  key_id text NOT NULL,
  secret bytea NOT NULL,
  -- Null: a set-up that no code has confirmed yet. It protects nothing.
  confirmed_at timestamptz,
  -- The 30-second step of the last code that was used. Codes of this step and of earlier ones are refused.
  last_step bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE people_recovery_codes (
  person_id text NOT NULL REFERENCES people_two_factor ON DELETE CASCADE,
  -- SHA-256; a code has 80 random bits.
  code_hash bytea NOT NULL,
  used_at timestamptz,
  PRIMARY KEY (person_id, code_hash)
);

-- Null: a session that has not been used since this column exists.
ALTER TABLE people_sessions ADD COLUMN last_seen_at timestamptz;

-- Its owner has deleted it. The row stays, because the ledger and the records of payments refer to it.
ALTER TABLE accounts ADD COLUMN closed_at timestamptz;
