-- x402 is a third protocol. NOT VALID, because every row has passed the narrower check: reading them all would hold up every payment.
ALTER TABLE gateway_payments DROP CONSTRAINT gateway_payments_protocol_check;
ALTER TABLE gateway_payments ADD CONSTRAINT gateway_payments_protocol_check CHECK (protocol IN ('mpp', 'l402', 'x402')) NOT VALID;
