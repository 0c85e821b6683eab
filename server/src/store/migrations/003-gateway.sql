-- What challenges are signed with. Derived from a master key, and kept, sealed, when that one is replaced: a payment that was paid under
-- it must answer its receipt for ever after.
CREATE TABLE protocol_keys (
  id text PRIMARY KEY,
  -- The master key that it is sealed under now.
  key_id text NOT NULL,
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Apart from the material, so that who checks a node's event cannot open its seed. Null for nodes made before: their events are not
-- believed, and the sweep finds what they tell.
ALTER TABLE node_secrets ADD COLUMN webhook_secret bytea;

CREATE TABLE gateway_payments (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  node_id text NOT NULL REFERENCES nodes,
  protocol text NOT NULL CHECK (protocol IN ('mpp', 'l402')),
  amount_sat bigint NOT NULL CHECK (amount_sat > 0),
  description text NOT NULL,
  -- The whole header, as it was issued: what comes back is compared with it byte for byte.
  challenge text NOT NULL,
  payment_hash bytea NOT NULL,
  protocol_key_id text NOT NULL REFERENCES protocol_keys,
  token_id bytea CHECK ((token_id IS NOT NULL) = (protocol = 'l402')),
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- The node's word. It does not make the payment paid: that takes the credential too.
  settled_at timestamptz,
  paid_at timestamptz CHECK (paid_at IS NULL OR settled_at IS NOT NULL),
  receipt text CHECK ((receipt IS NOT NULL) = (paid_at IS NOT NULL AND protocol = 'mpp')),
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
