-- Keys that sign challenges, each derived from a master key. Kept (sealed) after a master key rotation, because paid payments must keep
-- returning their receipts.
CREATE TABLE protocol_keys (
  id text PRIMARY KEY,
  -- The master key that seals it now.
  key_id text NOT NULL,
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- When a payment to the node was last recorded. An observation that began earlier must not report the node as empty.
ALTER TABLE nodes ADD COLUMN funded_at timestamptz;

-- Stored apart from the material, so that code that checks events cannot open the seed. Null for older nodes: their events are ignored, and
-- polling finds their settlements.
ALTER TABLE node_secrets ADD COLUMN webhook_secret bytea;

-- With a foreign key, concurrent inserts would all lock the account's row (a MultiXact). Rows of accounts and nodes are never deleted, so
-- neither this table nor the next one needs foreign keys.
ALTER TABLE activity DROP CONSTRAINT activity_account_id_fkey;
-- One index instead of two: the log is always read by account.
ALTER TABLE activity DROP CONSTRAINT activity_pkey, ADD PRIMARY KEY (account_id, id);
DROP INDEX activity_of_account;

CREATE TABLE gateway_payments (
  id text PRIMARY KEY,
  account_id text NOT NULL,
  node_id text NOT NULL,
  protocol text NOT NULL CHECK (protocol IN ('mpp', 'l402')),
  amount_sat bigint NOT NULL CHECK (amount_sat > 0),
  description text NOT NULL,
  -- The whole header as issued. What a client returns is compared with it byte for byte.
  challenge text NOT NULL,
  payment_hash bytea NOT NULL,
  protocol_key_id text NOT NULL,
  token_id bytea CHECK ((token_id IS NOT NULL) = (protocol = 'l402')),
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- When the node received the money. The payment is paid only once its credential has been validated too.
  settled_at timestamptz,
  -- Written once, with the time of settlement. Everyone who presents the credential gets this receipt.
  receipt text CHECK ((receipt IS NOT NULL) = (settled_at IS NOT NULL AND protocol = 'mpp')),
  paid_at timestamptz CHECK (paid_at IS NULL OR settled_at IS NOT NULL),
  redeemed_at timestamptz CHECK (redeemed_at IS NULL OR paid_at IS NOT NULL),
  redeem_request_id text,
  -- When the node is asked about the payment next. Null if there is nothing left to ask.
  ask_at timestamptz CHECK (ask_at IS NULL OR settled_at IS NULL),
  -- If a node issued the same hash twice, one payment would count for two.
  UNIQUE (node_id, payment_hash)
) WITH (fillfactor = 80);
-- No index contains paid_at or redeemed_at, so the two most frequent updates change no index.
CREATE INDEX gateway_payments_of_account ON gateway_payments (account_id, id);
CREATE INDEX gateway_payments_of_node ON gateway_payments (account_id, node_id, id);
CREATE INDEX gateway_payments_to_ask ON gateway_payments (node_id, ask_at) WHERE ask_at IS NOT NULL;
