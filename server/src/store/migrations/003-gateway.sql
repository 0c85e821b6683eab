-- What challenges are signed with. Derived from a master key, and kept, sealed, when that one is replaced: a payment that was paid under
-- it must answer its receipt for ever after.
CREATE TABLE protocol_keys (
  id text PRIMARY KEY,
  -- The master key that it is sealed under now.
  key_id text NOT NULL,
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- When a payment to it was last recorded: a look at the node that began before cannot say that it is empty.
ALTER TABLE nodes ADD COLUMN funded_at timestamptz;

-- Apart from the material, so that who checks a node's event cannot open its seed. Null for nodes made before: their events are not
-- believed, and the sweep finds what they tell.
ALTER TABLE node_secrets ADD COLUMN webhook_secret bytea;

-- Rows of one account that are written at once would all lock that account's row to prove that it exists, and PostgreSQL keeps such
-- crowds in a table of their own. Accounts and nodes are never removed: the proof is not needed here, nor for what follows.
ALTER TABLE activity DROP CONSTRAINT activity_account_id_fkey;
-- And one index instead of two: the log is only ever read by account.
ALTER TABLE activity DROP CONSTRAINT activity_pkey, ADD PRIMARY KEY (account_id, id);
DROP INDEX activity_of_account;

CREATE TABLE gateway_payments (
  id text PRIMARY KEY,
  account_id text NOT NULL,
  node_id text NOT NULL,
  protocol text NOT NULL CHECK (protocol IN ('mpp', 'l402')),
  amount_sat bigint NOT NULL CHECK (amount_sat > 0),
  description text NOT NULL,
  -- The whole header, as it was issued: what comes back is compared with it byte for byte.
  challenge text NOT NULL,
  payment_hash bytea NOT NULL,
  protocol_key_id text NOT NULL,
  token_id bytea CHECK ((token_id IS NOT NULL) = (protocol = 'l402')),
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- The node's word. It does not make the payment paid: that takes the credential too.
  settled_at timestamptz,
  -- Written once, with the time of settlement in it, and given out to whoever has the credential.
  receipt text CHECK ((receipt IS NOT NULL) = (settled_at IS NOT NULL AND protocol = 'mpp')),
  paid_at timestamptz CHECK (paid_at IS NULL OR settled_at IS NOT NULL),
  redeemed_at timestamptz CHECK (redeemed_at IS NULL OR paid_at IS NOT NULL),
  redeem_request_id text,
  -- When the node is asked about it next; null when there is nothing left to ask.
  ask_at timestamptz CHECK (ask_at IS NULL OR settled_at IS NULL),
  -- A node that gives one hash twice would let one payment count for two.
  UNIQUE (node_id, payment_hash)
) WITH (fillfactor = 80);
-- No index names paid_at or redeemed_at: so the two hot updates touch no index at all.
CREATE INDEX gateway_payments_of_account ON gateway_payments (account_id, id);
CREATE INDEX gateway_payments_of_node ON gateway_payments (account_id, node_id, id);
CREATE INDEX gateway_payments_to_ask ON gateway_payments (node_id, ask_at) WHERE ask_at IS NOT NULL;
