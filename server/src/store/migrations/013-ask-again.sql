-- Alone, because it takes the longest and meets no other lock: nobody waits for it.
-- Nobody wrote down what nodes said before: they are asked once more, and then unpaid challenges of before can be removed too. Not all at
-- once: a node that is asked about a hundred thousand is slow to answer its customers.
UPDATE gateway_payments SET ask_at = now() + random() * interval '1 day'
WHERE settled_at IS NULL AND ask_at IS NULL AND unpaid_at IS NULL;
