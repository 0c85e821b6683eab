-- Who signs in. The shape is better-auth's, the names are ours; the columns that it has for other companies' sign-in are left out.
CREATE TABLE people (
  id text PRIMARY KEY,
  -- One person, one account: nobody is here without an account, and no account has two.
  account_id text NOT NULL UNIQUE REFERENCES accounts,
  email text NOT NULL,
  email_verified boolean NOT NULL DEFAULT false,
  name text NOT NULL,
  image text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
-- Whoever writes it, in whatever case: two people cannot share an address.
CREATE UNIQUE INDEX people_email ON people (lower(email));

CREATE TABLE people_sessions (
  id text PRIMARY KEY,
  person_id text NOT NULL REFERENCES people ON DELETE CASCADE,
  -- SHA-256 of what the cookie carries: who reads this table cannot sign in with it.
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

-- Challenges that a passkey has to sign, for some minutes.
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

-- Ways in that the operator, or the first start, hands out. The token is in the link only.
CREATE TABLE links (
  token_hash bytea PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('claim', 'invitation', 'sign-in')),
  account_id text REFERENCES accounts,
  email text,
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- An invitation makes its account when it is used; every other link is to one that exists.
  CHECK ((kind = 'invitation') = (account_id IS NULL))
);
CREATE INDEX links_by_end ON links (expires_at);
