-- An x402 payment is found by its invoice, in each of the account's nodes. A node that was deleted may have been paid just before.
-- In a migration of its own: while the index is built, payments must not wait for the lock of the next one.
CREATE INDEX nodes_ever_of_account ON nodes (account_id, id);
