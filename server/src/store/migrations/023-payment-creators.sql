-- The API key or the person that created a payment; null in payments from before this column. Without a default, no row is rewritten.
ALTER TABLE gateway_payments
  ADD COLUMN created_by text,
  -- For the index of listed payments (029): an index alone is enough only for rows that vacuum has seen.
  SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
