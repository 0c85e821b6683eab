-- The people who sign in. The structure is better-auth's, the names are ours, and its columns for other identity providers are left out.
CREATE TABLE people (
  id text PRIMARY KEY,
  -- Every person has exactly one account, and an account has at most one person.
  account_id text NOT NULL UNIQUE REFERENCES accounts,
  email text NOT NULL,
  email_verified boolean NOT NULL DEFAULT false,
  name text NOT NULL,
  image text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
-- Upper and lower case are the same address, and two people cannot share one.
CREATE UNIQUE INDEX people_email ON people (lower(email));

CREATE TABLE people_sessions (
  id text PRIMARY KEY,
  person_id text NOT NULL REFERENCES people ON DELETE CASCADE,
  -- SHA-256 of the token in the cookie, so that reading this table is not enough to sign in.
  token_hash bytea NOT NULL UNIQUE,
  method text NOT NULL,
  ip_address text,
  user_agent text,
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX people_sessions_of_person ON people_sessions (person_id);
CREATE INDEX people_sessions_by_end ON people_sessions (expires_at);

CREATE TABLE people_identities (
  id text PRIMARY KEY,
  person_id text NOT NULL REFERENCES people ON DELETE CASCADE,
  provider text NOT NULL,
  subject text NOT NULL,
  password_hash text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (provider, subject)
);
CREATE INDEX people_identities_of_person ON people_identities (person_id);

-- Challenges that a passkey must sign within some minutes.
CREATE TABLE people_verifications (
  id text PRIMARY KEY,
  identifier text NOT NULL,
  value text NOT NULL,
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX people_verifications_by_name ON people_verifications (identifier);
CREATE INDEX people_verifications_by_end ON people_verifications (expires_at);

CREATE TABLE people_passkeys (
  id text PRIMARY KEY,
  person_id text NOT NULL REFERENCES people ON DELETE CASCADE,
  name text,
  public_key text NOT NULL,
  credential_id text NOT NULL UNIQUE,
  counter bigint NOT NULL,
  device_type text NOT NULL,
  backed_up boolean NOT NULL,
  transports text,
  aaguid text,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX people_passkeys_of_person ON people_passkeys (person_id);

-- Links to sign in, from the operator or the first start. The token is only in the link.
CREATE TABLE links (
  token_hash bytea PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('claim', 'invitation', 'sign-in')),
  account_id text REFERENCES accounts,
  email text,
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- An invitation creates its account when it is used. Every other link belongs to an existing account.
  CHECK ((kind = 'invitation') = (account_id IS NULL))
);
CREATE INDEX links_by_end ON links (expires_at);
