-- Separate, because it takes the longest. In a transaction of its own it holds no table lock that others wait for.
-- Earlier answers of nodes were not stored, so nodes are asked again. Then old unpaid challenges can be removed too. Spread over a day: a
-- node that is asked about a hundred thousand payments at once responds slowly to its customers.
UPDATE gateway_payments SET ask_at = now() + random() * interval '1 day'
WHERE settled_at IS NULL AND ask_at IS NULL AND unpaid_at IS NULL;
