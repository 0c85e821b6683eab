-- A list that takes several turns continues where the last turn stopped, in whichever process. In JSON, because no query looks into it.
ALTER TABLE node_receipt_lists ADD COLUMN unfinished jsonb;
